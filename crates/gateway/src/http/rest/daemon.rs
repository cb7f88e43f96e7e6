//! What the daemon itself is asked over REST: to read its configuration anew, and to hand over to the binary that is on disk
//! now. It says what came of it.

use super::super::problem::Problem;
use super::super::settings::Shared;
use crate::identity::Identity;
use acpd_api::{HandingOver, ProblemKind, Reloaded, Scope};
use axum::extract::State;
use axum::{Extension, Json};
use http::StatusCode;
use std::sync::Arc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::oneshot;

/// Someone waits for the outcome; the error is in one line.
#[derive(Debug)]
pub enum Asked {
    /// The error is what is wrong with the configuration.
    Reload(oneshot::Sender<Result<Reloaded, String>>),
    /// The error is why the daemon goes on as it is.
    HandOver(oneshot::Sender<Result<HandingOver, String>>),
    /// Whether the node is to take no new sessions; the error is why that cannot be kept.
    Drain(bool, oneshot::Sender<Result<(), String>>),
}

/// Requests that wait; more are refused. Each takes as long as the reading of a file, or the start of a program.
pub(crate) const WAITING: usize = 4;

/// `POST /v1/reload`: reads the configuration anew, as SIGHUP does. What was in force stays when it is wrong.
pub(super) async fn reload(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
) -> Result<Json<Reloaded>, Problem> {
    super::check_scope(&identity, Scope::Admin)?;
    let wrong = |why| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, ProblemKind::ConfigurationInvalid, why);
    ask(&shared, Asked::Reload).await?.map(Json).map_err(wrong)
}

/// `POST /v1/handover`: hands over to the binary that is on disk now, as SIGUSR2 does. The daemon goes on when that would not
/// start.
pub(super) async fn hand_over(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
) -> Result<(StatusCode, Json<HandingOver>), Problem> {
    super::check_scope(&identity, Scope::Admin)?;
    let refused = |why| Problem::new(StatusCode::CONFLICT, ProblemKind::HandoverRefused, why);
    let accepted = ask(&shared, Asked::HandOver).await?.map_err(refused)?;
    Ok((StatusCode::ACCEPTED, Json(accepted)))
}

/// Has the daemon do something, and waits for the outcome.
pub(super) async fn ask<T>(
    shared: &Shared,
    what: impl FnOnce(oneshot::Sender<Result<T, String>>) -> Asked,
) -> Result<Result<T, String>, Problem> {
    let gone = || {
        let detail = "acpd is about to stop or hands over, and does nothing else any more";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, ProblemKind::ShuttingDown, detail)
    };
    let (answer, outcome) = oneshot::channel();
    match shared.daemon.asked.try_send(what(answer)) {
        Ok(()) => outcome.await.map_err(|_| gone()),
        Err(TrySendError::Full(_)) => Err(Problem::busy("the daemon does this for others; send it again")),
        Err(TrySendError::Closed(_)) => Err(gone()),
    }
}
