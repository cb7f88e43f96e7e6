//! What a client says of a session that is to begin: checked, completed, and remembered with the session.
//!
//! Pure but for a look at the directory. Not here: what an agent makes of it.

use crate::acp;
use crate::error::HostError;
use acpd_record::{NativeSessionId, Partition, PermissionMode, RequestKey, SessionId, is_title};
use acpd_wire::{member, span_of};
use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::path::Path;
use std::sync::Arc;

/// Who creates a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Creator {
    /// What the client calls itself.
    pub client: Arc<str>,
    /// The name of its token: whose the session is from then on (contract 1.7). None without one.
    pub token: Option<Arc<str>>,
    /// Its key for the request: the same request under it creates no second session (contract 7.3).
    pub key: Option<RequestKey>,
}

impl Creator {
    /// The id of the session that it creates. Under a key it follows from the token and the key: the id is the claim, here
    /// and in every process of the state directory.
    pub fn session_id(&self) -> SessionId {
        match &self.key {
            Some(key) => crate::ids::keyed_session_id(self.token.as_deref(), key.as_str()),
            None => crate::ids::fresh_session_id(),
        }
    }
}

/// Checks what every session needs (SE-2, FR-10) and completes it: real agents fail without `mcpServers`.
pub(crate) fn session_setup(params: Option<Bytes>) -> Result<(String, Bytes), HostError> {
    let invalid = |message: String| HostError::InvalidParams { message };
    let params = params.unwrap_or_default();
    let object: &RawValue = acp::view(&params)
        .filter(|object: &&RawValue| object.get().trim_start().starts_with('{'))
        .ok_or_else(|| invalid("params: an object with cwd and mcpServers is required".to_owned()))?;
    let cwd = member(object, "cwd").and_then(acp::text).ok_or_else(|| {
        invalid("cwd: the absolute path of the session's working directory is required".to_owned())
    })?;
    if !Path::new(&cwd).is_absolute() {
        return Err(invalid(format!("cwd: {cwd:?} is not absolute; give the full path")));
    }
    if !Path::new(&cwd).is_dir() {
        return Err(invalid(format!("cwd: {cwd:?} is not a directory here; create it or give another")));
    }
    let mut completed = BytesMut::new();
    match member(object, "mcpServers") {
        Some(servers) if servers.get().starts_with('[') => return Ok((cwd, params)),
        Some(servers) if servers.get() == "null" => {
            let span = span_of(&params, servers).expect("it was borrowed from there");
            acpd_wire::splice(&mut completed, &params, &[(span, b"[]")]);
        }
        Some(_) => return Err(invalid("mcpServers: an array is required; give [] for none".to_owned())),
        None => {
            let brace = params.iter().position(|byte| *byte == b'{').expect("it is an object");
            acpd_wire::splice(&mut completed, &params, &[(brace..brace + 1, b"{\"mcpServers\":[],")]);
        }
    }
    Ok((cwd, completed.freeze()))
}

/// What an agent is asked with to go on with a session of which nothing but this is known.
pub(crate) fn stored_setup(native: &NativeSessionId, cwd: &str) -> Bytes {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        session_id: &'a NativeSessionId,
        cwd: &'a str,
        mcp_servers: [(); 0],
    }
    let params = Params { session_id: native, cwd, mcp_servers: [] };
    serde_json::to_vec(&params).expect("it is JSON").into()
}

/// `_meta["sandboxagent.dev"].permissionMode`, if a client gave one (contract 2.1).
pub(crate) fn permission_mode(params: &[u8]) -> Result<Option<PermissionMode>, HostError> {
    let mode = own_member(params, "permissionMode").map(serde_json::from_value);
    let required = "one of default, acceptEdits, bypassPermissions, deny is required";
    mode.transpose().map_err(|_| wrong_member("permissionMode", required))
}

/// `_meta["sandboxagent.dev"].partition`, if a client gave one (contract 7.2).
pub(crate) fn partition(params: &[u8]) -> Result<Option<Partition>, HostError> {
    let given = own_member(params, "partition").map(serde_json::from_value);
    given.transpose().map_err(|_| wrong_member("partition", "local or failover is required"))
}

/// `_meta["sandboxagent.dev"].title`, if a client gave one (contract 7.3).
pub(crate) fn chosen_title(params: &[u8]) -> Result<Option<String>, HostError> {
    let Some(given) = own_member(params, "title") else { return Ok(None) };
    let title = given.as_str().filter(|title| is_title(title));
    title.map(|title| Some(title.to_owned())).ok_or_else(|| wrong_member("title", TITLE_RULE))
}

/// What a title that a client chooses has to be.
pub const TITLE_RULE: &str = "one line of 1 to 200 characters is required";

/// `_meta["sandboxagent.dev"].closeAfterTurn`: whether acpd closes the session when the next turn of its run has ended.
pub(crate) fn closes_after_turn(params: Option<&Bytes>) -> Result<bool, HostError> {
    let given = params.and_then(|params| own_member(params, "closeAfterTurn"));
    let Some(given) = given else { return Ok(false) };
    given.as_bool().ok_or_else(|| wrong_member("closeAfterTurn", "true or false is required"))
}

/// A member of acpd's own in params.
fn own_member(params: &[u8], name: &str) -> Option<serde_json::Value> {
    #[derive(Default, Deserialize)]
    struct Params {
        #[serde(default, rename = "_meta")]
        meta: Option<serde_json::Map<String, serde_json::Value>>,
    }
    let params: Params = acpd_wire::read(params).unwrap_or_default();
    params.meta.as_ref().and_then(|meta| meta.get(acp::META)?.get(name)).cloned()
}

fn wrong_member(name: &str, required: &str) -> HostError {
    HostError::InvalidParams { message: format!("_meta[{:?}].{name}: {required}", acp::META) }
}

/// Params that name no session, with the id of one.
pub(crate) fn with_id(params: &[u8], id: &SessionId) -> Option<Bytes> {
    let brace = params.iter().position(|byte| *byte == b'{')?;
    let member = format!("{{\"sessionId\":{},", id.as_json());
    let mut named = BytesMut::new();
    acpd_wire::splice(&mut named, params, &[(brace..brace + 1, member.as_bytes())]);
    Some(named.freeze())
}

#[cfg(test)]
mod tests;
