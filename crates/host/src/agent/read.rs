//! The kinds of lines from an agent, before anything acts on them.
//!
//! Pure: a line comes in, its kind goes out, with the line as everybody behind understands it. An agent's stdout may carry
//! noise (FR-7), stray bytes around a message, invalid bytes and halves of surrogate pairs; none ends the connection.

use super::stray::message_in;
use crate::acp::method;
use acpd_wire::{
    Malformed, Member, Message, OwnedId, RawId, Scan, UpdateKind, codes, repair_halves, repair_utf8, scan,
    span_of,
};
use bytes::Bytes;
use std::ops::Range;

/// One line of an agent.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    /// An update has its kind.
    Notification {
        session: Option<Range<usize>>,
        update: Option<UpdateKind>,
    },
    Request {
        session: Option<Range<usize>>,
        id: OwnedId,
        method: String,
    },
    /// A notification in acpd's own namespace, in which no agent speaks to clients.
    Forbidden {
        method: String,
    },
    /// A `session/update` of no session.
    Stray,
    /// A notification with two members of one name where acpd decides by that: it is of no session.
    Ambiguous {
        is_update: bool,
        /// The first of them, such as `params.sessionId`.
        member: &'static str,
    },
    /// `$/cancel_request`: the agent takes this request of its own back.
    Withdrawal {
        id: OwnedId,
    },
    /// `body` is where the result or error stands; without an id it answers nothing.
    Answer {
        id: Option<OwnedId>,
        body: Range<usize>,
        is_error: bool,
    },
    /// Not JSON-RPC, and meant to be: the agent is told, by this error code.
    Broken {
        code: i64,
        id: Option<OwnedId>,
        detail: String,
    },
    /// Meant to be the answer to a request of ours, and not readable as one.
    BrokenAnswer {
        id: OwnedId,
        detail: String,
    },
    /// A banner or a stray print.
    Noise,
    Blank,
}

/// Reads a line. What other readers would refuse is mended first, in a copy; stray bytes around a message are cut off.
pub(crate) fn read(mut line: Bytes) -> (Bytes, Line) {
    loop {
        match look(&line) {
            Ok(kind) => return (line, kind),
            Err(mended) => line = mended,
        }
    }
}

/// The kind of a line, or the line mended.
fn look(line: &Bytes) -> Result<Line, Bytes> {
    match scan(line) {
        Ok(scan) => {
            let mended = scan.has_halves().then(|| repair_halves(line, scan.span(Member::Id)));
            match mended.filter(|mended| mended[..] != line[..]) {
                Some(mended) => Err(mended.into()),
                None => Ok(kind_of(&scan)),
            }
        }
        Err(Malformed::NotUtf8 { .. }) => Err(repair_utf8(line).into_owned().into()),
        Err(malformed @ Malformed::NotJson { .. }) => match message_in(line) {
            Some(span) => Err(line.slice(span)),
            None => Ok(kind_of_malformed(&malformed)),
        },
        Err(malformed) => Ok(kind_of_malformed(&malformed)),
    }
}

fn kind_of(scan: &Scan<'_>) -> Line {
    let session = scan.span(Member::SessionId);
    match scan.message() {
        Ok(Message::Notification { method, .. }) if method == method::CANCEL_REQUEST => {
            let id = scan.value(Member::RequestId).and_then(RawId::new);
            id.map_or(Line::Noise, |id| Line::Withdrawal { id: id.to_owned() })
        }
        Ok(Message::Notification { method, .. }) if method::is_own(&method) => {
            Line::Forbidden { method: method.into_owned() }
        }
        Ok(Message::Notification { method, .. }) => {
            let is_update = method == method::SESSION_UPDATE;
            match session {
                _ if let Some(member) = scan.doubled() => Line::Ambiguous { is_update, member },
                None if is_update => Line::Stray,
                session => Line::Notification { session, update: is_update.then_some(scan.kind()) },
            }
        }
        Ok(Message::Request { id, .. }) if let Some(member) = scan.doubled() => {
            let detail = format!("{member} is there twice");
            Line::Broken { code: codes::INVALID_PARAMS, id: Some(id.to_owned()), detail }
        }
        Ok(Message::Request { id, method, .. }) => {
            Line::Request { session, id: id.to_owned(), method: method.into_owned() }
        }
        Ok(Message::Response { id, outcome }) => {
            let (body, is_error) = match outcome {
                Ok(result) => (result, false),
                Err(error) => (error, true),
            };
            let body = span_of(scan.line(), body).expect("it was taken from this line");
            Line::Answer { id: id.filter(|id| !id.is_null()).map(|id| id.to_owned()), body, is_error }
        }
        Err(malformed) => kind_of_malformed(&malformed),
    }
}

fn kind_of_malformed(malformed: &Malformed<'_>) -> Line {
    if matches!(malformed, Malformed::Blank) {
        return Line::Blank;
    }
    if matches!(malformed, Malformed::NotJson { looks_like_message: false, .. }) {
        return Line::Noise;
    }
    let detail = malformed.to_string();
    let owed: RawId<'_> = malformed.answer_id();
    match (malformed.code(), malformed) {
        (Some(code), _) => Line::Broken { code, id: (!owed.is_null()).then(|| owed.to_owned()), detail },
        (None, Malformed::NotAnEnvelope { id: Some(id), .. }) => Line::BrokenAnswer {
            id: id.to_owned(),
            detail: format!("the agent's answer is not readable: {detail}"),
        },
        // A broken notification gets no answer (FR-3).
        (None, _) => Line::Noise,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(line: &[u8]) -> Line {
        read(Bytes::copy_from_slice(line)).1
    }

    // FR-7
    #[test]
    fn noise_is_noise() {
        for noise in ["Welcome to agent 1.0", "[info] starting", "npm notice", "\u{1b}[32mok\u{1b}[0m"] {
            assert_eq!(kind(noise.as_bytes()), Line::Noise, "{noise}");
        }
        assert_eq!(kind(b"  "), Line::Blank);
        assert_eq!(kind(b"\xff\xfe not text"), Line::Noise);
    }

    // FR-5
    #[test]
    fn broken_messages_are_told_apart() {
        let code = |line: &str| match kind(line.as_bytes()) {
            Line::Broken { code, .. } => code,
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(code(r#"{"jsonrpc":"2.0","method":"#), -32700);
        assert_eq!(code(r#"{"jsonrpc":"2.0"}"#), -32600);
        assert_eq!(code(r#"[{"jsonrpc":"2.0","method":"x"}]"#), -32600);
    }

    #[test]
    fn the_session_id_is_found_wherever_it_stands() {
        for params in [
            r#"{"sessionId":"s-1","update":{}}"#,
            r#"{"sessionId":"s\"1","update":{}}"#,
            r#"{ "sessionId" : "s-1" }"#,
            r#"{"update":{"sessionId":"no"},"sessionId":"s-1"}"#,
            r#"{"update":{"content":{"sessionId":"s-2"}},"session\u0049d":"s-1"}"#,
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{params}}}"#);
            let (line, kind) = read(Bytes::from(text));
            let Line::Notification { session: Some(span), .. } = kind else { panic!("{params}: {kind:?}") };
            let id: String = serde_json::from_slice(&line[span]).expect("a JSON string");
            assert!(id == "s-1" || id == "s\"1", "{params}: {id}");
        }
        let none = kind(br#"{"jsonrpc":"2.0","method":"x","params":{"sessionId":7}}"#);
        assert!(matches!(none, Line::Notification { session: Some(_), .. }), "routed nowhere: {none:?}");
    }

    // contract 7.3: acpd's own namespace is not an agent's, however the method is written
    #[test]
    fn what_only_acpd_says_is_told_apart() {
        for method in ["_sandboxagent/session/ended", "_sandboxagent/closed", "_acpd/x", "\\u005facpd/x"] {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"sessionId":"s"}}}}"#);
            assert!(matches!(kind(text.as_bytes()), Line::Forbidden { .. }), "{method}");
        }
        for method in ["_sandboxagents/x", "_x/_acpd/y", "session/started"] {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"sessionId":"s"}}}}"#);
            assert!(matches!(kind(text.as_bytes()), Line::Notification { .. }), "{method}");
        }
    }

    // an update belongs to the session that it names, and to no other
    #[test]
    fn an_update_without_a_session_is_nobodys() {
        for params in ["null", "{}", "[]", r#"{"session":"s","update":{}}"#] {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{params}}}"#);
            assert_eq!(kind(text.as_bytes()), Line::Stray, "{params}");
        }
        assert_eq!(kind(br#"{"jsonrpc":"2.0","method":"session/update"}"#), Line::Stray);
    }

    // FR-3: a request of ours that is answered in a broken way is still answered
    #[test]
    fn a_broken_answer_names_its_request() {
        let kind = kind(br#"{"jsonrpc":"2.0","id":7,"result":1,"error":{"code":1,"message":"x"}}"#);
        assert!(matches!(&kind, Line::BrokenAnswer { id, .. } if id.as_raw() == "7"), "{kind:?}");
    }

    // one invalid byte costs one character, not the connection
    #[test]
    fn an_invalid_byte_is_replaced() {
        let (line, kind) = read(Bytes::from_static(
            b"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s\",\"x\":\"a\xffb\"}}",
        ));
        assert!(std::str::from_utf8(&line).expect("repaired").contains("a\u{fffd}b"));
        let Line::Notification { session: Some(span), update: Some(UpdateKind::Other) } = kind else {
            panic!("{kind:?}")
        };
        assert_eq!(&line[span], b"\"s\"");
    }

    // seen from a real agent: an error without an id member
    #[test]
    fn an_answer_to_nobody_is_still_an_answer() {
        for line in
            [r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"?"}}"#, r#"{"id":null,"error":{}}"#]
        {
            assert!(matches!(kind(line.as_bytes()), Line::Answer { id: None, is_error: true, .. }), "{line}");
        }
    }

    // contract 1.7: receivers differ in which of two members they take, so it is nobody's, wherever they stand
    #[test]
    fn a_member_that_stands_twice_makes_a_line_nobodys() {
        for (params, member) in [
            (r#"{"sessionId":"a","update":{},"sessionId":"b"}"#, "params.sessionId"),
            (
                r#"{"sessionId":"a","update":{"sessionUpdate":"plan","sessionUpdate":"plan"}}"#,
                "params.update.sessionUpdate",
            ),
        ] {
            let notification = format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{params}}}"#);
            assert_eq!(
                kind(notification.as_bytes()),
                Line::Ambiguous { is_update: true, member },
                "{params}"
            );
            let request = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{params}}}"#);
            let refused = kind(request.as_bytes());
            assert!(matches!(&refused, Line::Broken { code: -32602, id: Some(_), .. }), "{refused:?}");
        }
    }

    // quirk half-surrogate
    #[test]
    fn a_half_of_a_surrogate_pair_is_replaced() {
        let (line, kind) = read(Bytes::from_static(
            br#"{"jsonrpc":"2.0","id":"\ud800","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"title":"\ud83d"}}}"#,
        ));
        assert!(matches!(kind, Line::Broken { code: -32600, .. }), "an id goes back as it came: {kind:?}");
        assert!(line.ends_with(br#""title":"\ufffd"}}}"#));
        let (line, kind) = read(Bytes::from_static(
            br#"{"method":"session/update","params":{"update":{"sessionUpdate":"plan","x":"a \ude00\ud83d\ude00"},"sessionId":"s"}}"#,
        ));
        let Line::Notification { session: Some(span), update: Some(UpdateKind::Plan) } = kind else {
            panic!("{kind:?}")
        };
        assert_eq!(&line[span], b"\"s\"");
        let read: serde_json::Value = serde_json::from_slice(&line).expect("every reader takes it");
        assert_eq!(read["params"]["update"]["x"], "a \u{fffd}\u{1f600}");
    }

    // quirk bytes-before-frame
    #[test]
    fn a_message_behind_stray_bytes_is_read() {
        let (line, kind) =
            read(Bytes::from_static(b"\x1b]0;my agent\x07{\"id\":7,\"result\":{\"x\":\"\xff\"}}\x1b[0m"));
        let Line::Answer { id: Some(_), body, is_error: false } = kind else { panic!("{kind:?}") };
        assert_eq!(&line[body], "{\"x\":\"\u{fffd}\"}".as_bytes());
    }
}
