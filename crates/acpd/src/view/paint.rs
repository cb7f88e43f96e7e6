//! The view's few styles, and where it is shown.

use std::fmt::Display;
use std::io::{self, IsTerminal};

use anstyle::{AnsiColor, Style};

/// What the view needs to know about where stdout and stderr go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Screen {
    /// stderr is a terminal that understands cursor movements: progress may be redrawn.
    pub terminal: bool,
    /// Styles may be written to stderr. stdout never gets any.
    pub colour: bool,
    /// stdout and stderr show up in the same place, so that one must not break into the other's line.
    pub shared: bool,
}

impl Screen {
    /// The screen of this process, by the choice that was made for all of it: `--color`, `NO_COLOR`, `TERM`.
    pub fn of_process() -> Self {
        let (out, err) = (io::stdout(), io::stderr());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Screen {
            terminal: err.is_terminal() && !dumb,
            colour: anstream::AutoStream::choice(&err) != anstream::ColorChoice::Never,
            shared: same_file(&out, &err),
        }
    }

    /// The screen of a process that writes everything to stdout.
    pub(crate) fn of_stdout() -> Self {
        let out = io::stdout();
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Screen {
            terminal: out.is_terminal() && !dumb,
            colour: anstream::AutoStream::choice(&out) != anstream::ColorChoice::Never,
            shared: true,
        }
    }
}

fn same_file(out: &io::Stdout, err: &io::Stderr) -> bool {
    match (rustix::fs::fstat(out), rustix::fs::fstat(err)) {
        (Ok(out), Ok(err)) => (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino),
        _ => false,
    }
}

/// Puts styles around text, or leaves it alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    colour: bool,
}

impl Paint {
    pub(crate) const fn new(colour: bool) -> Self {
        Paint { colour }
    }

    pub(crate) const fn is_coloured(self) -> bool {
        self.colour
    }

    fn style(self, style: Style, text: impl Display) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_string() }
    }

    fn coloured(self, colour: AnsiColor, text: impl Display) -> String {
        self.style(Style::new().fg_color(Some(colour.into())), text)
    }

    /// Beside the point: details, thoughts, facts about the session.
    pub(crate) fn dim(self, text: impl Display) -> String {
        self.style(Style::new().dimmed(), text)
    }

    /// What a line is about.
    pub(crate) fn bold(self, text: impl Display) -> String {
        self.style(Style::new().bold(), text)
    }

    /// Went well, or was added.
    pub(crate) fn good(self, text: impl Display) -> String {
        self.coloured(AnsiColor::Green, text)
    }

    /// Went wrong, or was removed.
    pub(crate) fn bad(self, text: impl Display) -> String {
        self.coloured(AnsiColor::Red, text)
    }

    /// Deserves a look, or is under way.
    pub(crate) fn notable(self, text: impl Display) -> String {
        self.coloured(AnsiColor::Yellow, text)
    }

    /// The kind of a thing.
    pub(crate) fn kind(self, text: impl Display) -> String {
        self.coloured(AnsiColor::Cyan, text)
    }
}
