//! Puts a member into objects within a line, and takes it out again.
//!
//! The rest of the line stays as it is, byte for byte. Not here: what the member means.

use crate::raw::{member, span_of};
use serde_json::value::RawValue;
use std::ops::Range;

/// The edit for [`splice`](crate::splice) that gives `object`, a part of `line`, the member at `path`: in objects that are
/// there, or that come with it. `None` when something on the path is no object, or is there twice.
///
/// A new member is the first of its object, so that [`take_member`] finds it.
pub fn put_member(
    line: &[u8],
    object: &RawValue,
    path: &[&str],
    value: &str,
) -> Option<(Range<usize>, Vec<u8>)> {
    let (mut object, mut path) = (object, path);
    loop {
        let (name, below) = path.split_first()?;
        let text = object.get();
        let inside = text.strip_prefix('{')?;
        match member(object, name) {
            Some(there) if below.is_empty() => return Some((span_of(line, there)?, value.into())),
            Some(there) => (object, path) = (there, below),
            None => {
                let is_empty = inside.trim_start().starts_with('}');
                let mut new = String::new();
                for name in path {
                    let opens = if new.is_empty() { "" } else { "{" };
                    new.push_str(&format!("{opens}\"{name}\":"));
                }
                new.push_str(value);
                new.push_str(&"}".repeat(below.len()));
                if !is_empty {
                    new.push(',');
                }
                let start = span_of(line, object)?.start + 1;
                return Some((start..start, new.into()));
            }
        }
    }
}

/// The value that [`put_member`] has put into `object`, a part of `line`, and what to cut out for the line to be as it was.
/// `None` when it did not put one there. An object that was there and empty is cut out as well.
pub fn take_member<'a>(
    line: &[u8],
    object: &'a RawValue,
    path: &[&str],
) -> Option<(&'a RawValue, Range<usize>)> {
    let (name, below) = path.split_first()?;
    let start = span_of(line, object)?.start + 1;
    let value = member(object, name)?;
    let span = span_of(line, value)?;
    let is_first = span.start == start + name.len() + 3;
    let cut = |end: usize| match line.get(end) {
        Some(b',') => start..end + 1,
        _ => start..end,
    };
    if below.is_empty() {
        return is_first.then(|| (value, cut(span.end)));
    }
    let (found, inner) = take_member(line, value, below)?;
    // Its object came with it.
    let is_alone = inner.start == span.start + 1 && inner.end + 1 == span.end;
    Some((found, if is_first && is_alone { cut(span.end) } else { inner }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::splice;

    fn raw(line: &str) -> &RawValue {
        serde_json::from_str(line).expect("JSON")
    }

    fn put(line: &str) -> Option<String> {
        let (span, new) = put_member(line.as_bytes(), raw(line), &["_meta", "own", "seq"], "7")?;
        let mut out = Vec::new();
        splice(&mut out, line.as_bytes(), &[(span, &new)]);
        Some(String::from_utf8(out).expect("text"))
    }

    // contract 7.3, FR-8: a member is put into what is there, and what was there comes back as it was
    #[test]
    fn what_was_put_in_is_taken_out() {
        for (line, with) in [
            (r#"{"a":1.0}"#, r#"{"_meta":{"own":{"seq":7}},"a":1.0}"#),
            ("{}", r#"{"_meta":{"own":{"seq":7}}}"#),
            (r#"{ "a":1, "_meta" : {"x":[{}]}}"#, r#"{ "a":1, "_meta" : {"own":{"seq":7},"x":[{}]}}"#),
            (r#"{"_meta":{"own":{"b": 2}}}"#, r#"{"_meta":{"own":{"seq":7,"b": 2}}}"#),
        ] {
            let put = put(line).expect("an object");
            assert_eq!(put, with);
            let (value, cut) =
                take_member(put.as_bytes(), raw(&put), &["_meta", "own", "seq"]).expect("it is there");
            assert_eq!(value.get(), "7");
            assert_eq!([&put[..cut.start], &put[cut.end..]].concat(), line);
        }
        // One that is there is replaced.
        assert_eq!(put(r#"{"_meta":{"own":{"seq":1}}}"#).expect("it"), r#"{"_meta":{"own":{"seq":7}}}"#);
        for line in ["[]", "null", r#"{"_meta":null}"#, r#"{"_meta":{"own":[]}}"#] {
            assert_eq!(put(line), None, "{line}");
        }
        for line in ["[]", "{}", r#"{"_meta":{"own":{"b":1,"seq":7}}}"#] {
            assert!(take_member(line.as_bytes(), raw(line), &["_meta", "own", "seq"]).is_none(), "{line}");
        }
    }
}
