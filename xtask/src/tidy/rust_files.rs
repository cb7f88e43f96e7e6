//! Rules of Rust files: module docs, sizes, what `lib.rs` holds, `unsafe`, ignored tests, sleeping tests.
//!
//! Not here: what clippy knows (`unwrap`, `todo!`, banned functions).

use super::Finding;
use super::source::Source;
use super::tree::{File, Tree};
use std::collections::BTreeSet;

/// The one file that may hold `unsafe`: what runs between fork and exec.
const UNSAFE_FILE: &str = "crates/supervisor/src/keeper/spawn.rs";

/// Lines of a file without its tests.
const MAX_LINES: usize = 600;

/// Lines of tests inside a file.
const MAX_TEST_LINES: usize = 200;

const SLEEP_ALLOWED: &str = "// tidy: allow sleep, ";

/// A Rust file as the rules see it.
pub(super) struct Code<'a> {
    pub(super) file: &'a File,
    pub(super) source: Source,
    /// The whole file is tests.
    pub(super) is_test: bool,
}

impl Code<'_> {
    /// Lines that are no tests.
    pub(super) fn lines(&self) -> usize {
        self.file.text.lines().count().saturating_sub(self.test_lines())
    }

    fn test_lines(&self) -> usize {
        self.source.test_regions.iter().map(|region| region.end() + 1 - region.start()).sum()
    }

    fn finding(&self, line: usize, problem: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding::new(&self.file.path, line, problem, fix)
    }
}

/// All Rust files.
pub(super) fn code(tree: &Tree) -> Vec<Code<'_>> {
    let sources: Vec<_> = tree.rust_files().map(|file| (file, Source::new(&file.text))).collect();
    let test_files: BTreeSet<String> =
        sources.iter().flat_map(|(file, source)| files_of_test_modules(&file.path, source)).collect();
    let code = |(file, source): (_, Source)| {
        let path: &str = &(file as &File).path;
        let harness = path.starts_with("crates/e2e/") || path.starts_with("crates/testkit/");
        let in_module = |file: &String| path.strip_prefix(file.trim_end_matches(".rs"));
        let of_tests = |rest: &str| rest == ".rs" || rest.starts_with('/');
        let named = path.contains("/tests/") || path.ends_with("/tests.rs");
        let is_test = harness || named || test_files.iter().filter_map(in_module).any(of_tests);
        Code { file, source, is_test }
    };
    sources.into_iter().map(code).collect()
}

/// Where `#[cfg(test)] mod name;` in the file at `path` leads.
fn files_of_test_modules(path: &str, source: &Source) -> Vec<String> {
    let stem = path.trim_end_matches(".rs");
    let is_root = stem.ends_with("/lib") || stem.ends_with("/main");
    let dir = if is_root { stem.rsplit_once('/').map_or("", |(dir, _)| dir) } else { stem };
    source.test_modules.iter().map(|name| format!("{dir}/{name}.rs")).collect()
}

pub(super) fn check(code: &[Code<'_>]) -> Vec<Finding> {
    let rules = [module_file, sizes, library_root, unsafe_code, ignored_tests, sleeping_tests];
    code.iter().flat_map(|code| rules.iter().flat_map(|rule| rule(code))).collect()
}

fn module_file(code: &Code<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(dir) = code.file.path.strip_suffix("/mod.rs") {
        findings.push(code.finding(1, "mod.rs is not used here", format!("move it to {dir}.rs")));
    }
    if code.file.path.contains("/src/") && !code.file.text.starts_with("//!") {
        let fix = "begin with `//!`: purpose, owner, invariants, and what it is not";
        findings.push(code.finding(1, "a module without docs", fix));
    }
    findings
}

fn sizes(code: &Code<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if code.is_test {
        return findings;
    }
    let (lines, tests) = (code.lines(), code.test_lines());
    if lines > MAX_LINES {
        let problem = format!("{lines} lines without tests, more than {MAX_LINES}");
        findings.push(code.finding(1, problem, "split it: a file holds one idea"));
    }
    if tests > MAX_TEST_LINES {
        let line = code.source.test_regions.iter().map(|region| *region.start()).max().unwrap_or(1);
        let home = code.file.path.trim_end_matches(".rs").trim_end_matches("/lib");
        let problem = format!("{tests} lines of tests, more than {MAX_TEST_LINES}");
        findings.push(code.finding(line, problem, format!("move them to {home}/tests.rs")));
    }
    findings
}

/// Docs, `mod name;` and `pub use` only.
fn library_root(code: &Code<'_>) -> Vec<Finding> {
    if !code.file.path.starts_with("crates/") || !code.file.path.ends_with("/src/lib.rs") {
        return Vec::new();
    }
    let mut tokens = code.source.tokens.iter().filter(|token| token.depth == 0).peekable();
    while let Some(first) = tokens.next() {
        if first.text == "#" {
            while tokens.next_if(|token| token.text != "]").is_some() {}
            tokens.next();
            continue;
        }
        let mut item = vec![first.text.as_str()];
        while let Some(token) = tokens.next_if(|_| item.last() != Some(&";")) {
            item.push(&token.text);
        }
        let visible = item[0] == "pub";
        let behind = if item.get(1) == Some(&"(") { 3 } else { usize::from(visible) };
        let is_module = item.get(behind) == Some(&"mod") && !item.contains(&"{");
        let is_re_export = visible && item.get(behind) == Some(&"use");
        if !is_module && !is_re_export {
            let fix = "move it to a module: lib.rs holds docs, `mod name;` and `pub use` only";
            // What follows is inside this item as likely as not.
            return vec![code.finding(first.line, "lib.rs holds something else than re-exports", fix)];
        }
    }
    Vec::new()
}

fn unsafe_code(code: &Code<'_>) -> Vec<Finding> {
    let fix = format!("use a safe function of rustix or std; only {UNSAFE_FILE} may");
    let found = code.source.lines_of("unsafe").filter(|_| code.file.path != UNSAFE_FILE);
    found.map(|line| code.finding(line, "`unsafe` outside its file", &*fix)).collect()
}

fn ignored_tests(code: &Code<'_>) -> Vec<Finding> {
    let fix = "make it run everywhere, or make it a command of xtask";
    code.source.lines_of("# [ ignore").map(|line| code.finding(line, "an ignored test", fix)).collect()
}

fn sleeping_tests(code: &Code<'_>) -> Vec<Finding> {
    let lines: Vec<&str> = code.file.text.lines().collect();
    let has_reason =
        |line: &str| line.split_once(SLEEP_ALLOWED).is_some_and(|(_, reason)| !reason.trim().is_empty());
    // The line itself, or the one above it.
    let allowed = |line: usize| lines[line.saturating_sub(2)..line].iter().any(|line| has_reason(line));
    let sleeps = ["thread : : sleep", "time : : sleep"].map(|name| code.source.lines_of(name));
    let sleeps = sleeps.into_iter().flatten().filter(|line| code.is_test || code.source.is_test_line(*line));
    let fix = format!("wait on an event, or put `{SLEEP_ALLOWED}REASON` above");
    sleeps
        .filter(|line| !allowed(*line))
        .map(|line| code.finding(line, "a test that sleeps", &*fix))
        .collect()
}

#[cfg(test)]
mod tests;
