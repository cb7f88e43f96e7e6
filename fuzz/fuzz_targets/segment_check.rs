//! What holds for a segment of acpd-eventlog on any input, as one function for the fuzzer and for the corpus test.
//!
//! The input is the file itself, open or sealed as its header says. It is read as it is, and once more with all checksums put right, as
//! no fuzzer guesses them. Not here: that damage is told at the right event, which the tests of the crate show.

use acpd_eventlog::segment::{
    BatchHead, FRAME_BYTES, HEADER_BYTES, Reach, SealDamage, SealIndex, SealTail, SealWriter, SegmentFlags,
    SegmentHeader, StoredBatch, TAIL_BYTES, find_last, scan,
};
use acpd_eventlog::{Block, MAX_PAYLOAD_BYTES};
use crc32fast::Hasher;

/// Panics when something does not hold.
pub(crate) fn check(input: &[u8]) {
    check_file(input);
    check_file(&repair(input));
}

fn check_file(file: &[u8]) {
    let Ok(header) = SegmentHeader::decode(file) else { return };
    assert_eq!(SegmentHeader::decode(&header.encode()), Ok(header));
    if header.flags.has(SegmentFlags::SEALED) {
        if let Err(damage) = read_sealed(file, &header) {
            assert!(damage.seq >= header.first_seq, "damage is told at an event of the file");
        }
    } else {
        check_open(file, &header);
    }
}

/// Reads a file batch by batch, seals what counts in it, and reads that back.
fn check_open(file: &[u8], header: &SegmentHeader) {
    let mut end = HEADER_BYTES as u64;
    let mut sealed = Vec::new();
    let mut writer = SealWriter::begin(header, [7; 16], &mut sealed).ok();
    let (mut records, mut head) = (Vec::new(), BatchHead::default());
    let reach = scan(file, &header.nonce, header.first_seq, |place, batch| {
        assert_eq!(place, end, "batches follow each other");
        end += u64::from(batch.length);
        head = batch.head;
        let own = check_batch(&batch);
        let added =
            writer.take().and_then(|mut writer| writer.add(place, &batch, &mut sealed).ok().map(|()| writer));
        if let Some(added) = added {
            writer = Some(added);
            records.extend(own.unwrap_or_default());
        }
    });
    assert_eq!(reach.end, end);
    assert!(end <= file.len() as u64);
    assert!(reach.last_seq >= header.first_seq - 1);
    let last = find_last(file, file.len() as u64, &header.nonce);
    if reach.checksum != 0 && end == file.len() as u64 {
        assert_eq!(last.map(|(_, batch)| batch.checksum), Some(reach.checksum));
    }
    let Some(writer) = writer else { return };
    let length = writer.finish(&mut sealed).expect("a Vec takes it");
    assert_eq!(length, sealed.len() as u64);
    check_sealed_copy(&sealed, header, &reach, &head, &records);
}

/// What a seal has is what it was made of.
fn check_sealed_copy(sealed: &[u8], header: &SegmentHeader, reach: &Reach, head: &BatchHead, records: &[u8]) {
    let of_seal = SegmentHeader::decode(sealed).expect("it was just written");
    assert_eq!((of_seal.number, of_seal.first_seq), (header.number, header.first_seq));
    let (found, index) = read_sealed(sealed, &of_seal).expect("it was just written");
    assert_eq!(found, records);
    let expected = Reach { is_damaged: false, ..*reach };
    assert_eq!((index.last_number, index.reach), (header.number, expected));
    let tail = SealTail::decode(sealed, sealed.len() as u64, &of_seal).expect("it was just written");
    let footer = footer_of(sealed, &tail, &of_seal).expect("it was just written");
    let (said, footer) = ((head.state, head.at_ms, head.position), footer.head);
    assert_eq!((footer.state, footer.at_ms, footer.position), said);
}

/// A batch lies in its bytes, and unpacks to no more than it may. Gives its records.
fn check_batch(batch: &StoredBatch<'_>) -> Option<Vec<u8>> {
    let length = batch.length as usize;
    assert!(batch.records.len() < length);
    assert!(batch.sections().count() <= length / 8);
    let records = batch.unpacked_records().ok()?;
    let expected = if batch.head.unpacked == 0 { batch.records.len() } else { batch.head.unpacked as usize };
    assert_eq!(records.len(), expected);
    // No block of LZ4 unpacks to more.
    assert!(records.len() <= batch.records.len() * 256 + 256);
    Some(records.into_owned())
}

fn footer_of<'a>(
    file: &'a [u8],
    tail: &SealTail,
    header: &SegmentHeader,
) -> Result<StoredBatch<'a>, SealDamage> {
    let (begin, length) = (tail.footer_at as usize, tail.footer_length as usize);
    tail.decode_footer(&file[begin..begin + length], header)
}

/// Reads a sealed file frame by frame: all records, and its index.
fn read_sealed(file: &[u8], header: &SegmentHeader) -> Result<(Vec<u8>, SealIndex), SealDamage> {
    let tail = SealTail::decode(file, file.len() as u64, header)?;
    let footer = footer_of(file, &tail, header)?;
    let index = SealIndex::decode(header, &tail, &footer)?;
    let (mut seq, mut end, mut records) = (header.first_seq, HEADER_BYTES as u64, Vec::new());
    while let Some(place) = index.find(seq) {
        assert_eq!((place.first_seq, place.place), (seq, end), "frames follow each other");
        assert_eq!(index.find(place.last_seq()), Some(place));
        (seq, end) = (place.last_seq() + 1, end + place.length);
        let bytes = &file[place.place as usize..end as usize];
        let block = place.decode(bytes, &header.nonce)?;
        assert_eq!(block.range(), place.first_seq..=place.last_seq());
        assert!(block.bytes() <= FRAME_BYTES || place.events == 1);
        append_records(&mut records, &block);
    }
    assert_eq!((seq, end), (index.reach.last_seq + 1, tail.footer_at), "nothing is left out");
    Ok((records, index))
}

fn append_records(records: &mut Vec<u8>, block: &Block) {
    let before = records.len();
    for event in block.events() {
        assert!(event.payload.len() <= MAX_PAYLOAD_BYTES.max(FRAME_BYTES));
        records.extend((event.payload.len() as u32).to_le_bytes());
        records.extend(event.kind.to_le_bytes());
        records.extend(event.at_ms.to_le_bytes());
        records.extend(event.payload);
    }
    assert_eq!(records.len() - before, block.bytes());
}

/// The same file with all checksums right that can be found in it.
pub(crate) fn repair(input: &[u8]) -> Vec<u8> {
    let mut file = input.to_vec();
    if file.len() < HEADER_BYTES {
        return file;
    }
    file[..8].copy_from_slice(b"acpdseg\n");
    let checksum = crc32fast::hash(&file[..60]);
    put(&mut file, 60, checksum);
    let nonce: [u8; 16] = file[40..56].try_into().expect("it has as many");
    let is_sealed = u16::from_le_bytes([file[10], file[11]]) & SegmentFlags::SEALED.0 != 0;
    if is_sealed {
        repair_sealed(&mut file, &nonce);
    } else {
        let mut at = HEADER_BYTES;
        while let Some(length) = repair_batch(&mut file, at, &nonce) {
            at += length;
        }
    }
    file
}

/// Puts a batch right and gives its length, if it has one that it may have.
fn repair_batch(file: &mut [u8], at: usize, nonce: &[u8; 16]) -> Option<usize> {
    let length = read(file, at)? as usize;
    if length < 88 || !length.is_multiple_of(8) || file.len() - at < length {
        return None;
    }
    let checksum = checksum_of(nonce, at, &[&file[at..at + 4], &file[at + 8..at + length - 8]]);
    put(file, at + 4, checksum);
    put(file, at + length - 8, length as u32);
    put(file, at + length - 4, checksum);
    Some(length)
}

/// Puts the frames, the footer and the tail right. Frames are found from the front, the footer behind them.
fn repair_sealed(file: &mut [u8], nonce: &[u8; 16]) {
    let Some(tail_at) = file.len().checked_sub(TAIL_BYTES).filter(|at| *at >= HEADER_BYTES) else { return };
    let footer_at = read(file, tail_at).unwrap_or_default() as usize;
    let mut at = HEADER_BYTES;
    while let Some(length) = frame_length(file, at).filter(|length| at + length <= footer_at.min(tail_at)) {
        let checksum = checksum_of(nonce, at, &[&file[at..at + 20], &file[at + 24..at + length]]);
        put(file, at + 20, checksum);
        at += length;
    }
    if footer_at <= tail_at {
        repair_batch(&mut file[..tail_at], footer_at, nonce);
    }
    let checksum = checksum_of(nonce, tail_at, &[&file[tail_at..tail_at + 20]]);
    put(file, tail_at + 20, checksum);
    file[tail_at + 24..].copy_from_slice(b"acpdend\n");
}

fn frame_length(file: &[u8], at: usize) -> Option<usize> {
    let stored = read(file, at + 12)? as usize;
    Some((24 + stored).next_multiple_of(8))
}

fn checksum_of(nonce: &[u8; 16], place: usize, parts: &[&[u8]]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(nonce);
    hasher.update(&(place as u64).to_le_bytes());
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

fn read(file: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(file.get(at..at + 4)?.try_into().ok()?))
}

fn put(file: &mut [u8], at: usize, number: u32) {
    file[at..at + 4].copy_from_slice(&number.to_le_bytes());
}
