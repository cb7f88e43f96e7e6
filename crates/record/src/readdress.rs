//! What is stored of a session under the id that it had, for those who know it by the one that it has.
//!
//! Pure. A session gets another id when another node of the fleet goes on under the first; its events stay as they were written.

use crate::ids::SessionId;
use memchr::memmem;
use std::borrow::Cow;

const MEMBER: &[u8] = b"\"sessionId\"";

/// What is stored of an event, with `id` wherever a member `sessionId` has `former`.
pub fn under_id<'a>(payload: &'a [u8], former: &SessionId, id: &SessionId) -> Cow<'a, [u8]> {
    let (from, to) = (former.as_json().as_bytes(), id.as_json().as_bytes());
    let (mut out, mut copied) = (Vec::new(), 0);
    for member in memmem::find_iter(payload, MEMBER) {
        let value = value_behind(payload, member + MEMBER.len());
        if value.is_some_and(|value| payload[value..].starts_with(from)) {
            let value = value.unwrap_or_default();
            out.extend_from_slice(&payload[copied..value]);
            out.extend_from_slice(to);
            copied = value + from.len();
        }
    }
    match copied {
        0 => Cow::Borrowed(payload),
        _ => {
            out.extend_from_slice(&payload[copied..]);
            Cow::Owned(out)
        }
    }
}

/// Where the value of a member begins whose name ends at `at`. In a string of JSON quotes have a backslash, so none is taken there
/// for a member.
fn value_behind(json: &[u8], at: usize) -> Option<usize> {
    let skip = |from: usize| from + json[from..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let colon = skip(at);
    (json.get(colon) == Some(&b':')).then(|| skip(colon + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    // design fleet, partition: a copy that was set aside is told, and exported, under its own id
    #[test]
    fn members_that_name_the_session_are_changed_and_nothing_else() {
        let (old, new) =
            (SessionId::parse("old").expect("an id"), SessionId::parse("longer-new").expect("an id"));
        for (payload, expected) in [
            (r#"{"params":{"sessionId":"old","x":1.0}}"#, r#"{"params":{"sessionId":"longer-new","x":1.0}}"#),
            (r#"{"sessionId" : "old"}"#, r#"{"sessionId" : "longer-new"}"#),
            (
                r#"{"a":{"sessionId":"old"},"sessionId":"old"}"#,
                r#"{"a":{"sessionId":"longer-new"},"sessionId":"longer-new"}"#,
            ),
            (r#"{"sessionId":"older"}"#, r#"{"sessionId":"older"}"#),
            (
                r#"{"text":"\"sessionId\":\"old\"","id":"old"}"#,
                r#"{"text":"\"sessionId\":\"old\"","id":"old"}"#,
            ),
            (r#"["sessionId","old"]"#, r#"["sessionId","old"]"#),
            (r#"{"x":"sessionId"#, r#"{"x":"sessionId"#),
            ("", ""),
        ] {
            let changed = under_id(payload.as_bytes(), &old, &new);
            assert_eq!(std::str::from_utf8(&changed), Ok(expected));
            assert_eq!(matches!(changed, Cow::Borrowed(_)), payload == expected);
        }
    }
}
