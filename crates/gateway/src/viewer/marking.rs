//! Which event a message is of, for clients that keep cursors (contract 7.3).
//!
//! Pure: lines come in, and go out with `params._meta["sandboxagent.dev"].event`. Not here: what is written of an event.

use acpd_host::{META, method};
use acpd_wire::{Message, put_member, splice};
use bytes::{BufMut, BytesMut};
use serde_json::value::RawValue;
use std::ops::Range;

/// Where the number stands in the params.
const PLACE: [&str; 3] = ["_meta", META, "event"];

/// Writes the lines of event `seq`. All but the last say that there is `more`: a client that has not got that one has not
/// seen the event.
pub(super) fn mark(seq: u64, lines: &[u8], out: &mut BytesMut) {
    let lines: Vec<&[u8]> = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    let last = lines.iter().rposition(|line| of_event(line).is_some());
    for (at, line) in lines.iter().enumerate() {
        let value = match Some(at) == last {
            true => format!(r#"{{"seq":{seq}}}"#),
            false => format!(r#"{{"seq":{seq},"more":true}}"#),
        };
        match of_event(line).and_then(|params| edit(line, params, &value)) {
            Some((span, new)) => splice(out, line, &[(span, &new)]),
            None => out.put_slice(line),
        }
        out.put_u8(b'\n');
    }
}

fn edit(line: &[u8], params: &RawValue, value: &str) -> Option<(Range<usize>, Vec<u8>)> {
    put_member(line, params, &PLACE, value)
}

/// The params of a message that can say which event it is of. A question that is withdrawn is known by its request.
fn of_event(line: &[u8]) -> Option<&RawValue> {
    match Message::parse(line).ok()? {
        Message::Notification { method, .. } if method == method::CANCEL_REQUEST => None,
        Message::Notification { params, .. } | Message::Request { params, .. } => {
            params.filter(|params| edit(line, params, "0").is_some())
        }
        Message::Response { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.3: each message says which event it is of, and whether more follows of it
    #[test]
    fn messages_say_which_event_they_are_of() {
        let marked = |lines: &str| {
            let mut out = BytesMut::new();
            mark(7, lines.as_bytes(), &mut out);
            String::from_utf8(out.to_vec()).expect("text")
        };
        let line = |params: &str| format!("{{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{params}}}\n");
        let event = r#"{"_meta":{"sandboxagent.dev":{"event":{"seq":7}}}"#;
        assert_eq!(marked(&line(r#"{"a":1}"#)), line(&format!("{event},\"a\":1}}")));
        let more = event.replace("7}", "7,\"more\":true}");
        let cancel = "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":1}}\n";
        assert_eq!(
            marked(&[&line("{}"), cancel, &line("{}"), &line("null")].concat()),
            [&line(&format!("{more}}}")), cancel, &line(&format!("{event}}}")), &line("null")].concat()
        );
    }
}
