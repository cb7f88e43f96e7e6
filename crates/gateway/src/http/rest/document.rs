//! The OpenAPI document, as generators of clients read it (contract 1.3).

use super::Problem;
use acpd_api::ProblemKind;
use axum::response::IntoResponse;
use flate2::read::GzDecoder;
use http::{HeaderValue, StatusCode, header};
use std::io;

/// Compressed with gzip by `build.rs`.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openapi.json.gz"));

/// `GET /openapi.json`
pub(super) async fn get_document() -> Result<impl IntoResponse, Problem> {
    let failed = |error: io::Error| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, ProblemKind::Internal, error.to_string())
    };
    let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(([json], document().map_err(failed)?))
}

/// Unpacked for each request: few are made, and the text would stay in memory.
fn document() -> io::Result<String> {
    io::read_to_string(GzDecoder::new(PACKED))
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 5: the daemon serves the document as it lies there
    #[test]
    fn the_document_is_that_of_the_docs() {
        let lies_there = include_str!("../../../../../docs/openapi.json");
        assert!(document().expect("it is packed") == lies_there, "docs/openapi.json is not what was packed");
    }
}
