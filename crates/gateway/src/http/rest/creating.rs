//! Creating sessions, taking them up and forking them (contract 7.3). What is begun is brought to its end though the client
//! may be gone.

use super::super::problem::Problem;
use super::super::settings::Shared;
use super::prompting::caller;
use super::sessions::{created, info};
use super::{SessionPath, body, check_limits, check_scope, find, placing};
use crate::access::Needs;
use crate::identity::{Identity, SessionPermit};
use crate::wanted::{Beginning as Begins, Wanted};
use acpd_api::{CreateBody, Scope, Session, SessionInfo, SetupBody};
use acpd_host::{
    Beginning, Creation, Creator, Held, Host, HostError, META, Place, TITLE_RULE, prompt_content,
};
use acpd_record::{Partition, PermissionMode, RequestKey, SessionId, is_title};
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::{Extension, Json};
use bytes::Bytes;
use http::HeaderMap;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::Instrument;

/// The params of `session/new`, `session/resume` and `session/fork`.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    session_id: Option<&'a SessionId>,
    cwd: &'a str,
    additional_directories: Option<&'a [String]>,
    mcp_servers: Option<&'a RawValue>,
    #[serde(rename = "_meta", serialize_with = "in_own_meta")]
    meta: Own<'a>,
}

/// What is for acpd alone.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
struct Own<'a> {
    permission_mode: Option<PermissionMode>,
    partition: Option<Partition>,
    title: Option<&'a str>,
    close_after_turn: Option<bool>,
}

fn in_own_meta<S: Serializer>(own: &Own<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut meta = serializer.serialize_map(Some(1))?;
    meta.serialize_entry(META, own)?;
    meta.end()
}

impl Params<'_> {
    fn write(&self) -> Result<Bytes, Problem> {
        let directories = self.additional_directories.unwrap_or_default();
        if let Some(place) = directories.iter().position(|directory| !Path::new(directory).is_absolute()) {
            let detail = format!(
                "additionalDirectories[{place}]: {:?} is not absolute; give the full path",
                directories[place]
            );
            return Err(Problem::bad_request(detail));
        }
        Ok(serde_json::to_vec(self).expect("all of its members are JSON").into())
    }
}

/// The params with which the agent of a new session is asked for it.
fn params_of_new(wanted: &CreateBody<'_>) -> Result<Bytes, Problem> {
    if wanted.title.as_deref().is_some_and(|title| !is_title(title)) {
        return Err(Problem::bad_request(format!("title: {TITLE_RULE}")));
    }
    let own = Own {
        permission_mode: wanted.permission_mode,
        partition: wanted.partition,
        title: wanted.title.as_deref(),
        close_after_turn: wanted.close_after_turn.then_some(true),
    };
    let params = Params {
        session_id: None,
        cwd: &wanted.cwd,
        additional_directories: wanted.additional_directories.as_deref(),
        mcp_servers: wanted.mcp_servers,
        meta: own,
    };
    params.write()
}

fn read_setup(body: Option<&Bytes>) -> Result<SetupBody<'_>, Problem> {
    body.map_or_else(|| Ok(SetupBody::default()), body::parse)
}

/// The place of a session that is taken up or forked, and the params with which its agent is asked.
fn place(wanted: &SetupBody<'_>, id: &SessionId, known: Session) -> Result<(Place, Bytes), Problem> {
    let cwd = wanted.cwd.as_ref().unwrap_or(&known.cwd);
    let params = Params {
        session_id: Some(id),
        cwd,
        additional_directories: wanted.additional_directories.as_deref(),
        mcp_servers: wanted.mcp_servers,
        meta: Own {
            permission_mode: wanted.permission_mode,
            partition: None,
            title: None,
            close_after_turn: None,
        },
    };
    Ok((Place { cwd: directory(cwd), agent: known.agent.clone(), ..Place::default() }, params.write()?))
}

/// Where a process is started. What is wrong with it is for the host to say.
fn directory(cwd: &str) -> Option<PathBuf> {
    Some(PathBuf::from(cwd)).filter(|cwd| cwd.is_absolute() && cwd.is_dir())
}

/// Counts a session of the caller that is about to be live.
fn admit(host: &Host, identity: &Identity) -> Result<SessionPermit, HostError> {
    let permit = identity.begin_session(|| host.live_sessions_of(identity.name()));
    permit.ok_or(HostError::TooManySessions { most: identity.sessions() })
}

/// An error of work that agent `agent` has a part in.
fn problem(shared: &Shared, agent: &str, error: &HostError) -> Problem {
    let known = || shared.host.agents().known(agent).ok().flatten();
    Problem::of_host(error).with_logins(|| known().map(|info| info.auth_methods()))
}

/// `POST /v1/sessions`: creates a session, and prompts it.
pub(super) async fn create(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    check_scope(&identity, Scope::Control)?;
    let key = body::key(&headers)?;
    let body = body::read(&shared, &headers, body).await?;
    let wanted: CreateBody<'_> = body::parse(&body)?;
    let key = key.and_then(|key| RequestKey::new(key, serde_json::from_slice(&body).ok()?));
    let client = caller(&identity, &headers);
    let creator = Creator { client: client.name.clone(), token: identity.name().cloned(), key };
    let agent = wanted.agent.as_deref();
    let asked = placing::Asked { agent, node: wanted.node.as_deref(), labels: wanted.labels.as_deref() };
    match placing::created_before(&shared, &identity, &headers, &creator, &body).await {
        placing::Keyed::There(answer) => return answer,
        placing::Keyed::Here => {}
        placing::Keyed::New => {
            if let Some(elsewhere) = placing::elsewhere(&shared, &headers, &asked, &body).await {
                return elsewhere;
            }
        }
    }
    let agent = wanted.agent.clone().unwrap_or_else(|| shared.settings().default_agent.clone());
    let params = params_of_new(&wanted)?;
    let begins = Some(Begins { params: &params, unless_live: false });
    check_limits(&shared, &identity, Wanted { agent: &agent, session: None, begins }).await?;
    let by = creator.clone();
    let creation = Creation {
        agent: agent.clone(),
        cwd: directory(&wanted.cwd),
        params,
        creator,
        prompt: wanted.prompt.map(|prompt| prompt_content(prompt).into_owned()),
        client,
        admit: {
            let (host, identity) = (shared.host.clone(), identity.clone());
            Box::new(move || admit(&host, &identity).map(|permit| Box::new(permit) as Held))
        },
    };
    let begun = shared.host.create(creation).await;
    // The same request came to another node at the same time.
    if let Err(HostError::OnNode { .. }) = &begun
        && let placing::Keyed::There(answer) =
            placing::created_before(&shared, &identity, &headers, &by, &body).await
    {
        return answer;
    }
    let id = begun.map_err(|error| problem(&shared, &agent, &error))?;
    created(&shared, &identity, &id).await
}

/// `POST /v1/sessions/{id}/resume`: takes up a session that has ended. One that is live goes on undisturbed.
pub(super) async fn resume(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    SessionPath(id): SessionPath,
    body: Body,
) -> Result<Json<SessionInfo>, Problem> {
    let found = find(&shared, &identity, &id, Needs::resource(Scope::Control)).await?;
    // Before anything else is read: an end that comes next stops it.
    let attempt = shared.host.attempt(&id);
    let body = body::read_if_any(&shared, &headers, body).await?;
    let wanted = read_setup(body.as_ref())?;
    let (place, params) = place(&wanted, &id, shared.host.inspect(&id, None).await?.session)?;
    let begins = Some(Begins { params: &params, unless_live: true });
    check_limits(&shared, &identity, Wanted { agent: &place.agent, session: Some((&id, &found)), begins })
        .await?;
    if shared.host.find_live(&id).await?.is_none() {
        let permit = admit(&shared.host, &identity)?;
        let (host, session, client) = (shared.host.clone(), id.clone(), caller(&identity, &headers).name);
        let agent = place.agent.clone();
        let joining = async move {
            let (joined, _unused) = host.join(&session, attempt, place, Some(params), &client).await;
            drop(permit);
            joined.map(drop)
        };
        let joined = shared.host.complete(joining.instrument(acpd_host::session_span(&id))).await;
        joined.map_err(|error| problem(&shared, &agent, &error))?;
    }
    let found = find(&shared, &identity, &id, Needs::resource(Scope::Control)).await?;
    info(&shared, &id, found).await.map(Json)
}

/// `POST /v1/sessions/{id}/fork`: a new session with a copy of the history, forked by the agent.
pub(super) async fn fork(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    SessionPath(id): SessionPath,
    body: Body,
) -> Result<Response, Problem> {
    let found = find(&shared, &identity, &id, Needs::resource(Scope::Control)).await?;
    let body = body::read_if_any(&shared, &headers, body).await?;
    let wanted = read_setup(body.as_ref())?;
    let (place, params) = place(&wanted, &id, shared.host.inspect(&id, None).await?.session)?;
    let begins = Some(Begins { params: &params, unless_live: false });
    check_limits(&shared, &identity, Wanted { agent: &place.agent, session: Some((&id, &found)), begins })
        .await?;
    let permit = admit(&shared.host, &identity)?;
    let client = caller(&identity, &headers).name;
    let creator = Creator { client, token: identity.name().cloned(), key: None };
    let (host, agent) = (shared.host.clone(), place.agent.clone());
    let forking = async move {
        let wanted = Beginning { source: Some(&id), params: Some(params), prompt: None, creator };
        let forked = host.begin(place, wanted).await;
        drop(permit);
        forked.map(|new| new.session.id().clone()).map_err(|(error, _unused)| error)
    };
    let fork = shared.host.complete(forking).await.map_err(|error| problem(&shared, &agent, &error))?;
    created(&shared, &identity, &fork).await
}
