//! `cargo xtask tidy`: the house rules that no compiler and no lint checks.
//!
//! Each check is a function from the tree of files to findings; a finding says where, what, and how to mend it.
//! Invariant: without `--lower` it only reads. Not here: formatting, lints and anything else that cargo's own tools know.

mod documents;
mod imports;
pub(crate) mod marks;
mod rust_files;
mod shape;
mod source;
mod text;
pub(crate) mod tree;

use anyhow::{Context, Result};
use clap::Args;
use std::fmt;
use std::path::Path;
use tree::Tree;

/// What the command line says.
#[derive(Args)]
pub(crate) struct Options {
    /// Write down which exceptions have become smaller, instead of checking
    #[arg(long)]
    lower: bool,
}

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) problem: String,
    fix: String,
}

impl Finding {
    /// `line` counts from 1; what concerns the whole file is at line 1.
    pub(crate) fn new(path: &str, line: usize, problem: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, problem: problem.into(), fix: fix.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.path, self.line, self.problem, self.fix)
    }
}

/// Runs the command; true when no rule is broken.
pub(crate) fn run(options: &Options, root: &Path) -> Result<bool> {
    let tree = Tree::load(root)?;
    if options.lower {
        let text = shape::lowered(&rust_files::code(&tree), &tree).context(shape::FILE)?;
        std::fs::write(root.join(shape::FILE), text)?;
        return Ok(true);
    }
    let findings = check(&tree);
    for finding in &findings {
        anstream::println!("{finding}");
    }
    match findings.len() {
        0 => anstream::println!("tidy: {} files, nothing to mend", tree.files.len()),
        count => anstream::println!("tidy: {} files, {count} to mend", tree.files.len()),
    }
    Ok(findings.is_empty())
}

fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = imports::check(tree);
    let code = rust_files::code(tree);
    findings.extend(rust_files::check(&code));
    findings.extend(shape::check(&code, tree));
    findings.extend(marks::check(tree));
    findings.extend(text::check(tree));
    findings.extend(documents::check(tree));
    findings.extend(crate::conformance::check(tree));
    findings.sort();
    findings
}
