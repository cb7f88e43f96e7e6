//! What the check finds, and what counts as evidence.

use super::*;
use crate::tree::tests::tree;

const SE_1: &str = "// SE-1: text\n#[test]\nfn ids_differ() {}\n";

/// What is found, without where.
fn problems(files: &[(&str, &str)]) -> Vec<String> {
    check(&tree(files)).iter().filter_map(|finding| Some(finding.split_once(": ")?.1.to_owned())).collect()
}

fn names(files: &[(&str, &str)], id: &str) -> Vec<String> {
    shown(&tree(files), &groups()).0.remove(id).unwrap_or_default().into_iter().collect()
}

fn finds(problem: &str, files: &[(&str, &str)]) -> bool {
    problems(files).iter().any(|found| found.starts_with(problem))
}

#[test]
fn ids_are_numbered_without_holes() {
    for group in groups() {
        for (number, one) in (1..).zip(&group.requirements) {
            assert_eq!(one.id, format!("{}-{number}", group.name));
        }
    }
}

#[test]
fn texts_are_short_and_fit_into_a_table_cell() {
    for one in groups().iter().flat_map(|group| &group.requirements) {
        for text in [Some(&one.summary), one.part.as_ref(), one.later.as_ref()].into_iter().flatten() {
            let words = text.split_whitespace().count();
            let fits = (1..=13).contains(&words) && !text.contains(['|', '\n']) && !text.ends_with('.');
            assert!(fits, "{text}");
        }
    }
}

#[test]
fn well_formed_marks_and_other_comments_pass_and_malformed_marks_are_found() {
    let finds = |comment: &str| {
        let text = format!("{comment}\n#[test]\nfn a() {{}}\n");
        finds("a has no mark", &[("crates/wire/src/frame.rs", &text)])
    };
    let good = "contract 1.2|contract 7.4: text|contract 4: the directives|contract 3.2, SU-2\
        |FR-5, FR-6: one error for an array|architecture 4: the ladder\
        |SU-2: one thing; TM-4, contract 1.2: another; the rest is text\
        |in the end all is well|contract tests are elsewhere|In 3 rounds all are gone";
    for good in good.split('|') {
        assert!(!finds(&format!("    // {good}")), "{good}");
    }
    let bad = "Contract 1.2|contract 1.9|contract 7.5|contract 8|contract1.2|requirement FR-5|fr-5|FR5|FR 5\
        |FR-11: no such line|SU-2 and FR-5|FR-05|/ SU-2: a doc comment|SU-2: one thing; TM 4: another|SE-22|SE-014";
    for bad in bad.split('|') {
        assert!(finds(&format!("// {bad}").replace("// / ", "/// ")), "{bad}");
    }
}

#[test]
fn only_comments_above_tests_are_marks_and_name_the_test_below() {
    let text = "// contract 1.2, SU-2: a; TM-4: b\n// more, SU-3\n#[expect(x)]\n#[tokio::test]\n\
        async fn gone() {}\n// SU-1\n#[test]\n#[cfg(any(\n    unix,\n))]\nfn kept(a in 0..9) {}\n// SU-5\nfn none() {}\n";
    let shown = shown(&tree(&[("crates/host/src/a.rs", text)]), &groups()).0;
    let found: Vec<_> =
        shown.iter().map(|(id, tests)| (&**id, tests.first().expect("one").as_str())).collect();
    let gone = "host::gone";
    assert_eq!(found, [("SU-1", "host::kept"), ("SU-2", gone), ("TM-4", gone), ("contract 1.2", gone)]);
    assert!(!finds("none", &[("crates/host/src/a.rs", "// FR 5 is shown below\nfn a() {}\n")]));
}

#[test]
fn tests_of_every_place_count_except_those_of_the_test_peer() {
    let found = names(
        &[
            ("crates/host/src/host/tests.rs", SE_1),
            ("crates/e2e/tests/e2e/sessions.rs", SE_1),
            ("interop/rust/sdk-client/tests/hosted.rs", SE_1),
            ("crates/example-agent/tests/agent/protocol.rs", SE_1),
            ("xtask/src/tidy.rs", SE_1),
        ],
        "SE-1",
    );
    assert_eq!(found, ["e2e::ids_differ", "host::ids_differ", "sdk-client::ids_differ"]);
}

#[test]
fn each_mark_of_each_comment_line_counts() {
    let text = "    // contract 1.2, SU-2: text\n    // SU-1; TM-2: more\n    #[tokio::test]\n    async fn gone() {}\n";
    for id in ["SU-2", "SU-1", "TM-2"] {
        assert_eq!(names(&[("crates/supervisor/tests/endings.rs", text)], id), ["supervisor::gone"], "{id}");
    }
}

#[test]
fn tests_and_reasons_that_do_not_fit_together_are_found() {
    let host = |text| [("crates/host/src/host.rs", text)];
    assert!(finds("SE-1 has neither a test nor a reason", &[]));
    assert!(!finds("SE-1 ", &host(SE_1)));
    assert!(!finds("FR-1 ", &[]) && !finds("UP-8 ", &[]));
    let beside = "UP-8 is said not to be tested, but host::subagents shows it";
    assert!(finds(beside, &host("// UP-8\n#[test]\nfn subagents() {}\n")));
    assert!(finds("SE-19 is said to be tested in part, but no test shows it", &[]));
    assert!(!finds("SE-19 ", &host("// SE-19\n#[test]\nfn status_starts_nothing() {}\n")));
}

#[test]
fn what_is_written_passes_the_check_for_staleness_and_only_tests_change_it() {
    let root = tempfile::tempdir().expect("a temporary directory");
    assert!(crate::run::answer(crate::run::line("git init --quiet", root.path())).is_some());
    for dir in ["crates/host/src", "docs"] {
        std::fs::create_dir_all(root.path().join(dir)).expect("writable");
    }
    let stale = || {
        let tree = Tree::load(root.path()).expect("a git checkout");
        check(&tree).iter().any(|finding| finding.starts_with(PAGE))
    };
    let write = || run(root.path()).expect("writable");
    assert!(stale());
    write();
    assert!(!stale());
    std::fs::write(root.path().join("crates/host/src/host.rs"), SE_1).expect("writable");
    assert!(stale());
    write();
    assert!(!stale());
}

#[test]
fn a_row_names_three_tests_counts_the_others_and_says_what_is_missing() {
    let row = |id: &'static str, tests: &[&str]| {
        let shown = Shown::from([(id.to_owned(), tests.iter().map(|&test| test.to_owned()).collect())]);
        let shown = if tests.is_empty() { Shown::new() } else { shown };
        let text = page::page(&groups(), &shown);
        let row = text.lines().find(|line| line.starts_with(&format!("| {id} |"))).expect("it has a row");
        row.rsplit('|').nth(1).expect("three cells").trim().to_owned()
    };
    assert_eq!(row("SE-1", &["host::a"]), "tested: `host::a`");
    let many = ["host::a", "host::b", "host::c", "wire::d", "wire::e"];
    assert_eq!(row("SE-1", &many), "tested: `host::a`, `host::b`, `host::c` and 2 more");
    assert_eq!(row("SE-1", &[]), "not yet");
    assert_eq!(row("FR-1", &[]), "not yet: no test names it");
    assert_eq!(row("UP-8", &[]), "not yet: subagents are not served yet");
    let part = "archiving is an unstable part of ACP and not offered";
    assert_eq!(row("SE-19", &["host::a"]), format!("in part: `host::a`; not yet: {part}"));
    let text =
        page::page(&groups(), &Shown::from([("TM-2".to_owned(), BTreeSet::from(["host::a".to_owned()]))]));
    assert!(text.contains("| TM | how sessions ended | 1 | 0 | 3 |"), "{text}");
}
