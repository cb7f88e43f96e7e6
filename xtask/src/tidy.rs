//! `cargo xtask tidy`: the house rules that no compiler and no lint checks.
//!
//! Each check is a function from the tree of files to findings, which are lines for a person: where, what, and how to
//! mend it. Invariant: it only reads. Not here: formatting, lints and anything else that cargo's own tools know.

mod layout;
mod rules;
mod shape;

use crate::conformance;
use crate::tree::Tree;
use anyhow::Result;
use std::path::Path;

/// Runs the command; true when no rule is broken.
pub(crate) fn run(root: &Path) -> Result<bool> {
    let tree = Tree::load(root)?;
    let checks = [rules::check, shape::check, layout::check, conformance::check];
    let mut findings: Vec<String> = checks.iter().flat_map(|check| check(&tree)).collect();
    findings.sort();
    findings.dedup();
    let count = if findings.is_empty() { "nothing".to_owned() } else { findings.len().to_string() };
    findings.push(format!("tidy: {} files, {count} to mend", tree.files.len()));
    anstream::println!("{}", findings.join("\n"));
    Ok(findings.len() == 1)
}
