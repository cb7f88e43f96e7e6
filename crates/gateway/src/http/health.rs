//! Whether acpd is there, and whether it is of use: for callers without a token.

use super::settings::Shared;
use crate::wire_error::one_line;
use acpd_api::{Health, HealthStatus, Ready};
use acpd_host::HostError;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use std::sync::Arc;

/// Why acpd could take on no work; it is known within a second.
pub(super) async fn trouble(shared: &Shared) -> Option<String> {
    if shared.stop.is_cancelled() {
        return Some(HostError::ShuttingDown.to_string());
    }
    let unready = shared.host.check().await.err()?;
    shared.host.doubt();
    Some(one_line(&unready))
}

/// `GET /v1/health`: this process answers, and says whether it is of use. Restarting it would not help where it is
/// not, so the status is 200 either way.
pub(super) async fn health(State(shared): State<Arc<Shared>>) -> Json<Health> {
    let uptime_ms = u64::try_from(shared.since.elapsed().as_millis()).unwrap_or(u64::MAX);
    let reason = trouble(&shared).await;
    let status = if reason.is_none() { HealthStatus::Ok } else { HealthStatus::Degraded };
    Json(Health { status, reason, version: env!("CARGO_PKG_VERSION").to_owned(), uptime_ms })
}

/// `GET /v1/ready`: it can write its log and is not about to stop.
pub(super) async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    let reason = trouble(&shared).await;
    let status = if reason.is_none() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let ready = reason.is_none();
    let reason = reason.or_else(|| shared.fleet()?.trouble());
    (status, Json(Ready { ready, reason })).into_response()
}
