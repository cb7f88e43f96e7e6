//! What is replayed into segments, and what is not.

use super::*;
use crate::batch::Batch;
use crate::redo::RedoWriter;
use crate::segment::SegmentFlags;
use crate::session_files::{Beginning, Claim, Claimed, Facts, SessionDirectory};
use std::fs;
use std::path::PathBuf;

const BOOT: [u8; BOOT_BYTES] = [1; BOOT_BYTES];
const NEXT_BOOT: [u8; BOOT_BYTES] = [2; BOOT_BYTES];

struct State {
    dir: tempfile::TempDir,
    directory: SessionDirectory,
    claimed: Claimed,
}

impl State {
    fn begin() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let directory = SessionDirectory::open(dir.path(), "host").expect("it is made");
        let claimed = Self::create(&directory);
        Self { dir, directory, claimed }
    }

    fn create(directory: &SessionDirectory) -> Claimed {
        let facts = Facts { id: "a".into(), host: "host".into(), ..Facts::default() };
        let new = Beginning { facts, ..Beginning::default() };
        directory.create(new).expect("it is written").expect("there is none")
    }

    fn segment(&self) -> PathBuf {
        self.directory.path("a").join("1.log")
    }

    /// Appends to the redo file, and to the segment if `is_written`.
    fn append(&mut self, redo: &mut RedoWriter<File>, payload: &[u8], is_written: bool) {
        let mut batch = Batch::new();
        batch.push(1, 0, payload);
        let framed = self.claimed.writer.frame(batch, None).expect("it is short");
        let bytes = framed.bytes();
        let entry = RedoEntry { session: "a", segment: 1, offset: framed.offset(), batches: &bytes };
        redo.append(&[entry]).expect("there is room");
        if is_written {
            self.claimed.writer.write(framed).expect("there is room");
        }
    }

    fn redo(&self) -> (RedoDirectory, RedoWriter<File>) {
        let (directory, files) = RedoDirectory::begin(self.dir.path()).expect("it is made");
        (directory, RedoWriter::new(files, BOOT))
    }

    fn replay(&self, boot: &[u8; BOOT_BYTES]) {
        replay_all(self.dir.path(), boot, |_| false).expect("it is replayed");
        let left = fs::read_dir(self.dir.path().join("redo")).expect("it is there");
        assert_eq!(left.count(), 0);
    }

    fn last(&self) -> u64 {
        let directory = self.directory.find("a").expect("it opens").expect("it is there");
        directory.last().expect("it is read").standing.last_seq
    }
}

// issue 29, durability = "power": what the machine lost is put back, once it has booted since
#[test]
fn what_was_lost_is_put_back() {
    for (boot, expected) in [(BOOT, 2), (NEXT_BOOT, 6)] {
        let mut state = State::begin();
        let (directory, mut redo) = state.redo();
        for number in 0..6_u64 {
            state.append(&mut redo, &[7; 100], true);
            if number == 1 {
                let file = fs::metadata(state.segment()).expect("it is there");
                redo.turn().expect("it has entries");
                redo.free(1, 0);
                fs::write(state.dir.path().join("length"), file.len().to_string()).expect("it is written");
            }
        }
        drop((directory, redo));
        let length = fs::read_to_string(state.dir.path().join("length")).expect("it is there");
        let file = File::options().write(true).open(state.segment()).expect("it is there");
        file.set_len(length.parse().expect("a number")).expect("it is cut off");
        state.replay(&boot);
        assert_eq!(state.last(), expected, "{boot:?}");
        state.replay(&boot);
        assert_eq!(state.last(), expected, "{boot:?}");
    }
}

// issue 29, durability = "power": a log that lives replays its files to nobody, and one that was told to is replayed in its own boot
#[test]
fn files_that_were_condemned_are_replayed_in_any_boot() {
    let mut state = State::begin();
    let (directory, mut redo) = state.redo();
    state.append(&mut redo, b"one", false);
    redo.condemn().expect("there is room");
    replay_all(state.dir.path(), &BOOT, |_| false).expect("it is read");
    assert_eq!(state.last(), 0, "they are of a log that lives");
    drop(directory);
    state.replay(&BOOT);
    assert_eq!(state.last(), 1);
}

// issue 29, durability = "power": what another claim left out, or what is of a session that is gone, is not put back
#[test]
fn what_does_not_count_any_more_is_not_put_back() {
    let mut state = State::begin();
    let (directory, mut redo) = state.redo();
    state.append(&mut redo, b"one", true);
    state.append(&mut redo, b"two", false);
    let length = fs::metadata(state.segment()).expect("it is there").len();
    let session = state.directory.find("a").expect("it opens").expect("it is there");
    let last = session.last().expect("it is read");
    let facts = Facts { host: "next".into(), ..last.facts.clone() };
    let claim =
        Claim { flags: SegmentFlags::default(), facts: &facts, goes_on: true, batch: Batch::default() };
    session.claim(&last, claim).expect("it is written").expect("nobody else is here");
    let all = fs::read(directory.path().join("0")).expect("it is there");
    let header = RedoHeader::decode(&all).expect("it is whole");
    assert_eq!(RedoEntries::new(&all, &header).count(), 2);
    drop((directory, redo));
    state.replay(&NEXT_BOOT);
    assert_eq!((state.last(), fs::metadata(state.segment()).expect("it is there").len()), (1, length));
    // Another session of the same id, in whose place the entries would be.
    fs::remove_dir_all(state.directory.path("a")).expect("it is removed");
    let (directory, _) = state.redo();
    fs::write(directory.path().join("0"), &all).expect("it is written");
    drop(directory);
    state.replay(&NEXT_BOOT);
    assert!(state.directory.find("a").expect("it opens").is_none());
    State::create(&state.directory);
    let before = fs::read(state.segment()).expect("it is there");
    let (directory, _) = state.redo();
    fs::write(directory.path().join("0"), &all).expect("it is written");
    drop(directory);
    state.replay(&NEXT_BOOT);
    assert_eq!(fs::read(state.segment()).expect("it is there"), before);
}

// issue 29, durability = "power": what a newer acpd wrote is neither lost nor taken for nothing
#[test]
fn redo_files_of_a_newer_acpd_stay() {
    let state = State::begin();
    let (directory, _) = state.redo();
    let mut header = RedoHeader { generation: 1, boot: BOOT, nonce: [0; 16] }.encode();
    header[8] = 9;
    let checksum = crc32fast::hash(&header[..60]);
    header[60..].copy_from_slice(&checksum.to_le_bytes());
    let path = directory.path().join("1");
    fs::write(&path, header).expect("it is written");
    drop(directory);
    replay_all(state.dir.path(), &NEXT_BOOT, |_| true).expect_err("it is newer");
    assert!(path.exists());
}
