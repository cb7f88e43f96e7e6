//! The form of the marks, the rows that they become, and what the check refuses.

use super::*;
use crate::tree::tests::tree;

const HOST: &str = "crates/host/src/acp.rs";
const FULL: &str = "// quirk half-surrogate (agents in JavaScript): the half is replaced\n";
const TEST: &str = "#[test]\nfn halves() {}\n";

/// The rows of the page for a file of tests.
fn rows(path: &str, text: &str) -> Vec<String> {
    let page = page(&tree(&[(path, text)]));
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| quirk |"));
    rows.map(str::to_owned).collect()
}

/// What is found, without where, except that the page is stale.
fn problems(files: &[(&str, &str)]) -> Vec<String> {
    let found = check(&tree(files));
    let found = found.iter().filter_map(|finding| Some(finding.split_once(": ")?.1.to_owned()));
    found.filter(|finding| !finding.starts_with("stale")).collect()
}

fn finds(problem: &str, files: &[(&str, &str)]) -> bool {
    problems(files).iter().any(|found| found.starts_with(problem))
}

#[test]
fn a_mark_becomes_a_row_with_all_its_tests() {
    let text = format!(
        "// SU-2: text\n{FULL}    // by U+FFFD, as `a|b` is\n// SE-1: text\n{TEST}\
         // some words\n// quirk half-surrogate\n// and more words\n{TEST}",
    )
    .replacen("fn halves", "fn first", 1);
    let row = "| half-surrogate | agents in JavaScript | the half is replaced by U+FFFD, as `a\\|b` is | \
        `host::first`, `host::halves` |";
    assert_eq!(rows(HOST, &text), [row]);
    let described = "# Messages\nhalf-surrogate: half of an emoji\n";
    assert_eq!(problems(&[(HOST, &text), (PLAYED, described)]), [""; 0]);
}

#[test]
fn a_mark_may_be_broken_anywhere_behind_its_name() {
    let row = "| half-surrogate | agents in JavaScript | the half is replaced | `host::halves` |";
    let broken = "// quirk half-surrogate (agents in\n// JavaScript):\n// the half is\n// replaced\n";
    assert_eq!(rows(HOST, &format!("{broken}{TEST}")), [row]);
}

#[test]
fn two_marks_of_one_test_are_two_rows() {
    let text = format!("{FULL}// quirk nul (agents in C): it is dropped\n{TEST}");
    assert_eq!(
        rows(HOST, &text),
        [
            "| half-surrogate | agents in JavaScript | the half is replaced | `host::halves` |",
            "| nul | agents in C | it is dropped | `host::halves` |",
        ]
    );
}

#[test]
fn a_row_names_three_tests_and_says_that_there_are_more() {
    let more = |name: &str| format!("// quirk half-surrogate\n#[test]\nfn {name}() {{}}\n");
    let text = format!("{FULL}{TEST}{}{}{}", more("a"), more("b"), more("c"));
    assert!(rows(HOST, &text)[0].ends_with("| `host::a`, `host::b`, `host::c` and more |"));
}

#[test]
fn tests_in_other_languages_are_named_with_their_package() {
    let python = "# quirk nul (agents in C): it is dropped\n@pytest.mark.x\nasync def test_nul() -> None:\n";
    assert_eq!(
        rows("sdk/python/tests/test_a.py", python),
        ["| nul | agents in C | it is dropped | `sdk/python::test_nul` |"]
    );
    let script =
        "  // quirk nul (agents in C): it is dropped\n  test(\"a NUL\", { timeout: 1 }, async () => {\n";
    for (path, package) in [("sdk/typescript/test/a.test.ts", "sdk/typescript"), ("web/src/a.test.ts", "web")]
    {
        let row = format!("| nul | agents in C | it is dropped | `{package}::a NUL` |");
        assert_eq!(rows(path, script), [row]);
    }
}

#[test]
fn malformed_marks_are_found() {
    for bad in [
        "Quirk half-surrogate",
        "quirk Half (agents): text",
        "quirk half_surrogate",
        "quirk: half-surrogate",
        "quirk half (agents) text",
        "quirk half (agents):",
        "quirk half: text",
        "quirks half (agents): text",
        "/ quirk half (agents): text",
    ] {
        let text = format!("// {bad}\n{TEST}").replace("// / ", "/// ");
        assert!(finds("halves has no mark in", &[(HOST, &text)]), "{bad}");
    }
    assert!(!finds("halves has no mark", &[(HOST, &format!("// a quirk of some agents\n{TEST}"))]));
}

#[test]
fn a_name_has_exactly_one_full_mark() {
    let twice = format!("{FULL}{TEST}{FULL}{TEST}");
    assert!(finds("half-surrogate has 2 full marks above `host::halves`", &[(HOST, &twice)]));
    let none = format!("// quirk half-surrogate\n{TEST}");
    assert!(finds("half-surrogate has no full mark above `host::halves`", &[(HOST, &none)]));
}

#[test]
fn a_mark_that_shows_nothing_of_acpd_is_found() {
    let nowhere = "the mark of half-surrogate is above no test of acpd";
    assert!(finds(nowhere, &[(HOST, &format!("{FULL}fn halves() {{}}\n"))]));
    assert!(finds(nowhere, &[("crates/example-agent/tests/agent/quirks.rs", &format!("{FULL}{TEST}"))]));
    assert!(!finds(nowhere, &[(HOST, &format!("{FULL}{TEST}"))]));
    assert!(!finds(nowhere, &[("CONTRIBUTING.md", FULL)]));
}

#[test]
fn descriptions_sort_rows_into_sections_and_need_a_test() {
    let played = "# Messages\n\nhalf-surrogate: half of an emoji\n    update {\"a: b\": 1}\nnul: a NUL\n";
    let unplayed = "# Clients\n\nslow: it reads slowly\n# Messages\nnul: a NUL\n";
    let marks = format!("{FULL}// quirk slow (browsers): it waits\n// quirk odd (shells): it waits\n{TEST}");
    let files = [(PLAYED, played), (UNPLAYED, unplayed), (HOST, &*marks)];
    let page = page(&tree(&files));
    let expected = "\n## Messages\n\n| quirk | seen in | what acpd does | tests |\n|---|---|---|---|\n\
        | `quirk half-surrogate`: half of an emoji | agents in JavaScript | the half is replaced | `host::halves` |\n\
        \n## Clients\n\n| quirk | seen in | what acpd does | tests |\n|---|---|---|---|\n\
        | slow: it reads slowly | browsers | it waits | `host::halves` |\n\
        \n## Others\n\n| quirk | seen in | what acpd does | tests |\n|---|---|---|---|\n\
        | odd | shells | it waits | `host::halves` |\n";
    assert!(page.ends_with(expected), "{page}");
    assert!(finds("no test shows nul", &files));
    assert!(finds("nul is played by the example agent", &files));
    assert!(finds("odd is described nowhere", &files) && !finds("slow is described nowhere", &files));
}

#[test]
fn a_stale_page_is_found() {
    let text = format!("{FULL}{TEST}");
    let stale = |page: &str| {
        let found = check(&tree(&[(HOST, &text), (PAGE, page)]));
        found.iter().any(|finding| finding == "docs/quirks.md:1: stale; run `cargo xtask conformance`")
    };
    assert!(stale(""));
    assert!(!stale(&page(&tree(&[(HOST, &text)]))));
}
