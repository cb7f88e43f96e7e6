//! Rules of the documents and of CI: what each must have for the next reader to rely on it.
//!
//! Not here: whether what they say is true.

use super::Finding;
use super::tree::Tree;

/// The two commands by which a newcomer starts.
const README_COMMANDS: &[&str] = &["cargo run --release -- run \"hello\"", CI_COMMAND];
/// What CI runs, and all that it runs.
const CI_COMMAND: &str = "cargo xtask test --install";
const CI_SCRIPT: &str = ".ci/run";
const ADR_SECTIONS: &[&str] = &["Status", "Context", "Decision", "Consequences"];
const MAX_ARCHITECTURE_LINES: usize = 199;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Files that have to be there, with lines that have to be in them.
    let of_readme = README_COMMANDS.iter().map(|line| ("README.md", *line, "give it a line in a code block"));
    let ci = (CI_SCRIPT, CI_COMMAND, "CI runs what the README says, so that both stay true");
    let unreleased = ("CHANGELOG.md", "## [Unreleased]", "add the section of what is not released");
    for (path, wanted, fix) in of_readme.chain([unreleased, ci]) {
        let text = tree.file(path).map(|file| file.text.as_str()).unwrap_or_default();
        if !text.lines().any(|line| line.trim() == wanted) {
            findings.push(Finding::new(path, 1, format!("does not show `{wanted}`"), fix));
        }
    }
    if !tree.file(CI_SCRIPT).is_some_and(|file| file.executable) {
        findings.push(Finding::new(CI_SCRIPT, 1, "not executable", format!("chmod +x {CI_SCRIPT}")));
    }
    findings.extend(architecture(tree));
    findings.extend(decision_records(tree));
    findings
}

/// Short, and under a heading that names each crate its Invariant and its Boundary.
fn architecture(tree: &Tree) -> Vec<Finding> {
    let path = "ARCHITECTURE.md";
    let found = |line, problem: String, fix: &str| Finding::new(path, line, problem, fix);
    let mut findings = Vec::new();
    let text = tree.file(path).map(|file| file.text.as_str()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    if !(1..=MAX_ARCHITECTURE_LINES).contains(&lines.len()) {
        let problem = format!("{} lines, not up to {MAX_ARCHITECTURE_LINES}", lines.len());
        findings.push(found(MAX_ARCHITECTURE_LINES + 1, problem, "move detail to docs/"));
    }
    for dir in tree.crate_dirs() {
        let name = format!("crates/{dir}");
        let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-');
        let names_it = |line: &&str| line.starts_with('#') && line.split(&name).skip(1).any(ends);
        let Some(heading) = lines.iter().position(names_it) else {
            findings.push(found(1, format!("says nothing of {name}"), "add a heading with its name"));
            continue;
        };
        let section = lines[heading + 1..].iter().take_while(|line| !line.starts_with('#'));
        let section: String = section.copied().collect();
        for word in ["Invariant:", "Boundary:"].into_iter().filter(|word| !section.contains(word)) {
            findings.push(found(heading + 1, format!("{name} has no `{word}`"), "add it under this heading"));
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
        for section in ADR_SECTIONS.iter().filter(|section| !has_section(&file.text, section)) {
            let fix = format!("write `## {section}` with a text below it");
            findings.push(Finding::new(&file.path, 1, format!("no {section}"), fix));
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

    #[test]
    fn what_a_document_must_have_is_missed() {
        let paths = |tree: &Tree| check(tree).iter().map(|finding| finding.path.clone()).collect::<Vec<_>>();
        let all =
            ["README.md", "README.md", "CHANGELOG.md", CI_SCRIPT, CI_SCRIPT, "ARCHITECTURE.md", "docs/adr"];
        assert_eq!(paths(&Tree::of(&[])), all);
        let mut tree = Tree::of(&[
            ("README.md", "```\ncargo run --release -- run \"hello\"\ncargo xtask test --install\n```\n"),
            ("CHANGELOG.md", "# Change log\n\n## [Unreleased]\n"),
            (CI_SCRIPT, "#!/usr/bin/env bash\ncargo xtask test --install\n"),
        ]);
        tree.files[2].executable = true;
        assert_eq!(paths(&tree), ["ARCHITECTURE.md", "docs/adr"]);
    }

    #[test]
    fn the_architecture_names_each_crate_with_invariant_and_boundary() {
        let problems = |text: &str, crates: &[&str]| -> Vec<String> {
            let manifests: Vec<String> =
                crates.iter().map(|dir| format!("crates/{dir}/Cargo.toml")).collect();
            let files = manifests.iter().map(|path| (path.as_str(), "")).chain([("ARCHITECTURE.md", text)]);
            let tree = Tree::of(&files.collect::<Vec<_>>());
            architecture(&tree).into_iter().map(|finding| finding.problem).collect()
        };
        let good = "# x\n### `crates/wire`\ntext\n**Invariant:** a\n**Boundary:** b\n## y\n";
        assert!(problems(good, &["wire"]).is_empty());
        assert_eq!(problems(good, &["wire", "host"]), ["says nothing of crates/host"]);
        let bad =
            "## crates/wires\nInvariant: a\nBoundary: b\n## crates/wire\nInvariant: a\n## z\nBoundary: b\n";
        assert_eq!(problems(bad, &["wire"]), ["crates/wire has no `Boundary:`"]);
        assert_eq!(problems(&"x\n".repeat(200), &[]).len(), 1);
    }

    #[test]
    fn decision_records_are_complete_and_numbered() {
        let good = "# 1. T\n\n## Status\n\nAccepted\n## Context\na\n## Decision\nb\n## Consequences\nc\n";
        let records = |files: &[(&str, &str)]| decision_records(&Tree::of(files)).len();
        assert_eq!(records(&[("docs/adr/0001-a.md", good), ("docs/adr/0002-b.md", good)]), 0);
        assert_eq!(records(&[("docs/adr/0001-a.md", good), ("docs/adr/0003-b.md", good)]), 1);
        assert_eq!(records(&[("docs/adr/first.md", good)]), 1);
        assert_eq!(records(&[("docs/adr/0001-a.md", "## Status\n## Context\na\n")]), 3);
    }
}
