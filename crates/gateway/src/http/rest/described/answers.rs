//! The errors that an operation may be answered with.

use crate::http::problem::ProblemDocument;

/// What any request may be refused with.
#[derive(utoipa::IntoResponses)]
#[expect(dead_code, reason = "it describes answers; problems make them")]
pub(in crate::http::rest) enum Refused {
    #[response(
        status = 401,
        description = "no token, or an unknown one",
        content_type = "application/problem+json"
    )]
    Unauthorized(ProblemDocument),
    #[response(
        status = 429,
        description = "more requests or connections than the token may have",
        content_type = "application/problem+json"
    )]
    TooMany(ProblemDocument),
}

/// As [`Refused`], where more than a token is needed.
#[derive(utoipa::IntoResponses)]
#[expect(dead_code, reason = "it describes answers; problems make them")]
pub(in crate::http::rest) enum Forbidden {
    #[response(
        status = 403,
        description = "the scope of the token does not include this",
        content_type = "application/problem+json"
    )]
    Forbidden(ProblemDocument),
}

/// As [`Refused`], where a session is named.
#[derive(utoipa::IntoResponses)]
#[expect(dead_code, reason = "it describes answers; problems make them")]
pub(in crate::http::rest) enum Unknown {
    #[response(status = 404, description = "no such session", content_type = "application/problem+json")]
    Session(ProblemDocument),
}

/// As [`Refused`], where a value of the query may be wrong.
#[derive(utoipa::IntoResponses)]
#[expect(dead_code, reason = "it describes answers; problems make them")]
pub(in crate::http::rest) enum Unreadable {
    #[response(
        status = 400,
        description = "a value of the query is not readable",
        content_type = "application/problem+json"
    )]
    Query(ProblemDocument),
}

/// As [`Refused`], where a session is to end.
#[derive(utoipa::IntoResponses)]
#[expect(dead_code, reason = "it describes answers; problems make them")]
pub(in crate::http::rest) enum Elsewhere {
    #[response(
        status = 409,
        description = "another process has it",
        content_type = "application/problem+json"
    )]
    Session(ProblemDocument),
}
