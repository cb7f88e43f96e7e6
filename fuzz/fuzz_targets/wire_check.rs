//! What holds for acpd-wire on any input, as one function for the fuzzer and for the corpus test.
//!
//! The input is the stream itself, so that the corpus stays readable; chunk sizes are derived from it.
//! Not here: what a particular line means, which the unit tests of the crate show.

use std::ops::Range;

use acpd_wire::{
    DEFAULT_LINE_LIMIT, LineBuffer, LineTooLong, Malformed, Message, member, repair_utf8, span_of, splice,
};
use serde_json::Value;
use serde_json::value::RawValue;

type Lines = Vec<Result<Vec<u8>, LineTooLong>>;

/// Panics when something does not hold.
pub(crate) fn check(input: &[u8]) {
    for limit in [DEFAULT_LINE_LIMIT, 80, 0] {
        let expected = naive_lines(input, limit);
        assert_eq!(lines_in_chunks(input, limit, |_| usize::MAX), expected);
        assert_eq!(lines_in_chunks(input, limit, |_| 1), expected);
        assert_eq!(lines_in_chunks(input, limit, |at| 1 + usize::from(input[at]) % 61), expected);
    }
    for line in naive_lines(input, DEFAULT_LINE_LIMIT).into_iter().flatten() {
        check_line(&line);
        let repaired = repair_utf8(&line);
        assert!(std::str::from_utf8(&repaired).is_ok());
        check_line(&repaired);
    }
}

fn naive_lines(input: &[u8], limit: usize) -> Lines {
    let ended = input.strip_suffix(b"\n");
    if input.is_empty() {
        return Vec::new();
    }
    ended
        .unwrap_or(input)
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .map(|line| if line.len() > limit { Err(LineTooLong { limit }) } else { Ok(line.to_vec()) })
        .collect()
}

fn lines_in_chunks(input: &[u8], limit: usize, size_at: impl Fn(usize) -> usize) -> Lines {
    let mut buffer = LineBuffer::new(limit);
    let mut lines = Vec::new();
    let mut at = 0;
    while at < input.len() {
        let end = at.saturating_add(size_at(at)).min(input.len());
        buffer.push(&input[at..end]);
        at = end;
        while let Some(line) = buffer.next_line().transpose() {
            lines.push(line.map(Vec::from));
        }
    }
    while let Some(line) = buffer.finish().transpose() {
        lines.push(line.map(Vec::from));
    }
    lines
}

fn check_line(line: &[u8]) {
    let mut copy = Vec::new();
    splice(&mut copy, line, &[]);
    assert_eq!(copy, line, "a splice without edits changes nothing");

    let tree = serde_json::from_slice::<Value>(line);
    match Message::parse(line) {
        Ok(message) => check_message(line, &message, tree),
        Err(malformed) => check_malformed(line, &malformed, tree),
    }
}

fn check_message(line: &[u8], message: &Message<'_>, tree: serde_json::Result<Value>) {
    let (id, payload) = match message {
        Message::Request { id, params, .. } => (Some(id), *params),
        Message::Notification { params, .. } => (None, *params),
        Message::Response { id, outcome } => (id.as_ref(), Some(outcome.unwrap_or_else(|error| error))),
    };
    let tree = match tree {
        Ok(tree) => Some(tree),
        Err(error) => {
            assert!(is_limit_of_trees(&error), "accepted, but a tree says: {error}");
            None
        }
    };
    let in_tree = |name: &str| tree.as_ref().map(|tree| tree.get(name).cloned().unwrap_or_default());
    if let Some(id) = id {
        check_part(line, id.as_value());
        let owned = id.to_owned();
        assert_eq!(owned.as_raw(), id.as_raw());
        assert_eq!(owned, owned.as_id().to_owned());
        assert!(in_tree("id").is_none_or(|value| value == to_tree(id.as_value())));
    }
    if let Some(payload) = payload {
        check_part(line, payload);
        if let Some(session) = member(payload, "sessionId") {
            check_part(line, session);
        }
    }
    match message {
        Message::Request { method, .. } | Message::Notification { method, .. } => {
            assert!(in_tree("method").is_none_or(|value| value == **method));
        }
        Message::Response { outcome: Ok(result), .. } => {
            assert!(in_tree("result").is_none_or(|value| value == to_tree(result)));
        }
        Message::Response { outcome: Err(error), .. } => {
            assert!(in_tree("error").is_none_or(|value| value == to_tree(error)));
        }
    }
}

fn check_malformed(line: &[u8], malformed: &Malformed<'_>, tree: serde_json::Result<Value>) {
    match malformed {
        Malformed::Blank => assert!(line.iter().all(u8::is_ascii_whitespace)),
        Malformed::NotUtf8 { valid_up_to } => {
            assert!(std::str::from_utf8(&line[..*valid_up_to]).is_ok());
            assert!(std::str::from_utf8(line).is_err());
        }
        Malformed::NotJson { .. } => assert!(tree.is_err(), "refused, but a tree can be built"),
        Malformed::Batch => {
            assert!(tree.map_or_else(|error| is_limit_of_trees(&error), |tree| tree.is_array()))
        }
        Malformed::NotAnEnvelope { id, .. } => {
            assert!(tree.map_or_else(|error| is_limit_of_trees(&error), |tree| !tree.is_array()));
            if let Some(id) = id {
                check_part(line, id.as_value());
            }
        }
    }
    assert!(malformed.code().is_none_or(|code| code == -32700 || code == -32600));
}

/// A tree cannot hold everything that is JSON by its grammar, which is all that forwarding needs.
fn is_limit_of_trees(error: &serde_json::Error) -> bool {
    let text = error.to_string();
    ["recursion limit", "number out of range", "surrogate", "hex escape"]
        .iter()
        .any(|limit| text.contains(limit))
}

/// A part lies inside its line, and replacing it there replaces only it.
fn check_part(line: &[u8], part: &RawValue) {
    let span = span_of(line, part).expect("a part lies inside its line");
    assert_eq!(&line[span.clone()], part.get().as_bytes());
    let there = replaced(line, span.clone(), b"\"elsewhere\"");
    assert_eq!(there.len() - b"\"elsewhere\"".len(), line.len() - span.len());
    let back = replaced(&there, span.start..span.start + b"\"elsewhere\"".len(), part.get().as_bytes());
    assert_eq!(back, line, "a replacement can be undone");
}

fn replaced(line: &[u8], span: Range<usize>, replacement: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    splice(&mut out, line, &[(span, replacement)]);
    out
}

fn to_tree(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).expect("a part of what a tree could hold")
}
