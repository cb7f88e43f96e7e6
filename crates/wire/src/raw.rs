//! Looking into raw JSON without building a tree.
//!
//! Everything here borrows from the line; nothing recurses, so the nesting depth of the input does not matter.
//! Not here: what an envelope is.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer as _, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The value of a top-level member of an object, with escapes in member names decoded.
///
/// `None` when `object` is no object, has no such member, or has it twice: receivers differ in which one they take,
/// so a duplicated member must not be routed or authorized by either.
pub fn member<'a>(object: &'a RawValue, key: &str) -> Option<&'a RawValue> {
    let mut json = serde_json::Deserializer::from_str(object.get());
    json.deserialize_map(MemberVisitor { key }).ok().flatten()
}

/// Where a part that was borrowed from `line` lies in it; `None` when it was not borrowed from it.
pub fn span_of(line: &[u8], part: &RawValue) -> Option<Range<usize>> {
    let part = part.get();
    let start = part.as_ptr().addr().checked_sub(line.as_ptr().addr())?;
    let end = start.checked_add(part.len())?;
    (end <= line.len()).then_some(start..end)
}

/// The line with every invalid sequence replaced by U+FFFD. Borrowed when there is none.
pub fn repair_utf8(line: &[u8]) -> Cow<'_, [u8]> {
    match String::from_utf8_lossy(line) {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

/// The text of a JSON string, borrowed when it has no escapes. `None` for other values and for lone surrogates.
pub(crate) fn decode_string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(raw.get()).ok().map(Cow::Owned)
}

struct MemberVisitor<'k> {
    key: &'k str,
}

impl<'de> Visitor<'de> for MemberVisitor<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(Name(name)) = map.next_key()? {
            if name == self.key {
                if found.replace(map.next_value()?).is_some() {
                    return Err(A::Error::custom("duplicate member"));
                }
            } else {
                let IgnoredAny = map.next_value()?;
            }
        }
        Ok(found)
    }
}

/// A member name, borrowed when it has no escapes.
struct Name<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;

        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }

        deserializer.deserialize_str(NameVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    // FR-8: params are looked into, not rebuilt
    #[test]
    fn member_finds_top_level_members_only() {
        let params = raw(r#"{"nested":{"sessionId":"inner"}, "sessionId" : "outer" ,"list":["sessionId"]}"#);
        assert_eq!(member(params, "sessionId").unwrap().get(), r#""outer""#);
        assert!(member(params, "missing").is_none());
    }

    // FR-8
    #[test]
    fn member_decodes_escaped_names_and_keeps_null() {
        let params = raw(r#"{"session\u0049d":null,"ä":1}"#);
        assert_eq!(member(params, "sessionId").unwrap().get(), "null");
        assert_eq!(member(params, "ä").unwrap().get(), "1");
    }

    // contract 1.7: the right to act on a session is decided on the id that the agent will see
    #[test]
    fn a_duplicated_member_is_none() {
        assert!(member(raw(r#"{"sessionId":"a","sessionId":"b"}"#), "sessionId").is_none());
        assert!(member(raw(r#"{"sessionId":"a","\u0073essionId":"b"}"#), "sessionId").is_none());
    }

    // FR-5
    #[test]
    fn member_of_something_else_is_none() {
        for text in ["[]", "1", "null", r#""sessionId""#, r#"["sessionId"]"#] {
            assert!(member(raw(text), "sessionId").is_none(), "{text}");
        }
    }

    // FR-2: the place of an id in its line, to rewrite it there
    #[test]
    fn span_of_a_borrowed_part() {
        let line = r#"{"a": [1, 2] ,"b":"x"}"#;
        let object = raw(line);
        let span = span_of(line.as_bytes(), member(object, "a").unwrap()).unwrap();
        assert_eq!(&line[span], "[1, 2]");
        assert_eq!(span_of(line.as_bytes(), object), Some(0..line.len()));
    }

    // FR-2
    #[test]
    fn span_of_a_foreign_part_is_none() {
        let line = r#"{"a":1}"#.to_owned();
        let other = line.clone();
        assert_eq!(span_of(line.as_bytes(), raw(&other)), None);
        assert_eq!(span_of(&line.as_bytes()[..3], raw(&line)), None);
        assert_eq!(span_of(b"", RawValue::NULL), None);
    }

    // issue 2: an agent that sends one invalid byte is tolerated
    #[test]
    fn repair_replaces_only_what_is_invalid() {
        assert!(matches!(repair_utf8("größe".as_bytes()), Cow::Borrowed(_)));
        assert_eq!(&*repair_utf8(b"a\xffb\xe2\x82"), "a\u{fffd}b\u{fffd}".as_bytes());
    }
}
