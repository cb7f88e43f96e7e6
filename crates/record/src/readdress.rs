//! What is stored of a session under the id that it had, for those who know it by the one that it has.
//!
//! Pure. A session gets another id when another node of the fleet goes on under the first; its events stay as they were written.

use crate::ids::SessionId;
use acpd_wire::{Member, member, scan, span_of, splice};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;

/// What is stored of an event, with `id` where the message in it names its session `former`.
pub fn under_id<'a>(payload: &'a [u8], former: &SessionId, id: &SessionId) -> Cow<'a, [u8]> {
    let named = session_in(payload).filter(|span| payload[span.clone()] == *former.as_json().as_bytes());
    let Some(span) = named else { return Cow::Borrowed(payload) };
    let mut out = Vec::with_capacity(payload.len() + id.as_json().len());
    splice(&mut out, payload, &[(span, id.as_json().as_bytes())]);
    Cow::Owned(out)
}

/// The place of `params.sessionId` in an event that is a message of the agent, or that has one as its member `message`.
fn session_in(payload: &[u8]) -> Option<Range<usize>> {
    let scanned = scan(payload).ok()?;
    if let Some(span) = scanned.span(Member::SessionId) {
        return Some(span);
    }
    let event: &RawValue = serde_json::from_slice(payload).ok()?;
    let message = member(event, "message")?;
    let start = span_of(payload, message)?.start;
    let inside = scan(message.get().as_bytes()).ok()?.span(Member::SessionId)?;
    Some(start + inside.start..start + inside.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    // design fleet, partition: a copy that was set aside is told, and exported, under its own id
    #[test]
    fn the_member_that_names_the_session_is_changed_and_nothing_else() {
        let (old, new) =
            (SessionId::parse("old").expect("an id"), SessionId::parse("longer-new").expect("an id"));
        for (payload, expected) in [
            (r#"{"params":{"sessionId":"old","x":1.0}}"#, r#"{"params":{"sessionId":"longer-new","x":1.0}}"#),
            (
                r#"{"params":{"update":{"rawInput":{"sessionId":"old"}},"session\u0049d" : "old"}}"#,
                r#"{"params":{"update":{"rawInput":{"sessionId":"old"}},"session\u0049d" : "longer-new"}}"#,
            ),
            (
                r#"{"request":5,"message":{"id": 1,"params":{"sessionId": "old"}}}"#,
                r#"{"request":5,"message":{"id": 1,"params":{"sessionId": "longer-new"}}}"#,
            ),
        ] {
            let changed = under_id(payload.as_bytes(), &old, &new);
            assert_eq!(std::str::from_utf8(&changed), Ok(expected));
        }
        for payload in [
            r#"{"params":{"sessionId":"older"}}"#,
            r#"{"params":{"\"sessionId":"old","x":[{"sessionId":"old"}]}}"#,
            r#"{"turn":1,"prompt":[{"text":"\"sessionId\":\"old\"","sessionId":"old"}]}"#,
            r#"["sessionId","old"]"#,
            r#"{"x":"sessionId"#,
            "",
        ] {
            assert!(matches!(under_id(payload.as_bytes(), &old, &new), Cow::Borrowed(_)), "{payload}");
        }
    }
}
