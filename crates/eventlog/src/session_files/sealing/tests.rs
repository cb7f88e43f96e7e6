//! Sealing against a vector of events: by itself, with faults in each step, and beside owners, readers, sealers and a removal.

use super::super::fail_point::{dying_at, failing_at};
use super::super::fixture::{batch, begin, claim, read, session};
use super::super::{Read, SessionDirectory, SessionReader, Standing};
use super::*;
use crate::batch::Batch;
use crate::block::Block;
use proptest::prelude::*;
use std::cell::Cell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

/// What happens to who seals.
#[derive(Clone, Copy, Debug)]
enum Fault {
    None,
    Dies(FailPoint),
    Full(FailPoint),
}

#[derive(Clone, Debug)]
enum Step {
    Append(Vec<usize>),
    /// Another goes on in the place of the owner.
    Claims(bool),
    Releases,
    Seals(Fault),
}

fn step() -> impl Strategy<Value = Step> {
    let points = vec![FailPoint::HalfSealed, FailPoint::Sealed, FailPoint::Renamed, FailPoint::Unlinked];
    let sizes = prop::collection::vec(prop_oneof![30 => 0..300_usize, 1 => 0..900_000_usize], 0..8);
    let fault = prop_oneof![
        2 => Just(Fault::None),
        3 => prop::sample::select(points).prop_map(Fault::Dies),
        1 => prop::sample::select(vec![FailPoint::HalfSealed, FailPoint::Sealed]).prop_map(Fault::Full),
    ];
    prop_oneof![
        3 => sizes.prop_map(Step::Append),
        2 => any::<bool>().prop_map(Step::Claims),
        1 => Just(Step::Releases),
        4 => fault.prop_map(Step::Seals),
    ]
}

fn names(directory: &SessionDirectory) -> Vec<String> {
    let mut names = session(directory).names().expect("it is read");
    names.sort();
    names
}

/// Where the session stands, but for what a seal does not say.
fn stands(directory: &SessionDirectory) -> (Standing, (u64, u32), String, Vec<u8>, u32) {
    let last = session(directory).last().expect("it is read");
    let standing = Standing { info_at: 0, ..last.standing };
    (standing, last.end, last.facts.host, last.info, last.header.number)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    // design session-files 12: whatever is sealed, and in whatever step that ends, the session is what it was, and the next who
    // seals leaves nothing behind
    #[test]
    fn a_sealed_session_is_what_it_was(
        steps in prop::collection::vec(step(), 1..24), after in any::<prop::sample::Index>(),
    ) {
        let state = tempfile::tempdir().expect("a directory");
        let mut model = Vec::new();
        let (directory, owner) = begin(state.path(), &mut model);
        let mut owner = Some(owner);
        for step in steps {
            match (step, &mut owner) {
                (Step::Append(sizes), Some(owner)) => {
                    owner.writer.append(batch(&sizes, &mut model), None).expect("it is written");
                }
                (Step::Claims(goes_on), _) => {
                    owner = Some(claim(&directory, goes_on, batch(&[2], &mut model)));
                }
                (Step::Releases, Some(_)) => {
                    let owner = owner.take().expect("there is one");
                    owner.release(batch(&[1], &mut model), 5).expect("it is written");
                }
                (Step::Seals(fault), _) => {
                    let (before, stood) = (names(&directory), stands(&directory));
                    let seal = || session(&directory).seal("sealer", &());
                    match fault {
                        Fault::None => {
                            seal().expect("it is written");
                            let parts = session(&directory).parts().expect("it is read");
                            let names_of_parts = parts.iter().map(|part| part.name()).collect::<std::collections::BTreeSet<_>>();
                            prop_assert_eq!(names(&directory).into_iter().collect::<std::collections::BTreeSet<_>>(), names_of_parts);
                            let logs = parts.iter().filter(|part| matches!(part, Part::Log(_))).count();
                            prop_assert!(logs <= 1 + usize::from(owner.is_some()), "{parts:?}");
                        }
                        Fault::Dies(point) => drop(dying_at(point, seal)),
                        Fault::Full(point) => {
                            if failing_at(point, io::ErrorKind::StorageFull, seal).is_err() {
                                let left = names(&directory);
                                prop_assert!(left.iter().all(|name| before.contains(name) && !name.starts_with('.')), "{left:?}");
                            }
                        }
                    }
                    prop_assert_eq!(stands(&directory), stood);
                }
                _ => {}
            }
            let after = after.index(model.len() + 1);
            prop_assert_eq!(&read(&directory, after as u64, model.len() as u64).expect("nothing is damaged"), &model[after..]);
        }
    }
}

// design session-files 5: what is worth it is sealed: what is large or in several files, and a small seal once more
#[test]
fn what_is_worth_it_is_sealed() {
    let (small, large) = (SMALL_SEGMENT, SMALL_SEGMENT + 1);
    let (few, many) = (Part::Seal(1, 3), SMALL_SEAL + 1);
    let log = |number, bytes| (Part::Log(number), bytes);
    for (closed, expected) in [
        (vec![], None),
        (vec![log(1, small)], None),
        (vec![log(1, large)], Some(0..1)),
        (vec![log(1, 1), log(2, 1)], Some(0..2)),
        (vec![(few, SMALL_SEAL)], None),
        (vec![(few, SMALL_SEAL), log(4, 1)], Some(0..2)),
        (vec![(few, many), log(4, small)], None),
        (vec![(few, many), log(4, large)], Some(1..2)),
        (vec![(few, many), log(4, 1), log(5, 1)], Some(1..3)),
        (vec![(few, many), (Part::Seal(4, 5), 1), log(6, 1)], Some(1..3)),
        // Not more at once than may be written in vain.
        (vec![log(1, MOST), log(2, 1)], Some(0..1)),
        (vec![log(1, MOST - 1), log(2, 1), log(3, 1)], Some(0..2)),
        (vec![(few, SMALL_SEAL), log(4, MOST), log(5, 1)], Some(0..2)),
    ] {
        assert_eq!(parts_to_seal(&closed), expected, "{closed:?}");
    }
}

/// Stops an attempt after so many pieces; and notes up to which event it was to seal.
struct StopsAfter(Cell<u32>, Cell<u64>);

impl SealControl for StopsAfter {
    fn allows(&self, _: &LastSegment, upto: u64) -> bool {
        self.1.set(upto);
        true
    }

    fn is_stopped(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left == 0
    }
}

// issue 29: an attempt that is stopped, after whichever piece, or that is not allowed leaves the session as it was
#[test]
fn a_stopped_attempt_leaves_nothing() {
    struct Refuses;
    impl SealControl for Refuses {
        fn allows(&self, last: &LastSegment, upto: u64) -> bool {
            assert_eq!((last.standing.last_seq, upto), (182, 182));
            false
        }
    }
    let state = tempfile::tempdir().expect("a directory");
    let mut model = Vec::new();
    let (directory, mut first) = begin(state.path(), &mut model);
    for _ in 0..180 {
        first.writer.append(batch(&[10_000], &mut model), None).expect("it is written");
    }
    first.release(Batch::new(), 5).expect("it is written");
    let second = claim(&directory, true, batch(&[1], &mut model));
    let until_second = StopsAfter(Cell::new(0), Cell::new(0));
    assert_eq!(session(&directory).seal("one", &until_second).expect("it is read"), Sealing::Stopped);
    assert_eq!(until_second.1.get(), 181, "the last one is its owner's");
    second.release(Batch::new(), 5).expect("it is written");
    let before = names(&directory);
    assert_eq!(session(&directory).seal("one", &Refuses).expect("it is read"), Sealing::Stopped);
    let mut pieces = 0;
    loop {
        match session(&directory)
            .seal("one", &StopsAfter(Cell::new(pieces), Cell::new(0)))
            .expect("it is written")
        {
            Sealing::Stopped => assert_eq!(names(&directory), before),
            sealed => {
                break assert!(
                    matches!(sealed, Sealing::Sealed { part: Part::Seal(1, 2), .. }),
                    "{sealed:?}"
                );
            }
        }
        pieces += 1;
    }
    // Two pieces of the first segment, one of the other, each segment and the end.
    assert_eq!(pieces, 6);
    assert_eq!(read(&directory, 0, 182).expect("nothing is damaged"), model);
}

// issue 29: what is written at once is bounded, and the next attempt goes on behind it
#[test]
fn what_is_too_much_at_once_is_sealed_in_turn() {
    let state = tempfile::tempdir().expect("a directory");
    let mut model = Vec::new();
    let (directory, first) = begin(state.path(), &mut model);
    first.release(Batch::new(), 5).expect("it is written");
    claim(&directory, false, batch(&[20_000], &mut model)).release(Batch::new(), 5).expect("it is written");
    // A file that is as long as that, and has holes where nothing counts.
    let long = session(&directory).file("1.log", true).expect("it opens");
    long.set_len(MOST).expect("it grows");
    for (part, before) in [(Part::Seal(1, 1), MOST), (Part::Seal(1, 2), 1)] {
        let sealed = session(&directory).seal("one", &()).expect("it is written");
        let Sealing::Sealed { part: found, before: bytes, after } = sealed else { panic!("{sealed:?}") };
        assert_eq!(found, part);
        assert!(bytes >= before && after < 1000, "{bytes} became {after}");
        assert_eq!(read(&directory, 0, 2).expect("nothing is damaged"), model);
    }
    assert_eq!(session(&directory).seal("one", &()).expect("it is read"), Sealing::Nothing);
}

// design session-files 4, 8: who dies while it seals leaves the session whole, also for who has the first segment open, to read it or
// to write it; and the next finishes it
#[test]
fn what_was_half_sealed_is_finished() {
    for point in [FailPoint::HalfSealed, FailPoint::Sealed, FailPoint::Renamed, FailPoint::Unlinked] {
        let state = tempfile::tempdir().expect("a directory");
        let mut model = Vec::new();
        let (directory, first) = begin(state.path(), &mut model);
        let mut reader = SessionReader::new(session(&directory), 0);
        assert!(matches!(reader.read(1), Ok(Read::Blocks(_))));
        claim(&directory, true, batch(&[1], &mut model)).release(Batch::new(), 5).expect("it is written");
        let died = dying_at(point, || session(&directory).seal("one", &()));
        assert!(matches!(&died, Err(SessionFileError::Io(error)) if has_died(error)), "{point:?}: {died:?}");
        assert_ne!(names(&directory), ["1-2.seal"], "{point:?}");
        let (number, file) = (first.header.number, first.writer.file());
        assert!(session(&directory).is_over(number, file).expect("it is read"), "{point:?}");
        assert!(matches!(reader.read(2), Ok(Read::Blocks(_))), "{point:?}");
        session(&directory).seal("other", &()).expect("it is written");
        assert_eq!(names(&directory), ["1-2.seal"], "{point:?}");
        assert_eq!(read(&directory, 0, 2).expect("nothing is damaged"), model, "{point:?}");
    }
}

// design session-files 4, 6: owners, readers and two that seal go on at once, and no event is lost or given twice
#[test]
fn owners_readers_and_sealers_go_on_at_once() {
    const ROUNDS: usize = 60;
    let state = tempfile::tempdir().expect("a directory");
    let mut model = Vec::new();
    let (directory, first) = begin(state.path(), &mut model);
    first.release(Batch::new(), 5).expect("it is written");
    let is_over = AtomicBool::new(false);
    let goes_on = || !is_over.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        for host in ["one", "other"] {
            let directory = &directory;
            scope.spawn(move || {
                while goes_on() {
                    session(directory).seal(host, &()).expect("it is written");
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let mut follower = SessionReader::new(session(&directory), 0);
                let mut followed = 0;
                while goes_on() {
                    let upto = session(&directory).last().expect("it is read").standing.last_seq;
                    let again = read(&directory, followed.min(upto), upto).expect("nothing is damaged");
                    assert!(again.len() as u64 >= upto - followed.min(upto));
                    while let Read::Blocks(blocks) = follower.read(upto).expect("nothing is damaged") {
                        for event in blocks.iter().flat_map(Block::events) {
                            let number = event.payload.last_chunk().map(|bytes| u64::from_le_bytes(*bytes));
                            assert_eq!((event.seq, number), (followed + 1, Some(followed)));
                            followed += 1;
                        }
                    }
                    assert!(followed >= upto, "{followed} of {upto}");
                }
            });
        }
        for round in 0..ROUNDS {
            let mut owner = claim(&directory, round % 3 == 0, batch(&[1, 9], &mut model));
            owner.writer.append(batch(&[7; 5], &mut model), None).expect("it is written");
            owner.release(batch(&[20_000], &mut model), 5).expect("it is written");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    session(&directory).seal("last", &()).expect("it is written");
    assert_eq!(read(&directory, 0, model.len() as u64).expect("nothing is damaged"), model);
    assert!(names(&directory).len() < 3, "{:?}", names(&directory));
}

// design session-files 4: a session that is removed while it is sealed does not come back
#[test]
fn sealing_does_not_bring_a_removed_session_back() {
    for round in 0..50 {
        let state = tempfile::tempdir().expect("a directory");
        let mut model = Vec::new();
        let (directory, _) = begin(state.path(), &mut model);
        claim(&directory, true, batch(&[1], &mut model)).release(Batch::new(), 5).expect("it is written");
        let (one, other) = (session(&directory), session(&directory));
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                barrier.wait();
                one.seal("sealer", &()).expect("it is written");
            });
            barrier.wait();
            let last = other.last().expect("it is read");
            assert!(directory.remove(&other, &last).expect("it is removed"));
        });
        assert!(directory.find("a").expect("nothing is wrong").is_none(), "round {round}");
        assert_eq!(one.names().map_or(0, |names| names.len()), 0, "round {round}");
    }
}
