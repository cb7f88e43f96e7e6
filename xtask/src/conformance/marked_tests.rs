//! The tests of the repository, each with the comments right above it: Rust, TypeScript, JavaScript and Python.
//!
//! Invariant: a test of the example agent is no evidence about acpd. Not here: the meaning of the comments.

use crate::tree::{Tree, pattern};
use std::path::Path;

/// A Rust test with the comments and attributes right above it.
const RUST: &str = r"(?m)((?:^ *(?://|#\[).*\n)*) *#\[(?:tokio::)?test\b.*\n(?:.*\n)*?.*?\bfn (\w+)";
/// A test of vitest, of Playwright or of Node.js with the comments right above it.
const SCRIPT: &str = r#"(?m)((?:^ *//.*\n)+) *(?:test|it)(?:\.\w+)*\(\s*["'`](.*?)["'`],"#;
/// A test of pytest with the comments and decorators right above it.
const PYTHON: &str = r"(?m)((?:^ *[#@].*\n)+) *(?:async )?def (test_\w+)";
/// Rust tests of acpd: the name of their crate.
const CRATE: &str = r"^(?:crates|interop)/(?:[\w-]+/)*?([\w-]+)/(?:src|tests)/";
/// Other tests of acpd: the directory of their package.
const PACKAGE: &str = r"^((?:interop|sdk)/\w+|web)/";
/// Its tests show the agent that acpd is tested with, so they are no evidence about acpd.
const TEST_PEER: &str = "crates/example-agent/";

/// A test, and the comments right above it.
pub(super) struct MarkedTest<'a> {
    pub(super) path: &'a str,
    pub(super) name: &'a str,
    /// Its full name, where it shows something of acpd.
    pub(super) evidence: Option<String>,
    /// The comment lines, without the sign that begins them.
    pub(super) comments: Vec<&'a str>,
}

/// Every test that has a comment; those that are not in Rust only where a quirk is mentioned.
pub(super) fn marked_tests(tree: &Tree) -> Vec<MarkedTest<'_>> {
    let [rust, script, python] = [RUST, SCRIPT, PYTHON].map(pattern);
    let [of_crate, of_package] = [CRATE, PACKAGE].map(pattern);
    let mut tests = Vec::new();
    for file in &tree.files {
        let extension = Path::new(&file.path).extension().and_then(|extension| extension.to_str());
        let (test, sign, place) = match extension {
            Some("rs") => (&rust, "//", &of_crate),
            Some("ts" | "js" | "mjs") if file.text.contains("// quirk") => (&script, "//", &of_package),
            Some("py") if file.text.contains("# quirk") => (&python, "#", &of_package),
            _ => continue,
        };
        let place = place.captures(&file.path).filter(|_| !file.path.starts_with(TEST_PEER));
        for found in test.captures_iter(&file.text) {
            let [_, above, name] = [0, 1, 2].map(|group| found.get(group).map_or("", |text| text.as_str()));
            let comments = above.lines().filter_map(|line| line.trim_start().strip_prefix(sign)).collect();
            let evidence = place.as_ref().map(|place| format!("{}::{name}", &place[1]));
            tests.push(MarkedTest { path: &file.path, name, evidence, comments });
        }
    }
    tests
}
