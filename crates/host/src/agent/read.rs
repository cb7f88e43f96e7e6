//! The kinds of lines from an agent, before anything acts on them.
//!
//! Pure: a line comes in, its kind goes out. An agent's stdout may carry noise (FR-7) and invalid bytes; neither
//! ends the connection.

use acpd_wire::{Malformed, Message, OwnedId, RawId, member, span_of};
use bytes::Bytes;
use serde_json::value::RawValue;
use std::ops::Range;

/// One line of an agent.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    Notification {
        session: Option<Range<usize>>,
        is_update: bool,
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

/// Reads a line; invalid UTF-8 is replaced first, in a copy.
pub(crate) fn read(line: Bytes) -> (Bytes, Line) {
    let kind = classify(&line);
    match kind {
        Some(kind) => (line, kind),
        None => {
            let repaired = Bytes::from(acpd_wire::repair_utf8(&line).into_owned());
            let kind = classify(&repaired).unwrap_or(Line::Noise);
            (repaired, kind)
        }
    }
}

/// None when the line is not UTF-8.
fn classify(line: &[u8]) -> Option<Line> {
    let session = |params: Option<&RawValue>| session_span(line, params?);
    Some(match Message::parse(line) {
        Ok(Message::Notification { method, params }) if method == crate::acp::method::CANCEL_REQUEST => {
            let id = params.and_then(|params| RawId::new(member(params, "requestId")?));
            id.map_or(Line::Noise, |id| Line::Withdrawal { id: id.to_owned() })
        }
        Ok(Message::Notification { method, .. }) if crate::acp::method::is_own(&method) => {
            Line::Forbidden { method: method.into_owned() }
        }
        Ok(Message::Notification { method, params }) => {
            let (session, is_update) = (session(params), method == crate::acp::method::SESSION_UPDATE);
            match session {
                None if is_update => Line::Stray,
                session => Line::Notification { session, is_update },
            }
        }
        Ok(Message::Request { id, method, params }) => {
            Line::Request { session: session(params), id: id.to_owned(), method: method.into_owned() }
        }
        Ok(Message::Response { id, outcome }) => {
            let (body, is_error) = match outcome {
                Ok(result) => (result, false),
                Err(error) => (error, true),
            };
            let body = span_of(line, body)?;
            Line::Answer { id: id.filter(|id| !id.is_null()).map(|id| id.to_owned()), body, is_error }
        }
        Err(Malformed::Blank) => Line::Blank,
        Err(Malformed::NotUtf8 { .. }) => return None,
        Err(Malformed::NotJson { looks_like_message: false, .. }) => Line::Noise,
        Err(malformed) => broken(&malformed),
    })
}

/// Where the session id stands. Nearly every agent writes it first, and then it is not looked for.
fn session_span(line: &[u8], params: &RawValue) -> Option<Range<usize>> {
    const FIRST: &str = "{\"sessionId\":\"";
    let text = params.get();
    if let Some(rest) = text.strip_prefix(FIRST)
        && let Some(length) = rest.find(['"', '\\'])
        && rest.as_bytes()[length] == b'"'
    {
        let start = span_of(line, params)?.start + FIRST.len() - 1;
        return Some(start..start + length + 2);
    }
    span_of(line, member(params, "sessionId")?)
}

fn broken(malformed: &Malformed<'_>) -> Line {
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
        let Line::Notification { session: Some(span), is_update: true } = kind else { panic!("{kind:?}") };
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
}
