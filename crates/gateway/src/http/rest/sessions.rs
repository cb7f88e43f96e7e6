//! Sessions: list, look at one, end one (contract 1.3, 1.1).

use super::super::forwarding::Lost;
use super::super::problem::Problem;
use super::super::settings::Shared;
use super::{SessionPath, find, numbers, query, transfer};
use crate::access::Needs;
use crate::fleet::{Fleet, Listed};
use crate::identity::Identity;
use crate::paging::{Filter, PageRequest, WRONG_CURSOR};
use acpd_api::{Scope, SessionInfo, SessionState, SessionsPage, SessionsQuery};
use acpd_host::{EndRequest, Found};
use acpd_record::SessionId;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::{HeaderMap, HeaderName, StatusCode, header};
use std::sync::Arc;

/// Sessions of a page, if nothing else is asked for.
const PAGE: u64 = 50;
/// Sessions of a page at most.
const LONGEST_PAGE: u64 = 500;

/// `GET /v1/sessions`: those that exist for the caller.
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    asked: Result<Query<SessionsQuery>, QueryRejection>,
) -> Result<Json<SessionsPage<Listed>>, Problem> {
    let SessionsQuery { cwd, agent, ended, state, q, node, cursor, limit } = query(asked)?;
    let fleet = shared.fleet();
    if node.is_some() && fleet.is_none() {
        return Err(Problem::bad_request("node: this daemon is in no fleet"));
    }
    if cwd.as_ref().is_some_and(|cwd| !cwd.starts_with('/')) {
        return Err(Problem::bad_request("cwd: an absolute path is required"));
    }
    let ended = match ended.as_deref() {
        None => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(_) => return Err(Problem::bad_request("ended: true or false is required")),
    };
    let state = state.map(|state| state.parse::<SessionState>()).transpose().map_err(|_| {
        Problem::bad_request("state: one of starting, idle, running, waiting, ended is required")
    })?;
    if q.as_ref().is_some_and(|q| q.trim().is_empty()) {
        return Err(Problem::bad_request("q: a word to look for is required"));
    }
    let limit = numbers("limit", limit.as_deref(), 1..=LONGEST_PAGE)?.unwrap_or(PAGE);
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    let filter = Filter { agent, cwd, ended, q, state, node };
    let request = PageRequest::new(filter, cursor.as_deref(), limit);
    let request = request.ok_or_else(|| Problem::bad_request(WRONG_CURSOR))?;
    let page = request.read(&shared.host, fleet, &identity).await?;
    let stale = fleet.map(|fleet| fleet.member.is_behind());
    let here = fleet.map(|fleet| fleet.member.me().name.to_string());
    Ok(Json(SessionsPage { sessions: page.entries, next_cursor: page.next_cursor, stale, here }))
}

/// `GET /v1/sessions/{id}`: one, with its snapshot. Of a session whose node is gone: what that last said of it, with an empty one.
pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    lost: Option<Extension<Lost>>,
    SessionPath(id): SessionPath,
) -> Result<Response, Problem> {
    if let Some(Extension(lost)) = lost {
        return Ok(Json(lost.info()).into_response());
    }
    let found = find(&shared, &identity, &id, Needs::resource(Scope::Observe)).await?;
    Ok(Json(info(&shared, &id, found).await?).into_response())
}

/// `POST /v1/sessions/{id}/terminate`: ends it for good.
pub(super) async fn terminate(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    SessionPath(id): SessionPath,
) -> Result<StatusCode, Problem> {
    // One's own may be ended for good, any only by an admin.
    find(&shared, &identity, &id, Needs::resource(Scope::Control).of_others(Scope::Admin)).await?;
    end(&shared, &initiator(&identity, &headers), &id, EndRequest::Terminate).await
}

/// `POST /v1/sessions/{id}/close`: stops it; it can be taken up again.
pub(super) async fn close(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    SessionPath(id): SessionPath,
) -> Result<StatusCode, Problem> {
    find(&shared, &identity, &id, Needs::resource(Scope::Control)).await?;
    end(&shared, &initiator(&identity, &headers), &id, EndRequest::Close).await
}

/// `DELETE /v1/sessions/{id}`: closes it and removes it with its history.
pub(super) async fn delete(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    SessionPath(id): SessionPath,
) -> Result<StatusCode, Problem> {
    find(&shared, &identity, &id, Needs::resource(Scope::Admin)).await?;
    shared.host.delete_session(&id, &initiator(&identity, &headers)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The answer with a session that was just created.
pub(super) async fn created(
    shared: &Shared,
    identity: &Identity,
    id: &SessionId,
) -> Result<Response, Problem> {
    let found = find(shared, identity, id, Needs::resource(Scope::Control)).await?;
    let info = Json(info(shared, id, found).await?);
    let mut response = (StatusCode::CREATED, info).into_response();
    transfer::header(response.headers_mut(), header::LOCATION, &format!("/v1/sessions/{id}"));
    Ok(response)
}

/// A session of this node, with its snapshot.
pub(super) async fn info(shared: &Shared, id: &SessionId, found: Found) -> Result<SessionInfo, Problem> {
    let mut info = shared.host.session_info(id, found).await?;
    info.summary.history.node = shared.fleet().map(Fleet::here);
    Ok(info)
}

async fn end(
    shared: &Shared,
    initiator: &str,
    id: &SessionId,
    request: EndRequest,
) -> Result<StatusCode, Problem> {
    shared.host.end_session(id, request, initiator).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What a client calls itself in the record of what it asks for, for those that cannot be told apart otherwise.
pub(in super::super) const CLIENT: HeaderName = HeaderName::from_static("acpd-client");
/// Characters of such a name at most.
const LONGEST_NAME: usize = 40;

/// The client in the record of what it asked for. acpd's own commands are known; others may say who they are, in visible
/// ASCII and single spaces.
pub(super) fn initiator(identity: &Identity, headers: &HeaderMap) -> String {
    let said = |name: HeaderName| headers.get(name).and_then(|said| said.to_str().ok());
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic());
    let is_name = |name: &&str| name.len() <= LONGEST_NAME && name.split(' ').all(is_word);
    let is_ours = said(header::USER_AGENT).is_some_and(|program| program.starts_with("acpd/"));
    let by = match said(CLIENT).filter(is_name) {
        _ if is_ours => "command line",
        Some(name) => name,
        None => "REST",
    };
    identity.name().map_or_else(|| by.to_owned(), |name| format!("{by} ({name})"))
}
