//! Sessions that get another id, by two hosts and in any step, against a map of what is under which id.

use super::super::fail_point::{dying_at, failing_at, has_died};
use super::super::{Beginning, Read, Sealing, SessionReader};
use super::*;
use crate::block::Block;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Barrier;

const IDS: [&str; 3] = ["a", "B", "c/1"];

fn host(state: &Path, name: &str) -> SessionDirectory {
    SessionDirectory::open(state, name).expect("it is made")
}

fn event(number: u64) -> Batch {
    let mut batch = Batch::new();
    batch.push(1, 9, &number.to_le_bytes());
    batch
}

/// Makes a session that nobody has, of one event; false if there is one.
fn create(directory: &SessionDirectory, id: &str, number: u64) -> bool {
    let facts = Facts { id: id.into(), host: directory.host().into(), ..Facts::default() };
    let new = Beginning { facts, info: b"info".to_vec(), batch: event(number) };
    let created = directory.create(new).expect("it is written");
    created.is_some_and(|claimed| {
        let over = IndexUpdate { ended: Some(true), ..IndexUpdate::default() };
        claimed.release(Batch::index_only(over), 5).expect("it is written");
        true
    })
}

fn find(directory: &SessionDirectory, id: &str) -> Option<(SessionDir, LastSegment)> {
    let found = directory.find(id).expect("nothing is wrong")?;
    let last = found.last().expect("it is read");
    Some((found, last))
}

fn renamed(id: &str) -> Renamed {
    Renamed { id: id.into(), info: b"renamed".to_vec(), at_ms: 7 }
}

fn rename(directory: &SessionDirectory, from: &str, to: &str) -> io::Result<Renaming> {
    let (found, last) = find(directory, from).expect("it is there");
    directory.rename(&found, &last, renamed(to))
}

/// The numbers in a session's events.
fn numbers(directory: &SessionDirectory, id: &str) -> Option<Vec<u64>> {
    let (found, last) = find(directory, id)?;
    let mut reader = SessionReader::new(found, 0);
    let mut numbers = Vec::new();
    while let Read::Blocks(blocks) = reader.read(last.standing.last_seq).expect("nothing is damaged") {
        let payloads =
            blocks.iter().flat_map(Block::events).map(|event| *event.payload.first_chunk().expect("8"));
        numbers.extend(payloads.map(u64::from_le_bytes));
    }
    Some(numbers)
}

/// What a session is and where it stands, but for its parts.
fn said(directory: &SessionDirectory, id: &str) -> (String, Vec<u8>, i64, u64, bool, bool) {
    let (_, LastSegment { facts, info, standing, .. }) = find(directory, id).expect("it is there");
    (facts.id, info, standing.at_ms, standing.last_seq, standing.ended, standing.released)
}

fn said_of(id: &str, info: &[u8], at_ms: i64) -> (String, Vec<u8>, i64, u64, bool, bool) {
    (id.to_owned(), info.to_vec(), at_ms, 1, true, true)
}

// design session-files 4: a session has its new id and description, and the old id is free
#[test]
fn a_session_gets_another_id() {
    let state = tempfile::tempdir().expect("a directory");
    let one = host(state.path(), "one");
    assert!(create(&one, "a", 1) && create(&one, "B", 2));
    assert_eq!(rename(&one, "a", "B").expect("it is written"), Renaming::Exists);
    assert_eq!(said(&one, "a"), said_of("a", b"info", 5));
    let (found, last) = find(&one, "a").expect("it is there");
    assert_eq!(rename(&one, "a", "c/1").expect("it is written"), Renaming::Done);
    assert_eq!(one.rename(&found, &last, renamed("d")).expect("it is read"), Renaming::Changed);
    assert_eq!(said(&one, "c/1"), said_of("c/1", b"renamed", 7));
    assert!(find(&one, "a").is_none() && create(&one, "a", 3));
    assert_eq!(IDS.map(|id| numbers(&one, id)), [Some(vec![3]), Some(vec![2]), Some(vec![1])]);
}

// design session-files 4: one that somebody has keeps its id, and so does one for which the disk has no room
#[test]
fn what_cannot_be_claimed_keeps_its_id() {
    let state = tempfile::tempdir().expect("a directory");
    let one = host(state.path(), "one");
    assert!(create(&one, "a", 1));
    let full = failing_at(FailPoint::HalfWritten, io::ErrorKind::StorageFull, || rename(&one, "a", "B"));
    assert_eq!(full.map_err(|error| error.kind()), Err(io::ErrorKind::StorageFull));
    assert_eq!(said(&one, "a"), said_of("a", b"info", 5));
    let (found, last) = find(&one, "a").expect("it is there");
    let claim = Claim { flags: SegmentFlags::default(), facts: &last.facts, goes_on: false, batch: event(2) };
    let owner = found.claim(&last, claim).expect("it is written");
    assert_eq!(rename(&one, "a", "B").expect("it is read"), Renaming::Changed);
    assert!(owner.is_some() && find(&one, "B").is_none());
}

// design session-files 4, 8: a host that dies in a renaming leaves the session under one id, and whoever finds it finishes it; it is
// not sealed until then
#[test]
fn a_renaming_is_finished_by_who_finds_it() {
    for (point, is_claimed) in [
        (FailPoint::HalfWritten, false),
        (FailPoint::Written, false),
        (FailPoint::Linked, true),
        (FailPoint::Moving, true),
        (FailPoint::Moved, true),
    ] {
        for dies_again in [None, Some(FailPoint::Linked), Some(FailPoint::Moving), Some(FailPoint::Moved)] {
            let state = tempfile::tempdir().expect("a directory");
            let [one, other, third] = ["one", "other", "third"].map(|name| host(state.path(), name));
            assert!(create(&one, "a", 1));
            let died = dying_at(point, || rename(&one, "a", "B"));
            assert!(died.is_err_and(|error| has_died(&error)), "{point:?}");
            let find_either = || find(&other, "a").or_else(|| find(&other, "B")).expect("it is under one");
            let (found, last) = find_either();
            assert_eq!(last.is_moving(), is_claimed, "{point:?}");
            if !is_claimed {
                assert_eq!(other.finish_renaming(&found, &last).expect("it is read"), Renaming::Changed);
                assert_eq!(said(&other, "a"), said_of("a", b"info", 5));
                continue;
            }
            assert_eq!(last.facts.host, "one");
            assert_eq!(found.seal("sealer", &()).expect("it is read"), Sealing::Nothing);
            assert!(!other.remove(&found, &last).expect("it is read"));
            if let Some(point) = dies_again {
                drop(dying_at(point, || other.finish_renaming(&found, &last)));
            }
            let (found, last) = find_either();
            let finished = third.finish_renaming(&found, &last).expect("it is written");
            assert_eq!(finished == Renaming::Done, dies_again.is_none() || last.is_moving(), "{point:?}");
            assert!(find(&one, "a").is_none());
            assert_eq!(said(&one, "B"), said_of("B", b"renamed", 7));
            assert_eq!(numbers(&one, "B"), Some(vec![1]));
            find_either().0.seal("sealer", &()).expect("it is written");
            assert_eq!(said(&one, "B"), said_of("B", b"renamed", 7));
        }
    }
}

// design session-files 4: who renames a session that somebody else finds in the midst of that, and moves as well, is told that it is done
#[test]
fn a_renaming_that_is_found_in_the_midst_is_done() {
    let state = tempfile::tempdir().expect("a directory");
    let [one, other] = ["one", "other"].map(|name| host(state.path(), name));
    assert!(create(&one, "0", 1));
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                for id in 0..100 {
                    // It may be anywhere else by now.
                    if let Ok(Some(found)) = other.find(&id.to_string())
                        && let Ok(last) = found.last()
                    {
                        drop(other.finish_renaming(&found, &last));
                    }
                }
            }
        });
        // The other may have it still from the time before.
        let again = |id: u32| {
            std::iter::repeat_with(move || (id.to_string(), (id + 1).to_string()))
                .map(|(from, to)| rename(&one, &from, &to))
                .find(|done| !matches!(done, Ok(Renaming::Changed)))
        };
        let done: Vec<_> =
            (0..99).filter_map(again).filter(|done| !matches!(done, Ok(Renaming::Done))).collect();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(done.is_empty(), "{done:?}");
    });
    assert_eq!(numbers(&one, "99"), Some(vec![1]));
}

// design session-files 4, 8: when the new id is taken meanwhile, the session is what it was, also if that costs another host its life
#[test]
fn a_renaming_that_cannot_be_is_taken_back() {
    for dies_again in [None, Some(FailPoint::Linked), Some(FailPoint::Moving), Some(FailPoint::Refused)] {
        let state = tempfile::tempdir().expect("a directory");
        let [one, other, third] = ["one", "other", "third"].map(|name| host(state.path(), name));
        assert!(create(&one, "a", 1));
        assert!(dying_at(FailPoint::Moving, || rename(&one, "a", "B")).is_err());
        assert!(create(&one, "B", 2));
        let (found, last) = find(&other, "a").expect("it is there");
        if let Some(point) = dies_again {
            assert!(dying_at(point, || other.finish_renaming(&found, &last)).is_err(), "{point:?}");
        }
        let last = found.last().expect("it is read");
        let finished = third.finish_renaming(&found, &last).expect("it is written");
        assert_eq!(finished, Renaming::Exists, "{dies_again:?}");
        assert_eq!(said(&one, "a"), said_of("a", b"info", 5), "{dies_again:?}");
        assert_eq!(said(&one, "B"), said_of("B", b"info", 5), "{dies_again:?}");
        assert_eq!(["a", "B"].map(|id| numbers(&one, id)), [Some(vec![1]), Some(vec![2])]);
    }
}

// design session-files 4: of two that rename one session, and of two sessions that are to have one id, one wins
#[test]
fn one_of_two_renamings_wins() {
    for round in 0..50 {
        let state = tempfile::tempdir().expect("a directory");
        let [one, other] = ["one", "other"].map(|name| host(state.path(), name));
        let is_one_session = round % 2 == 0;
        assert!(create(&one, "a", 1) && create(&one, "B", 2));
        let moves = match is_one_session {
            true => [(&one, "a", "x"), (&other, "a", "y")],
            false => [(&one, "a", "x"), (&other, "B", "x")],
        };
        let barrier = Barrier::new(2);
        let outcomes = std::thread::scope(|scope| {
            let threads = moves.map(|(directory, from, to)| {
                let (found, last) = find(directory, from).expect("it is there");
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    directory.rename(&found, &last, renamed(to)).expect("it is written")
                })
            });
            threads.map(|thread| thread.join().expect("no panic"))
        });
        let won = outcomes.iter().filter(|outcome| **outcome == Renaming::Done).count();
        assert_eq!(won, 1, "round {round}: {outcomes:?}");
        let lost = if is_one_session { Renaming::Changed } else { Renaming::Exists };
        assert!(outcomes.contains(&lost), "round {round}: {outcomes:?}");
        let mut left: Vec<_> =
            ["a", "B", "x", "y"].iter().filter_map(|id| numbers(&one, id)).flatten().collect();
        left.sort_unstable();
        assert_eq!(left, [1, 2], "round {round}");
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Creates(usize),
    Renames { from: usize, to: usize, dies_at: Option<FailPoint> },
    Resumes(usize),
    Seals(usize),
    Removes(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let points = [FailPoint::Linked, FailPoint::Moving, FailPoint::Moved, FailPoint::Written].map(Some);
    let dies_at = prop::sample::select([&[None; 3][..], &points].concat());
    let id = || 0..IDS.len();
    prop_oneof![
        2 => id().prop_map(Step::Creates),
        4 => (id(), id(), dies_at).prop_map(|(from, to, dies_at)| Step::Renames { from, to, dies_at }),
        2 => id().prop_map(Step::Resumes),
        1 => id().prop_map(Step::Seals),
        1 => id().prop_map(Step::Removes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    // design session-files 12: whatever two hosts make, rename, resume, seal and remove, each id has the events of its session
    #[test]
    fn each_id_has_its_session(steps in prop::collection::vec((step(), any::<bool>()), 1..30)) {
        let state = tempfile::tempdir().expect("a directory");
        let hosts = ["one", "other"].map(|name| host(state.path(), name));
        let mut model: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for (number, (step, is_first)) in (0..).zip(steps) {
            let (directory, finder) = if is_first { (&hosts[0], &hosts[1]) } else { (&hosts[1], &hosts[0]) };
            match step {
                Step::Creates(id) => {
                    let id = IDS[id];
                    prop_assert_eq!(create(directory, id, number), !model.contains_key(id));
                    model.entry(id).or_insert_with(|| vec![number]);
                }
                Step::Renames { from, to, dies_at } => {
                    let (from, to) = (IDS[from], IDS[to]);
                    let Some((found, last)) = find(directory, from) else { continue };
                    let rename = || directory.rename(&found, &last, renamed(to));
                    let done = match dies_at {
                        None => rename(),
                        Some(point) => dying_at(point, rename),
                    };
                    let expected = if model.contains_key(to) { Renaming::Exists } else { Renaming::Done };
                    let done = match done {
                        Ok(done) => done,
                        Err(error) => {
                            prop_assert!(has_died(&error));
                            let last = found.last().expect("it is read");
                            finder.finish_renaming(&found, &last).expect("it is written")
                        }
                    };
                    let is_done = done == Renaming::Done;
                    prop_assert!(done == expected || (done, dies_at) == (Renaming::Changed, Some(FailPoint::Written)));
                    if is_done && let Some(events) = model.remove(from) {
                        model.insert(to, events);
                    }
                }
                Step::Resumes(id) => {
                    let Some((found, last)) = find(directory, IDS[id]) else { continue };
                    let facts = Facts { host: directory.host().to_owned(), ..last.facts.clone() };
                    let claim = Claim { flags: SegmentFlags::default(), facts: &facts, goes_on: false, batch: event(number) };
                    let claimed = found.claim(&last, claim).expect("it is written").expect("nobody has it");
                    claimed.release(Batch::new(), 5).expect("it is written");
                    model.entry(IDS[id]).or_default().push(number);
                }
                Step::Seals(id) => {
                    let Some((found, _)) = find(directory, IDS[id]) else { continue };
                    prop_assert_ne!(found.seal("sealer", &()).expect("it is written"), Sealing::Busy);
                }
                Step::Removes(id) => {
                    let Some((found, last)) = find(directory, IDS[id]) else { continue };
                    prop_assert!(directory.remove(&found, &last).expect("it is removed"));
                    model.remove(IDS[id]);
                }
            }
            for id in IDS {
                prop_assert_eq!(numbers(&hosts[0], id), model.get(id).cloned());
                if let Some((_, last)) = find(&hosts[0], id) {
                    prop_assert_eq!((&last.facts.id[..], last.standing.released), (id, true));
                }
            }
        }
    }
}
