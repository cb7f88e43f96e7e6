//! Removing old sessions (contract 7.1 to 7.3).

use super::super::problem::Problem;
use super::super::settings::Shared;
use super::body;
use super::sessions::initiator;
use crate::identity::Identity;
use acpd_api::{ProblemKind, PruneBody, Pruned, Scope};
use acpd_host::Keep;
use axum::body::Body;
use axum::extract::State;
use axum::{Extension, Json};
use http::{HeaderMap, StatusCode};
use std::sync::Arc;
use std::time::Duration;

/// `POST /v1/prune`: removes ended sessions that are old, or while all together take too much.
pub(super) async fn prune(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Pruned>, Problem> {
    super::check_scope(&identity, Scope::Admin)?;
    let read = body::read_if_any(&shared, &headers, body).await?;
    let asked: PruneBody = read.as_ref().map(body::parse).transpose()?.unwrap_or_default();
    let given = Keep { older_than: asked.older_than_ms.map(Duration::from_millis), bytes: asked.keep_bytes };
    let keep = if given.is_all() { shared.settings().keep } else { given };
    if keep.is_all() {
        let detail = "all sessions are kept: give olderThanMs or keepBytes, or set keep_for or keep_bytes in [storage] \
                      of the configuration";
        return Err(Problem::new(StatusCode::CONFLICT, ProblemKind::AllKept, detail));
    }
    // An admin sees all.
    let sessions = match asked.dry_run {
        true => shared.host.prunable(keep).await?,
        false => shared.host.prune(keep, &initiator(&identity, &headers)).await?,
    };
    Ok(Json(Pruned { sessions }))
}
