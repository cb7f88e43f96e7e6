//! Updates as a client that knows a session by its id reads them.
//!
//! Pure. The history of a session that has got another id, because another node goes on under the first, names that still.

use acpd_record::SessionId;
use acpd_wire::{member, span_of};
use memchr::memmem::Finder;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::LazyLock;

/// An update for clients of session `id`. None if it does not say whose it is: logs of earlier versions have some, which no client
/// can read.
pub(super) fn addressed<'a>(line: &'a [u8], id: &SessionId) -> Option<Cow<'a, [u8]>> {
    static MEMBER: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("\"sessionId\""));
    let own = id.as_json().as_bytes();
    let rest = &line[MEMBER.find(line)? + MEMBER.needle().len()..];
    let value = rest.trim_ascii_start().strip_prefix(b":").map(<[u8]>::trim_ascii_start);
    match value.is_some_and(|value| value.starts_with(own)) {
        true => Some(Cow::Borrowed(line)),
        false => Some(readdressed(line, own).map_or(Cow::Borrowed(line), Cow::Owned)),
    }
}

fn readdressed(line: &[u8], own: &[u8]) -> Option<Vec<u8>> {
    let raw: &RawValue = serde_json::from_slice(line).ok()?;
    let named = member(member(raw, "params")?, "sessionId")?;
    let span = span_of(line, named).filter(|_| named.get().as_bytes() != own)?;
    let mut out = Vec::with_capacity(line.len() + own.len());
    acpd_wire::splice(&mut out, line, &[(span, own)]);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    // design fleet, partition: each update names the session by which its client knows it
    #[test]
    fn updates_name_the_session() {
        let id = SessionId::parse("s").expect("an id");
        let of = |params: &str| format!(r#"{{"method":"session/update","params":{params}}}"#);
        for (params, expected) in [
            (r#"{"sessionId":"s","update":{}}"#, Some(r#"{"sessionId":"s","update":{}}"#)),
            (r#"{"sessionId" : "s"}"#, Some(r#"{"sessionId" : "s"}"#)),
            (r#"{"sessionId":"former","update":{"x":1.0}}"#, Some(r#"{"sessionId":"s","update":{"x":1.0}}"#)),
            (
                r#"{"update":{"sessionId":"n"},"sessionId":"s"}"#,
                Some(r#"{"update":{"sessionId":"n"},"sessionId":"s"}"#),
            ),
            (
                r#"{"update":{"sessionId":"s"},"sessionId":"t"}"#,
                Some(r#"{"update":{"sessionId":"s"},"sessionId":"t"}"#),
            ),
            (r#"{"update":{}}"#, None),
        ] {
            let line = of(params);
            let shown = addressed(line.as_bytes(), &id)
                .map(|line| String::from_utf8(line.into_owned()).expect("text"));
            assert_eq!(shown, expected.map(of), "{params}");
        }
    }
}
