//! `DELETE /acp`: the client leaves. Its sessions live on (MC-2).

use super::super::problem::Problem;
use super::Acp;
use super::headers::connection_id;
use crate::identity::Identity;
use crate::outbox::Closing;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};

pub(super) fn delete(acp: &Acp, identity: &Identity, headers: &HeaderMap) -> Result<Response, Problem> {
    let connection = acp.connections.find(connection_id(headers)?, identity)?;
    acp.connections.end(&connection, Closing::Deleted);
    Ok(StatusCode::ACCEPTED.into_response())
}
