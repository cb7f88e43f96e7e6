//! REST as it is described for those who generate clients: the OpenAPI document, made from the handlers themselves.
//!
//! For tests only, so that the product is built without what makes it: the daemon serves `docs/openapi.json`, and the
//! test here fails while that file is not what the code says. What the host writes is described by types of their own.

mod answers;
mod bodies;

pub(super) use answers::{Elsewhere, Forbidden, Refused, Unknown, Unreadable};
pub(super) use bodies::{Agent, Event, EventsPage, Session};

use super::super::health;
use super::super::problem::{Kind, ProblemDocument};
use super::{agents, events, sessions};
use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{OpenApi as Described, RefOr};
use utoipa::{Modify, OpenApi};

/// Set by `cargo xtask openapi`: the file is to be written, not compared.
const RENEW: &str = "ACPD_RENEW_OPENAPI";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "acpd",
        description = "Sessions of coding agents: list, look, follow, end. Clients that prompt speak ACP at `/acp`. \
                       Every path under `/v1` is served under `/v2` too, which this document leaves out."
    ),
    paths(
        sessions::list, sessions::show, sessions::delete, sessions::close, sessions::terminate, events::events,
        agents::list, health::health, health::ready
    ),
    components(schemas(ProblemDocument, Event)),
    modifiers(&Bearer),
    security(("token" = []), ()),
)]
struct Document;

/// How a token is presented. None is needed where acpd has no tokens.
struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut Described) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        document.components.get_or_insert_default().add_security_scheme("token", scheme);
    }
}

impl utoipa::PartialSchema for Kind {
    fn schema() -> RefOr<Schema> {
        let urns = Self::ALL.iter().map(|kind| kind.urn());
        let words = "What an error is: these and no others.";
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(urns)).description(Some(words)).into()
    }
}

impl utoipa::ToSchema for Kind {
    fn name() -> std::borrow::Cow<'static, str> {
        "ProblemType".into()
    }
}

// contract 5: clients are generated from the file, so it is what the code says, and the daemon serves it as it lies there
#[test]
fn the_document_is_the_one_that_is_checked_in() {
    let text = serde_json::to_string_pretty(&Document::openapi()).expect("it is JSON") + "\n";
    if std::env::var_os(RENEW).is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
        std::fs::write(path, &text).expect("the file can be written");
        return;
    }
    let (mut is, mut should) = (super::DOCUMENT.lines(), text.lines());
    let stale = (1..).find(|_| match (is.next(), should.next()) {
        (None, None) => true,
        (is, should) => is != should,
    });
    assert!(
        super::DOCUMENT == text,
        "line {stale:?} of docs/openapi.json is stale; renew it: cargo xtask openapi"
    );
}

/// The operations, by path and method.
fn operations(document: &Value) -> Vec<(String, &Value)> {
    let paths = document["paths"].as_object().expect("there are paths");
    let methods = paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().expect("there are methods");
        methods.iter().map(move |(method, operation)| (format!("{method} {path}"), operation))
    });
    methods.collect()
}

// contract 5: generators refuse a document in which a response says nothing of itself (OpenAPI 3.1, Response Object)
#[test]
fn every_response_has_a_description() {
    let document = serde_json::to_value(Document::openapi()).expect("it is JSON");
    let mut seen = 0;
    for (operation, described) in operations(&document) {
        for (status, response) in described["responses"].as_object().expect("there are responses") {
            let words = response["description"].as_str().unwrap_or_default();
            assert!(!words.is_empty(), "{operation} {status}: {response}");
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen}");
}

// contract 1.3: the second name of each path would give generated clients two of each function
#[test]
fn each_operation_is_described_once() {
    let document = serde_json::to_value(Document::openapi()).expect("it is JSON");
    let described = operations(&document);
    assert_eq!(described.len(), 9);
    assert!(described.iter().all(|(operation, _)| operation.contains(" /v1/")), "{described:?}");
}

// contract 1.3: a list that is closed is described as one
#[test]
fn closed_lists_are_enums() {
    let document = serde_json::to_value(Document::openapi()).expect("it is JSON");
    let schemas = &document["components"]["schemas"];
    let list = |schema: &str, values: &[&str]| {
        let described: Vec<&str> =
            schemas[schema]["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        assert_eq!(described, values, "{schema}");
    };
    let member = |schema: &str, member: &str, of: &str| {
        let described = schemas[schema]["properties"][member].to_string();
        assert!(
            described.contains(&format!("#/components/schemas/{of}\"")),
            "{schema}.{member}: {described}"
        );
    };
    list("HealthStatus", &["ok", "degraded"]);
    member("Health", "status", "HealthStatus");
    list("SessionState", &["starting", "idle", "running", "waiting", "ended"]);
    member("Session", "state", "SessionState");
    list("Reason", &["completed", "error", "terminated"]);
    member("TerminationInfo", "reason", "Reason");
    list("TerminatedBy", &["agent", "daemon"]);
    member("TerminationInfo", "terminatedBy", "TerminatedBy");
    member("TerminationInfo", "cause", "Cause");
    member("ProblemDocument", "type", "ProblemType");
    let urns: Vec<&str> = Kind::ALL.iter().map(|kind| kind.urn()).collect();
    assert!(urns.contains(&"urn:sandbox-agent:error:session_not_found"), "{urns:?}");
    list("ProblemType", &urns);
}
