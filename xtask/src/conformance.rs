//! `cargo xtask conformance`: writes `docs/conformance.md`, or checks that it is true.
//!
//! Which tests show a requirement comes from the marks above them, so that the page cannot claim what no test names.
//! Invariant: with `--check`, and as a part of `cargo xtask tidy`, it only reads. Not here: running the tests, or
//! judging whether a test shows what its mark says.

mod page;
pub(crate) mod requirements;

use crate::tidy::Finding;
use crate::tidy::marks;
use crate::tidy::tree::Tree;
use anyhow::{Context, Result};
use clap::Args;
use requirements::{Group, Requirement};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const PAGE: &str = "docs/conformance.md";
const TABLE: &str = "xtask/src/conformance/requirements.toml";

/// Where tests of acpd are.
const TESTED: &[&str] = &["crates/", "interop/"];
/// Its tests show the agent that acpd is tested with, so they are no evidence about acpd.
const TEST_PEER: &str = "crates/example-agent/";

/// By requirement: the tests that show it, as `crate::test`.
type Shown = BTreeMap<&'static str, BTreeSet<String>>;

/// What the command line says.
#[derive(Args)]
pub(crate) struct Options {
    /// Write nothing; fail when the page is stale or a requirement has neither a test nor a reason
    #[arg(long)]
    check: bool,
}

/// Runs the command; true when it wrote the page, or had nothing to find.
pub(crate) fn run(options: &Options, root: &Path) -> Result<bool> {
    if options.check { check_tree(root) } else { write(root).map(|()| true) }
}

fn check_tree(root: &Path) -> Result<bool> {
    let tree = Tree::load(root)?;
    let mut findings = marks::check(&tree);
    findings.extend(check(&tree));
    for finding in &findings {
        anstream::println!("{finding}");
    }
    Ok(findings.is_empty())
}

/// Writes the page and says what is still open, which is for the check to refuse.
fn write(root: &Path) -> Result<()> {
    let tree = Tree::load(root)?;
    let shown = shown(&tree);
    let path = root.join(PAGE);
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    std::fs::write(path, page::page(&shown)).context(PAGE)?;
    for finding in contradictions(&tree, &shown) {
        anstream::println!("{finding}");
    }
    let tested = requirements::all().filter(|(_, one)| page::state(one, &shown) == "tested").count();
    anstream::println!("{PAGE}: {tested} of {} requirements tested", requirements::all().count());
    Ok(())
}

/// What is wrong with the page, and with the table that it is made from.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let shown = shown(tree);
    let mut findings = contradictions(tree, &shown);
    findings.extend(staleness(tree, &page::page(&shown)));
    findings
}

/// The tests that show each requirement, by their marks.
fn shown(tree: &Tree) -> Shown {
    let mut shown = Shown::new();
    for file in tree.rust_files() {
        let Some(name) = crate_of(&file.path) else { continue };
        for mark in marks::marks(&file.text) {
            if let Some(requirement) = requirements::find(mark.name) {
                shown.entry(&requirement.id).or_default().insert(format!("{name}::{}", mark.test));
            }
        }
    }
    shown
}

/// The directory of the crate that a file of tests belongs to; None where tests are no evidence.
fn crate_of(path: &str) -> Option<&str> {
    if !TESTED.iter().any(|dir| path.starts_with(dir)) || path.starts_with(TEST_PEER) {
        return None;
    }
    let (dir, _) = path.split_once("/src/").or_else(|| path.split_once("/tests/"))?;
    dir.rsplit('/').next()
}

/// Requirements whose tests and reasons do not fit together.
fn contradictions(tree: &Tree, shown: &Shown) -> Vec<Finding> {
    let found = requirements::all().filter_map(|(group, requirement)| {
        let (problem, fix) = contradiction(group, requirement, shown)?;
        Some(Finding::new(TABLE, line_of(tree, &requirement.id), problem, fix))
    });
    found.collect()
}

fn contradiction(group: &Group, requirement: &Requirement, shown: &Shown) -> Option<(String, String)> {
    let Requirement { id, part, later, .. } = requirement;
    let otherwise = "or say with `later` why there is none";
    match (shown.get(id.as_str()).and_then(BTreeSet::first), later) {
        (Some(test), Some(reason)) => Some((
            format!("{id} is said not to be tested ({reason}), but {test} shows it"),
            "drop the reason, or say with `part` what is still missing".to_owned(),
        )),
        (None, None) if part.is_some() => Some((
            format!("{id} is said to be tested in part, but no test shows it"),
            format!("put `// {id}` above the test, {otherwise}"),
        )),
        (None, None) if group.untested.is_none() => Some((
            format!("{id} has neither a test nor a reason"),
            format!("put `// {id}` above the test that shows it, {otherwise}"),
        )),
        _ => None,
    }
}

/// Where in its file a requirement stands, from 1.
fn line_of(tree: &Tree, id: &str) -> usize {
    let quoted = format!("\"{id}\"");
    let found = tree.file(TABLE).and_then(|file| file.text.lines().position(|line| line.contains(&quoted)));
    found.map_or(1, |line| line + 1)
}

/// The first line in which the page is not what it should be.
fn staleness(tree: &Tree, wanted: &str) -> Option<Finding> {
    const FIX: &str = "run `cargo xtask conformance`";
    let Some(file) = tree.file(PAGE) else {
        return Some(Finding::new(PAGE, 1, "missing", FIX));
    };
    if file.text == wanted {
        return None;
    }
    let (has, wants): (Vec<&str>, Vec<&str>) = (file.text.lines().collect(), wanted.lines().collect());
    // Two texts with equal lines differ in their last line end.
    let at = (0..has.len().max(wants.len())).find(|&at| has.get(at) != wants.get(at)).unwrap_or(has.len());
    let line = |lines: &[&str]| lines.get(at).map_or("nothing".to_owned(), |line| format!("`{line}`"));
    let problem = format!("stale: has {}, should have {}", line(&has), line(&wants));
    Some(Finding::new(PAGE, at + 1, problem, FIX))
}

#[cfg(test)]
mod tests;
