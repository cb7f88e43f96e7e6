//! Random histories of a session by several owners against a vector of its events.

use super::super::fail_point::{FailPoint, dying_at};
use super::super::fixture::{batch, begin, claim, read, session};
use super::super::{SessionDirectory, Standing};
use super::*;
use crate::batch::Batch;
use proptest::prelude::*;
use std::os::unix::fs::FileExt;

/// Seals what is closed; dies where it is said.
fn seal(directory: &SessionDirectory, dies_at: Option<FailPoint>) {
    let session = session(directory);
    match dies_at {
        None => drop(session.seal("sealer", &()).expect("it is written")),
        // It does not die if there is nothing to be sealed.
        Some(point) => drop(dying_at(point, || session.seal("sealer", &()))),
    }
}

#[derive(Clone, Debug)]
enum Step {
    Append(Vec<usize>),
    /// The host dies in the middle of a batch, and another claims.
    Dies {
        torn: Vec<u8>,
        goes_on: bool,
        says: Vec<usize>,
    },
    /// The host gives it back, and another claims.
    Resumes(Vec<usize>),
    /// The host gives it back, all is sealed, and another claims.
    ResumesSealed(Vec<usize>),
    /// What is closed is sealed, or who does it dies.
    Seals(Option<FailPoint>),
}

fn step() -> impl Strategy<Value = Step> {
    let sizes = || prop::collection::vec(prop_oneof![30 => 0..300_usize, 1 => 0..900_000_usize], 0..8);
    let torn = prop::collection::vec(any::<u8>(), 0..200);
    let says = || prop::collection::vec(0..50_usize, 0..3);
    prop_oneof![
        8 => sizes().prop_map(Step::Append),
        1 => (torn, any::<bool>(), says()).prop_map(|(torn, goes_on, says)| Step::Dies { torn, goes_on, says }),
        1 => says().prop_map(Step::Resumes),
        1 => says().prop_map(Step::ResumesSealed),
        2 => prop::sample::select(vec![None, Some(FailPoint::Renamed), Some(FailPoint::Unlinked)]).prop_map(Step::Seals),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    // design session-files 12: whatever owners do, each reader gets exactly the suffix, once and in order, whether it began before
    // the sealing, in it or after it
    #[test]
    fn each_reader_gets_what_is_missing(
        steps in prop::collection::vec(step(), 1..14),
        from in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
        pace in 1..6_u64,
    ) {
        let state = tempfile::tempdir().expect("a directory");
        let mut model = Vec::new();
        let (directory, mut owner) = begin(state.path(), &mut model);
        // They begin before all, and go on with what comes: one with all of it, one with a few events each time.
        let mut followers = [(u64::MAX, 0), (pace, 0)].map(|(pace, followed)| {
            (pace, followed, SessionReader::new(session(&directory), 0))
        });
        for step in steps {
            match step {
                Step::Append(sizes) => {
                    drop(owner.writer.append(batch(&sizes, &mut model), None).expect("it is written"));
                }
                Step::Dies { torn, goes_on, says } => {
                    owner.writer.file().write_all_at(&torn, owner.writer.end().0).expect("it is written");
                    let mut former = std::mem::replace(&mut owner, claim(&directory, goes_on, batch(&says, &mut model)));
                    // It was only stopped, and writes on where nothing counts any more.
                    former.writer.append(batch(&[9; 3], &mut Vec::new()), None).expect("nobody stops it");
                }
                Step::Resumes(says) => {
                    let released = batch(&[1], &mut model);
                    owner.release(released, 5).expect("it is written");
                    owner = claim(&directory, false, batch(&says, &mut model));
                }
                Step::ResumesSealed(says) => {
                    let released = batch(&[1], &mut model);
                    owner.release(released, 5).expect("it is written");
                    seal(&directory, None);
                    owner = claim(&directory, false, batch(&says, &mut model));
                }
                Step::Seals(dies_at) => seal(&directory, dies_at),
            }
            for (pace, followed, reader) in &mut followers {
                let upto = pace.saturating_add(*followed).min(model.len() as u64);
                while let Read::Blocks(blocks) = reader.read(upto).expect("nothing is damaged") {
                    for event in blocks.iter().flat_map(Block::events) {
                        prop_assert_eq!((event.seq, event.payload), (*followed + 1, &model[*followed as usize][..]));
                        *followed += 1;
                    }
                }
                prop_assert!(*followed >= upto);
            }
        }
        for from in from {
            let after = from.index(model.len() + 1);
            prop_assert_eq!(&read(&directory, after as u64, model.len() as u64).expect("nothing is damaged"), &model[after..]);
        }
    }
}

// design session-files 8: damage in the middle is told with the last event that can be read, and hides none before it
#[test]
fn damage_is_told_with_its_place() {
    let state = tempfile::tempdir().expect("a directory");
    let mut model = Vec::new();
    let (directory, mut owner) = begin(state.path(), &mut model);
    owner.writer.append(batch(&[10, 10], &mut model), None).expect("it is written");
    let place = owner.writer.end().0;
    owner.writer.append(batch(&[10], &mut model), None).expect("it is written");
    claim(&directory, true, batch(&[4], &mut model));
    owner.writer.file().write_all_at(b"\xff", place + 90).expect("it is written");
    let mut reader = SessionReader::new(session(&directory), 0);
    let Ok(Read::Blocks(blocks)) = reader.read(5) else { panic!("what stands before is read") };
    assert_eq!(blocks.last().map(Block::last), Some(3));
    let damaged = reader.read(5).expect_err("a byte is another");
    assert!(matches!(damaged, SessionFileError::Damaged { number: 1, last_seq: 3 }), "{damaged}");
    assert_eq!(read(&directory, 4, 5).expect("it is of another segment"), [&model[4][..]]);
}

// design session-files 8: a damaged frame is told with its first event; what stands before it is given first, and what is behind it is read
#[test]
fn a_damaged_frame_is_told_with_its_place() {
    let state = tempfile::tempdir().expect("a directory");
    let mut model = Vec::new();
    let (directory, mut owner) = begin(state.path(), &mut model);
    // Each of them has a frame for itself.
    let large = 300_000;
    owner.writer.append(batch(&[large, large, large], &mut model), None).expect("it is written");
    claim(&directory, true, Batch::new()).release(Batch::new(), 5).expect("it is written");
    seal(&directory, None);
    let path = directory.path("a").join(Part::Seal(1, 2).name());
    let mut bytes = std::fs::read(&path).expect("it is read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).expect("it is written");
    let mut reader = SessionReader::new(session(&directory), 0);
    let mut found = Vec::new();
    let damaged = loop {
        match reader.read(4) {
            Ok(Read::Blocks(blocks)) => found.extend(blocks.iter().flat_map(Block::range)),
            Ok(Read::End) => panic!("a byte is another"),
            Err(damaged) => break damaged,
        }
    };
    assert_eq!(found, [1, 2]);
    assert!(matches!(damaged, SessionFileError::Damaged { number: 1, last_seq: 2 }), "{damaged}");
    assert_eq!(read(&directory, 3, 4).expect("it is of another frame"), [&model[3][..]]);
}

// design session-files 4, 6: a sealed session stands where it stood, a claim goes on behind it, and one that does not is damage
#[test]
fn a_sealed_session_stands_where_it_stood() {
    let state = tempfile::tempdir().expect("a directory");
    let mut model = Vec::new();
    let (directory, owner) = begin(state.path(), &mut model);
    let number = owner.header.number;
    let is_over = || session(&directory).is_over(number, owner.writer.file()).expect("it is read");
    assert!(!is_over());
    claim(&directory, true, batch(&[1], &mut model)).release(batch(&[2], &mut model), 7).expect("written");
    let before = session(&directory).last().expect("it is read");
    seal(&directory, None);
    assert!(is_over(), "both files are gone");
    let sealed = session(&directory).last().expect("it is read");
    assert_eq!((&sealed.facts, &sealed.info, sealed.end), (&before.facts, &before.info, before.end));
    assert_eq!(Standing { info_at: 0, ..before.standing }, Standing { info_at: 0, ..sealed.standing });
    assert_eq!((sealed.header.number, sealed.header.first_seq), (2, 1));
    let next = claim(&directory, false, batch(&[3], &mut model));
    assert_eq!((next.header.number, next.header.cut, next.header.first_seq), (3, before.end.0, 4));
    assert_eq!(read(&directory, 0, 4).expect("nothing is damaged"), model);
    let other = SegmentHeader { before: 1, ..next.header };
    next.writer.file().write_all_at(&other.encode(), 0).expect("it is written");
    let damaged = read(&directory, 0, 4).expect_err("it continues another one");
    assert!(matches!(damaged, SessionFileError::Damaged { number: 2, last_seq: 3 }), "{damaged}");
}

// design session-files 3: a reader that is to stop inside an append of several batches loses nothing of it
#[test]
fn a_limit_inside_a_chain_loses_nothing() {
    let state = tempfile::tempdir().expect("a directory");
    let mut model = Vec::new();
    let (directory, mut owner) = begin(state.path(), &mut model);
    owner.writer.append(batch(&[700_000, 700_000, 1], &mut model), None).expect("it is written");
    for limit in 1..=4 {
        let mut reader = SessionReader::new(session(&directory), 0);
        let mut given = 0;
        for upto in [limit, 4] {
            while let Read::Blocks(blocks) = reader.read(upto).expect("nothing is damaged") {
                given += blocks.iter().map(|block| block.events().count()).sum::<usize>();
            }
        }
        assert_eq!(given, 4, "{limit}");
    }
}

// issue 29: a reader near the end of a long segment begins there, open or closed, torn or not, and gets the same
#[test]
fn a_reader_near_the_end_begins_there() {
    let state = tempfile::tempdir().expect("a directory");
    let mut model = Vec::new();
    let (directory, mut owner) = begin(state.path(), &mut model);
    for _ in 0..4_000 {
        owner.writer.append(batch(&[500, 500], &mut model), None).expect("it is written");
    }
    let (last, end) = (model.len() as u64, owner.writer.end().0);
    let distance = |after: u64| {
        let reader = SessionReader::new(session(&directory), after);
        match reader.find_part().expect("it is read") {
            Some(OpenPart::Log(log)) => end - log.at,
            found => panic!("{found:?}"),
        }
    };
    let check = || {
        for (after, most) in [(last - 1, 4_000), (last - 400, 300_000), (last / 2, end * 2 / 3)] {
            assert!(distance(after) <= most, "{after}: {} of {end}", distance(after));
        }
        assert_eq!(distance(100), end - HEADER_BYTES as u64, "it is near the front");
        for after in [100, last / 2, last - 400, last - 1] {
            let read = read(&directory, after, last).expect("nothing is damaged");
            assert!(read == model[usize::try_from(after).expect("it is small")..], "{after}");
        }
    };
    check();
    owner.writer.file().write_all_at(&[7; 5_000], end).expect("it is written");
    check();
    drop(claim(&directory, true, Batch::new()));
    check();
}
