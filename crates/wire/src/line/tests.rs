//! The line buffer against a naive splitter, its limit, and its memory.

use proptest::prelude::*;

use super::*;

/// What the stream holds, all bytes at once: lines, and for an over-long one its error.
fn naive(input: &[u8], limit: usize) -> Vec<Result<Vec<u8>, LineTooLong>> {
    let mut pieces: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    if pieces.last() == Some(&&b""[..]) {
        pieces.pop();
    }
    let content = |piece: &[u8]| piece.strip_suffix(b"\r").unwrap_or(piece).to_vec();
    let limited = |line: Vec<u8>| if line.len() > limit { Err(LineTooLong { limit }) } else { Ok(line) };
    pieces.into_iter().map(|piece| limited(content(piece))).collect()
}

fn take_all(lines: &mut LineBuffer, taken: &mut Vec<Result<Vec<u8>, LineTooLong>>) {
    while let Some(line) = lines.next_line().transpose() {
        taken.push(line.map(Vec::from));
    }
}

fn in_chunks(input: &[u8], limit: usize, sizes: &[usize]) -> Vec<Result<Vec<u8>, LineTooLong>> {
    let mut lines = LineBuffer::new(limit);
    let mut taken = Vec::new();
    let mut rest = input;
    for size in sizes.iter().cycle() {
        let (chunk, later) = rest.split_at((*size).min(rest.len()));
        lines.push(chunk);
        take_all(&mut lines, &mut taken);
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    while let Some(line) = lines.finish().transpose() {
        taken.push(line.map(Vec::from));
    }
    taken
}

proptest! {
    // FR-1, FR-6: the lines are the same however the bytes arrive, and each over-long line is one error
    #[test]
    fn chunking_does_not_matter(
        input in prop::collection::vec(prop::sample::select(b"ab\r\n\n\xff".to_vec()), 0..200),
        sizes in prop::collection::vec(1usize..40, 1..8),
        limit in 0usize..12,
    ) {
        prop_assert_eq!(in_chunks(&input, limit, &sizes), naive(&input, limit));
        prop_assert_eq!(in_chunks(&input, usize::MAX, &sizes), naive(&input, usize::MAX));
    }

    // FR-1: also when the lines are taken late, many at once
    #[test]
    fn lines_wait_in_the_buffer(lengths in prop::collection::vec(0usize..50_000, 0..20)) {
        let input: Vec<u8> = lengths.iter().flat_map(|length| [vec![b'x'; *length], vec![b'\n']].concat()).collect();
        let mut lines = LineBuffer::new(50_000);
        lines.push(&input);
        let mut taken = Vec::new();
        while let Some(line) = lines.finish().expect("no line is over the limit") {
            taken.push(line.len());
        }
        prop_assert_eq!(taken, lengths);
    }
}

// FR-6: the limit counts the line without its end, whichever end and wherever the read stops
#[test]
fn a_line_of_exactly_the_limit_passes() {
    for input in [&b"12345\n"[..], b"12345\r\n", b"12345", b"12345\r"] {
        for size in 1..=input.len() {
            assert_eq!(in_chunks(input, 5, &[size]), [Ok(b"12345".to_vec())], "{input:?} by {size}");
            assert_eq!(in_chunks(input, 4, &[size]), [Err(LineTooLong { limit: 4 })], "{input:?} by {size}");
        }
    }
}

// FR-1: only one carriage return belongs to the line end, and only before it
#[test]
fn carriage_returns_inside_a_line_stay() {
    let taken = in_chunks(b"a\rb\r\r\n\r\n\n\r", 9, &[3]);
    assert_eq!(taken, [Ok(b"a\rb\r".to_vec()), Ok(vec![]), Ok(vec![]), Ok(vec![])]);
}

// FR-6: over the limit memory stays bounded, the error comes once, and the stream is usable after the line
#[test]
fn an_endless_line_costs_bounded_memory() {
    const LIMIT: usize = 1024 * 1024;
    let mut lines = LineBuffer::new(LIMIT);
    let chunk = vec![b'x'; 48 * 1024];
    let mut errors = 0;
    for _ in 0..2000 {
        lines.push(&chunk);
        match lines.next_line() {
            Ok(line) => assert_eq!(line, None),
            Err(error) => {
                assert_eq!(error, LineTooLong { limit: LIMIT });
                errors += 1;
            }
        }
        assert!(lines.capacity() <= LIMIT + ALLOCATION, "{}", lines.capacity());
    }
    assert_eq!(errors, 1);
    assert!(lines.capacity() <= ALLOCATION);
    lines.push(b"tail\nnext\n");
    assert_eq!(lines.next_line(), Ok(Some(Bytes::from_static(b"next"))));
}

// FR-6: memory grows with the line and shrinks again, even while the line itself is kept
#[test]
fn a_big_line_leaves_nothing_behind() {
    let mut lines = LineBuffer::new(DEFAULT_LINE_LIMIT);
    for after in [&b""[..], b"begin of the next"] {
        let big = vec![b'x'; 20 * 1024 * 1024];
        lines.push(&big);
        assert_eq!(lines.next_line(), Ok(None));
        assert!(lines.capacity() >= big.len());
        lines.push(&[b"\n", after].concat());
        let line = lines.next_line().expect("below the limit").expect("complete");
        assert_eq!(line.len(), big.len());
        assert!(lines.capacity() <= ALLOCATION, "{}", lines.capacity());
        // Nothing else holds the allocation, so it goes with the line.
        assert!(line.try_into_mut().is_ok());
        lines.push(b"\n");
        assert_eq!(lines.next_line().expect("short").as_deref(), Some(after));
    }
    assert!(lines.capacity() <= ALLOCATION);
}

// FR-6: an ordinary stream reuses one small allocation
#[test]
fn short_lines_reuse_the_allocation() {
    let mut lines = LineBuffer::new(DEFAULT_LINE_LIMIT);
    let mut count = 0;
    let mut places = std::collections::HashSet::new();
    for round in 0..3000 {
        lines.push(b"{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n{\"jsonrpc\":");
        lines.push(&[b' '; 1000]);
        lines.push(b"\"2.0\",\"method\":\"b\"}\n");
        while lines.next_line().expect("short").is_some() {
            count += 1;
        }
        if round > 10 {
            places.insert(lines.space().as_ptr().addr() / ALLOCATION);
        }
    }
    assert!(places.len() <= 2, "{places:?}");
    assert!(lines.capacity() <= 8 * SMALL_READ, "{}", lines.capacity());
    assert_eq!(count, 6000);
}

// FR-6: a line in many small reads is scanned once; scanning it again for each read would take hours here
#[test]
fn small_pieces_of_a_long_line_are_linear() {
    let mut lines = LineBuffer::new(DEFAULT_LINE_LIMIT);
    let piece = [b'x'; 64];
    let pieces = DEFAULT_LINE_LIMIT / piece.len();
    for _ in 0..pieces {
        lines.push(&piece);
        assert_eq!(lines.next_line(), Ok(None));
        assert_eq!(lines.scanned, lines.buffer.len());
    }
    lines.push(b"\n");
    assert_eq!(
        lines.next_line().expect("exactly the limit").map(|line| line.len()),
        Some(DEFAULT_LINE_LIMIT)
    );
}

// FR-6: there is always room for a read; a flood gets all that a pipe holds, and silence keeps next to nothing
#[test]
fn room_follows_what_reads_bring() {
    let mut lines = LineBuffer::new(8);
    assert_eq!(lines.capacity(), 0);
    let fill = |lines: &mut LineBuffer, most: usize| {
        let space = lines.space();
        let free = space.capacity() - space.len();
        let count = free.min(most);
        space.extend_from_slice(&vec![b'\n'; count]);
        while lines.next_line().expect("empty lines").is_some() {}
        free
    };
    assert!((SMALL_READ..4 * SMALL_READ).contains(&fill(&mut lines, READ_SPACE)));
    for _ in 0..4 {
        fill(&mut lines, READ_SPACE);
    }
    assert!(fill(&mut lines, READ_SPACE) >= READ_SPACE);
    assert!(lines.capacity() <= ALLOCATION);
    fill(&mut lines, 10);
    lines.space();
    assert!(lines.capacity() <= 2 * SMALL_READ, "{}", lines.capacity());
}

// FR-1: a stream that says nothing keeps no memory; one in full flow keeps what it reads into, and so does part of a line
#[test]
fn a_silent_stream_keeps_no_memory() {
    let mut lines = LineBuffer::new(DEFAULT_LINE_LIMIT);
    lines.push(b"one\n");
    assert_eq!(lines.next_line().expect("short").as_deref(), Some(&b"one"[..]));
    assert!(lines.capacity() > 0);
    lines.rest();
    assert_eq!(lines.capacity(), 0);
    lines.push(b"tw");
    lines.rest();
    lines.push(b"o\n");
    assert_eq!(lines.next_line().expect("short").as_deref(), Some(&b"two"[..]));

    for _ in 0..8 {
        // As a reader does it: what fits.
        let space = lines.space();
        let room = space.capacity() - space.len();
        space.extend_from_slice(&vec![b'\n'; room]);
        while lines.next_line().expect("short").is_some() {}
    }
    let kept = lines.capacity();
    lines.rest();
    assert!(kept > CHEAP && lines.capacity() == kept);
}
