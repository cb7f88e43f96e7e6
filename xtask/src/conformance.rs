//! `cargo xtask conformance`: writes `docs/conformance.md` and `docs/quirks.md` from the marks above tests;
//! `cargo xtask tidy` checks that they are true.
//!
//! A mark names what the test below it shows: `// contract 1.2, SU-2: text; PR-4: more text`, or a quirk of a peer, as
//! [`quirks`] reads it. So the pages cannot claim what no test names. Invariant: as a part of `cargo xtask tidy` it only
//! reads. Not here: running the tests, or judging whether a test shows what its mark says.

mod marked_tests;
mod page;
mod quirks;

use crate::tree::{Tree, pattern};
use anyhow::{Context, Result};
use marked_tests::marked_tests;
use page::{Group, groups};
use regex_lite::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const PAGE: &str = "docs/conformance.md";
const TABLE: &str = "xtask/src/conformance/requirements.toml";
/// The sections of the contract and of the architecture that there are.
const SECTIONS: &str =
    r"contract (?:1(?:\.[1-7])?|2(?:\.[1-3])?|3(?:\.[12])?|[456]|7(?:\.[1-4])?)|architecture [1-5]";

/// By requirement: the tests that show it, as `crate::test`.
type Shown = BTreeMap<String, BTreeSet<String>>;

/// Runs the command; what is still open is for the check to refuse.
pub(crate) fn run(root: &Path) -> Result<()> {
    let groups = groups();
    let tree = Tree::load(root)?;
    let (shown, _) = shown(&tree, &groups);
    std::fs::write(root.join(PAGE), page::page(&groups, &shown)).context(PAGE)?;
    std::fs::write(root.join(quirks::PAGE), quirks::page(&tree)).context(quirks::PAGE)?;
    let all = groups.iter().flat_map(|group| &group.requirements);
    let tested = all.clone().filter(|one| one.state(&shown) == "tested").count();
    anstream::println!("{PAGE}: {tested} of {} requirements tested", all.count());
    Ok(())
}

/// What is wrong with the marks, with the page, and with the table that it is made from.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let groups = groups();
    let (shown, mut findings) = shown(tree, &groups);
    findings.extend(contradictions(&groups, &shown));
    if tree.text(PAGE) != page::page(&groups, &shown) {
        findings.push(format!("{PAGE}:1: stale; run `cargo xtask conformance`"));
    }
    findings.extend(quirks::check(tree));
    findings
}

/// The tests that show each requirement, and the marks that name nothing: a search for a requirement's tests would miss
/// them.
fn shown(tree: &Tree, groups: &[Group]) -> (Shown, Vec<String>) {
    let [good, bad] = marks(groups);
    let (mut shown, mut findings) = (Shown::new(), Vec::new());
    for test in marked_tests(tree).iter().filter(|test| test.path.ends_with(".rs")) {
        for comment in &test.comments {
            let parts = comment.trim_start_matches('/').trim().split("; ");
            for part in parts.filter(|part| bad.is_match(part)) {
                if comment.starts_with('/') || !good.is_match(part) {
                    let fix = "write `// contract 1.2, SU-2: text`, with numbers that exist";
                    findings.push(format!("{}:1: {} has no mark in `{part}`; {fix}", test.path, test.name));
                } else if let Some(evidence) = &test.evidence {
                    for name in part.split(':').next().unwrap_or_default().split(", ") {
                        shown.entry(name.to_owned()).or_default().insert(evidence.clone());
                    }
                }
            }
        }
    }
    (shown, findings)
}

/// Well-formed marks, and all that look like marks, however they are spelt: `Contract 1.2`, `fr-5`, `FR 5`. "In 3 rounds"
/// is a sentence, "IN 3" is a mark.
fn marks(groups: &[Group]) -> [Regex; 2] {
    let ids = groups.iter().flat_map(|group| &group.requirements).map(|one| &*one.id);
    let name = format!("(?:{SECTIONS}|{})", ids.collect::<Vec<_>>().join("|"));
    let names = groups.iter().map(|group| &*group.name).collect::<Vec<_>>().join("|");
    let like = format!(
        r"^(?i:requirements?\b|(?:contract|architecture)[ ,:]?\d|(?:{names})-?\d)|^(?:{names})[ ,:]\d"
    );
    [pattern(&format!("^{name}(?:, {name})*(?::|$)")), pattern(&like)]
}

/// Requirements whose tests and reasons do not fit together.
fn contradictions(groups: &[Group], shown: &Shown) -> Vec<String> {
    let all = groups.iter().flat_map(|group| group.requirements.iter().map(move |one| (group, one)));
    let found = all.filter_map(|(group, one)| {
        match (shown.get(&one.id).and_then(BTreeSet::first), &one.later) {
            (Some(test), Some(_)) => Some(format!("is said not to be tested, but {test} shows it")),
            (None, None) if one.part.is_some() => {
                Some("is said to be tested in part, but no test shows it".to_owned())
            }
            (None, None) if group.untested.is_none() => Some("has neither a test nor a reason".to_owned()),
            _ => None,
        }
        .map(|problem| {
            format!("{TABLE}:1: {} {problem}; put `// {0}` above a test, or mend `part` and `later`", one.id)
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests;
