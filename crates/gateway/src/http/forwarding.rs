//! Requests for what another node has: they go there with the caller's own token, and what comes back goes to the caller.
//!
//! Invariants: a request is forwarded once at most; this node adds no right to it; what does not exist for the caller is not told
//! from what does not exist; a node that does not answer is said so within seconds, however long an answer may take of one that
//! lives. Not here: what exists for whom (`fleet.rs`).

use super::forwarded_headers::passed_back;
use super::forwarded_stream::forwarded;
use super::guard::token_in_protocol;
use super::problem::Problem;
use super::rest::check_scope;
use super::settings::Shared;
use super::sse::Sse;
use super::tokens::{fingerprint, hash_token};
use crate::fleet::{ASK_AFTER, FORWARDED_BY, Fleet, PeerClient, PeerError, exists_for, exists_for_token};
use crate::identity::Identity;
use acpd_api::{ProblemKind, Scope};
use acpd_fleet::{NodeName, NodeRecord, Owned};
use acpd_record::SessionId;
use axum::body::Body;
use axum::extract::{FromRequestParts, MatchedPath, RawPathParams, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use std::sync::Arc;
use std::time::Duration;

/// The caller's token for the node that a request goes on to, where that is not the one for this door: a caller at the Unix
/// socket has none for it.
const THERE: HeaderName = HeaderName::from_static("acpd-authorization");
/// The node that has answered.
const NODE: HeaderName = HeaderName::from_static("acpd-node");
/// What is between two neighbours only, or was judged by this door: the page that called, and what it may read.
const NOT_FORWARDED: [HeaderName; 11] = [
    header::CONNECTION,
    header::HOST,
    header::ORIGIN,
    header::COOKIE,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::VARY,
];
const KEEP_ALIVE: &str = "keep-alive";
const OF_PAGES: &str = "access-control-";

/// How often it is looked whether the node of a stream is still there.
const LOOK: Duration = Duration::from_secs(1);

/// What of a session can be read without its node.
const IN_ARCHIVE: [&str; 3] = ["/sessions/{id}", "/sessions/{id}/events", "/sessions/{id}/export"];

/// A session whose node is gone: what is read of it comes from the archive.
#[derive(Clone)]
pub(super) struct Lost(pub(super) Box<Owned>);

/// Where an answer comes from.
enum Way {
    Node(NodeRecord),
    Archive(Lost),
}

/// What a request is for.
enum Target {
    Session(SessionId),
    Node(NodeName),
}

/// Sends a request on to the node that has what it is for, if that is another one.
pub(super) async fn forward(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let Some(fleet) = shared.fleet() else { return next.run(request).await };
    let (mut parts, body) = request.into_parts();
    let asked = target(&mut parts).await.zip(parts.extensions.get::<Identity>().cloned());
    let is_sure = match &asked {
        Some((Target::Session(id), identity)) => fleet.is_sure(&shared.host, id, identity).await,
        _ => true,
    };
    let sent = asked.as_ref().and_then(|(target, identity)| elsewhere(fleet, identity, &parts, target));
    match sent {
        None => {
            let answer = next.run(Request::from_parts(parts, body)).await;
            let is_unknown = answer.extensions().get() == Some(&ProblemKind::SessionNotFound);
            match asked.filter(|_| is_unknown).and_then(|asked| not_yet_here(fleet, is_sure, &asked)) {
                Some(problem) => problem.into_response(),
                None => answer,
            }
        }
        Some(Err(problem)) => problem.into_response(),
        Some(Ok(Way::Archive(lost))) => {
            let node = HeaderValue::from_str(lost.0.session.node.as_str());
            parts.extensions.insert(lost);
            let mut answer = next.run(Request::from_parts(parts, body)).await;
            answer.headers_mut().extend(node.ok().map(|node| (NODE, node)));
            answer
        }
        Some(Ok(Way::Node(node))) => {
            send(fleet, node, parts, body).await.unwrap_or_else(|why| why.problem.into_response())
        }
    }
}

async fn target(parts: &mut Parts) -> Option<Target> {
    let path = parts.extensions.get::<MatchedPath>()?.as_str().to_owned();
    let (_version, path) = path.strip_prefix('/')?.split_once('/')?;
    let name = if path.starts_with("sessions/{id}") {
        "id"
    } else if path.starts_with("nodes/{name}/") {
        "name"
    } else {
        return None;
    };
    let params = RawPathParams::from_request_parts(parts, &()).await.ok()?;
    let (_, value) = params.iter().find(|(key, _)| *key == name)?;
    match name {
        "id" => SessionId::parse(value).map(Target::Session),
        _ => NodeName::try_from(value.to_owned()).ok().map(Target::Node),
    }
}

/// The other node that a request is for; None where it is for this one, or for nothing that exists for the caller.
fn elsewhere(
    fleet: &Fleet,
    identity: &Identity,
    parts: &Parts,
    target: &Target,
) -> Option<Result<Way, Problem>> {
    let mut lost = None;
    let (name, node, gone_since, session) = match target {
        Target::Session(id) => {
            let exists = |owned: &Owned| exists_for(owned, identity) || exists_there(owned, &parts.headers);
            let owned = fleet.member.elsewhere(id).filter(exists)?;
            let since = crate::fleet::of_node(&owned).unreachable_since;
            let is_read = is_in_archive(parts) && !owned.session.is_claim();
            lost = is_read.then(|| Lost(Box::new(owned.clone())));
            let node = owned.node.map(Arc::unwrap_or_clone);
            (owned.session.node.clone(), node, since, Some(id.as_str()))
        }
        Target::Node(name) if *name == fleet.member.me().name => return None,
        Target::Node(name) => {
            let sight = fleet.member.node(name)?;
            let since = crate::fleet::gone_since(&sight);
            (name.clone(), Some(sight.record), since, None)
        }
    };
    let required = match (target, &parts.method) {
        (Target::Node(_), _) => Scope::Admin,
        (_, &Method::GET | &Method::HEAD) => Scope::Observe,
        _ => Scope::Control,
    };
    if let Err(problem) = check_scope(identity, required) {
        return Some(Err(problem));
    }
    let about = |problem: Problem| match session {
        Some(session) => problem.about(session),
        None => problem,
    };
    if parts.headers.contains_key(&FORWARDED_BY) {
        let detail =
            format!("it is not here but on node {name}, which the node that sent this on did not know");
        let problem = Problem::new(StatusCode::MISDIRECTED_REQUEST, ProblemKind::NotHere, detail);
        return Some(Err(about(problem.on(&name))));
    }
    if let Some(since) = gone_since {
        if let Some(lost) = lost {
            return Some(Ok(Way::Archive(lost)));
        }
        let detail = format!("node {name}, which has it, cannot be reached since {since}; nothing was done");
        return Some(Err(about(unreachable(&name, detail))));
    }
    node.map(|node| Ok(Way::Node(node)))
}

/// Why a session that this node does not have may be one all the same: who hears of none gives it up for good.
fn not_yet_here(fleet: &Fleet, is_sure: bool, (target, identity): &(Target, Identity)) -> Option<Problem> {
    let Target::Session(id) = target else { return None };
    if !is_sure {
        return Some(unknown_for_now(fleet).about(id.as_str()));
    }
    let owned = fleet.member.taking_up(id).filter(|owned| exists_for(owned, identity))?;
    let detail =
        "this node takes it up from one that is lost, and does not have all of it yet; nothing was done";
    Some(Problem::busy(detail).about(id.as_str()).on(&owned.session.node))
}

/// That a session is on no node that is heard, and may be there all the same.
fn unknown_for_now(fleet: &Fleet) -> Problem {
    if let Some(node) = fleet.unheard().filter(|_| !fleet.member.is_stale()) {
        let since = crate::fleet::gone_since(&node).unwrap_or_default();
        let node = node.record.name;
        let detail = format!(
            "it is on no node that is heard, and may be on node {node}, which cannot be reached since {since}; nothing was done"
        );
        return unreachable(&node, detail);
    }
    let detail = "it is not on this node, which does not know now what its fleet has; nothing was done";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, ProblemKind::NoFleet, detail)
        .with(header::RETRY_AFTER, HeaderValue::from_static("5"))
}

/// Whether a session exists for the token that the caller has for its node.
fn exists_there(owned: &Owned, headers: &HeaderMap) -> bool {
    fingerprint_there(headers).is_some_and(|fingerprint| exists_for_token(owned, &fingerprint))
}

/// The fingerprint of the caller's token for other nodes, if that is not the one for this door.
pub(super) fn fingerprint_there(headers: &HeaderMap) -> Option<String> {
    let token = headers.get(THERE).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    token.map(|token| fingerprint(&hash_token(token)))
}

/// Whether what a request is for can be read from the archive.
fn is_in_archive(parts: &Parts) -> bool {
    let path = parts.extensions.get::<MatchedPath>().map(MatchedPath::as_str).unwrap_or_default();
    let path = path.get("/v1".len()..).unwrap_or_default();
    parts.method == Method::GET && IN_ARCHIVE.contains(&path)
}

/// The node that has it does not answer.
pub(super) fn unreachable(node: &NodeName, detail: String) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, ProblemKind::NodeUnreachable, detail)
        .on(node)
        .with(header::RETRY_AFTER, HeaderValue::from_static("5"))
}

/// Has another node create a session. The error says whether the node was reached at all.
pub(super) async fn create(
    fleet: &Fleet,
    node: NodeRecord,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<Response, NotSent> {
    let request = http::Request::post("/v1/sessions").body(()).unwrap_or_default();
    let (mut parts, ()) = request.into_parts();
    parts.headers = headers.clone();
    send(fleet, node, parts, body.into()).await
}

/// Why a request has no answer of another node.
pub(super) struct NotSent {
    pub(super) problem: Problem,
    /// Nothing of it has left this node.
    pub(super) is_undone: bool,
}

impl From<NotSent> for Problem {
    fn from(why: NotSent) -> Self {
        why.problem
    }
}

async fn send(fleet: &Fleet, node: NodeRecord, mut parts: Parts, body: Body) -> Result<Response, NotSent> {
    let undone = |problem: Problem| NotSent { problem, is_undone: true };
    let Some(address) = node.address.clone() else {
        let detail =
            format!("node {}, which has it, has no `address` in its [fleet]; ask it there", node.name);
        let problem = Problem::new(StatusCode::MISDIRECTED_REQUEST, ProblemKind::NotHere, detail);
        return Err(undone(problem.on(&node.name)));
    };
    if let Some(token) = parts.headers.remove(THERE) {
        parts.headers.insert(header::AUTHORIZATION, token);
    }
    let only_reads = matches!(parts.method, Method::GET | Method::HEAD);
    let has_token = parts.headers.contains_key(header::AUTHORIZATION);
    let request = request(&fleet.member.me().name, parts, body);
    let answer =
        answered(&fleet.peers, &address, request).await.map_err(|PeerError { reason, is_unsent }| {
            let done = match (only_reads, is_unsent) {
                (true, _) => "",
                (false, true) => "; nothing was done",
                (false, false) => "; whether the request was done there is not known",
            };
            let detail = format!("node {} does not answer ({reason}){done}", node.name);
            NotSent { problem: unreachable(&node.name, detail), is_undone: is_unsent }
        })?;
    if answer.status() == StatusCode::UNAUTHORIZED && !has_token {
        let detail = format!(
            "it is on node {}, where a token of that node is needed: set ACPD_TOKEN, or Acpd-Authorization: Bearer TOKEN",
            node.name
        );
        let problem = Problem::new(StatusCode::UNAUTHORIZED, ProblemKind::Unauthorized, detail);
        return Err(undone(problem.on(&node.name)));
    }
    Ok(response(fleet, node.name, answer))
}

/// The caller's token for other nodes, as the header `Authorization` has it: also that of a page, whose WebSocket says it as a
/// protocol.
pub(super) fn token_for_others(headers: &HeaderMap) -> Option<HeaderValue> {
    let given = headers.get(THERE).or_else(|| headers.get(header::AUTHORIZATION)).cloned();
    let of_page = || HeaderValue::from_str(&format!("Bearer {}", token_in_protocol(headers)?)).ok();
    let mut token = given.or_else(of_page)?;
    token.set_sensitive(true);
    Some(token)
}

fn request(me: &NodeName, parts: Parts, body: Body) -> Request {
    let path = parts.uri.path_and_query().cloned();
    let mut request = Request::new(body);
    *request.method_mut() = parts.method;
    *request.uri_mut() = path.map(Uri::from).unwrap_or_default();
    *request.headers_mut() = passed_on(parts.headers);
    if let Ok(me) = HeaderValue::from_str(me.as_str()) {
        request.headers_mut().insert(FORWARDED_BY, me);
    }
    request
}

fn passed_on(mut headers: HeaderMap) -> HeaderMap {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let of_pages = headers.keys().filter(|name| name.as_str().starts_with(OF_PAGES)).cloned();
    for name in of_pages.collect::<Vec<_>>().into_iter().chain(named).chain(NOT_FORWARDED) {
        headers.remove(name);
    }
    headers.remove(KEEP_ALIVE);
    headers
}

/// The head of an answer. While there is none the node is asked whether it lives.
async fn answered(peers: &PeerClient, address: &str, request: Request) -> Result<Response, PeerError> {
    let mut answer = std::pin::pin!(peers.send(address, request));
    loop {
        match tokio::time::timeout(ASK_AFTER, &mut answer).await {
            Ok(answer) => return answer,
            Err(_) => tokio::select! {
                answer = &mut answer => return answer,
                lives = peers.lives(address) => lives?,
            },
        }
    }
}

/// What goes back. A stream ends when its node is lost, so that the caller comes again.
fn response(fleet: &Fleet, node: NodeName, answer: Response) -> Response {
    let (mut parts, body) = answer.into_parts();
    parts.headers = passed_back(parts.status, &parts.headers);
    if let Ok(name) = HeaderValue::from_str(node.as_str()) {
        parts.headers.insert(NODE, name);
    }
    let is_stream = parts.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == Sse::KIND);
    if !is_stream {
        return Response::from_parts(parts, body);
    }
    let reason = format!("node {node}, which has it, has broken off; come again with Last-Event-ID");
    let member = fleet.member.clone();
    let gone = async move {
        let mut look = tokio::time::interval(LOOK);
        loop {
            look.tick().await;
            if member.gone_for(&node).is_some() {
                return;
            }
        }
    };
    Response::from_parts(parts, Body::from_stream(forwarded(body.into_data_stream(), gone, reason)))
}
