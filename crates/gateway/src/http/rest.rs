//! REST: sessions, their events, agents; for those who look and act without speaking ACP (contract 1.3).

mod agents;
mod answering;
mod body;
mod creating;
mod daemon;
mod event_cursor;
mod event_source;
mod events;
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

pub(super) use daemon::WAITING as ASKED_WAITING;
pub use daemon::{Asked, HandingOver, Reloaded};
pub use render::Renderer as EventRenderer;
pub(super) use sessions::CLIENT;

use super::health;
use super::problem::{Kind, Problem};
use super::settings::Shared;
use crate::access::{Named, Needs, Refusal, decide};
use crate::identity::{Identity, Scope};
use crate::wanted::{self, Wanted};
use acpd_host::{Found, HostError};
use acpd_record::SessionId;
use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Path, Query};
use axum::middleware;
use axum::response::IntoResponse;
use axum::routing::{MethodFilter, MethodRouter, get, on};
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Both names of the resources exist in the ecosystem.
const VERSIONS: [&str; 2] = ["/v1", "/v2"];

/// A method, its path below each of [`VERSIONS`], and what answers.
type Route = (MethodFilter, &'static str, fn(MethodFilter) -> MethodRouter<Arc<Shared>>);

/// What needs a token. `tests/operations.rs` has what each is for.
const ROUTES: [Route; 28] = [
    (MethodFilter::GET, "/sessions", |method| on(method, sessions::list)),
    (MethodFilter::POST, "/sessions", |method| on(method, creating::create)),
    (MethodFilter::GET, "/sessions/{id}", |method| on(method, sessions::show)),
    (MethodFilter::DELETE, "/sessions/{id}", |method| on(method, sessions::delete)),
    (MethodFilter::GET, "/sessions/{id}/events", |method| on(method, events::events)),
    (MethodFilter::POST, "/sessions/{id}/answer", |method| on(method, answering::answer)),
    (MethodFilter::POST, "/sessions/{id}/cancel", |method| on(method, prompting::cancel)),
    (MethodFilter::GET, "/sessions/{id}/export", |method| on(method, transfer::export)),
    (MethodFilter::POST, "/sessions/{id}/fork", |method| on(method, creating::fork)),
    (MethodFilter::POST, body::IMPORT, |method| on(method, transfer::import)),
    (MethodFilter::POST, "/prune", |method| on(method, pruning::prune)),
    (MethodFilter::POST, "/sessions/{id}/close", |method| on(method, sessions::close)),
    (MethodFilter::POST, "/sessions/{id}/prompt", |method| on(method, prompting::prompt)),
    (MethodFilter::POST, "/sessions/{id}/resume", |method| on(method, creating::resume)),
    (MethodFilter::POST, "/sessions/{id}/terminate", |method| on(method, sessions::terminate)),
    (MethodFilter::GET, "/search", |method| on(method, search::search)),
    (MethodFilter::GET, "/agents", |method| on(method, agents::list)),
    (MethodFilter::GET, "/nodes", |method| on(method, nodes::list)),
    (MethodFilter::DELETE, "/nodes/{name}", |method| on(method, nodes::remove)),
    (MethodFilter::POST, "/nodes/{name}/drain", |method| on(method, nodes::drain)),
    (MethodFilter::POST, "/nodes/{name}/undrain", |method| on(method, nodes::undrain)),
    (MethodFilter::POST, "/codes", |method| on(method, opening::issue)),
    (MethodFilter::POST, "/reload", |method| on(method, daemon::reload)),
    (MethodFilter::POST, "/handover", |method| on(method, daemon::hand_over)),
    (MethodFilter::POST, "/agents/{name}/check", |method| on(method, agents::check)),
    (MethodFilter::GET, "/stats", |method| on(method, stats::show)),
    (MethodFilter::GET, "/tokens", |method| on(method, tokens::list)),
    (MethodFilter::GET, "/whoami", |method| on(method, whoami::show)),
];

/// What needs none.
const OPEN_ROUTES: [Route; 3] = [
    (MethodFilter::GET, "/health", |method| on(method, health::health)),
    (MethodFilter::POST, "/open", |method| on(method, opening::open)),
    (MethodFilter::GET, "/ready", |method| on(method, health::ready)),
];

/// Everything that needs a token.
pub(super) fn routes() -> Router<Arc<Shared>> {
    below_versions(&ROUTES).route("/openapi.json", get(document))
}

/// Everything that needs none.
pub(super) fn open_routes() -> Router<Arc<Shared>> {
    below_versions(&OPEN_ROUTES)
}

fn below_versions(routes: &[Route]) -> Router<Arc<Shared>> {
    let mut router = Router::new();
    for version in VERSIONS {
        for (method, path, handler) in routes {
            router = router.route(&format!("{version}{path}"), handler(*method));
        }
    }
    router.layer(middleware::from_fn(body::check_kind))
}

/// The OpenAPI document, as generators of clients read it.
const DOCUMENT: &str = include_str!("../../openapi.json");

/// `GET /openapi.json`
async fn document() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], DOCUMENT)
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
            Problem::new(StatusCode::FORBIDDEN, Kind::Forbidden, detail)
        }
        Refusal::Beyond(beyond) => Problem::beyond(beyond),
        Refusal::Unreadable { reason } => Problem::bad_request(reason),
    }
}

fn too_many_connections() -> Problem {
    let detail = "as many connections and event streams are open as this token may have; close one";
    Problem::new(StatusCode::TOO_MANY_REQUESTS, Kind::TooManyConnections, detail)
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
