//! What holds for acpd-wire on any input, as one function for the fuzzer and for the corpus test.
//!
//! The input is the stream itself, so that the corpus stays readable; chunk sizes are derived from it.
//! Not here: what a particular line means, which the unit tests of the crate show.

use std::ops::Range;

use acpd_wire::{
    DEFAULT_LINE_LIMIT, LineBuffer, LineTooLong, Malformed, Member, Message, Scan, Skimmer, UpdateKind,
    member, repair_halves, repair_utf8, scan, span_of, splice,
};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
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

/// The same for one line, or one frame of several rows.
pub(crate) fn check_line(line: &[u8]) {
    if !line.contains(&b'\n') {
        let mut copy = Vec::new();
        splice(&mut copy, line, &[]);
        assert_eq!(copy, line, "a splice without edits changes nothing");
    }
    check_scan(line);

    let tree = serde_json::from_slice::<Value>(line);
    match Message::parse(line) {
        Ok(message) => check_message(line, &message, tree),
        Err(malformed) => check_malformed(line, &malformed, tree),
    }
}

/// Each counted member, with the path of the object where it counts, and its name.
const MEMBERS: [(Member, &[&str], &str); 16] = [
    (Member::JsonRpc, &[], "jsonrpc"),
    (Member::Id, &[], "id"),
    (Member::Method, &[], "method"),
    (Member::Params, &[], "params"),
    (Member::Result, &[], "result"),
    (Member::Error, &[], "error"),
    (Member::SessionId, &["params"], "sessionId"),
    (Member::Update, &["params"], "update"),
    (Member::RequestId, &["params"], "requestId"),
    (Member::Meta, &["params"], "_meta"),
    (Member::SessionUpdate, &["params", "update"], "sessionUpdate"),
    (Member::UpdateSessionId, &["params", "update"], "sessionId"),
    (Member::SenderSessionId, &["params", "update"], "senderSessionId"),
    (Member::RecipientSessionId, &["params", "update"], "recipientSessionId"),
    (Member::MessageId, &["params", "update"], "messageId"),
    (Member::ToolCallId, &["params", "update"], "toolCallId"),
];

/// The names of the kinds that are known.
const KINDS: [&str; 14] = [
    "agent_message_chunk",
    "agent_thought_chunk",
    "available_commands_update",
    "compaction_summary_chunk",
    "compaction_update",
    "config_option_update",
    "current_mode_update",
    "notice",
    "plan",
    "session_info_update",
    "tool_call",
    "tool_call_update",
    "usage_update",
    "user_message_chunk",
];

/// A line is accepted exactly when serde_json reads an object from it, and its members are where a walk finds them.
fn check_scan(line: &[u8]) {
    let text = std::str::from_utf8(line).ok();
    let object = text.filter(|text| text.trim_ascii_start().starts_with('{'));
    let raw = object.and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
    match scan(line) {
        Ok(scan) => {
            let raw = raw.expect("accepted, but serde_json refuses it");
            check_members(line, &scan, raw);
            let repaired = repair_halves(line, None);
            assert_eq!(repaired.len(), line.len());
            if !scan.has_halves() {
                assert_eq!(repaired, line, "nothing to repair");
            }
            let again = acpd_wire::scan(&repaired).expect("a repaired line is accepted");
            assert!(!again.has_halves());
        }
        Err(malformed) => assert!(raw.is_none(), "serde_json accepts it: {malformed}"),
    }
}

fn check_members(line: &[u8], scan: &Scan<'_>, raw: &RawValue) {
    let (mut is_twice, mut is_ambiguous) = (false, false);
    for (member, path, name) in MEMBERS {
        let Some(values) = values_at(raw, path, name) else {
            // Something on the way is not readable as text, or stands twice.
            return;
        };
        let place = match values[..] {
            [value] => span_of(line, value),
            _ => None,
        };
        assert_eq!(scan.value(member).map(RawValue::get), place.as_ref().map(|_| values[0].get()));
        assert_eq!(scan.span(member), place, "{name}");
        is_twice |= values.len() > 1;
        is_ambiguous |= values.len() > 1 && !path.is_empty();
    }
    assert_eq!(scan.is_ambiguous(), is_ambiguous);
    let kind = scan.value(Member::SessionUpdate);
    let kind = kind.and_then(|kind| serde_json::from_str::<String>(kind.get()).ok());
    let known = kind.filter(|kind| KINDS.contains(&&**kind));
    let told = (scan.kind() != UpdateKind::Other).then(|| snake_case(&format!("{:?}", scan.kind())));
    // A line with a member twice is of no kind; with one of the root, it is no message at all.
    assert!(told == known || is_twice && told.is_none(), "{told:?} is {known:?}");
    check_skim(line, scan, is_twice);
}

/// A line with a member twice does not get into a log; a second look at a line is at its beginning.
fn check_skim(line: &[u8], scan: &Scan<'_>, is_twice: bool) {
    let mut skimmer = Skimmer::default();
    for _ in 0..2 {
        let skim = skimmer.skim(line).expect("a scan accepts it");
        assert!(
            is_twice || (skim.session(), skim.kind()) == (scan.span(Member::SessionId), scan.kind()),
            "{skim:?}"
        );
    }
}

fn snake_case(name: &str) -> String {
    let words = name.chars().map(|letter| match letter.is_ascii_uppercase() {
        true => format!("_{}", letter.to_ascii_lowercase()),
        false => letter.to_string(),
    });
    words.collect::<String>().trim_start_matches('_').to_owned()
}

/// The values of a name in the object at a path; none for what is no object. `None` when that cannot be told.
fn values_at<'a>(raw: &'a RawValue, path: &[&str], name: &str) -> Option<Vec<&'a RawValue>> {
    if !raw.get().starts_with('{') {
        return Some(Vec::new());
    }
    let Members(members) = serde_json::from_str(raw.get()).ok()?;
    let of = |name: &str| {
        let found = members.iter().filter(|(known, _)| known == name);
        found.map(|(_, value)| *value).collect::<Vec<_>>()
    };
    match path.split_first() {
        None => Some(of(name)),
        Some((first, rest)) => match of(first)[..] {
            [] => Some(Vec::new()),
            [inner] => values_at(inner, rest, name),
            _ => None,
        },
    }
}

/// The members of an object, also those of one name.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Each)
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
