//! Looking into raw JSON without building a tree, and mending what other readers refuse.
//!
//! Everything here borrows from the line; nothing recurses, so the nesting depth of the input does not matter.
//! Not here: what an envelope is; the members by which acpd routes, see [`scan`](crate::scan()).

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use serde::de::value::{BorrowedStrDeserializer, MapDeserializer};
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::scan::{Member, is_low, scan, unit_at};

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

/// The line, which is valid JSON, with `\ufffd` for every half of a surrogate pair, so that places stay what they are.
/// What stands at `except` stays, too: the id of a request goes back as it came.
pub fn repair_halves(line: &[u8], except: Option<Range<usize>>) -> Vec<u8> {
    let mut repaired = line.to_vec();
    let mut at = 0;
    while let Some(offset) = memchr::memchr(b'\\', &line[at..]) {
        at += offset;
        at += match unit_at(line, at) {
            Some(0xD800..0xDC00) if is_low(unit_at(line, at + 6)) => 12,
            Some(0xD800..0xE000) => {
                if !except.as_ref().is_some_and(|kept| kept.contains(&at)) {
                    repaired[at + 2..at + 6].copy_from_slice(b"fffd");
                }
                6
            }
            _ => 2,
        };
    }
    repaired
}

/// The line with its halves of surrogate pairs replaced, if it has any outside of its id. What is no object of JSON stays.
pub fn without_halves(line: Bytes) -> Bytes {
    let repaired = match scan(&line) {
        Ok(scan) if scan.has_halves() => Some(repair_halves(&line, scan.span(Member::Id))),
        _ => None,
    };
    repaired.map_or(line, Bytes::from)
}

/// The text of a JSON string, borrowed when it has no escapes. `None` for other values and for lone surrogates.
pub(crate) fn decode_string(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(json).ok().map(Cow::Owned)
}

/// Text that is known to be one JSON value, as such; it is not read again.
pub(crate) fn raw_value(json: &str) -> &RawValue {
    // The error is for a serde_json that makes raw values in another way than today's.
    let made = <&RawValue>::deserialize(Known(json));
    made.unwrap_or_else(|_| serde_json::from_str(json).unwrap_or(RawValue::NULL))
}

/// Gives text to the visitor of a raw value as serde_json does it: as the one member of a struct that is called so.
struct Known<'de>(&'de str);

impl<'de> Deserializer<'de> for Known<'de> {
    type Error = serde::de::value::Error;

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        let text = BorrowedStrDeserializer::new(self.0);
        visitor.visit_map(MapDeserializer::new(std::iter::once((name, text))))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Self::Error> {
        Err(Self::Error::custom("not a raw value"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
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
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
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

    // FR-8: a value is taken out of a line that was read, without reading it again
    #[test]
    fn known_text_becomes_a_raw_value() {
        let line = r#"{"a": [1, 2]}"#;
        let value = raw_value(&line[6..12]);
        assert_eq!((value.get(), span_of(line.as_bytes(), value)), ("[1, 2]", Some(6..12)));
        assert!(<&RawValue>::deserialize(Known("1")).is_ok(), "serde_json makes raw values as before");
    }

    // quirk half-surrogate (agents in JavaScript): the half is replaced by U+FFFD, and the message is understood
    #[test]
    fn halves_are_replaced_and_nothing_else() {
        for (text, expected) in [
            (r#"{"a":"\ud83d"}"#, r#"{"a":"\ufffd"}"#),
            (r#"{"a":"\uDE00 b \ud83d\ude00"}"#, r#"{"a":"\ufffd b \ud83d\ude00"}"#),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, r#"{"a":"\ufffd\ud83d\ude00"}"#),
            (r#"{"a":"\ud83dx","b":"\\ud83d"}"#, r#"{"a":"\ufffdx","b":"\\ud83d"}"#),
            (r#"{"a":"\ud83d\u0041\n"}"#, r#"{"a":"\ufffd\u0041\n"}"#),
            (r#"{"\udfff":1}"#, r#"{"\ufffd":1}"#),
        ] {
            let repaired = repair_halves(text.as_bytes(), None);
            assert_eq!(std::str::from_utf8(&repaired), Ok(expected));
        }
        let line = br#"{"id":"\ud800","x":"\ud800"}"#;
        assert_eq!(repair_halves(line, Some(6..14)), br#"{"id":"\ud800","x":"\ufffd"}"#);
        assert_eq!(&*without_halves(Bytes::from_static(line)), br#"{"id":"\ud800","x":"\ufffd"}"#);
        for whole in [r#"{"x":"\\ud800"}"#, r#"["\ud800"]"#, r"\ud800"] {
            assert_eq!(without_halves(Bytes::from_static(whole.as_bytes())), whole);
        }
    }

    // issue 2: an agent that sends one invalid byte is tolerated
    #[test]
    fn repair_replaces_only_what_is_invalid() {
        assert!(matches!(repair_utf8("größe".as_bytes()), Cow::Borrowed(_)));
        assert_eq!(&*repair_utf8(b"a\xffb\xe2\x82"), "a\u{fffd}b\u{fffd}".as_bytes());
    }
}
