//! Rules of the documents and of CI: what each must have for the next reader to rely on it.
//!
//! Not here: whether what they say is true.

use super::Finding;
use super::tree::{File, Tree};

/// The two commands by which a newcomer starts.
const README_COMMANDS: &[&str] = &["cargo run --release -- run \"hello\"", CI_COMMAND];
/// What CI runs, and all that it runs.
const CI_COMMAND: &str = "cargo xtask test --install";
const CI_SCRIPT: &str = ".ci/run";
const ADR_SECTIONS: &[&str] = &["Status", "Context", "Decision", "Consequences"];
const MAX_ARCHITECTURE_LINES: usize = 199;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(with(tree, "README.md", readme));
    findings.extend(with(tree, "CHANGELOG.md", change_log));
    findings.extend(with(tree, CI_SCRIPT, ci_script));
    let dirs: Vec<&str> = tree.crate_dirs().collect();
    findings.extend(with(tree, "ARCHITECTURE.md", |file| architecture(file, &dirs)));
    findings.extend(decision_records(tree));
    findings
}

/// Checks a file that has to be there.
fn with(tree: &Tree, path: &str, check: impl Fn(&File) -> Vec<Finding>) -> Vec<Finding> {
    match tree.file(path) {
        Some(file) => check(file),
        None => vec![Finding::new(path, 1, "missing", "write it; CONTRIBUTING.md says what it is for")],
    }
}

fn readme(file: &File) -> Vec<Finding> {
    let is_missing = |command: &&&str| !file.text.lines().any(|line| line.trim() == **command);
    let finding = |command| {
        Finding::new(&file.path, 1, format!("does not show `{command}`"), "give it a line in a code block")
    };
    README_COMMANDS.iter().filter(is_missing).map(finding).collect()
}

fn change_log(file: &File) -> Vec<Finding> {
    let has_it = file.text.lines().any(|line| line.trim_end() == "## [Unreleased]");
    let finding = Finding::new(&file.path, 1, "no section for what is not released", "add `## [Unreleased]`");
    if has_it { Vec::new() } else { vec![finding] }
}

fn ci_script(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !file.executable {
        findings.push(Finding::new(&file.path, 1, "not executable", format!("chmod +x {CI_SCRIPT}")));
    }
    if !file.text.lines().any(|line| line.trim().ends_with(CI_COMMAND)) {
        let fix = "CI runs what the README says, so that both stay true";
        findings.push(Finding::new(&file.path, 1, format!("does not run `{CI_COMMAND}`"), fix));
    }
    findings
}

/// Short, and under a heading that names each crate its Invariant and its Boundary.
fn architecture(file: &File, crate_dirs: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines: Vec<&str> = file.text.lines().collect();
    if lines.len() > MAX_ARCHITECTURE_LINES {
        let problem = format!("{} lines, more than {MAX_ARCHITECTURE_LINES}", lines.len());
        findings.push(Finding::new(&file.path, MAX_ARCHITECTURE_LINES + 1, problem, "move detail to docs/"));
    }
    for dir in crate_dirs {
        let name = format!("crates/{dir}");
        let names_it = |line: &&str| {
            let rest = line.split_once(&name).map(|(_, rest)| rest);
            line.starts_with('#')
                && rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-'))
        };
        let Some(heading) = lines.iter().position(names_it) else {
            let fix = format!("add a heading with `{name}`");
            findings.push(Finding::new(&file.path, 1, format!("says nothing of {name}"), fix));
            continue;
        };
        let section: Vec<&str> =
            lines[heading + 1..].iter().copied().take_while(|line| !line.starts_with('#')).collect();
        for word in ["Invariant:", "Boundary:"] {
            if !section.iter().any(|line| line.contains(word)) {
                let problem = format!("{name} has no `{word}`");
                findings.push(Finding::new(&file.path, heading + 1, problem, "add it under this heading"));
            }
        }
    }
    findings
}

/// `docs/adr/NNNN-title.md`, numbered without holes, each with its four sections.
fn decision_records(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut expected = 1;
    for file in &tree.files {
        let Some(name) = file.path.strip_prefix("docs/adr/") else { continue };
        let number = name.split_once('-').map(|(number, _)| number);
        if number != Some(&format!("{expected:04}")) || !name.ends_with(".md") {
            let fix = format!("the next name is {expected:04}-title.md");
            findings.push(Finding::new(&file.path, 1, "decision records are numbered without holes", fix));
        }
        expected = number.and_then(|number| number.parse().ok()).unwrap_or(expected) + 1;
        for section in ADR_SECTIONS {
            if !has_section(&file.text, section) {
                let fix = format!("write `## {section}` with a text below it");
                findings.push(Finding::new(&file.path, 1, format!("no {section}"), fix));
            }
        }
    }
    if expected == 1 {
        findings.push(Finding::new("docs/adr", 1, "no decision record", "begin with 0001-title.md"));
    }
    findings
}

/// Whether there is a heading of this name with a text below it.
fn has_section(text: &str, name: &str) -> bool {
    let heading = format!("## {name}");
    let mut below = text.lines().skip_while(|line| line.trim_end() != heading).skip(1);
    below.find(|line| !line.trim().is_empty()).is_some_and(|line| !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str, executable: bool) -> File {
        File { path: path.to_owned(), text: text.to_owned(), executable }
    }

    #[test]
    fn a_document_that_is_not_there_is_found() {
        let findings = check(&Tree::of(&[]));
        let paths: Vec<&str> = findings.iter().map(|finding| finding.path.as_str()).collect();
        assert_eq!(paths, ["README.md", "CHANGELOG.md", ".ci/run", "ARCHITECTURE.md", "docs/adr"]);
    }

    #[test]
    fn the_readme_shows_both_commands() {
        let good = "```\ncargo run --release -- run \"hello\"\ncargo xtask test --install\n```\n";
        assert!(readme(&file("README.md", good, false)).is_empty());
        assert_eq!(readme(&file("README.md", "cargo xtask test --install\n", false)).len(), 1);
    }

    #[test]
    fn the_change_log_has_an_unreleased_section() {
        assert!(change_log(&file("CHANGELOG.md", "# Change log\n\n## [Unreleased]\n", false)).is_empty());
        assert_eq!(change_log(&file("CHANGELOG.md", "## [0.1.0]\n", false)).len(), 1);
    }

    #[test]
    fn the_ci_script_can_be_run_and_runs_the_readme_command() {
        assert!(
            ci_script(&file(CI_SCRIPT, "#!/usr/bin/env bash\ncargo xtask test --install\n", true)).is_empty()
        );
        assert_eq!(ci_script(&file(CI_SCRIPT, "cargo test\n", false)).len(), 2);
    }

    #[test]
    fn the_architecture_names_each_crate_with_invariant_and_boundary() {
        let good = "# x\n### `crates/wire`\ntext\n**Invariant:** a\n**Boundary:** b\n## y\n";
        assert!(architecture(&file("ARCHITECTURE.md", good, false), &["wire"]).is_empty());
        let findings = architecture(&file("ARCHITECTURE.md", good, false), &["wire", "host"]);
        assert_eq!(findings[0].problem, "says nothing of crates/host");
        let bad =
            "## crates/wires\nInvariant: a\nBoundary: b\n## crates/wire\nInvariant: a\n## z\nBoundary: b\n";
        let findings = architecture(&file("ARCHITECTURE.md", bad, false), &["wire"]);
        assert_eq!(findings[0].problem, "crates/wire has no `Boundary:`");
        let long = "x\n".repeat(200);
        assert_eq!(architecture(&file("ARCHITECTURE.md", &long, false), &[]).len(), 1);
    }

    #[test]
    fn decision_records_are_complete_and_numbered() {
        let good = "# 1. T\n\n## Status\n\nAccepted\n## Context\na\n## Decision\nb\n## Consequences\nc\n";
        let records = |files: &[(&str, &str)]| decision_records(&Tree::of(files));
        assert_eq!(records(&[("docs/adr/0001-a.md", good), ("docs/adr/0002-b.md", good)]), []);
        assert_eq!(records(&[("docs/adr/0001-a.md", good), ("docs/adr/0003-b.md", good)]).len(), 1);
        assert_eq!(records(&[("docs/adr/first.md", good)]).len(), 1);
        assert_eq!(records(&[("docs/adr/0001-a.md", "## Status\n## Context\na\n")]).len(), 3);
    }
}
