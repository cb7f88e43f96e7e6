//! REST: sessions, their events, agents; for those who look and act without speaking ACP (contract 1.3).

mod agents;
mod answering;
mod body;
mod creating;
mod daemon;
mod document;
mod endpoint;
mod event_cursor;
mod event_source;
mod events;
mod frames;
mod lost;
mod nodes;
mod opening;
mod placing;
mod prompting;
mod pruning;
mod render;
mod search;
mod sessions;
mod stats;
mod tokens;
mod transfer;
mod whoami;

pub use daemon::Asked;
pub(super) use daemon::WAITING as ASKED_WAITING;
pub use render::Renderer as EventRenderer;
pub(super) use sessions::CLIENT;

use super::health;
use super::problem::Problem;
use super::settings::Shared;
use crate::access::{Named, Needs, Refusal, decide};
use crate::identity::Identity;
use crate::wanted::{self, Wanted};
use acpd_api::{Access, Op, ProblemKind, Scope};
use acpd_host::{Found, HostError};
use acpd_record::SessionId;
use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Path, Query};
use axum::routing::{MethodRouter, get};
use endpoint::Endpoint;
use http::StatusCode;
use http::request::Parts;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Both names of the resources exist in the ecosystem.
const VERSIONS: [&str; 2] = ["/v1", "/v2"];

/// Everything that needs a token.
pub(super) fn routes() -> Router<Arc<Shared>> {
    below_versions(Access::Token).route("/openapi.json", get(document::get_document))
}

/// Everything that needs none.
pub(super) fn open_routes() -> Router<Arc<Shared>> {
    below_versions(Access::Open)
}

fn below_versions(access: Access) -> Router<Arc<Shared>> {
    let mut router = Router::new();
    for version in VERSIONS {
        for op in Op::ALL.iter().filter(|op| op.spec().access == access) {
            router = router.route(&format!("{version}{}", op.spec().path), route(*op));
        }
    }
    router
}

/// The handler of each operation, on its route.
fn route(op: Op) -> MethodRouter<Arc<Shared>> {
    let endpoint = Endpoint::new(op);
    match op {
        Op::ListAgents => endpoint.serve(agents::list),
        Op::CheckAgent => endpoint.serve(agents::check),
        Op::IssueCode => endpoint.serve(opening::issue),
        Op::HandOver => endpoint.serve(daemon::hand_over),
        Op::GetHealth => endpoint.serve(health::health),
        Op::ImportSession => endpoint.serve(transfer::import),
        Op::ListNodes => endpoint.serve(nodes::list),
        Op::RemoveNode => endpoint.serve(nodes::remove),
        Op::DrainNode => endpoint.serve(nodes::drain),
        Op::UndrainNode => endpoint.serve(nodes::undrain),
        Op::OpenByCode => endpoint.serve(opening::open),
        Op::PruneSessions => endpoint.serve(pruning::prune),
        Op::GetReady => endpoint.serve(health::ready),
        Op::ReloadConfiguration => endpoint.serve(daemon::reload),
        Op::Search => endpoint.serve(search::search),
        Op::ListSessions => endpoint.serve(sessions::list),
        Op::CreateSession => endpoint.serve(creating::create),
        Op::GetSession => endpoint.serve(sessions::show),
        Op::DeleteSession => endpoint.serve(sessions::delete),
        Op::AnswerQuestion => endpoint.serve(answering::answer),
        Op::CancelTurn => endpoint.serve(prompting::cancel),
        Op::CloseSession => endpoint.serve(sessions::close),
        Op::GetSessionEvents => endpoint.serve(events::events),
        Op::ExportSession => endpoint.serve(transfer::export),
        Op::ForkSession => endpoint.serve(creating::fork),
        Op::PromptSession => endpoint.serve(prompting::prompt),
        Op::ResumeSession => endpoint.serve(creating::resume),
        Op::TerminateSession => endpoint.serve(sessions::terminate),
        Op::GetStats => endpoint.serve(stats::show),
        Op::ListTokens => endpoint.serve(tokens::list),
        Op::GetWhoami => endpoint.serve(whoami::show),
    }
}

/// The id in a path. What cannot be one is the id of no session.
struct SessionPath(SessionId);

impl<S: Send + Sync> FromRequestParts<S> for SessionPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let text = path.map(|Path(text)| text).map_err(|_| {
            let as_written = parts.uri.path().split('/').nth(3).unwrap_or_default();
            Problem::session_not_found(as_written)
        })?;
        SessionId::parse(&text).map(Self).ok_or_else(|| Problem::session_not_found(&text))
    }
}

/// A session, if the caller may do something to it. What does not exist for the caller is not told from what does not
/// exist (contract 1.7).
async fn find(
    shared: &Shared,
    identity: &Identity,
    session: &SessionId,
    needs: Needs,
) -> Result<Found, Problem> {
    let found = shared.host.find(session, |creator| identity.sees(creator)).await;
    let named = match &found {
        Ok(found) => Named::Of(found.created_by.as_deref()),
        Err(HostError::UnknownSession { .. }) => Named::Unknown,
        Err(error) => return Err(Problem::of_host(error)),
    };
    decide(identity, needs, named).map_err(|no| refused(session.as_str(), no))?;
    let found = found.map_err(Problem::from)?;
    if needs.is_use() {
        let wanted = Wanted { agent: "", session: Some((session, &found)), begins: None };
        check_limits(shared, identity, wanted).await?;
    }
    Ok(found)
}

/// Whether what the caller wants to use is within the limits of its token.
async fn check_limits(shared: &Shared, identity: &Identity, wanted: Wanted<'_>) -> Result<(), Problem> {
    let session = wanted.session.map(|(id, _)| id.as_str()).unwrap_or_default();
    wanted::check(&shared.host, identity, wanted).await.map_err(|no| refused(session, no))
}

/// Whether the caller may have what belongs to no session.
pub(super) fn check_scope(identity: &Identity, required: Scope) -> Result<(), Problem> {
    decide(identity, Needs::resource(required), Named::Nothing).map(drop).map_err(|no| refused("", no))
}

/// A refusal as it goes to the client.
fn refused(session: &str, refusal: Refusal) -> Problem {
    match refusal {
        Refusal::UnknownSession => Problem::session_not_found(session),
        Refusal::Forbidden { scope, required } => {
            let (scope, required) = (scope.as_str(), required.as_str());
            let detail = format!("the scope of this token is {scope}; this needs {required}");
            Problem::new(StatusCode::FORBIDDEN, ProblemKind::Forbidden, detail)
        }
        Refusal::Beyond(beyond) => Problem::beyond(beyond),
        Refusal::Unreadable { reason } => Problem::bad_request(reason),
    }
}

fn too_many_connections() -> Problem {
    let detail = "as many connections and event streams are open as this token may have; close one";
    Problem::new(StatusCode::TOO_MANY_REQUESTS, ProblemKind::TooManyConnections, detail)
}

/// What was asked for, or what is wrong with it.
fn query<T>(asked: Result<Query<T>, QueryRejection>) -> Result<T, Problem> {
    asked.map(|Query(asked)| asked).map_err(|rejection| Problem::bad_request(rejection.body_text()))
}

/// A number in a query.
fn numbers(name: &str, text: Option<&str>, allowed: RangeInclusive<u64>) -> Result<Option<u64>, Problem> {
    let Some(text) = text else { return Ok(None) };
    match text.parse() {
        Ok(number) if allowed.contains(&number) => Ok(Some(number)),
        _ => Err(Problem::bad_request(format!(
            "{name}: a whole number from {} to {} is required",
            allowed.start(),
            allowed.end()
        ))),
    }
}
