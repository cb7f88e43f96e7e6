//! Rules of Rust files: module docs, sizes, what `lib.rs` holds, `unsafe`, ignored tests, sleeping tests.
//!
//! Not here: what clippy knows (`unwrap`, `todo!`, banned functions).

use super::Finding;
use super::source::{Source, find_word};
use super::tree::{File, Tree};
use std::collections::BTreeSet;

/// The one file that may hold `unsafe`: what runs between fork and exec.
const UNSAFE_FILE: &str = "crates/supervisor/src/keeper/spawn.rs";

/// Lines of a file without its tests.
const MAX_LINES: usize = 600;

/// Lines of tests inside a file.
const MAX_TEST_LINES: usize = 200;

const SLEEP_ALLOWED: &str = "// tidy: allow sleep, ";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let sources: Vec<(&File, Source)> =
        tree.rust_files().map(|file| (file, Source::new(&file.text))).collect();
    let test_files: BTreeSet<String> =
        sources.iter().flat_map(|(file, source)| files_of_test_modules(&file.path, source)).collect();
    let mut findings = Vec::new();
    for (file, source) in &sources {
        let is_test = is_test_file(&file.path) || test_files.contains(&file.path);
        findings.extend(module_file(file));
        findings.extend(module_docs(file));
        if !is_test {
            findings.extend(sizes(file, source));
        }
        if file.path.starts_with("crates/") && file.path.ends_with("/src/lib.rs") {
            findings.extend(library_root(file, source));
        }
        findings.extend(unsafe_code(file, source));
        findings.extend(ignored_tests(file, source));
        findings.extend(sleeping_tests(file, source, is_test));
    }
    findings
}

fn is_test_file(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs") || is_harness(path)
}

fn is_harness(path: &str) -> bool {
    path.starts_with("crates/e2e/") || path.starts_with("crates/testkit/")
}

/// Where `#[cfg(test)] mod name;` in the file at `path` leads.
fn files_of_test_modules(path: &str, source: &Source) -> Vec<String> {
    let stem = path.trim_end_matches(".rs");
    let is_root = stem.ends_with("/lib") || stem.ends_with("/main");
    let dir = if is_root { stem.rsplit_once('/').map_or("", |(dir, _)| dir) } else { stem };
    source.test_modules.iter().map(|name| format!("{dir}/{name}.rs")).collect()
}

fn module_file(file: &File) -> Option<Finding> {
    let dir = file.path.strip_suffix("/mod.rs")?;
    Some(Finding::new(&file.path, 1, "mod.rs is not used here", format!("move it to {dir}.rs")))
}

fn module_docs(file: &File) -> Option<Finding> {
    let in_src = file.path.contains("/src/");
    (in_src && !file.text.starts_with("//!")).then(|| {
        let fix = "begin with `//!`: purpose, owner, invariants, and what it is not";
        Finding::new(&file.path, 1, "a module without docs", fix)
    })
}

fn sizes(file: &File, source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let tests: usize = source.test_regions.iter().map(ExactSizeIterator::len).sum();
    let lines = file.text.lines().count() - tests.min(file.text.lines().count());
    if lines > MAX_LINES {
        let problem = format!("{lines} lines without tests, more than {MAX_LINES}");
        findings.push(Finding::new(&file.path, 1, problem, "split it: a file holds one idea"));
    }
    if tests > MAX_TEST_LINES {
        let line = source.test_regions.iter().map(|region| region.start).max().unwrap_or(0);
        let home = file.path.trim_end_matches(".rs").trim_end_matches("/lib");
        let problem = format!("{tests} lines of tests, more than {MAX_TEST_LINES}");
        findings.push(Finding::new(&file.path, line + 1, problem, format!("move them to {home}/tests.rs")));
    }
    findings
}

/// Docs, `mod name;` and `pub use` only.
fn library_root(file: &File, source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let code = without_attributes(&source.code);
    let mut at = 0;
    while let Some(offset) = code[at..].find(|c: char| !c.is_whitespace()) {
        let start = at + offset;
        let end = code[start..].find(';').map_or(code.len(), |offset| start + offset + 1);
        let statement = code[start..end].trim();
        let after_visibility = match statement.strip_prefix("pub(") {
            Some(rest) => rest.split_once(')').map_or("", |(_, rest)| rest).trim_start(),
            None => statement.strip_prefix("pub ").unwrap_or(statement).trim_start(),
        };
        let is_module = after_visibility.starts_with("mod ") && !statement.contains('{');
        let is_re_export = after_visibility.starts_with("use ") && statement.starts_with("pub");
        if !is_module && !is_re_export {
            let line = code[..start].matches('\n').count() + 1;
            let fix = "move it to a module: lib.rs holds docs, `mod name;` and `pub use` only";
            findings.push(Finding::new(&file.path, line, "lib.rs holds something else than re-exports", fix));
            // What follows is inside this item as likely as not.
            return findings;
        }
        at = end;
    }
    findings
}

/// Blanks out `#[...]` and `#![...]`.
fn without_attributes(code: &str) -> String {
    let mut bytes = code.as_bytes().to_vec();
    let mut at = 0;
    while let Some(offset) = bytes[at..].iter().position(|&byte| byte == b'#') {
        at += offset;
        let mut depth = 0_usize;
        while let Some(byte) = bytes.get_mut(at) {
            let last = *byte == b']' && depth <= 1;
            match *byte {
                b'[' => depth += 1,
                b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if *byte != b'\n' {
                *byte = b' ';
            }
            at += 1;
            if last {
                break;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn unsafe_code(file: &File, source: &Source) -> Vec<Finding> {
    if file.path == UNSAFE_FILE {
        return Vec::new();
    }
    let found = source.code.lines().enumerate().filter(|(_, line)| find_word(line, "unsafe").is_some());
    let fix = format!("use a safe function of rustix or std; only {UNSAFE_FILE} may");
    found.map(|(line, _)| Finding::new(&file.path, line + 1, "`unsafe` outside its file", &*fix)).collect()
}

fn ignored_tests(file: &File, source: &Source) -> Vec<Finding> {
    let found = source.code.lines().enumerate().filter(|(_, line)| line.contains("#[ignore"));
    let fix = "make it run everywhere, or make it a command of xtask";
    found.map(|(line, _)| Finding::new(&file.path, line + 1, "an ignored test", fix)).collect()
}

fn sleeping_tests(file: &File, source: &Source, is_test: bool) -> Vec<Finding> {
    let lines: Vec<&str> = file.text.lines().collect();
    let has_reason =
        |line: &str| line.split_once(SLEEP_ALLOWED).is_some_and(|(_, reason)| !reason.trim().is_empty());
    let allowed = |at: usize| has_reason(lines[at]) || (at > 0 && has_reason(lines[at - 1]));
    let mut findings = Vec::new();
    for (at, line) in source.code.lines().enumerate() {
        let sleeps = ["thread::sleep", "time::sleep"].iter().any(|name| line.contains(name));
        if sleeps && (is_test || source.is_test_line(at)) && !allowed(at) {
            let fix = format!("wait on an event, or put `{SLEEP_ALLOWED}REASON` above");
            findings.push(Finding::new(&file.path, at + 1, "a test that sleeps", fix));
        }
    }
    findings
}

#[cfg(test)]
mod tests;
