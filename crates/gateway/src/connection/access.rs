//! What a client may do, by the scope of its token, and what exists for it (contract 1.7, MC-3, SC-3).
//!
//! Checked before a request reaches anything that could act. A session of somebody else is as unknown as one that
//! never was, whatever is asked of it.

use super::{Connection, session_id};
use crate::identity::{Scope, SessionPermit};
use crate::methods::{Method, StartsRun};
use crate::wire_error::{WireError, wire_error};
use acpd_host::{Found, HostError};
use bytes::Bytes;
use serde_json::json;

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
        let names_one = self.initialized.is_some() && method.may_name_a_session();
        let session = session_id(params).filter(|_| names_one);
        let (mut required, mut known) = (method.scope, None);
        if identity.may(required)
            && let Some(Ok(id)) = &session
        {
            match self.host.find(id, |creator| identity.sees(creator)).await {
                Ok(found) => {
                    if found.created_by.as_ref() != identity.name() {
                        required = method.scope_of_others;
                    }
                    known = Some(found);
                }
                // Whoever does not see all must not learn from another complaint that a session is there.
                Err(error @ HostError::UnknownSession { .. }) if !identity.sees(None) => {
                    return Err(wire_error(&error));
                }
                // What is wrong with it is said by who looks for it.
                Err(_) => {}
            }
        }
        if !identity.may(required) {
            return Err(forbidden(name, identity.scope(), required));
        }
        let most = identity.sessions();
        let starts_run = match method.starts_run {
            StartsRun::No => false,
            StartsRun::New => true,
            StartsRun::UnlessLive => !matches!(&session, Some(Ok(id)) if self.host.is_live(id)),
        };
        // A client that only watches starts nothing.
        if starts_run && identity.may(Scope::Control) && most < usize::MAX {
            let live = || self.host.live_sessions_of(identity.name());
            let run = identity.begin_session(live).ok_or_else(|| too_many(most))?;
            return Ok(Permitted { run: Some(run), found: known });
        }
        Ok(Permitted { run: None, found: known })
    }

    /// Whether the client may send this notification; nobody is told if not.
    pub(super) fn may_notify(&self, creator: Option<&str>) -> bool {
        let identity = &self.options.identity;
        identity.may(Scope::Control) && identity.sees(creator)
    }
}

fn forbidden(method: &str, scope: Scope, required: Scope) -> WireError {
    WireError::Own {
        code: FORBIDDEN,
        message: format!("{method} needs a token with the scope {}", required.as_str()),
        data: Some(json!({"scope": scope.as_str(), "required": required.as_str()})),
    }
}

fn too_many(most: usize) -> WireError {
    WireError::Own {
        code: FORBIDDEN,
        message: format!("this token has {most} live sessions, which is its limit: close one first"),
        data: Some(json!({"sessions": most})),
    }
}
