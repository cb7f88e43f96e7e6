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
use super::parameters::{Parameters, names, none};
use super::problem::Problem;
use super::settings::Shared;
use crate::access::{Named, Needs, Refusal, decide};
use crate::identity::Identity;
use crate::wanted::{self, Wanted};
use acpd_api::{EventsQuery, ExportQuery, ProblemKind, Scope, SessionsQuery, TextQuery};
use acpd_host::{Found, HostError};
use acpd_record::SessionId;
use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Path, Query};
use axum::routing::{MethodFilter, MethodRouter, get};
use endpoint::Endpoint;
use http::StatusCode;
use http::request::Parts;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Both names of the resources exist in the ecosystem.
const VERSIONS: [&str; 2] = ["/v1", "/v2"];

/// A method, its path below each of [`VERSIONS`], its query parameters, and what answers.
type Route = (MethodFilter, &'static str, fn() -> Parameters, fn(Endpoint) -> MethodRouter<Arc<Shared>>);

/// What needs a token. `tests/operations.rs` has what each is for.
const ROUTES: [Route; 28] = [
    (MethodFilter::GET, "/sessions", names::<SessionsQuery>, |endpoint| endpoint.serve(sessions::list)),
    (MethodFilter::POST, "/sessions", none, |endpoint| endpoint.serve(creating::create)),
    (MethodFilter::GET, "/sessions/{id}", none, |endpoint| endpoint.serve(sessions::show)),
    (MethodFilter::DELETE, "/sessions/{id}", none, |endpoint| endpoint.serve(sessions::delete)),
    (MethodFilter::GET, "/sessions/{id}/events", names::<EventsQuery>, |endpoint| {
        endpoint.serve(events::events)
    }),
    (MethodFilter::POST, "/sessions/{id}/answer", none, |endpoint| endpoint.serve(answering::answer)),
    (MethodFilter::POST, "/sessions/{id}/cancel", none, |endpoint| endpoint.serve(prompting::cancel)),
    (MethodFilter::GET, "/sessions/{id}/export", names::<ExportQuery>, |endpoint| {
        endpoint.serve(transfer::export)
    }),
    (MethodFilter::POST, "/sessions/{id}/fork", none, |endpoint| endpoint.serve(creating::fork)),
    (MethodFilter::POST, endpoint::IMPORT, none, |endpoint| endpoint.serve(transfer::import)),
    (MethodFilter::POST, "/prune", none, |endpoint| endpoint.serve(pruning::prune)),
    (MethodFilter::POST, "/sessions/{id}/close", none, |endpoint| endpoint.serve(sessions::close)),
    (MethodFilter::POST, "/sessions/{id}/prompt", none, |endpoint| endpoint.serve(prompting::prompt)),
    (MethodFilter::POST, "/sessions/{id}/resume", none, |endpoint| endpoint.serve(creating::resume)),
    (MethodFilter::POST, "/sessions/{id}/terminate", none, |endpoint| endpoint.serve(sessions::terminate)),
    (MethodFilter::GET, "/search", names::<TextQuery>, |endpoint| endpoint.serve(search::search)),
    (MethodFilter::GET, "/agents", none, |endpoint| endpoint.serve(agents::list)),
    (MethodFilter::GET, "/nodes", none, |endpoint| endpoint.serve(nodes::list)),
    (MethodFilter::DELETE, "/nodes/{name}", none, |endpoint| endpoint.serve(nodes::remove)),
    (MethodFilter::POST, "/nodes/{name}/drain", none, |endpoint| endpoint.serve(nodes::drain)),
    (MethodFilter::POST, "/nodes/{name}/undrain", none, |endpoint| endpoint.serve(nodes::undrain)),
    (MethodFilter::POST, "/codes", none, |endpoint| endpoint.serve(opening::issue)),
    (MethodFilter::POST, "/reload", none, |endpoint| endpoint.serve(daemon::reload)),
    (MethodFilter::POST, "/handover", none, |endpoint| endpoint.serve(daemon::hand_over)),
    (MethodFilter::POST, "/agents/{name}/check", none, |endpoint| endpoint.serve(agents::check)),
    (MethodFilter::GET, "/stats", none, |endpoint| endpoint.serve(stats::show)),
    (MethodFilter::GET, "/tokens", none, |endpoint| endpoint.serve(tokens::list)),
    (MethodFilter::GET, "/whoami", none, |endpoint| endpoint.serve(whoami::show)),
];

/// What needs none.
const OPEN_ROUTES: [Route; 3] = [
    (MethodFilter::GET, "/health", none, |endpoint| endpoint.serve(health::health)),
    (MethodFilter::POST, "/open", none, |endpoint| endpoint.serve(opening::open)),
    (MethodFilter::GET, "/ready", none, |endpoint| endpoint.serve(health::ready)),
];

/// Everything that needs a token.
pub(super) fn routes() -> Router<Arc<Shared>> {
    below_versions(&ROUTES).route("/openapi.json", get(document::get_document))
}

/// Everything that needs none.
pub(super) fn open_routes() -> Router<Arc<Shared>> {
    below_versions(&OPEN_ROUTES)
}

fn below_versions(routes: &[Route]) -> Router<Arc<Shared>> {
    let mut router = Router::new();
    for version in VERSIONS {
        for (method, path, takes, serve) in routes {
            let endpoint = Endpoint::new(*method, path, takes());
            router = router.route(&format!("{version}{path}"), serve(endpoint));
        }
    }
    router
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

#[cfg(test)]
mod tests;
