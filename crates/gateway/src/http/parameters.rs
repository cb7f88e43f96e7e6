//! Refuses query parameters that an operation does not have (contract 8.2): one that is misspelled would be passed over, and
//! the answer would look right.
//!
//! The one place where names are checked, for `/acp` and every operation of REST. Not here: whether a value is
//! right.

use super::problem::Problem;
use acpd_api::{Members, ProblemKind};
use axum::extract::Query;
use http::{StatusCode, Uri};

/// The longest name that a refusal repeats, in bytes.
const NAME: usize = 100;

/// Refuses a query with a parameter that is not among `known`.
pub(super) fn check(uri: &Uri, known: Members) -> Result<(), Problem> {
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
        let cases: [(&str, Members, Option<&str>); 14] = [
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
}
