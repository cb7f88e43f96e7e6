//! The files that the checks look at: every text file that git tracks or would track.
//!
//! Rust is also there as the rules want it: without comments and with empty literals, on the same lines, tests apart from
//! the rest. That relies on `cargo fmt`, by which an item ends where its indentation comes back. Invariant: paths are
//! relative to the top of the repository, with `/`. Not here: binary files, ignored files, a parser.

use crate::run;
use anyhow::{Context, Result};
use regex_lite::{Captures, Regex};
use std::path::Path;

/// Comments, and literals that may hold anything.
const NO_CODE: &str = r####"(?s)//[^\n]*|/\*.*?\*/|\br##".*?"##|\bb?r#".*?"#|\bb?r"[^"]*"|"(?:[^"\\]|\\.)*"|'(?:\\.[^'\n]*|[^'\\\n])'"####;
/// Files that are tests and nothing else.
const TEST_FILE: &str = r"^crates/(e2e|testkit)/|/tests(/.*)?\.rs$";

/// All text files of the repository.
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
}

/// One text file.
#[derive(Default)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
    /// Rust that is no test.
    pub(crate) code: String,
    /// Rust under `#[cfg(test)]` and in files of tests.
    pub(crate) tests: String,
    /// How many lines of it are tests.
    pub(crate) test_lines: usize,
}

impl Tree {
    pub(crate) fn load(root: &Path) -> Result<Self> {
        // git lists the files, so that build output and scratch files are left out.
        let listing = run::answer(run::line("git ls-files -z --cached --others --exclude-standard", root))
            .context("`git ls-files` failed in this directory; a git checkout is needed")?;
        let mut files = Vec::new();
        for path in listing.split('\0') {
            // Binary; deleted and not yet committed; the directory of a nested checkout.
            let Ok(text) = std::fs::read_to_string(root.join(path)) else { continue };
            files.extend((!text.contains('\0')).then_some((path.to_owned(), text)));
        }
        Ok(Self::of(files))
    }

    /// A tree made of paths and texts.
    pub(crate) fn of(mut files: Vec<(String, String)>) -> Self {
        files.sort();
        files.dedup();
        let (no_code, test_file) = (pattern(NO_CODE), pattern(TEST_FILE));
        let file = |(path, text): (String, String)| {
            if !path.ends_with(".rs") {
                return File { path, text, ..File::default() };
            }
            let rust = no_code.replace_all(&text, |found: &Captures<'_>| {
                let literal = if found[0].starts_with('/') { "" } else { "\"\"" };
                literal.to_owned() + &"\n".repeat(found[0].matches('\n').count())
            });
            let (code, tests, test_lines) = apart(&rust, test_file.is_match(&path));
            File { path, code, tests, test_lines, text }
        };
        Self { files: files.into_iter().map(file).collect() }
    }

    pub(crate) fn text(&self, path: &str) -> &str {
        self.files.iter().find(|file| file.path == path).map_or("", |file| &file.text)
    }

    /// The files that are not only tests.
    pub(crate) fn product(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| !file.code.trim().is_empty())
    }
}

/// Rust without tests, tests, and how many lines these have; an empty line in the one for each of the other.
fn apart(rust: &str, all_tests: bool) -> (String, String, usize) {
    let lines: Vec<&str> = rust.lines().collect();
    let (mut code, mut tests, mut count, mut until) = (String::new(), String::new(), 0, 0);
    for (at, line) in lines.iter().enumerate() {
        if at >= until && line.trim_start() == "#[cfg(test)]" {
            until = end_of_item(&lines, at) + 1;
        }
        let is_test = all_tests || at < until;
        count += usize::from(is_test);
        if is_test { &mut tests } else { &mut code }.push_str(line);
        code.push('\n');
        tests.push('\n');
    }
    (code, tests, count)
}

/// The last line of the item that begins at this one, with its attributes.
pub(crate) fn end_of_item(lines: &[&str], start: usize) -> usize {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let ends = |line: &&str| {
        indent(line) == indent(lines[start])
            && !line.trim_start().starts_with('#')
            && line.ends_with([';', ',', '}'])
    };
    lines[start..].iter().position(ends).map_or(lines.len() - 1, |length| start + length)
}

/// A pattern of ours.
pub(crate) fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn tree(files: &[(&str, &str)]) -> Tree {
        Tree::of(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }

    #[test]
    fn text_files_are_read_ignored_and_binary_ones_are_not() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let write =
            |name: &str, bytes: &[u8]| std::fs::write(root.path().join(name), bytes).expect("writable");
        assert!(run::answer(run::line("git init --quiet", root.path())).is_some());
        write(".gitignore", b"scratch\n");
        write("scratch", b"x");
        write("kept", b"x");
        write("binary", b"x\0y");
        let tree = Tree::load(root.path()).expect("a git checkout");
        let paths: Vec<&str> = tree.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, [".gitignore", "kept"]);
    }

    #[test]
    fn comments_and_literals_are_no_code_and_lifetimes_are() {
        let text = "// a\n/* b\n */ f(\"c\\\"\", r#\"d\"e\"#, '\\'', 'f')\nfn g<'h>() {}\n";
        assert_eq!(tree(&[("a.rs", text)]).files[0].code, "\n\n f(\"\", \"\", \"\", \"\")\nfn g<'h>() {}\n");
    }

    #[test]
    fn tests_are_found_inline_and_in_files() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { \"}\"; }\n}\nfn c() {}\n#[cfg(test)]\nmod model;\n";
        let files = [
            ("x/src/a.rs", text),
            ("x/src/a/tests.rs", "fn d() {}\n"),
            ("x/src/a/tests/b.rs", "fn e() {}\n"),
        ];
        let [a, beside, below] = &*tree(&files).files else { panic!("three files") };
        assert_eq!((&*a.code, a.test_lines), ("fn a() {}\n\n\n\n\nfn c() {}\n\n\n", 6));
        assert_eq!((&*beside.tests, beside.test_lines), ("fn d() {}\n", 1));
        assert_eq!((&*below.tests, below.test_lines), ("fn e() {}\n", 1));
    }
}
