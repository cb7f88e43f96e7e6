//! What a client may do ([`decide`]), asked before a request reaches anything that could act, and how many sessions it may
//! have.

use super::{Connection, session_id};
use crate::access::{Named, Needs, Refusal, decide};
use crate::identity::{Scope, SessionPermit};
use crate::methods::{Method, StartsRun};
use crate::wire_error::{WireError, wire_error};
use acpd_host::{Found, HostError};
use bytes::Bytes;
use serde::Serialize;

/// JSON-RPC code of a request that the scope of the client's token does not include.
const FORBIDDEN: i64 = -32003;

/// What an admitted request has.
pub(super) struct Permitted {
    /// Counts as a run until one has begun, if it may start one.
    pub(super) run: Option<SessionPermit>,
    /// The session that it is about.
    pub(super) found: Option<Found>,
}

impl Connection {
    /// Whether the client may ask for this. What may start a run counts as one until that has happened.
    pub(super) async fn may(
        &self,
        name: &str,
        method: &Method,
        params: Option<&Bytes>,
    ) -> Result<Permitted, WireError> {
        let identity = &self.options.identity;
        // Without the scope, nothing is looked up.
        let mut permit =
            decide(identity, method.needs, Named::Nothing).map_err(|no| refused(name, "", no))?;
        let names_one = self.initialized.is_some() && method.may_name_a_session();
        let session = session_id(params).filter(|_| names_one);
        let mut known = None;
        // What is wrong with it otherwise is said by what serves the request.
        if let Some(Ok(id)) = &session {
            let found = self.host.find(id, |creator| identity.sees(creator)).await;
            let named = match &found {
                Ok(found) => Named::Of(found.created_by.as_deref()),
                Err(HostError::UnknownSession { .. }) => Named::Unknown,
                Err(_) => Named::Nothing,
            };
            permit = decide(identity, method.needs, named).map_err(|no| refused(name, id.as_str(), no))?;
            known = found.ok();
        }
        let most = identity.sessions();
        let starts_run = match method.starts_run {
            StartsRun::No => false,
            StartsRun::New => true,
            StartsRun::UnlessLive => !matches!(&session, Some(Ok(id)) if self.host.is_live(id)),
        };
        if starts_run && permit.may_start_runs && most < usize::MAX {
            let live = || self.host.live_sessions_of(identity.name());
            let run = identity.begin_session(live).ok_or_else(|| too_many(most))?;
            return Ok(Permitted { run: Some(run), found: known });
        }
        Ok(Permitted { run: None, found: known })
    }

    /// Whether the client may send this notification; a refusal is not answered.
    pub(super) fn may_notify(&self, creator: Option<&str>) -> bool {
        let needs = Needs::method(Scope::Control);
        decide(&self.options.identity, needs, Named::Of(creator)).is_ok()
    }
}

/// A refusal as it goes to the client.
fn refused(method: &str, session: &str, refusal: Refusal) -> WireError {
    #[derive(Serialize)]
    struct Scopes {
        scope: &'static str,
        required: &'static str,
    }
    match refusal {
        Refusal::UnknownSession => wire_error(&HostError::UnknownSession { id: session.to_owned() }),
        Refusal::Forbidden { scope, required } => {
            let (scope, required) = (scope.as_str(), required.as_str());
            let message = format!("{method} needs a token with the scope {required}");
            let data = serde_json::to_value(Scopes { scope, required }).ok();
            WireError::Own { code: FORBIDDEN, message, data }
        }
    }
}

fn too_many(most: usize) -> WireError {
    #[derive(Serialize)]
    struct Limit {
        sessions: usize,
    }
    WireError::Own {
        code: FORBIDDEN,
        message: format!("this token has {most} live sessions, which is its limit: close one first"),
        data: serde_json::to_value(Limit { sessions: most }).ok(),
    }
}
