//! What the check finds, and what counts as evidence.

use super::*;

const SE_1: &str = "// SE-1: text\n#[test]\nfn ids_differ() {}\n";

fn problems(files: &[(&str, &str)]) -> Vec<String> {
    check(&Tree::of(files)).into_iter().map(|finding| finding.problem).collect()
}

fn names(files: &[(&str, &str)], id: &str) -> Vec<String> {
    shown(&Tree::of(files)).remove(id).unwrap_or_default().into_iter().collect()
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
fn a_requirement_with_neither_test_nor_reason_is_found_in_groups_that_must_be_complete() {
    let missing = "SE-1 has neither a test nor a reason".to_owned();
    assert!(problems(&[]).contains(&missing));
    assert!(!problems(&[("crates/host/src/host.rs", SE_1)]).contains(&missing));
    assert!(
        !problems(&[]).iter().any(|problem| problem.starts_with("FR-1 ") || problem.starts_with("UP-8 "))
    );
}

#[test]
fn a_reason_beside_a_test_is_found() {
    let text = "// UP-8\n#[test]\nfn subagents() {}\n";
    let found = problems(&[("crates/host/src/host.rs", text)]);
    assert!(
        found.contains(
            &"UP-8 is said not to be tested (subagents are not served yet), but host::subagents shows it"
                .to_owned()
        ),
        "{found:?}"
    );
}

#[test]
fn a_part_that_no_test_shows_is_found() {
    let problem = "SE-19 is said to be tested in part, but no test shows it".to_owned();
    assert!(problems(&[]).contains(&problem));
    let text = "// SE-19\n#[test]\nfn status_starts_nothing() {}\n";
    assert!(!problems(&[("crates/host/src/host.rs", text)]).contains(&problem));
}

#[test]
fn a_finding_points_at_its_row() {
    let table = "{ id = \"IN-1\" },\n{ id = \"SE-1\" },\n";
    let findings = check(&Tree::of(&[(TABLE, table)]));
    let of_se_1 =
        findings.iter().find(|finding| finding.problem.starts_with("SE-1 ")).expect("it is untested");
    assert_eq!((of_se_1.path.as_str(), of_se_1.line), (TABLE, 2));
}

#[test]
fn a_stale_page_is_found_at_its_first_difference() {
    let fresh = page::page(&Shown::new());
    assert_eq!(staleness(&Tree::of(&[(PAGE, &fresh)]), &fresh), None);
    let stale = fresh.replacen("| SE-1 |", "| SE-0 |", 1);
    let finding = staleness(&Tree::of(&[(PAGE, &stale)]), &fresh).expect("it is stale");
    assert!(stale.lines().nth(finding.line - 1).expect("that line").starts_with("| SE-0 |"));
    assert!(finding.problem.contains("| SE-0 |") && finding.problem.contains("| SE-1 |"), "{finding}");
    let longer = format!("{fresh}more\n");
    assert!(staleness(&Tree::of(&[(PAGE, &longer)]), &fresh).is_some());
    assert!(staleness(&Tree::of(&[(PAGE, fresh.trim_end())]), &fresh).is_some());
    assert!(staleness(&Tree::of(&[]), &fresh).is_some());
}

#[test]
fn what_is_written_passes_the_check_for_staleness_and_only_tests_change_it() {
    let root = tempfile::tempdir().expect("a temporary directory");
    assert!(crate::run::answer(crate::run::line("git init --quiet", root.path())).is_some());
    let source = root.path().join("crates/host/src");
    std::fs::create_dir_all(&source).expect("writable");
    let stale = || {
        let tree = Tree::load(root.path()).expect("a git checkout");
        check(&tree).iter().any(|finding| finding.path == PAGE)
    };
    assert!(stale());
    write(root.path()).expect("writable");
    assert!(!stale());
    std::fs::write(source.join("host.rs"), SE_1).expect("writable");
    assert!(stale());
    write(root.path()).expect("writable");
    assert!(!stale());
}

#[test]
fn a_row_names_three_tests_counts_the_others_and_says_what_is_missing() {
    let row = |id: &'static str, tests: &[&str]| {
        let shown = Shown::from([(id, tests.iter().map(|&test| test.to_owned()).collect())]);
        let shown = if tests.is_empty() { Shown::new() } else { shown };
        let text = page::page(&shown);
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
    let text = page::page(&Shown::from([("TM-2", BTreeSet::from(["host::a".to_owned()]))]));
    assert!(text.contains("| TM | how sessions ended | 1 | 0 | 3 |"), "{text}");
}
