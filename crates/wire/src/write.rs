//! Composes frames from raw parts, each ending in a newline.
//!
//! Raw parts must be one JSON value each and are copied as they are, apart from newlines between tokens, which become
//! spaces. Methods and messages are text and are escaped here.
//! Not here: rewriting a received line, see `splice`; keeping the ids, see the request tables.

use bytes::BufMut;

use crate::id::RawId;
use crate::splice::put_on_one_line;

/// A request of ours with an id from [`Outgoing`](crate::Outgoing).
pub fn write_request(out: &mut impl BufMut, id: u64, method: &str, params: Option<&[u8]>) {
    out.put_slice(br#"{"jsonrpc":"2.0","id":"#);
    put_number(out, id);
    out.put_slice(br#","method":"#);
    put_string(out, method);
    put_params_and_end(out, params);
}

/// A notification of ours.
pub fn write_notification(out: &mut impl BufMut, method: &str, params: Option<&[u8]>) {
    out.put_slice(br#"{"jsonrpc":"2.0","method":"#);
    put_string(out, method);
    put_params_and_end(out, params);
}

/// The answer to a request, with the id as the peer wrote it.
pub fn write_result(out: &mut impl BufMut, id: RawId<'_>, result: &[u8]) {
    put_answer(out, id, br#","result":"#);
    put_on_one_line(out, result);
    out.put_slice(b"}\n");
}

/// An error of ours as the answer to a request.
pub fn write_error(out: &mut impl BufMut, id: RawId<'_>, code: i64, message: &str, data: Option<&[u8]>) {
    put_answer(out, id, br#","error":{"code":"#);
    put_number(out, code);
    out.put_slice(br#","message":"#);
    put_string(out, message);
    if let Some(data) = data {
        out.put_slice(br#","data":"#);
        put_on_one_line(out, data);
    }
    out.put_slice(b"}}\n");
}

/// An error object of another peer as the answer to a request.
pub fn write_error_raw(out: &mut impl BufMut, id: RawId<'_>, error: &[u8]) {
    put_answer(out, id, br#","error":"#);
    put_on_one_line(out, error);
    out.put_slice(b"}\n");
}

fn put_answer(out: &mut impl BufMut, id: RawId<'_>, outcome: &[u8]) {
    out.put_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.put_slice(id.as_raw().as_bytes());
    out.put_slice(outcome);
}

fn put_params_and_end(out: &mut impl BufMut, params: Option<&[u8]>) {
    if let Some(params) = params {
        out.put_slice(br#","params":"#);
        put_on_one_line(out, params);
    }
    out.put_slice(b"}\n");
}

fn put_number(out: &mut impl BufMut, number: impl ToString) {
    out.put_slice(number.to_string().as_bytes());
}

fn put_string(out: &mut impl BufMut, text: &str) {
    let quoted = serde_json::to_string(text).expect("a string has no part that could fail to serialize");
    out.put_slice(quoted.as_bytes());
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use proptest::prelude::*;
    use serde_json::value::RawValue;
    use serde_json::{Value, json};

    use super::*;
    use crate::{LineBuffer, Message, codes};

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn id(text: &str) -> RawId<'_> {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        RawId::new(raw).unwrap()
    }

    // FR-1, FR-9: one line, no members but those of JSON-RPC
    #[test]
    fn frames_are_exact() {
        assert_eq!(
            written(|out| write_request(out, 7, "initialize", Some(b"{\"protocolVersion\":1}"))),
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}\n"
        );
        assert_eq!(
            written(|out| write_notification(out, "session/cancel", None)),
            "{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\"}\n"
        );
        assert_eq!(
            written(|out| write_error(out, RawId::NULL, codes::PARSE_ERROR, "parse error", None)),
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"parse error\"}}\n"
        );
        assert_eq!(
            written(|out| write_error_raw(out, id("1"), b"{\"code\":400,\"message\":\"\"}")),
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":400,\"message\":\"\"}}\n"
        );
    }

    // FR-2: the id goes back as it came
    #[test]
    fn ids_go_back_byte_for_byte() {
        for text in ["12345678901234567890123", "1.0", r#""\u0061""#, "null", "-0"] {
            assert_eq!(
                written(|out| write_result(out, id(text), b"null")),
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{text},\"result\":null}}\n")
            );
        }
    }

    // FR-1: raw parts of another transport may hold newlines
    #[test]
    fn raw_parts_stay_on_one_line() {
        let line = written(|out| write_result(out, id("1"), b"{\n\"a\": [\n1]}"));
        assert_eq!(line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{ \"a\": [ 1]}}\n");
    }

    proptest! {
        // FR-1: whatever the text, one line that a parser reads back
        #[test]
        fn text_is_escaped(method in any::<String>(), number in any::<u64>()) {
            let line = written(|out| write_request(out, number, &method, None));
            prop_assert_eq!(line.matches('\n').count(), 1);
            let value: Value = serde_json::from_str(&line).unwrap();
            prop_assert_eq!(value, json!({"jsonrpc": "2.0", "id": number, "method": method}));

            let line = written(|out| write_error(out, id("\"x\""), codes::INTERNAL_ERROR, &method, Some(b"[1]")));
            let value: Value = serde_json::from_str(&line).unwrap();
            let error = json!({"code": -32603, "message": method, "data": [1]});
            prop_assert_eq!(value, json!({"jsonrpc": "2.0", "id": "x", "error": error}));
        }

        // FR-2, FR-8: what one side writes the other side reads
        #[test]
        fn frames_read_back(method in any::<String>(), number in any::<u64>()) {
            let params = br#"{"sessionId":"s","n":1.0}"#;
            let mut out = BytesMut::new();
            write_request(&mut out, number, &method, Some(params));
            write_notification(&mut out, &method, Some(params));
            let mut lines = LineBuffer::new(out.len());
            lines.push(&out);
            let line = lines.next_line().unwrap().unwrap();
            let Ok(Message::Request { id, method: read, params: Some(raw) }) = Message::parse(&line) else {
                panic!("a request")
            };
            prop_assert_eq!(id.as_u64(), Some(number));
            prop_assert_eq!(&read, &method);
            prop_assert_eq!(raw.get().as_bytes(), params);
            let line = lines.next_line().unwrap().unwrap();
            let Ok(Message::Notification { method: read, .. }) = Message::parse(&line) else {
                panic!("a notification")
            };
            prop_assert_eq!(read, method);
        }
    }
}
