//! Lists of names and whole numbers, as a file or a variable has them.

use std::fmt;
use std::num::NonZeroU32;

use serde::de::{Deserializer, Error, SeqAccess, Visitor};

/// For `deserialize_with`: names that acpd may be called by.
pub(super) fn hosts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let hosts = from.deserialize_any(ListVisitor("a list of host names"))?;
    match hosts.iter().find(|host| host.is_empty() || host.contains(['/', '@', ' '])) {
        Some(wrong) => Err(D::Error::custom(format_args!(
            "\"{}\" is not a host name; write the name alone, such as \"acpd.example.org\"",
            wrong.escape_debug()
        ))),
        None => Ok(hosts),
    }
}

/// For `deserialize_with`: origins of pages.
pub(super) fn origins<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let origins = from.deserialize_any(ListVisitor("a list of origins"))?;
    let is_origin = |origin: &str| {
        let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(['/', '*', ' ']))
    };
    match origins.iter().find(|origin| !is_origin(origin)) {
        Some(wrong) => Err(D::Error::custom(format_args!(
            "\"{}\" is not an origin; write scheme, host and port, such as \"https://acpd.example.org\"",
            wrong.escape_debug()
        ))),
        None => Ok(origins),
    }
}

/// For `deserialize_with`: a number of things, at least 1.
pub(super) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<NonZeroU32, D::Error> {
    from.deserialize_any(CountVisitor)
}

/// As [`count`], of something that may be unlimited.
pub(super) fn some_count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<NonZeroU32>, D::Error> {
    count(from).map(Some)
}

/// Strings in an array, or in one string with commas between them, for variables.
struct ListVisitor(&'static str);

impl<'de> Visitor<'de> for ListVisitor {
    type Value = Vec<String>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<String>, E> {
        Ok(text.split(',').map(|part| part.trim().to_owned()).collect())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Vec<String>, A::Error> {
        let mut list = Vec::new();
        while let Some(part) = parts.next_element()? {
            list.push(part);
        }
        Ok(list)
    }
}

struct CountVisitor;

impl Visitor<'_> for CountVisitor {
    type Value = NonZeroU32;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a whole number of at least 1")
    }

    fn visit_i64<E: Error>(self, count: i64) -> Result<NonZeroU32, E> {
        u32::try_from(count)
            .ok()
            .and_then(NonZeroU32::new)
            .ok_or_else(|| E::custom(format_args!("{count} is out of range; allowed are 1 to {}", u32::MAX)))
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<NonZeroU32, E> {
        self.visit_i64(i64::try_from(count).unwrap_or(i64::MAX))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<NonZeroU32, E> {
        match text.parse::<u64>() {
            Ok(count) => self.visit_u64(count),
            Err(_) => Err(E::custom(format_args!("\"{}\" is not a whole number", text.escape_debug()))),
        }
    }
}
