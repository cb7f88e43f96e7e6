//! What goes in comes out, from any event on; what was changed is damage at the right event.

use super::super::{
    BatchFlags, BatchHead, FRAME_BYTES, HEADER_BYTES, NONCE_BYTES, Reach, Section, SegmentFlags,
    SegmentHeader, put_section, scan,
};
use super::*;
use crate::{Batch, pack};
use proptest::prelude::*;
use std::ops::Range;

const NONCE: [u8; NONCE_BYTES] = *b"nonce of a test.";
const SEAL_NONCE: [u8; NONCE_BYTES] = *b"nonce of a seal.";

type Payloads = Vec<Vec<u8>>;

/// One batch, and whether a segment begins with it.
#[derive(Clone, Debug)]
struct Appended {
    payloads: Payloads,
    is_packed: bool,
    has_info: bool,
    begins_segment: bool,
}

/// The segments of a session: for each its header and bytes.
fn segments(first_seq: u64, all: &[Appended]) -> Vec<(SegmentHeader, Vec<u8>)> {
    let header = SegmentHeader {
        flags: SegmentFlags::default(),
        number: 3,
        first_seq,
        cut: 4096,
        before: 77,
        nonce: NONCE,
    };
    let mut done = vec![(header, header.encode().to_vec())];
    let mut next_seq = first_seq;
    for (number, one) in (0..).zip(all) {
        let (header, bytes) = done.last().expect("it begins with one");
        if one.begins_segment {
            let reach = scan(bytes, &header.nonce, header.first_seq, |_, _| {});
            let (cut, before) = (reach.end, reach.checksum);
            let next =
                SegmentHeader { number: header.number + 1, first_seq: next_seq, cut, before, ..*header };
            done.push((next, next.encode().to_vec()));
        }
        let (_, bytes) = done.last_mut().expect("it begins with one");
        append(bytes, next_seq, number, one);
        next_seq += one.payloads.len() as u64;
    }
    done
}

/// Appends a batch whose state, time and position are its number.
fn append(bytes: &mut Vec<u8>, first_seq: u64, number: u8, one: &Appended) {
    let mut batch = Batch::new();
    (0..).zip(&one.payloads).for_each(|(at, payload)| batch.push(at as u16, at, payload));
    let packed = pack::pack(&batch.records);
    let (records, unpacked) = match one.is_packed {
        true => (&packed.bytes[..], packed.unpacked as u32),
        false => (&batch.records[..], 0),
    };
    let flags = if unpacked > 0 { BatchFlags::PACKED } else { BatchFlags::default() };
    let head = BatchHead {
        flags: flags.with(BatchFlags::ENDED).with(BatchFlags::HISTORY),
        state: number,
        events: one.payloads.len() as u32,
        first_seq,
        at_ms: i64::from(number),
        position: u64::from(number),
        kinds: 5,
        unpacked,
        ..BatchHead::default()
    };
    let mut front = BatchHead::begin(0);
    put_section(&mut front, Section::Facts(&[number]));
    if one.has_info {
        put_section(&mut front, Section::Info(&[number, number]));
    }
    let framed = head.frame(front, records, &NONCE, bytes.len() as u64).expect("it is short");
    bytes.extend([framed.front(), records, framed.back()].concat());
}

/// The sealed form of segments, with frames of this size, and how far the last of them goes.
fn seal(segments: &[(SegmentHeader, Vec<u8>)], frame_bytes: usize) -> (Vec<u8>, Reach) {
    let mut out = Vec::new();
    let mut writer = SealWriter::begin(&segments[0].0, SEAL_NONCE, &mut out).expect("it can be sealed");
    writer.frame_bytes = frame_bytes;
    let mut reach = None;
    for (at, (header, bytes)) in segments.iter().enumerate() {
        if at > 0 {
            writer.continue_with(header).expect("it is the next one");
        }
        reach = Some(scan(bytes, &header.nonce, header.first_seq, |place, batch| {
            writer.add(place, &batch, &mut out).expect("it comes next");
        }));
    }
    let length = writer.finish(&mut out).expect("it is short");
    assert_eq!(length, out.len() as u64);
    (out, reach.expect("there is a segment"))
}

/// The part of a file at a place.
fn part(bytes: &[u8], place: u64, length: u64) -> &[u8] {
    &bytes[place as usize..][..length as usize]
}

fn open(bytes: &[u8], header: &SegmentHeader) -> Result<(SealIndex, BatchHead, Vec<Vec<u8>>), SealDamage> {
    let tail = SealTail::decode(bytes, bytes.len() as u64, header)?;
    let footer = tail.decode_footer(part(bytes, tail.footer_at, tail.footer_length), header)?;
    let said = footer.sections().map(|section| match section {
        Section::Facts(bytes) | Section::Info(bytes) => bytes.to_vec(),
        _ => panic!("{section:?}"),
    });
    Ok((SealIndex::decode(header, &tail, &footer)?, footer.head, said.collect()))
}

/// Reads a file as a cursor does, from an event to the last one: the payloads, and the damage behind them.
fn read_from(bytes: &[u8], header: &SegmentHeader, seq: u64) -> (Payloads, Option<SealDamage>) {
    let mut payloads = Vec::new();
    let index = match open(bytes, header) {
        Ok((index, _, _)) => index,
        Err(damage) => return (payloads, Some(damage)),
    };
    let mut seq = seq;
    while let Some(place) = index.find(seq) {
        assert!(place.first_seq <= seq && seq <= place.last_seq());
        let block = match place.decode(part(bytes, place.place, place.length), &header.nonce) {
            Ok(block) => block,
            Err(damage) => return (payloads, Some(damage)),
        };
        assert!(block.bytes() <= FRAME_BYTES || block.range().count() == 1);
        let from = block.starting_at(seq).expect("it is in the frame");
        payloads.extend(from.events().map(|event| event.payload.to_vec()));
        seq = place.last_seq() + 1;
    }
    assert_eq!(seq, index.reach.last_seq.max(seq - 1) + 1, "nothing is left out");
    (payloads, None)
}

/// The beginnings of the frames, as their first events and the bytes they take.
fn frames_of(bytes: &[u8], header: &SegmentHeader) -> Vec<(u64, Range<usize>)> {
    let (index, _, _) = open(bytes, header).expect("it is whole");
    let mut seq = header.first_seq;
    let mut frames = Vec::new();
    while let Some(place) = index.find(seq) {
        frames.push((place.first_seq, place.place as usize..(place.place + place.length) as usize));
        seq = place.last_seq() + 1;
    }
    frames
}

fn any_batch(longest: usize) -> impl Strategy<Value = Appended> {
    let noise = prop::collection::vec(any::<u8>(), 1..40);
    let payload =
        (noise, 0..longest).prop_map(|(noise, length)| noise.into_iter().cycle().take(length).collect());
    let payloads = prop::collection::vec(payload, 0..6);
    (payloads, any::<bool>(), any::<bool>(), prop::bool::weighted(0.2)).prop_map(
        |(payloads, is_packed, has_info, begins_segment)| Appended {
            payloads,
            is_packed,
            has_info,
            begins_segment,
        },
    )
}

fn check_comes_back(all: &[Appended], first: u64, frame_bytes: usize) {
    let segments = segments(first, all);
    let (bytes, reach) = seal(&segments, frame_bytes);
    let header = SegmentHeader::decode(&bytes).expect("it is one");
    assert_eq!(header, SegmentHeader { flags: SegmentFlags::SEALED, nonce: SEAL_NONCE, ..segments[0].0 });
    let payloads: Payloads = all.iter().flat_map(|one| one.payloads.clone()).collect();
    for seq in 0..=payloads.len() {
        let (found, damage) = read_from(&bytes, &header, first + seq as u64);
        assert_eq!(damage, None);
        assert!(found == payloads[seq..], "from {seq}");
    }
    let (index, head, said) = open(&bytes, &header).expect("it is whole");
    assert_eq!(index.find(first - 1), None);
    assert_eq!((index.last_number as usize, index.reach), (2 + segments.len(), reach));
    let last = all.len() as u8 - 1;
    let info = all.iter().rposition(|one| one.has_info).map(|at| vec![at as u8; 2]);
    assert_eq!(said, [vec![last]].into_iter().chain(info).collect::<Vec<_>>());
    let expected = (BatchFlags::ENDED, last, i64::from(last), u64::from(last), reach.last_seq);
    assert_eq!((head.flags, head.state, head.at_ms, head.position, head.last_seq()), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // design session-files 3: a seal has the same events, from any of them on, and the head of its session
    #[test]
    fn what_was_sealed_comes_back(all in prop::collection::vec(any_batch(6_000), 1..10), first in 1_u64..1000, frame_bytes in 100_usize..20_000) {
        check_comes_back(&all, first, frame_bytes);
    }

    // design session-files 8: a changed byte is damage at the first event of its frame, others are read, and none is another
    #[test]
    fn a_changed_byte_is_told_at_its_event(all in prop::collection::vec(any_batch(300), 1..8), at in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let (bytes, _) = seal(&segments(5, &all), 500);
        let header = SegmentHeader::decode(&bytes).expect("it is one");
        let payloads: Payloads = all.iter().flat_map(|one| one.payloads.clone()).collect();
        let mut changed = bytes.clone();
        let at = at.index(bytes.len());
        changed[at] ^= 1 << bit;
        prop_assert_eq!(SegmentHeader::decode(&changed).is_err(), at < HEADER_BYTES);
        let frames = frames_of(&bytes, &header);
        let hit = frames.iter().position(|(_, place)| place.contains(&at));
        let (found, damage) = read_from(&changed, &header, 5);
        match hit.map(|hit| (frames[hit].0, frames.get(hit + 1))) {
            Some((seq, next)) => {
                prop_assert_eq!(damage, Some(SealDamage { seq }));
                prop_assert!(found == payloads[..seq as usize - 5]);
                let next = next.map_or(5 + payloads.len() as u64, |next| next.0);
                let (rest, damage) = read_from(&changed, &header, next);
                prop_assert!(damage.is_none() && rest == payloads[next as usize - 5..]);
            }
            None if at < HEADER_BYTES => prop_assert!(found == payloads),
            None => prop_assert_eq!((found.len(), damage), (0, Some(SealDamage { seq: 5 }))),
        }
    }

    // design session-files 12: any footer whose checksums are right is read without a panic, and places lie inside the file
    #[test]
    fn any_index_is_read_or_refused(
        frames in prop::collection::vec((0_u64..40, 0_u64..400), 0..5), words in any::<[u64; 4]>(), rest in prop::collection::vec(any::<u8>(), 0..3),
        first_seq in prop::sample::select(vec![0, 1, 40, u64::MAX]), is_wild in any::<bool>(),
    ) {
        let (header, footer_at) = (sealed_header(1), 400);
        let mut records = [&words[0].to_le_bytes()[..], &words[1].to_le_bytes()].concat();
        for (seq, place) in &frames {
            let (seq, place) = if is_wild { (words[2] ^ seq, words[3] ^ place) } else { (*seq, place / 8 * 8) };
            records.extend([seq.to_le_bytes(), place.to_le_bytes()].concat());
        }
        records.extend(rest);
        let head = BatchHead { first_seq, ..BatchHead::default() };
        let framed = head.frame(BatchHead::begin(0), &records, &SEAL_NONCE, footer_at).expect("it is short");
        let footer = [framed.front(), &records, framed.back()].concat();
        let tail = SealTail { footer_at, footer_length: footer.len() as u64 };
        let footer = tail.decode_footer(&footer, &header).expect("its checksum is right");
        if let Ok(index) = SealIndex::decode(&header, &tail, &footer) {
            for seq in (0..50).chain([u64::MAX - 1, u64::MAX]) {
                if let Some(place) = index.find(seq) {
                    prop_assert!((place.first_seq..=place.last_seq()).contains(&seq));
                    prop_assert!(place.place >= HEADER_BYTES as u64 && place.place + place.length <= footer_at);
                    prop_assert_eq!(place.decode(&vec![0; place.length as usize], &SEAL_NONCE).err(), Some(SealDamage { seq: place.first_seq }));
                }
            }
        }
    }

    // design session-files 12: any bytes are read without a panic, and as nothing
    #[test]
    fn any_bytes_are_no_seal(bytes in prop::collection::vec(any::<u8>(), 0..400), events in any::<u32>()) {
        let header = sealed_header(9);
        prop_assert_eq!(read_from(&bytes, &header, 9), (Vec::new(), Some(SealDamage { seq: 9 })));
        let place = FramePlace { place: 64, length: bytes.len() as u64, first_seq: u64::MAX, events };
        prop_assert_eq!(place.decode(&bytes, &SEAL_NONCE).err(), Some(SealDamage { seq: u64::MAX }));
    }
}

fn sealed_header(first_seq: u64) -> SegmentHeader {
    SegmentHeader { flags: SegmentFlags::SEALED, number: 1, first_seq, cut: 0, before: 0, nonce: SEAL_NONCE }
}

fn plain(payloads: Payloads) -> Appended {
    Appended { payloads, is_packed: false, has_info: true, begins_segment: false }
}

// design session-files 3: frames are cut at 256 KiB, and an event that is larger has one for itself
#[test]
fn a_large_event_has_a_frame_for_itself() {
    let noise = |length: usize| {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..length).map(|_| next()).collect::<Vec<u8>>()
    };
    let payloads = vec![
        b"a".to_vec(),
        noise(FRAME_BYTES),
        vec![7; 9 * FRAME_BYTES],
        b"b".to_vec(),
        noise(FRAME_BYTES - 40),
    ];
    let all = [plain(payloads), plain(vec![noise(100_000), noise(100_000), noise(100_000)])];
    check_comes_back(&all, 1, FRAME_BYTES);
    let (bytes, _) = seal(&segments(1, &all), FRAME_BYTES);
    let frames = frames_of(&bytes, &SegmentHeader::decode(&bytes).expect("it is one"));
    assert_eq!(frames.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [1, 2, 3, 4, 6, 8]);
    // What does not shrink is stored as it is, and what does is not.
    let lengths: Vec<_> = frames.iter().map(|(_, place)| place.len()).collect();
    assert_eq!(lengths[1], (frame::HEAD_BYTES + RECORD_HEAD_BYTES + FRAME_BYTES).next_multiple_of(8));
    assert!(lengths[2] < FRAME_BYTES, "{lengths:?}");
}

// design session-files 3: each part that is missing at the end is seen
#[test]
fn a_seal_that_is_cut_off_is_damaged() {
    let (bytes, _) =
        seal(&segments(5, &[plain(vec![vec![1; 300], vec![2; 300]]), plain(vec![vec![3; 10]])]), 400);
    let header = SegmentHeader::decode(&bytes).expect("it is one");
    assert_eq!(frames_of(&bytes, &header).len(), 2);
    for length in 0..bytes.len() {
        let read = read_from(&bytes[..length], &header, 5);
        assert_eq!(read, (Vec::new(), Some(SealDamage { seq: 5 })), "{length}");
    }
    // Neither does a file of another session or another place pass.
    let other = SegmentHeader { nonce: NONCE, ..header };
    assert_eq!(read_from(&bytes, &other, 5).1, Some(SealDamage { seq: 5 }));
}

// design session-files 12: what a frame says of its size is believed only as far as it may be true
#[test]
fn a_frame_that_is_larger_than_it_may_be_is_damage() {
    let mut batch = Batch::new();
    (0..2).for_each(|_| batch.push(1, 0, &vec![7; FRAME_BYTES]));
    let mut bytes = Vec::new();
    let length = frame::write_frame(1, 2, &batch.records, &NONCE, 64, &mut bytes).expect("a Vec takes it");
    let place = |events| FramePlace { place: 64, length, first_seq: 1, events };
    assert_eq!(place(2).decode(&bytes, &NONCE).err(), Some(SealDamage { seq: 1 }));
    let mut one = Batch::new();
    one.push(1, 0, &vec![7; 2 * FRAME_BYTES]);
    let mut bytes = Vec::new();
    let length = frame::write_frame(1, 1, &one.records, &NONCE, 64, &mut bytes).expect("a Vec takes it");
    let place = |place| FramePlace { place, length, first_seq: 1, events: 1 };
    assert_eq!(place(64).decode(&bytes, &NONCE).map(|block| block.bytes()), Ok(one.bytes()));
    assert_eq!(
        place(72).decode(&bytes, &NONCE).err(),
        Some(SealDamage { seq: 1 }),
        "it is from another place"
    );
}

// design session-files 4: only segments that follow each other are sealed, and no deleted session comes back as a seal
#[test]
fn what_does_not_follow_is_not_sealed() {
    let two = Appended { begins_segment: true, ..plain(vec![b"c".to_vec()]) };
    let all = segments(1, &[plain(vec![b"a".to_vec(), b"b".to_vec()]), two]);
    let (first, next) = (all[0].0, all[1].0);
    for flags in [SegmentFlags::DELETED, SegmentFlags::SEALED] {
        let refused = SealWriter::begin(&SegmentHeader { flags, ..first }, NONCE, &mut Vec::new());
        assert!(matches!(refused, Err(SealError::OutOfOrder)), "{flags:?}");
    }
    let begun = || {
        let mut writer = SealWriter::begin(&first, NONCE, &mut Vec::new()).expect("it can be sealed");
        scan(&all[0].1, &NONCE, 1, |at, batch| {
            writer.add(at, &batch, &mut Vec::new()).expect("it comes next")
        });
        writer
    };
    assert!(begun().continue_with(&next).is_ok());
    for wrong in [
        SegmentHeader { number: 5, ..next },
        SegmentHeader { cut: next.cut + 8, ..next },
        SegmentHeader { before: next.before + 1, ..next },
        SegmentHeader { first_seq: 4, ..next },
        SegmentHeader { flags: SegmentFlags::DELETED, ..next },
    ] {
        assert!(matches!(begun().continue_with(&wrong), Err(SealError::OutOfOrder)), "{wrong:?}");
    }
    let mut writer = begun();
    let again = scan_first(&all[0].1, |at, batch| writer.add(at, batch, &mut Vec::new()));
    assert!(matches!(again, Err(SealError::OutOfOrder)));
}

/// What adding the first batch of a segment comes to.
fn scan_first(
    bytes: &[u8],
    mut add: impl FnMut(u64, &super::super::StoredBatch<'_>) -> Result<(), SealError>,
) -> Result<(), SealError> {
    let mut added = Ok(());
    scan(bytes, &NONCE, 1, |at, batch| added = add(at, &batch));
    added
}

// design session-files 8: a batch that does not hold the events it says is not sealed
#[test]
fn a_batch_with_other_events_is_not_sealed() {
    let header = segments(1, &[])[0].0;
    let mut batch = Batch::new();
    batch.push(1, 0, b"one");
    for (events, records) in [(2, &batch.records[..]), (0, &batch.records), (1, &batch.records[..5])] {
        let head = BatchHead { events, first_seq: 1, ..BatchHead::default() };
        let framed = head.frame(BatchHead::begin(0), records, &NONCE, 64).expect("it is short");
        let bytes = [&header.encode()[..], framed.front(), records, framed.back()].concat();
        let mut writer = SealWriter::begin(&header, NONCE, &mut Vec::new()).expect("it can be sealed");
        let added = scan_first(&bytes, |at, batch| writer.add(at, batch, &mut Vec::new()));
        assert!(matches!(added, Err(SealError::Damaged(SealDamage { seq: 1 }))), "{events}");
    }
}
