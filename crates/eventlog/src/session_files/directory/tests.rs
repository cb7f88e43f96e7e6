//! Sessions that come and go, between two hosts and in any step.

use super::super::fail_point::dying_at;
use super::*;

fn new(host: &str, id: &str) -> Beginning {
    let mut batch = Batch::new();
    batch.push(1, 9, b"an event");
    let facts = Facts { id: id.into(), host: host.into(), created_ms: 3, ..Facts::default() };
    Beginning { facts, info: b"info".to_vec(), batch }
}

fn create(directory: &SessionDirectory, id: &str) -> bool {
    directory.create(new(&directory.host, id)).expect("it is written").is_some()
}

fn entries(directory: &SessionDirectory, of: &str) -> usize {
    fs::read_dir(directory.sessions.join(of)).map_or(0, Iterator::count)
}

// design session-files 4: of two that make a session of one id the rename tells who was first
#[test]
fn a_session_is_made_once() {
    let state = tempfile::tempdir().expect("a directory");
    let [one, other] =
        ["one", "other"].map(|host| SessionDirectory::open(state.path(), host).expect("it is made"));
    assert!(create(&one, "a") && !create(&other, "a") && create(&other, "A"));
    let last = one.find("a").expect("it opens").expect("it is there").last().expect("it is read");
    assert_eq!((last.facts.host.as_str(), last.standing.at_ms, &last.info[..]), ("one", 3, &b"info"[..]));
    assert!(one.find("b").expect("nothing is wrong").is_none());
    assert_eq!(entries(&one, NEW), 0);
}

// design session-files 8: a session that was being made is none, and who comes later clears it away; one that lives is left
#[test]
fn what_was_being_made_is_cleared_away() {
    let state = tempfile::tempdir().expect("a directory");
    let one = SessionDirectory::open(state.path(), "one").expect("it is made");
    for point in [FailPoint::HalfWritten, FailPoint::Written, FailPoint::Linked] {
        let died = dying_at(point, || one.create(new("one", "a")));
        assert!(died.is_err_and(|error| has_died(&error)), "{point:?}");
        assert!(one.find("a").expect("nothing is wrong").is_none());
    }
    one.clear(|host| host == "one").expect("it is read");
    assert_eq!(entries(&one, NEW), 3);
    one.clear(|_| false).expect("it is read");
    assert_eq!(entries(&one, NEW), 0);
    assert!(create(&one, "a"));
}

// design session-files 4: a removal that was cut off at any step is finished by who finds it, and none comes back
#[test]
fn a_removal_is_finished_by_who_finds_it() {
    for point in [FailPoint::Doomed, FailPoint::Unlinked] {
        let state = tempfile::tempdir().expect("a directory");
        let one = SessionDirectory::open(state.path(), "one").expect("it is made");
        assert!(create(&one, "a"));
        let found = one.find("a").expect("it opens").expect("it is there");
        let last = found.last().expect("it is read");
        let died = dying_at(point, || one.remove(&found, &last));
        assert!(died.is_err_and(|error| has_died(&error)), "{point:?}");
        let other = SessionDirectory::open(state.path(), "other").expect("it is made");
        let found = other.find("a").expect("it opens").expect("what is left is there");
        let left = found.last().expect("it is read");
        assert!(left.header.flags.has(SegmentFlags::DELETED), "{point:?}");
        assert!(!create(&other, "a"), "{point:?}");
        other.finish_removal(&found, "a").expect("it is removed");
        assert!(create(&other, "a"), "{point:?}");
        one.finish_removal(&found, "a").expect("there is nothing to do");
        assert!(one.find("a").expect("it opens").is_some(), "{point:?}: another session");
    }
}

// design session-files 4: a resume and a removal cannot both win, not even once the removal has gone
#[test]
fn a_resume_does_not_bring_a_removed_session_back() {
    let state = tempfile::tempdir().expect("a directory");
    let one = SessionDirectory::open(state.path(), "one").expect("it is made");
    assert!(create(&one, "a"));
    let found = one.find("a").expect("it opens").expect("it is there");
    let last = found.last().expect("it is read");
    assert!(one.remove(&found, &last).expect("it is removed"));
    let facts = Facts { host: "two".into(), ..last.facts.clone() };
    let claim = Claim { flags: SegmentFlags::default(), facts: &facts, goes_on: true, batch: Batch::new() };
    // The number is free again.
    assert!(found.claim(&last, claim).map_or(true, |claimed| claimed.is_none()));
    assert!(found.names().map_or(true, |names| names.is_empty()));
    assert!(one.find("a").expect("nothing is wrong").is_none());
    assert!(!one.remove(&found, &last).unwrap_or_default());
}
