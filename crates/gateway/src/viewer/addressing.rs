//! Updates as a client that knows a session by its id reads them.
//!
//! Pure. The history of a session that has got another id, because another node goes on under the first, names that still.

use acpd_record::SessionId;
use acpd_wire::splice;
use std::borrow::Cow;
use std::ops::Range;

/// An update for clients of session `id`; `session`: where it says whose it is. `None` if it does not: logs of earlier versions
/// have some, which no client can read.
pub(super) fn addressed<'a>(
    line: &'a [u8],
    session: Option<Range<usize>>,
    id: &SessionId,
) -> Option<Cow<'a, [u8]>> {
    let (own, span) = (id.as_json().as_bytes(), session?);
    if &line[span.clone()] == own {
        return Some(Cow::Borrowed(line));
    }
    let mut out = Vec::with_capacity(line.len() + own.len());
    splice(&mut out, line, &[(span, own)]);
    Some(Cow::Owned(out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpd_wire::Skimmer;

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
                Some(r#"{"update":{"sessionId":"s"},"sessionId":"s"}"#),
            ),
            (r#"{"update":{}}"#, None),
            (r#"{"update":{"sessionId":"s"}}"#, None),
            (r#"{"sessionId":"s","sessionId":"t"}"#, None),
            (r#"{"session\u0049d":"former"}"#, Some(r#"{"session\u0049d":"s"}"#)),
            (r#"{"\"sessionId":"s","sessionId":"t"}"#, Some(r#"{"\"sessionId":"s","sessionId":"s"}"#)),
        ] {
            let line = of(params);
            let session = Skimmer::default().skim(line.as_bytes()).expect("JSON").session();
            let shown = addressed(line.as_bytes(), session, &id)
                .map(|line| String::from_utf8(line.into_owned()).expect("text"));
            assert_eq!(shown, expected.map(of), "{params}");
        }
    }
}
