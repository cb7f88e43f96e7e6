//! Appends against a vector of what was acknowledged, on a file that fails as it is told.

use super::*;
use crate::segment::{Reach, SegmentHeader, scan};
use parking_lot::Mutex;
use proptest::prelude::*;
use std::io::ErrorKind;

const NONCE: [u8; NONCE_BYTES] = *b"a test's nonce..";

/// What a file does with a write, once.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Short(usize),
    Interrupted,
    /// After so many bytes nothing can be written; whether it can be cut off then.
    Fails {
        after: usize,
        kind: ErrorKind,
        truncates: bool,
    },
}

/// A file in memory that fails as it is told.
#[derive(Debug, Default)]
struct Faulty {
    bytes: Mutex<Vec<u8>>,
    faults: Mutex<Vec<Fault>>,
    truncates: Mutex<bool>,
}

impl StoredFile for &Faulty {
    fn write_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        let whole = pieces.iter().flat_map(|piece| piece.iter().copied()).collect::<Vec<u8>>();
        let mut faults = self.faults.lock();
        let taken = match faults.pop() {
            None => whole.len(),
            Some(Fault::Short(length)) => whole.len().min(length.max(1)),
            Some(Fault::Interrupted) => return Err(ErrorKind::Interrupted.into()),
            Some(Fault::Fails { after: 0, kind, truncates }) => {
                *self.truncates.lock() = truncates;
                return Err(kind.into());
            }
            Some(Fault::Fails { after, kind, truncates }) => {
                faults.push(Fault::Fails { after: 0, kind, truncates });
                whole.len().min(after)
            }
        };
        let mut bytes = self.bytes.lock();
        let begin = usize::try_from(offset).expect("it is short");
        let end = begin + taken;
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[begin..end].copy_from_slice(&whole[..taken]);
        Ok(taken)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        if !*self.truncates.lock() {
            return Err(ErrorKind::Other.into());
        }
        self.bytes.lock().truncate(usize::try_from(length).expect("it is short"));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

fn file() -> Faulty {
    let header = SegmentHeader::first(NONCE);
    Faulty { bytes: Mutex::new(header.encode().to_vec()), ..Faulty::default() }
}

/// The payloads that count in a file, and how far it goes.
fn read(file: &Faulty) -> (Vec<Vec<u8>>, Reach) {
    let bytes = file.bytes.lock();
    let mut found = Vec::new();
    let reach = scan(&bytes, &NONCE, 1, |_, batch| {
        let records = pack::unpack(batch.head.unpacked.into(), batch.records).expect("it was packed");
        let block = match batch.head.events {
            0 => return,
            _ => Block::checked(batch.head.first_seq, batch.head.last_seq(), records.into()),
        };
        found.extend(block.expect("whole records").events().map(|event| event.payload.to_vec()));
    });
    (found, reach)
}

fn batch(sizes: &[usize], mark: u8) -> (Batch, Vec<Vec<u8>>) {
    let payloads: Vec<_> = sizes.iter().map(|size| vec![mark; *size]).collect();
    let mut batch = Batch::new();
    payloads.iter().for_each(|payload| batch.push(1, 7, payload));
    (batch, payloads)
}

fn fault() -> impl Strategy<Value = Fault> {
    let kind = prop_oneof![Just(ErrorKind::StorageFull), Just(ErrorKind::Other)];
    prop_oneof![
        1 => (0_usize..300).prop_map(Fault::Short),
        1 => Just(Fault::Interrupted),
        2 => (0_usize..3000, kind, any::<bool>())
            .prop_map(|(after, kind, truncates)| Fault::Fails { after, kind, truncates }),
    ]
}

proptest! {
    // design session-files 8: what was acknowledged is there, once and in order, and nothing else, whatever writes do
    #[test]
    fn exactly_what_was_acknowledged_is_there(
        steps in prop::collection::vec(
            (prop::collection::vec(prop_oneof![20 => 0_usize..200, 1 => 0_usize..700_000], 0..6), prop::collection::vec(fault(), 0..3)),
            1..12,
        )
    ) {
        let file = file();
        let mut writer = SegmentWriter::begin(&file, NONCE, Standing::default());
        let mut model = Vec::new();
        for (mark, (sizes, faults)) in (0_u8..).zip(steps) {
            *file.faults.lock() = faults;
            *file.truncates.lock() = true;
            let (batch, payloads) = batch(&sizes, mark);
            let before = writer.end();
            match writer.append(batch, None) {
                Ok(blocks) => {
                    let seqs = blocks.iter().flat_map(|block| block.range()).collect::<Vec<_>>();
                    let first = model.len() as u64 + 1;
                    model.extend(payloads);
                    prop_assert_eq!(seqs, (first..=model.len() as u64).collect::<Vec<_>>());
                }
                Err(_) => prop_assert_eq!(writer.end(), before),
            }
            let (found, reach) = read(&file);
            prop_assert_eq!(&found, &model);
            prop_assert_eq!((reach.end, reach.checksum), writer.end());
            prop_assert_eq!(writer.standing().last_seq, model.len() as u64);
        }
    }
}

// design session-files 8: a disk that is full at any byte of a batch costs that batch and nothing else
#[test]
fn a_disk_that_is_full_at_each_byte_costs_one_batch() {
    let (first, second) = (batch(&[5, 9], 1), batch(&[40, 0, 3], 2));
    for after in 0..300 {
        let file = file();
        let mut writer = SegmentWriter::begin(&file, NONCE, Standing::default());
        writer.append(first.0.clone(), Some(b"{}")).expect("there is room");
        *file.faults.lock() =
            vec![Fault::Fails { after, kind: ErrorKind::StorageFull, truncates: after % 2 == 0 }];
        let appended = writer.append(second.0.clone(), None);
        let expected = match &appended {
            Ok(_) => [first.1.clone(), second.1.clone()].concat(),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::StorageFull);
                first.1.clone()
            }
        };
        assert_eq!(read(&file).0, expected, "{after}");
        *file.faults.lock() = Vec::new();
        writer.append(second.0.clone(), None).expect("there is room again");
        assert_eq!(read(&file).0, [expected, second.1.clone()].concat(), "{after}");
    }
}

// design session-files 3: each batch says where the session stands behind it
#[test]
fn a_batch_says_where_its_session_stands() {
    let file = file();
    let mut writer = SegmentWriter::begin(&file, NONCE, Standing::default());
    let mut places = Vec::new();
    let mut append = |index: IndexUpdate| {
        places.push(writer.end().0);
        writer.append(Batch::index_only(index), None).expect("it is written");
    };
    let given = |number, bytes: Option<&[u8]>| (number, bytes.map(<[u8]>::to_vec));
    append(IndexUpdate {
        updated_ms: 5,
        state: Some(3),
        position: Some(70),
        info: Some(b"info".to_vec()),
        waiting: vec![given(1, Some(b"one"))],
        ..IndexUpdate::default()
    });
    append(IndexUpdate { updated_ms: 6, waiting: vec![given(2, Some(b"two"))], ..IndexUpdate::default() });
    append(IndexUpdate { updated_ms: 7, waiting: vec![given(1, None)], ..IndexUpdate::default() });
    append(IndexUpdate { updated_ms: 8, ended: Some(true), owner: Some(None), ..IndexUpdate::default() });
    let bytes = file.bytes.lock();
    let mut heads = Vec::new();
    scan(&bytes, &NONCE, 1, |_, batch| heads.push(batch.head));
    let stands = |head: &BatchHead| (head.state, head.position, head.at_ms, head.info_at, head.waiting_at);
    let expected = [
        (3, 70, 5, places[0], places[0]),
        (3, 70, 6, places[0], places[0]),
        (3, 70, 7, places[0], places[1]),
        (0, 0, 8, places[0], 0),
    ];
    assert_eq!(heads.iter().map(stands).collect::<Vec<_>>(), expected);
    let over = BatchFlags::ENDED.with(BatchFlags::RELEASED);
    assert!(heads[3].flags.has(over) && !heads[2].flags.has(BatchFlags::ENDED));
}
