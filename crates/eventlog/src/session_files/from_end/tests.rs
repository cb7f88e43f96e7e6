//! Segments with whatever behind their last append, from the end against from the front.

use super::super::SegmentWriter;
use super::super::fixture::batch;
use super::*;
use crate::segment::scan;
use proptest::prelude::*;
use std::io::Write;

const NONCE: [u8; 16] = *b"nonce of a test.";

/// What stands behind the last append.
#[derive(Clone, Debug)]
enum Tail {
    Nothing,
    Bytes(Vec<u8>),
    /// What a file system adds when it has lost a tail.
    Zeros(usize),
    /// The beginning of an append of two pieces, cut off so many bytes before its end.
    Cut(prop::sample::Index),
    /// The bytes of the segment itself, which are batches of other places.
    Copy(prop::sample::Index),
}

fn tail() -> impl Strategy<Value = Tail> {
    prop_oneof![
        Just(Tail::Nothing),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(Tail::Bytes),
        (0..10_000_usize).prop_map(Tail::Zeros),
        any::<prop::sample::Index>().prop_map(Tail::Cut),
        any::<prop::sample::Index>().prop_map(Tail::Copy),
    ]
}

/// A segment of these appends and this tail, and the places of the appends with the events that are next there.
fn segment(appends: &[Vec<usize>], tail: &Tail) -> (File, SegmentHeader, Vec<(u64, u64)>) {
    let header = SegmentHeader::first(NONCE);
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(&header.encode()).expect("it is written");
    let cloned = || file.try_clone().expect("it is open");
    let mut writer = SegmentWriter::begin(cloned(), NONCE, Default::default());
    let (mut model, mut places) = (Vec::new(), Vec::new());
    for sizes in appends {
        places.push((writer.end().0, writer.standing().last_seq + 1));
        drop(writer.append(batch(sizes, &mut model), None).expect("it is written"));
    }
    let end = writer.end().0;
    let written = |bytes: &[u8]| cloned().write_all_at(bytes, end).expect("it is written");
    match tail {
        Tail::Nothing => {}
        Tail::Bytes(bytes) => written(bytes),
        Tail::Zeros(count) => written(&vec![0; *count]),
        Tail::Cut(at) => {
            drop(writer.append(batch(&[700_000, 500_000, 9], &mut model), None).expect("it is written"));
            let length = writer.end().0 - end;
            cloned()
                .set_len(end + at.index(usize::try_from(length).expect("it is short")) as u64)
                .expect("cut");
        }
        Tail::Copy(at) => {
            let bytes = read_at(&file, 0, end).expect("it is read");
            written(&bytes[at.index(bytes.len()) / 8 * 8..]);
        }
    }
    (file, header, places)
}

fn appends() -> impl Strategy<Value = Vec<Vec<usize>>> {
    let sizes = prop_oneof![40 => 0..300_usize, 1 => 0..900_000_usize];
    prop::collection::vec(prop::collection::vec(sizes, 0..6), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    // design session-files 3, issue 29: from the end as from the front: whatever stands behind it, the last append is found, and
    // from there the one with each event
    #[test]
    fn the_end_says_what_the_front_says(appends in appends(), tail in tail()) {
        let (file, header, places) = segment(&appends, &tail);
        let length = file.metadata().expect("it is there").len();
        let bytes = read_at(&file, 0, length).expect("it is read");
        let mut last = None;
        let reach = scan(&bytes, &NONCE, 1, |at, batch| last = Some((batch.head, at)));
        let (head, at) = last.expect("there is an append");
        let expected = LastBatch { head, at, end: (reach.end, reach.checksum) };
        let mut from_end = FromEnd::new(&file, &header);
        prop_assert_eq!(from_end.last(length).expect("it is read"), Some(expected));
        for next in 1..=reach.last_seq + 1 {
            let mut from_end = FromEnd::new(&file, &header);
            let last = from_end.last(length).expect("it is read").expect("it is there");
            let place = from_end.place_of(next, &last).expect("it is read");
            let expected = places.iter().rev().find(|(_, first)| *first <= next).copied();
            prop_assert_eq!(place, expected, "{}", next);
        }
    }
}

// design session-files 8: what is damaged is not gone over: who comes that way begins at the front
#[test]
fn a_way_that_is_not_whole_leads_nowhere() {
    let appends = vec![vec![40]; 9];
    let (file, header, places) = segment(&appends, &Tail::Nothing);
    let length = file.metadata().expect("it is there").len();
    let place_of = |next: u64| {
        let mut from_end = FromEnd::new(&file, &header);
        let last = from_end.last(length).expect("it is read").expect("it is whole");
        from_end.place_of(next, &last).expect("it is read")
    };
    assert_eq!(place_of(2), Some(places[1]));
    file.write_all_at(&[0xff], places[5].0).expect("it is written");
    let found: Vec<_> = (1..=9).map(place_of).collect();
    assert_eq!(found[..6], [None; 6], "the sixth has another length");
    assert_eq!(found[6..], [None, Some(places[7]), Some(places[8])]);
}

// design session-files 8: without an append there is none, however long the file is
#[test]
fn a_file_without_an_append_has_no_last_one() {
    for length in [0, 8, 63, 64, 71, 100_000] {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(length).expect("it is there");
        let header = SegmentHeader::first(NONCE);
        assert_eq!(FromEnd::new(&file, &header).last(length).expect("it is read"), None, "{length}");
    }
}
