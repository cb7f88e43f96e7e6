//! Claims: what a segment carries over, who wins, and what one leaves that dies.

use super::super::fail_point::dying_at;
use super::super::{Beginning, SessionDirectory};
use super::*;
use std::sync::Barrier;

fn facts(host: &str) -> Facts {
    Facts {
        id: "Session/1".into(),
        agent: "agent".into(),
        cwd: "/".into(),
        host: host.into(),
        ..Facts::default()
    }
}

fn events(count: u64) -> Batch {
    let mut batch = Batch::new();
    (0..count).for_each(|at| batch.push(1, 9, &at.to_le_bytes()));
    batch
}

fn claim(facts: &Facts, goes_on: bool) -> Claim<'_> {
    Claim { flags: SegmentFlags::default(), facts, goes_on, batch: events(1) }
}

/// A session of one event that host `one` has.
fn session(state: &std::path::Path) -> (SessionDirectory, SessionDir, Claimed) {
    let directory = SessionDirectory::open(state, "one").expect("it is made");
    let new = Beginning { facts: facts("one"), info: b"info".to_vec(), batch: events(1) };
    let claimed = directory.create(new).expect("it is written").expect("there is none");
    let session = directory.find("Session/1").expect("it opens").expect("it is there");
    (directory, session, claimed)
}

// design session-files 4: a segment carries over what the next host needs, and what another host says of itself goes
#[test]
fn a_segment_says_where_the_session_stands() {
    let state = tempfile::tempdir().expect("a directory");
    let (_, session, mut first) = session(state.path());
    let given = |number: u64| (number, Some(vec![7; 3]));
    let index = IndexUpdate {
        updated_ms: 5,
        state: Some(3),
        position: Some(70),
        waiting: vec![given(4), given(5)],
        ..IndexUpdate::default()
    };
    let mut batch = events(2);
    batch.update_index(index);
    first.writer.append(batch, None).expect("it is written");
    let begun = IndexUpdate { updated_ms: 6, waiting: vec![(4, None)], ..IndexUpdate::default() };
    first.writer.append(Batch::index_only(begun), None).expect("it is written");
    let last = session.last().expect("it is read");
    assert_eq!((last.standing.last_seq, last.standing.at_ms), (3, 6));
    assert_eq!((&last.facts, &last.info[..]), (&facts("one"), &b"info"[..]));
    assert_eq!(&last.standing, first.writer.standing());
    assert_eq!(last.waiting, [(5, vec![7; 3])]);
    let adopted =
        session.claim(&last, claim(&facts("two"), true)).expect("it is written").expect("it is free");
    let next = session.last().expect("it is read");
    assert_eq!((next.header.number, next.header.first_seq, next.header.cut), (2, 4, last.end.0));
    assert_eq!((next.facts.host.as_str(), next.standing.last_seq), ("two", 4));
    assert_eq!(
        (next.standing.state, next.standing.position, &next.waiting[..]),
        (3, 70, &[(5, vec![7; 3])][..])
    );
    assert_eq!(next.info, b"info");
    adopted.release(events(1), 9).expect("it is written");
    let released = session.last().expect("it is read");
    assert!(released.standing.released && released.waiting.is_empty());
    let resumed = session.claim(&released, claim(&facts("three"), false)).expect("it is written");
    assert_eq!(resumed.expect("it is free").writer.standing().last_seq, 6);
    let third = session.last().expect("it is read");
    assert_eq!((third.standing.state, third.standing.position, third.standing.released), (0, 0, false));
}

// design session-files 4: of many that claim at once exactly one wins, again and again
#[test]
fn one_of_many_wins() {
    const RIVALS: usize = 4;
    let state = tempfile::tempdir().expect("a directory");
    let (_, session, _first) = session(state.path());
    for round in 1..=50_u32 {
        let last = session.last().expect("it is read");
        assert_eq!(last.header.number, round);
        let barrier = Barrier::new(RIVALS);
        let wins = std::thread::scope(|scope| {
            let rivals: Vec<_> = (0..RIVALS)
                .map(|rival| {
                    let (session, last, barrier) = (&session, &last, &barrier);
                    scope.spawn(move || {
                        let facts = facts(&format!("rival-{rival}"));
                        barrier.wait();
                        session.claim(last, claim(&facts, false)).expect("it is written").is_some()
                    })
                })
                .collect();
            rivals.into_iter().map(|rival| rival.join().expect("no panic")).filter(|won| *won).count()
        });
        assert_eq!(wins, 1, "round {round}");
    }
    // Who lost late has left word of its claim, which the next one takes away.
    let last = session.last().expect("it is read");
    session.claim(&last, claim(&facts("last"), false)).expect("it is written").expect("it is free");
    assert!(session.names().expect("it is read").iter().all(|name| !name.starts_with('.')));
}

// design session-files 8, 12: a claimer that dies at any step leaves the session as it was, or its own, and never in between
#[test]
fn who_dies_in_a_claim_leaves_it_whole() {
    for (point, is_claimed) in [
        (FailPoint::Announced, false),
        (FailPoint::HalfWritten, false),
        (FailPoint::Written, false),
        (FailPoint::Linked, true),
    ] {
        let state = tempfile::tempdir().expect("a directory");
        let (_, session, _first) = session(state.path());
        let last = session.last().expect("it is read");
        let died = dying_at(point, || session.claim(&last, claim(&facts("two"), false)));
        assert!(died.is_err_and(|error| has_died(&error)), "{point:?}");
        let found = session.last().expect("it is read");
        assert_eq!(found.facts.host == "two", is_claimed, "{point:?}");
        assert_eq!(found.standing.last_seq, 1 + u64::from(is_claimed), "{point:?}");
        session.claim(&found, claim(&facts("three"), false)).expect("it is written").expect("it is free");
        let names = session.names().expect("it is read");
        assert!(names.iter().all(|name| !name.starts_with('.')), "{point:?}: {names:?}");
    }
}

// design session-files 4: bytes that the old owner still writes behind the cut do not count
#[test]
fn what_is_written_behind_the_cut_does_not_count() {
    let state = tempfile::tempdir().expect("a directory");
    let (_, session, mut first) = session(state.path());
    let last = session.last().expect("it is read");
    session.claim(&last, claim(&facts("two"), true)).expect("it is written").expect("it is free");
    first.writer.append(events(3), None).expect("nobody stops it");
    assert_eq!(session.last().expect("it is read").standing.last_seq, 2);
    assert!(
        session.claim(&last, claim(&facts("one"), true)).expect("it is written").is_none(),
        "it was first"
    );
}

// design session-files 11: an owner that is stopped between a look and its write, and taken for dead meanwhile, publishes nothing that
// does not count; one that is not replaced goes on, whoever has announced a claim and died
#[test]
fn an_owner_knows_what_counts() {
    let state = tempfile::tempdir().expect("a directory");
    let (_, session, mut first) = session(state.path());
    let counts = |claimed: &Claimed| {
        let (number, end) = (claimed.header.number, claimed.writer.end().0);
        session.counts(number, claimed.writer.file(), end).expect("it is found out")
    };
    assert!(counts(&first));
    // A claim that was announced and is not made.
    let last = session.last().expect("it is read");
    let died = dying_at(FailPoint::Announced, || session.claim(&last, claim(&facts("dead"), true)));
    assert!(died.is_err_and(|error| has_died(&error)));
    first.writer.append(events(1), None).expect("it is written");
    assert!(counts(&first), "nobody has it but its owner");
    assert!(session.names().expect("it is read").iter().all(|name| !name.starts_with('.')));
    // One that has read what was written before it.
    session.claim(&last, claim(&facts("two"), true)).expect("it is written").expect("it is free");
    assert_eq!(session.last().expect("it is read").standing.last_seq, 3, "with what came since");
    assert!(counts(&first), "the claim has all of it");
    first.writer.append(events(1), None).expect("it is written");
    assert!(!counts(&first), "behind the cut");
}
