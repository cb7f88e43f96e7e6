//! Rewrites parts of a received line and leaves the rest as it came.
//!
//! Ids differ from hop to hop, payloads do not: only the bytes of the ids are replaced.
//! Invariant: what comes out is one line. Newlines between tokens, which a frame of another transport may hold, become
//! spaces; inside strings JSON has none.
//! Not here: finding the parts, see `span_of`; ending the line, which is the transport's business.

use std::ops::Range;

use bytes::BufMut;

/// Appends `line` to `out` with every span replaced by its bytes.
///
/// # Panics
///
/// When the spans are not ascending, overlap, or leave the line. Spans of different members of one message, sorted,
/// cannot.
pub fn splice(out: &mut impl BufMut, line: &[u8], edits: &[(Range<usize>, &[u8])]) {
    let mut copied = 0;
    for (span, replacement) in edits {
        let ascending = copied <= span.start && span.start <= span.end && span.end <= line.len();
        assert!(ascending, "spans ascend within the line");
        put_on_one_line(out, &line[copied..span.start]);
        put_on_one_line(out, replacement);
        copied = span.end;
    }
    put_on_one_line(out, &line[copied..]);
}

/// Appends raw JSON with its newlines, which can only be white space, as spaces.
pub(crate) fn put_on_one_line(out: &mut impl BufMut, json: &[u8]) {
    let mut copied = 0;
    for newline in memchr::memchr_iter(b'\n', json) {
        out.put_slice(&json[copied..newline]);
        out.put_u8(b' ');
        copied = newline + 1;
    }
    out.put_slice(&json[copied..]);
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use proptest::prelude::*;

    use super::*;
    use crate::{Message, member, span_of};

    fn spliced(line: &str, edits: &[(Range<usize>, &[u8])]) -> String {
        let mut out = Vec::new();
        splice(&mut out, line.as_bytes(), edits);
        String::from_utf8(out).unwrap()
    }

    // FR-2, FR-8: ids are rewritten for the next hop, every other byte stays
    #[test]
    fn ids_are_replaced_in_place() {
        let line = r#"{"x":1.50, "id" : "client-7","method":"session/prompt","params":{"_meta":{},"sessionId":"ours"}}"#;
        let Ok(Message::Request { id, params: Some(params), .. }) = Message::parse(line.as_bytes()) else {
            panic!("a request")
        };
        let at = |part| span_of(line.as_bytes(), part).unwrap();
        let edits: [(_, &[u8]); 2] =
            [(at(id.as_value()), b"12"), (at(member(params, "sessionId").unwrap()), b"\"theirs\"")];
        assert_eq!(
            spliced(line, &edits),
            r#"{"x":1.50, "id" : 12,"method":"session/prompt","params":{"_meta":{},"sessionId":"theirs"}}"#
        );
    }

    // FR-1: one message per line
    #[test]
    fn a_frame_with_newlines_becomes_one_line() {
        assert_eq!(spliced("{\n\"id\":\r\n1}", &[]), "{ \"id\":\r 1}");
        assert_eq!(spliced("[1]", &[(1..2, b"{\n}")]), "[{ }]");
    }

    // FR-8
    #[test]
    #[should_panic(expected = "spans ascend")]
    fn overlapping_spans_are_a_mistake_of_the_caller() {
        spliced("abcdef", &[(2..4, b""), (3..5, b"")]);
    }

    proptest! {
        // FR-8
        #[test]
        fn splicing_the_parts_back_is_identity(line in "[^\n]{0,40}", cuts in prop::collection::vec(0usize..41, 0..6)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(line.len())).collect();
            cuts.sort_unstable();
            let bytes = line.as_bytes();
            let edits: Vec<_> =
                cuts.chunks_exact(2).map(|pair| (pair[0]..pair[1], &bytes[pair[0]..pair[1]])).collect();
            let mut out = BytesMut::new();
            splice(&mut out, bytes, &edits);
            prop_assert_eq!(&out[..], bytes);
        }

        // FR-8: there and back again
        #[test]
        fn a_replacement_can_be_undone(
            before in "[^\n]{0,20}", inside in "[^\n]{0,20}", after in "[^\n]{0,20}", other in "[^\n]{0,20}"
        ) {
            let line = format!("{before}{inside}{after}");
            let there = spliced(&line, &[(before.len()..before.len() + inside.len(), other.as_bytes())]);
            prop_assert_eq!(&there, &format!("{before}{other}{after}"));
            let back = spliced(&there, &[(before.len()..before.len() + other.len(), inside.as_bytes())]);
            prop_assert_eq!(back, line);
        }
    }
}
