//! A client's message before its connection sees it: one row, and for which session.
//!
//! The two official SDKs differ: one names the session in a header only for some methods, the other in header and params.
//! Both are taken; what goes on has it in the params (HT-3).

use crate::methods::{self, HttpHeader};
use acpd_host::method;
use acpd_record::Json;
use acpd_wire::{Message, member, span_of, splice};
use bytes::{Bytes, BytesMut};
use serde_json::value::RawValue;

/// What is wrong with how a message names its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Misaddressed {
    #[error("the header Acp-Session-Id and params.sessionId differ")]
    Differs,
    #[error("params.sessionId must be a string")]
    NotText,
    #[error("with the header Acp-Session-Id, params must be an object")]
    NotAnObject,
    #[error("this method needs the id of a session: in the header Acp-Session-Id, or as params.sessionId")]
    Missing,
}

/// The message on one row. What is white space between the parts of JSON would end a line for a reader of lines.
pub(super) fn on_one_row(text: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &text).is_none() {
        return text;
    }
    let row: Vec<u8> =
        text.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
    row.into()
}

/// Whether a message is the request `initialize`.
pub(super) fn is_initialize(message: &Message<'_>) -> bool {
    matches!(message, Message::Request { method, .. } if method == method::INITIALIZE)
}

/// The session of a message, as the header or its params say; the message with it in the params.
pub(super) fn addressed(
    line: Bytes,
    message: &Message<'_>,
    header: Option<&str>,
) -> Result<(Bytes, Option<String>), Misaddressed> {
    let (Message::Request { method, params, .. } | Message::Notification { method, params }) = message else {
        return Ok((line.clone(), None));
    };
    if method.starts_with("$/") {
        return Ok((line.clone(), None));
    }
    let named = params.and_then(|params| member(params, "sessionId"));
    let in_params = named.map(|named| serde_json::from_str::<String>(named.get()));
    match (in_params, header) {
        (Some(Ok(id)), Some(header)) if id != header => Err(Misaddressed::Differs),
        (Some(Ok(id)), _) => Ok((line.clone(), Some(id))),
        (Some(Err(_)), Some(_)) => Err(Misaddressed::NotText),
        (Some(Err(_)), None) => Ok((line.clone(), None)),
        (None, header) => match (methods::find(method).http_header, header) {
            (HttpHeader::Required, None) => Err(Misaddressed::Missing),
            (HttpHeader::Required | HttpHeader::Taken, Some(header)) => {
                let line = with_session(&line, *params, header)?;
                Ok((line, Some(header.to_owned())))
            }
            // Those of the connection would not know it.
            (HttpHeader::Taken, None) | (HttpHeader::Ignored, _) => Ok((line.clone(), None)),
        },
    }
}

/// The message with the session as the first of its params.
fn with_session(line: &Bytes, params: Option<&RawValue>, session: &str) -> Result<Bytes, Misaddressed> {
    let member = format!("\"sessionId\":{}", Json::new(&session).get());
    let mut out = BytesMut::with_capacity(line.len() + member.len() + 16);
    match params {
        Some(params) => {
            let inside = params.get().strip_prefix('{').ok_or(Misaddressed::NotAnObject)?;
            let start = span_of(line, params).expect("it was parsed from this line").start + 1;
            let comma = if inside.trim_start().starts_with('}') { "" } else { "," };
            splice(&mut out, line, &[(start..start, format!("{member}{comma}").as_bytes())]);
        }
        None => {
            // `params: null` is as good as none, and may be there: it goes.
            let raw: &RawValue = serde_json::from_slice(line).map_err(|_| Misaddressed::NotAnObject)?;
            let null = acpd_wire::member(raw, "params").and_then(|null| span_of(line, null));
            match null {
                Some(null) => splice(&mut out, line, &[(null, format!("{{{member}}}").as_bytes())]),
                None => {
                    let start = memchr::memchr(b'{', line).ok_or(Misaddressed::NotAnObject)? + 1;
                    let params = format!("\"params\":{{{member}}},");
                    splice(&mut out, line, &[(start..start, params.as_bytes())]);
                }
            }
        }
    }
    Ok(out.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn address(line: &'static str, header: Option<&str>) -> Result<(Value, Option<String>), Misaddressed> {
        let line = Bytes::from_static(line.as_bytes());
        let message = Message::parse(&line).expect("a message");
        addressed(line.clone(), &message, header)
            .map(|(line, session)| (serde_json::from_slice(&line).expect("JSON"), session))
    }

    // HT-3: in the header, in the params, or in both; what goes on has it in the params
    #[test]
    fn a_session_is_named_in_header_or_params() {
        let s = Some("s");
        let in_params = [
            (r#"{"id":1,"method":"session/prompt","params":{"sessionId":"s","a":1}}"#, None),
            (r#"{"id":1,"method":"session/prompt","params":{"sessionId":"s","a":1}}"#, s),
            (r#"{"id":1,"method":"session/prompt","params":{"a":1}}"#, s),
            (r#"{"id":1,"method":"session/prompt","params": { }}"#, s),
            (r#"{"id":1,"method":"session/prompt","params":null}"#, s),
            (r#" {"method":"session/cancel"}"#, s),
            (r#"{"id":1,"method":"_x/y","params":{"a":{"sessionId":"t"}}}"#, s),
        ];
        for (line, header) in in_params {
            let (line, session) = address(line, header).expect("it is addressed");
            assert_eq!((line["params"]["sessionId"].as_str(), session.as_deref()), (s, s), "{line}");
        }
        // FR-2: what belongs to no session is left alone
        for line in [
            r#"{"id":1,"method":"session/new","params":{"cwd":"/"}}"#,
            r#"{"id":1,"method":"authenticate","params":{"methodId":"x"}}"#,
            r#"{"method":"$/cancel_request","params":{"requestId":1}}"#,
            r#"{"id":1,"result":{}}"#,
        ] {
            let (sent, session) = address(line, s).expect("it is fine");
            let same: Value = serde_json::from_str(line).expect("JSON");
            assert_eq!((sent, session), (same, None));
        }
    }

    // HT-3
    #[test]
    fn a_wrong_address_is_refused() {
        let prompt = |params: &str| format!(r#"{{"id":1,"method":"session/prompt","params":{params}}}"#);
        for (params, header, expected) in [
            (r#"{"sessionId":"s"}"#, Some("t"), Misaddressed::Differs),
            (r#"{"sessionId":7}"#, Some("7"), Misaddressed::NotText),
            ("[1]", Some("s"), Misaddressed::NotAnObject),
            ("{}", None, Misaddressed::Missing),
        ] {
            let line = Bytes::from(prompt(params));
            let message = Message::parse(&line).expect("a message");
            assert_eq!(addressed(line.clone(), &message, header), Err(expected));
        }
    }

    // FR-1: JSON of many rows reaches agents as one line
    #[test]
    fn rows_become_one() {
        let text = Bytes::from_static(b"{\r\n  \"a\": 1\n}");
        assert_eq!(&on_one_row(text)[..], b"{    \"a\": 1 }");
    }
}
