//! `session/list`: a page of the sessions that exist for the client (contract 1.3).

use super::json;
use crate::fleet::{Fleet, Listed};
use crate::identity::Identity;
use crate::paging::{Filter, PageRequest, WRONG_CURSOR};
use acpd_host::{Host, HostError, META, SessionSummary};
use acpd_record::Json;
use acpd_wire::member;
use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::path::Path;

/// Sessions in one answer.
const PAGE: u32 = 50;
/// Members of acpd's own part of an entry, which have the same names over REST.
const OWN_META: [&str; 13] = [
    "agent",
    "createdAt",
    "ended",
    "eventCount",
    "state",
    "usage",
    "lastTurn",
    "openQuestions",
    "detachedSince",
    "terminationInfo",
    "node",
    "reachable",
    "unreachableSince",
];

/// What a client asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct ListParams {
    cwd: Option<String>,
    cursor: Option<String>,
    /// Of all agents instead of the connection's own.
    all_agents: bool,
}

impl ListParams {
    fn read(params: Option<&[u8]>) -> Result<Self, &'static str> {
        let Some(params) = params else { return Ok(Self::default()) };
        let params: &RawValue =
            serde_json::from_slice(params).map_err(|_| "params: an object is required")?;
        let text = |name| match member(params, name) {
            None => Ok(None),
            Some(raw) => serde_json::from_str::<Option<String>>(raw.get()),
        };
        let wrong_cwd = "cwd: an absolute path is required, or none at all";
        let cwd = text("cwd").map_err(|_| wrong_cwd)?;
        if cwd.as_ref().is_some_and(|cwd| !Path::new(cwd).is_absolute()) {
            return Err(wrong_cwd);
        }
        let cursor = text("cursor")
            .map_err(|_| "cursor: the nextCursor of the page before is required, as a string")?;
        let own = member(params, "_meta").and_then(|meta| member(meta, META));
        let all = own.and_then(|own| member(own, "allAgents"));
        Ok(Self { cwd, cursor, all_agents: all.is_some_and(|all| all.get() == "true") })
    }
}

/// The answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListResult {
    sessions: Vec<ListEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A session in it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListEntry {
    session_id: String,
    cwd: String,
    updated_at: String,
    #[serde(rename = "_meta")]
    meta: OwnMeta,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
}

/// acpd's own part of it.
#[derive(Serialize)]
struct OwnMeta {
    #[serde(rename = "sandboxagent.dev")]
    own: Json,
}

/// What a client asks for, as a page of the list.
pub(super) fn request(params: Option<&[u8]>, agent: &str) -> Result<PageRequest, HostError> {
    let invalid = |message: &str| HostError::InvalidParams { message: message.to_owned() };
    let ListParams { cwd, cursor, all_agents } = ListParams::read(params).map_err(invalid)?;
    let agent = (!all_agents).then(|| agent.to_owned());
    let filter = Filter { agent, cwd, ..Filter::default() };
    PageRequest::new(filter, cursor.as_deref(), PAGE).ok_or_else(|| invalid(WRONG_CURSOR))
}

/// Reads a page of the sessions that exist for the caller.
pub(super) async fn list(
    host: &Host,
    fleet: Option<&Fleet>,
    identity: &Identity,
    page: PageRequest,
) -> Result<Bytes, HostError> {
    let page = page.read(host, fleet, identity).await?;
    let sessions = page.entries.iter().map(|listed| match listed {
        Listed::Own(summary) => entry(summary),
        Listed::Other { info, .. } => other_entry(info),
    });
    Ok(json(&ListResult { sessions: sessions.collect(), next_cursor: page.next_cursor }))
}

fn entry(summary: &SessionSummary) -> ListEntry {
    let session = &summary.session;
    ListEntry {
        session_id: session.id.clone(),
        cwd: session.cwd.clone(),
        updated_at: session.history.updated_at.clone(),
        meta: OwnMeta { own: Json::new(&summary.meta()) },
        title: session.title.clone(),
    }
}

/// A session of another node, of which that has said this to REST.
fn other_entry(info: &Value) -> ListEntry {
    let text = |name: &str| info[name].as_str().map(str::to_owned);
    let own: Map<String, Value> = OWN_META
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), info.get(name).filter(|value| !value.is_null())?.clone())))
        .collect();
    ListEntry {
        session_id: text("sessionId").unwrap_or_default(),
        cwd: text("cwd").unwrap_or_default(),
        updated_at: text("updatedAt").unwrap_or_default(),
        meta: OwnMeta { own: Json::new(&own) },
        title: text("title"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // FR-10, SE-12: wrong types are said to be wrong, and none is as good as null
    #[test]
    fn params_are_read_or_refused() {
        let read = |params: &str| ListParams::read(Some(params.as_bytes()));
        assert_eq!(ListParams::read(None), Ok(ListParams::default()));
        for nothing in ["{}", "null", r#"{"cwd":null,"cursor":null,"_meta":{}}"#] {
            assert_eq!(read(nothing), Ok(ListParams::default()), "{nothing}");
        }
        let asked = read(r#"{"cwd":"/x","cursor":"7b","_meta":{"sandboxagent.dev":{"allAgents":true}}}"#);
        let expected = ListParams { cwd: Some("/x".into()), cursor: Some("7b".into()), all_agents: true };
        assert_eq!(asked, Ok(expected));
        for (wrong, about) in [
            (r#"{"cwd":"x"}"#, "cwd"),
            (r#"{"cwd":7}"#, "cwd"),
            (r#"{"cursor":7}"#, "cursor"),
            (r#"{"cursor":["7b"]}"#, "cursor"),
        ] {
            assert!(read(wrong).is_err_and(|message| message.starts_with(about)), "{wrong}");
        }
    }
}
