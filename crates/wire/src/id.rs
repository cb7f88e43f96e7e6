//! Request ids as the peer wrote them: strings, numbers of any size, null.
//!
//! Invariants: an id goes back byte for byte as it came; a string id can be decoded. Equality of [`OwnedId`] is by
//! meaning for strings (escapes are decoded) and by text for numbers, because `1` and `1.0` may be two requests.
//! Not here: which ids are open, see the request tables.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::raw::decode_string;

/// The id of a received message, borrowed from its line.
#[derive(Clone, Copy)]
pub struct RawId<'a> {
    raw: &'a RawValue,
}

impl<'a> RawId<'a> {
    /// The id `null`: answers to what could not be read carry it.
    pub const NULL: RawId<'static> = RawId { raw: RawValue::NULL };

    /// `None` when the value is no legal id: a boolean, an array, an object, or a string that encodes no text.
    pub fn new(raw: &'a RawValue) -> Option<Self> {
        let legal = match raw.get().as_bytes().first() {
            Some(b'"') => decode_string(raw.get()).is_some(),
            Some(b'n' | b'-' | b'0'..=b'9') => true,
            _ => false,
        };
        legal.then_some(Self { raw })
    }

    /// The id as JSON text.
    pub fn as_raw(&self) -> &'a str {
        self.raw.get()
    }

    /// The id as a raw value, for [`span_of`](crate::span_of).
    pub fn as_value(&self) -> &'a RawValue {
        self.raw
    }

    /// Whether this is the id `null`.
    pub fn is_null(&self) -> bool {
        self.raw.get() == "null"
    }

    /// The value of a number that is a whole `u64`, also when written as `7.0` or `7e0`, as some peers echo integers.
    pub fn as_u64(&self) -> Option<u64> {
        let text = self.raw.get();
        if text.starts_with('"') {
            return None;
        }
        text.parse().ok().or_else(|| whole_number(text.parse().ok()?))
    }

    /// A copy that outlives the line.
    pub fn to_owned(&self) -> OwnedId {
        let decoded = match decode_string(self.raw.get()) {
            Some(std::borrow::Cow::Owned(text)) => Some(Arc::from(text)),
            _ => None,
        };
        OwnedId { raw: Arc::from(self.raw.to_owned()), decoded }
    }
}

/// Floats are exact only below 2^53; a bigger one would name a neighbour's request.
fn whole_number(value: f64) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    ((0.0..EXACT).contains(&value) && value.fract() == 0.0).then_some(value as u64)
}

impl fmt::Debug for RawId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawId({})", self.as_raw())
    }
}

impl fmt::Display for RawId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_raw())
    }
}

/// An id that outlives its line; cheap to clone.
#[derive(Clone)]
pub struct OwnedId {
    raw: Arc<RawValue>,
    /// The text of a string id with escapes; without escapes the text is inside `raw`.
    decoded: Option<Arc<str>>,
}

#[derive(PartialEq, Eq, Hash)]
enum Meaning<'a> {
    Text(&'a str),
    NumberOrNull(&'a str),
}

impl OwnedId {
    /// Reads an id that stands alone, as JSON text.
    pub fn parse(json: &str) -> Option<Self> {
        RawId::new(serde_json::from_str(json).ok()?).map(|id| id.to_owned())
    }

    /// The id as JSON text, as the peer wrote it.
    pub fn as_raw(&self) -> &str {
        self.raw.get()
    }

    /// The same id, borrowed.
    pub fn as_id(&self) -> RawId<'_> {
        RawId { raw: &self.raw }
    }

    fn meaning(&self) -> Meaning<'_> {
        let raw = self.raw.get();
        match &self.decoded {
            Some(text) => Meaning::Text(text),
            None => match raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
                Some(text) => Meaning::Text(text),
                None => Meaning::NumberOrNull(raw),
            },
        }
    }
}

impl PartialEq for OwnedId {
    fn eq(&self, other: &Self) -> bool {
        self.meaning() == other.meaning()
    }
}

impl Eq for OwnedId {}

impl Hash for OwnedId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.meaning().hash(state);
    }
}

impl fmt::Debug for OwnedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnedId({})", self.as_raw())
    }
}

impl fmt::Display for OwnedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_raw())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Option<OwnedId> {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        RawId::new(raw).map(|id| id.to_owned())
    }

    fn id(text: &str) -> OwnedId {
        parsed(text).unwrap()
    }

    // FR-2: type and value, ids above 2^53, null
    #[test]
    fn legal_ids_keep_their_text() {
        for text in [
            "0",
            "-1",
            "9007199254740993",
            "123456789012345678901234567890",
            "1.5",
            "1e3",
            "\"a\"",
            "\"\"",
            "null",
        ] {
            assert_eq!(id(text).as_raw(), text);
            assert_eq!(id(text).as_id().as_raw(), text);
        }
    }

    // FR-2
    #[test]
    fn other_values_are_no_ids() {
        for text in ["true", "false", "[]", "{}", "[1]", r#""\ud800""#] {
            assert!(parsed(text).is_none(), "{text}");
        }
    }

    // FR-2: equal in type and value
    #[test]
    fn equality_is_by_type_and_meaning() {
        assert_eq!(id(r#""\u0061""#), id(r#""a""#));
        assert_eq!(id(r#""\/""#), id(r#""/""#));
        assert_ne!(id(r#""1""#), id("1"));
        assert_ne!(id(r#""null""#), id("null"));
        assert_ne!(id("9007199254740993"), id("9007199254740992"));
        assert_ne!(id(r#""\"""#), id(r#""\\\"""#));
        assert_eq!(id("null"), RawId::NULL.to_owned());
    }

    // FR-2: an id that a peer echoes in another spelling is still the same number; beyond 2^53 no guess is made
    #[test]
    fn numbers_by_value() {
        let value = |text: &str| id(text).as_id().as_u64();
        assert_eq!(value("7"), Some(7));
        assert_eq!(value("7.0"), Some(7));
        assert_eq!(value("7e0"), Some(7));
        assert_eq!(value("18446744073709551615"), Some(u64::MAX));
        for none in ["-1", "7.5", "1e300", "9007199254740993.0", "18446744073709551616", "\"7\"", "null"] {
            assert_eq!(value(none), None, "{none}");
        }
    }

    proptest! {
        // FR-2
        #[test]
        fn string_ids_are_equal_when_their_text_is(left in ".{0,6}", right in ".{0,6}", escape in any::<bool>()) {
            let plain = serde_json::to_string(&left).unwrap();
            let written = if escape {
                let units: String = left.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
                format!("\"{units}\"")
            } else {
                plain.clone()
            };
            prop_assert_eq!(id(&written), id(&plain));
            prop_assert_eq!(HashSet::from([id(&written), id(&plain)]).len(), 1);
            let other = serde_json::to_string(&right).unwrap();
            prop_assert_eq!(id(&written) == id(&other), left == right);
        }
    }
}
