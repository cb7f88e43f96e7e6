//! `cargo xtask conformance`: writes `docs/conformance.md` from the marks above tests; `cargo xtask tidy`
//! checks that it is true.
//!
//! A mark names what the test below it shows: `// contract 1.2, SU-2: text; PR-4: more text`. So the page cannot claim
//! what no test names. Invariant: as a part of `cargo xtask tidy` it only reads. Not here: running the tests, or judging
//! whether a test shows what its mark says.

mod page;

use crate::tree::{Tree, pattern};
use anyhow::{Context, Result};
use page::{Group, groups};
use regex_lite::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const PAGE: &str = "docs/conformance.md";
const TABLE: &str = "xtask/src/conformance/requirements.toml";
/// The sections of the contract and of the architecture that there are.
const SECTIONS: &str =
    r"contract (?:1(?:\.[1-7])?|2(?:\.[1-3])?|3(?:\.[12])?|[456]|7(?:\.[1-4])?)|architecture [1-5]";
/// A test with the comments and attributes right above it.
const TEST: &str = r"(?m)((?:^ *(?://|#\[).*\n)*) *#\[(?:tokio::)?test\b.*\n(?:.*\n)*?.*?\bfn (\w+)";
/// Where tests of acpd are, and the name of their crate.
const TESTED: &str = r"^(?:crates|interop)/(?:[\w-]+/)*?([\w-]+)/(?:src|tests)/";
/// Its tests show the agent that acpd is tested with, so they are no evidence about acpd.
const TEST_PEER: &str = "crates/example-agent/";

/// By requirement: the tests that show it, as `crate::test`.
type Shown = BTreeMap<String, BTreeSet<String>>;

/// Runs the command; what is still open is for the check to refuse.
pub(crate) fn run(root: &Path) -> Result<()> {
    let groups = groups();
    let (shown, _) = shown(&Tree::load(root)?, &groups);
    std::fs::write(root.join(PAGE), page::page(&groups, &shown)).context(PAGE)?;
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
    findings
}

/// The tests that show each requirement, and the marks that name nothing: a search for a requirement's tests would miss
/// them.
fn shown(tree: &Tree, groups: &[Group]) -> (Shown, Vec<String>) {
    let (test, tested, [good, bad]) = (pattern(TEST), pattern(TESTED), marks(groups));
    let (mut shown, mut findings) = (Shown::new(), Vec::new());
    for file in tree.files.iter().filter(|file| file.path.ends_with(".rs")) {
        let place = tested.captures(&file.path).filter(|_| !file.path.starts_with(TEST_PEER));
        for found in test.captures_iter(&file.text) {
            let comments = found[1].lines().filter_map(|line| line.trim_start().strip_prefix("//"));
            for comment in comments {
                let parts = comment.trim_start_matches('/').trim().split("; ");
                for part in parts.filter(|part| bad.is_match(part)) {
                    if comment.starts_with('/') || !good.is_match(part) {
                        let fix = "write `// contract 1.2, SU-2: text`, with numbers that exist";
                        findings
                            .push(format!("{}:1: {} has no mark in `{part}`; {fix}", file.path, &found[2]));
                    } else if let Some(place) = &place {
                        for name in part.split(':').next().unwrap_or_default().split(", ") {
                            let test = format!("{}::{}", &place[1], &found[2]);
                            shown.entry(name.to_owned()).or_default().insert(test);
                        }
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
