//! The files of the corpus: open and sealed segments, and what can be read of them.

use acpd_eventlog::segment::{
    BatchFlags, BatchHead, SealWriter, Section, SegmentFlags, SegmentHeader, put_section, scan,
};

const NONCE: [u8; 16] = *b"nonce of a seed.";

pub(crate) struct Seed {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) payloads: Vec<Vec<u8>>,
    /// Whether all of its checksums are right.
    pub(crate) is_right: bool,
}

/// A batch of a seed: its payloads and flags.
type Appended<'a> = (&'a [&'a [u8]], BatchFlags);

/// Records as [`acpd_eventlog::Batch`] has them.
fn records_of(payloads: &[&[u8]]) -> Vec<u8> {
    let record = |payload: &&[u8]| {
        let length = (payload.len() as u32).to_le_bytes();
        [&length[..], &7_u16.to_le_bytes(), &1_700_000_000_000_i64.to_le_bytes(), payload].concat()
    };
    payloads.iter().flat_map(record).collect()
}

/// The payloads of records that are whole.
pub(crate) fn payloads_in(mut records: &[u8]) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    while let Some((head, rest)) = records.split_first_chunk::<14>() {
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let Some((payload, rest)) = rest.split_at_checked(length) else { break };
        payloads.push(payload.to_vec());
        records = rest;
    }
    payloads
}

fn header() -> SegmentHeader {
    SegmentHeader {
        flags: SegmentFlags::default(),
        number: 2,
        first_seq: 11,
        cut: 4096,
        before: 77,
        nonce: NONCE,
    }
}

fn open(all: &[Appended<'_>]) -> Vec<u8> {
    let mut bytes = header().encode().to_vec();
    let mut first_seq = 11;
    for (payloads, flags) in all {
        let records = records_of(payloads);
        let is_packed = flags.has(BatchFlags::PACKED);
        let stored = if is_packed { lz4_flex::block::compress(&records) } else { records.clone() };
        let (events, place) = (payloads.len() as u32, bytes.len() as u64);
        let head = BatchHead {
            flags: *flags,
            state: 3,
            events,
            first_seq,
            at_ms: 1_700_000_000_000,
            position: 9,
            kinds: 1 << 7,
            info_at: place,
            waiting_at: place,
            unpacked: if is_packed { records.len() as u32 } else { 0 },
        };
        let mut front = BatchHead::begin(0);
        put_section(&mut front, Section::Facts(br#"{"id":"s-1"}"#));
        put_section(&mut front, Section::Info(b"info"));
        put_section(&mut front, Section::Waiting { number: 4, bytes: b"prompt" });
        put_section(&mut front, Section::Begun { number: 4 });
        put_section(&mut front, Section::Unknown { kind: 99, bytes: b"later" });
        let framed = head.frame(front, &stored, &NONCE, place).expect("it is short");
        bytes.extend([framed.front(), &stored, framed.back()].concat());
        first_seq += u64::from(events);
    }
    bytes
}

fn seal(open: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = SealWriter::begin(&header(), *b"nonce of a seal.", &mut out).expect("it can be sealed");
    scan(open, &NONCE, 11, |place, batch| writer.add(place, &batch, &mut out).expect("it can be sealed"));
    writer.finish(&mut out).expect("it can be sealed");
    out
}

pub(crate) fn all() -> Vec<Seed> {
    let (none, more, packed) = (BatchFlags::default(), BatchFlags::MORE_FOLLOWS, BatchFlags::PACKED);
    let end = BatchFlags::ENDED.with(BatchFlags::RELEASED);
    let long = br#"{"sessionUpdate":"agent_message_chunk"}"#.repeat(200);
    let large = vec![b'x'; 300_000];
    let noise: Vec<u8> = (0_u32..600).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let small: [Appended<'_>; 3] = [(&[b"one", b""], none), (&[], none), (&[b"two"], end)];
    let chain: [Appended<'_>; 4] =
        [(&[b"a"], more), (&[&long, b"b"], more.with(packed)), (&[b"c"], packed), (&[b"d"], more)];
    let frames: [Appended<'_>; 2] = [(&[&noise, &large, &long], BatchFlags::HISTORY), (&[b"last"], end)];
    let owned = |payloads: &[&[u8]]| payloads.iter().map(|payload| payload.to_vec()).collect::<Vec<_>>();
    let (in_small, in_chain) = (owned(&[b"one", b"", b"two"]), owned(&[b"a", &long, b"b", b"c"]));
    let in_frames = owned(&[&noise, &large, &long, b"last"]);
    let seed = |name, bytes, payloads, is_right| Seed { name, bytes, payloads, is_right };
    let (open_small, open_chain) = (open(&small), open(&chain));
    let torn = open_small[..open_small.len() - 20].to_vec();
    let zeros = [&open_small[..], &[0; 64]].concat();
    let mut damaged = seal(&open(&frames));
    damaged[64 + 24 + 1000] ^= 1;
    vec![
        seed("open-small", open_small.clone(), in_small.clone(), true),
        seed("open-chain", open_chain.clone(), in_chain.clone(), true),
        seed("open-torn", torn, owned(&[b"one", b""]), false),
        seed("open-zeros-behind", zeros, in_small.clone(), false),
        seed("open-empty", open(&[]), Vec::new(), false),
        seed("sealed-small", seal(&open_small), in_small, true),
        seed("sealed-chain", seal(&open_chain), in_chain, true),
        seed("sealed-frames", seal(&open(&frames)), in_frames, true),
        seed("sealed-empty", seal(&open(&[])), Vec::new(), false),
        seed("sealed-damaged", damaged, owned(&[&noise]), false),
        seed("sealed-cut-off", seal(&open_small)[..150].to_vec(), Vec::new(), false),
    ]
}
