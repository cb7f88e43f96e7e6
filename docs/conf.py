"""The book: Sphinx makes it of the Markdown here, by `cargo xtask book` (docs/adr/0020-the-book.md)."""

import re

project = "acpd"
html_title = "acpd"
extensions = ["myst_parser"]
# What GitHub makes of a heading, so that links hold in both.
myst_heading_anchors = 4
# Pygments does not know every language.
suppress_warnings = ["misc.highlighting_failure"]
html_theme = "furo"
html_theme_options = {"top_of_page_buttons": []}
smartquotes = False
html_static_path = ["book.css"]
html_css_files = ["book.css"]
html_copy_source = False
html_show_copyright = False
exclude_patterns = ["schema"]


def link_files(_app, _page, source):
    """Markdown beside docs/ is no page of the book: its file goes with the book, as others do that pages link to."""
    source[0] = re.sub(r"\]\((\.\./[^)#]*\.md)(#[^)]*)?\)", r"](path:\1)", source[0])


def setup(app):
    app.connect("source-read", link_files)
