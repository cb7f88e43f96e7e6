//! The daemon is asked to read its configuration anew, and says what came of it.

use super::super::problem::{Kind, Problem};
use super::super::settings::Shared;
use crate::identity::{Identity, Scope};
use axum::extract::State;
use axum::{Extension, Json};
use http::StatusCode;
use serde::Serialize;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Someone waits for the outcome; the error is what is wrong with the configuration, in one line.
pub type ReloadRequest = oneshot::Sender<Result<Reloaded, String>>;

/// Requests that wait; more are refused. Each takes as long as the reading of a file.
pub(crate) const WAITING: usize = 4;

/// What the daemon goes by from now on.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Reloaded {
    /// The configuration that was read; not there when the daemon goes by none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// How many tokens there are.
    pub tokens: usize,
    /// How many agents there are.
    pub agents: usize,
}

/// `POST /v1/reload`: reads the configuration anew, as SIGHUP does. What was in force stays when it is wrong.
pub(super) async fn reload(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
) -> Result<Json<Reloaded>, Problem> {
    super::check_scope(&identity, Scope::Admin)?;
    let gone = || {
        let detail = "acpd is about to stop, and reads no configuration any more";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, Kind::ShuttingDown, detail)
    };
    let (answer, outcome) = oneshot::channel();
    match shared.reloads.try_send(answer) {
        Ok(()) => {}
        Err(tokio::sync::mpsc::error::TrySendError::Full(_)) => {
            return Err(Problem::busy("the configuration is being read for others; send it again"));
        }
        Err(tokio::sync::mpsc::error::TrySendError::Closed(_)) => return Err(gone()),
    }
    match outcome.await {
        Ok(Ok(reloaded)) => Ok(Json(reloaded)),
        Ok(Err(wrong)) => {
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, Kind::ConfigurationInvalid, wrong))
        }
        Err(_) => Err(gone()),
    }
}
