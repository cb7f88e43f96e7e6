//! Whether acpd is there, and whether it is of use: for those who have no token.

use super::settings::Shared;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Serialize;
use std::sync::Arc;

/// The answer of a process that runs.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Health {
    /// Always `ok`.
    status: &'static str,
    /// The version of acpd.
    version: &'static str,
    /// Since it began to listen, in milliseconds.
    uptime_ms: u64,
}

/// Whether new sessions can be taken.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct Ready {
    /// It can.
    ready: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// `GET /v1/health`: this process answers.
#[utoipa::path(get, path = "/v1/health", tag = "operation", security(()), responses((status = 200, body = Health)))]
pub(super) async fn health(State(shared): State<Arc<Shared>>) -> Json<Health> {
    let uptime_ms = u64::try_from(shared.since.elapsed().as_millis()).unwrap_or(u64::MAX);
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION"), uptime_ms })
}

/// `GET /v1/ready`: it can write its log and is not about to stop.
#[utoipa::path(get, path = "/v1/ready", tag = "operation", security(()), responses((status = 200, body = Ready), (status = 503, body = Ready)))]
pub(super) async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    let reason = match shared.host.is_closing() || shared.stop.is_cancelled() {
        true => Some("acpd is shutting down".to_owned()),
        false => None,
    };
    let status = if reason.is_none() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(Ready { ready: reason.is_none(), reason })).into_response()
}
