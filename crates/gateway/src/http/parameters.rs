//! Refuses query parameters that an operation does not have (contract 8.2): one that is misspelled would be passed over, and
//! the answer would look right.
//!
//! The one place where names are checked, for `/acp` and every operation of the table of routes. Not here: whether a value is
//! right.

use super::problem::Problem;
use acpd_api::ProblemKind;
use axum::extract::Query;
use http::{StatusCode, Uri};
use serde::de::value::Error;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// The longest name that a refusal repeats, in bytes.
const NAME: usize = 100;

/// The names of the query parameters of an operation.
pub(super) type Parameters = &'static [&'static str];

/// Those of an operation without any.
pub(super) fn none() -> Parameters {
    &[]
}

/// Those of an operation that reads its query as a `T`: the names of its members.
pub(super) fn names<T: Deserialize<'static>>() -> Parameters {
    let mut names: Parameters = &[];
    // It fails always: a deserializer is told the names before it is asked for a value.
    let _no_value = T::deserialize(Names(&mut names));
    names
}

/// A deserializer that has no value and keeps the names of the members that are asked for.
struct Names<'a>(&'a mut Parameters);

impl Deserializer<'static> for Names<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'static>>(self, _visitor: V) -> Result<V::Value, Error> {
        Err(Error::custom("there is no value"))
    }

    fn deserialize_struct<V: Visitor<'static>>(
        self,
        _name: &'static str,
        fields: Parameters,
        visitor: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        <V: Visitor<'static>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Refuses a query with a parameter that is not among `known`.
pub(super) fn check(uri: &Uri, known: Parameters) -> Result<(), Problem> {
    if uri.query().is_none() {
        return Ok(());
    }
    let Query(given) = Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map_err(|rejection| Problem::bad_request(rejection.body_text()))?;
    let Some((name, _)) = given.iter().find(|(name, _)| !known.contains(&name.as_str())) else {
        return Ok(());
    };
    let name = &name[..name.floor_char_boundary(NAME)];
    let takes = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let detail = format!("unknown query parameter {name:?}; this operation takes {takes}");
    Err(Problem::new(StatusCode::BAD_REQUEST, ProblemKind::InvalidRequest, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    // issue 28, RA8: the problem names the parameter, as it is meant, and what the operation takes
    #[test]
    fn each_name_is_looked_at() {
        let many = format!("?{}=1", "x".repeat(1000));
        let cut = format!("\"{}\"; this operation takes none", "x".repeat(NAME));
        let cases: [(&str, Parameters, Option<&str>); 14] = [
            ("", &[], None),
            ("?", &[], None),
            ("?&&", &[], None),
            ("?after=1&limit=2", &["after", "limit"], None),
            ("?%61fter=1", &["after"], None),
            ("?after", &["after"], None),
            ("?after=1&after=2", &["after"], None),
            ("?cursor=7", &["after", "limit"], Some("\"cursor\"; this operation takes after, limit")),
            ("?after=1&cursor=7&x=", &["after"], Some("\"cursor\"; this operation takes after")),
            ("?After=1", &["after"], Some("\"After\"; this operation takes after")),
            ("?x", &[], Some("\"x\"; this operation takes none")),
            ("?=1", &[], Some("\"\"; this operation takes none")),
            ("?a%0Ab=1", &[], Some("\"a\\nb\"; this operation takes none")),
            (&many, &[], Some(&cut)),
        ];
        for (query, known, expected) in cases {
            let uri: Uri = format!("/v1/x{query}").parse().expect("an address");
            let refused = check(&uri, known).err();
            let expected = expected.map(|rest| format!("unknown query parameter {rest}"));
            assert_eq!(refused.as_ref().map(Problem::detail), expected.as_deref(), "{query}");
        }
    }
    // issue 28, RA8: one list of names, as the query is read
    #[test]
    fn the_names_are_those_that_are_read() {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[expect(dead_code, reason = "only its names are read")]
        struct Some {
            q: Option<String>,
            #[serde(rename = "of")]
            other: String,
            two_words: u64,
        }
        assert_eq!(names::<Some>(), ["q", "of", "twoWords"]);
        assert!(names::<String>().is_empty() && none().is_empty());
    }
}
