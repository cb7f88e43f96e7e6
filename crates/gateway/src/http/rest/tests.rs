//! REST as it is described for those who generate clients: the OpenAPI document, and the schemas of a session's events.
//!
//! For tests only, so that the product is built without what makes them: the daemon serves `docs/openapi.json`, and the
//! test here fails while a file is not what the code says. Schemas come from the types that are sent, operations from the
//! table in `operations`, which is compared with the routes.

mod operations;

use super::{OPEN_ROUTES, ROUTES, Route};
use acpd_api::{ProblemDocument, ProblemKind};
use acpd_record::schema::{ShownEvent, definitions, generator};
use acpd_record::{SessionMeta, TerminationInfo};
use axum::routing::MethodFilter;
use http::Method;
use operations::{Body, NOT_JSON, Operation, UNKNOWN_PARAMETER};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Set by `cargo xtask openapi`: the files are to be written, not compared.
const RENEW: &str = "ACPD_RENEW_OPENAPI";

const EVENTS: &str = include_str!("../../../../../docs/schema/events.json");

/// The OpenAPI document.
fn document() -> Value {
    let mut generator = generator("/components/schemas");
    let mut paths = Map::new();
    for operation in operations::all() {
        let methods = paths.entry(operation.path).or_insert_with(|| json!({}));
        methods[operation.method.as_str().to_lowercase()] = described(operation, &mut generator);
    }
    let about = "Sessions of coding agents: create, list, look, follow, prompt, answer, end. Clients that want all \
                 of ACP speak it at `/acp`. A query parameter that an operation does not have is refused: 400 `invalid_request`. Every path under `/v1` is served under `/v2` too, which this document leaves out.";
    let license = env!("CARGO_PKG_LICENSE");
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "acpd", "description": about, "license": {"name": license, "identifier": license},
            "version": env!("CARGO_PKG_VERSION"),
        },
        "paths": paths,
        "components": {
            "schemas": definitions(&mut generator),
            // None is needed where acpd has no tokens.
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    })
}

fn described(operation: &Operation, generator: &mut SchemaGenerator) -> Value {
    let mut described = Map::new();
    described.insert("tags".into(), json!([operation.tag]));
    described.insert("summary".into(), operation.summary.into());
    if let Some(description) = operation.description {
        described.insert("description".into(), description.into());
    }
    described.insert("operationId".into(), operation.id.into());
    let parameters = (operation.parameters)();
    if !parameters.is_empty() {
        described.insert("parameters".into(), parameters.into());
    }
    if let Some(request) = operation.request {
        let schema = request();
        let is_required = schema["required"].is_array();
        let content = json!({"application/json": {"schema": schema}});
        described.insert("requestBody".into(), json!({"required": is_required, "content": content}));
    }
    let mut answers: Vec<_> = operation.answers.iter().collect();
    // By the checks in front of all of them.
    if answers.iter().all(|answer| answer.status != UNKNOWN_PARAMETER.status) {
        answers.push(&UNKNOWN_PARAMETER);
    }
    if operation.method == Method::POST && answers.iter().all(|answer| answer.status != NOT_JSON.status) {
        answers.push(&NOT_JSON);
    }
    answers.sort_by_key(|answer| answer.status);
    let responses = answers.into_iter().map(|answer| {
        let mut response = Map::new();
        let mut words = answer.description.to_owned();
        if answer.status == UNKNOWN_PARAMETER.status && words != UNKNOWN_PARAMETER.description {
            words = format!("{words}; or {}", UNKNOWN_PARAMETER.description);
        }
        response.insert("description".into(), words.into());
        let json = |schema: Schema| json!({"application/json": {"schema": schema}});
        let content = match answer.body {
            Body::Nothing => None,
            Body::Of(schema) => Some(json(schema(generator))),
            Body::PageOrStream(schema) => {
                let mut content = json(schema(generator));
                content["text/event-stream"] = json!({"schema": {"type": "string"}});
                Some(content)
            }
            Body::File => {
                let text = json!({"schema": {"type": "string"}});
                Some(json!({"application/x-ndjson": text, "text/markdown": text}))
            }
            Body::Problem => {
                let schema = generator.subschema_for::<ProblemDocument>();
                Some(json!({"application/problem+json": {"schema": schema}}))
            }
        };
        response.extend(content.map(|content| ("content".to_owned(), content)));
        (answer.status.to_string(), response.into())
    });
    described.insert("responses".into(), Value::Object(responses.collect()));
    if operation.is_open {
        described.insert("security".into(), json!([{}]));
    }
    described.into()
}

/// The schema of an event, with those of the records that the log and the index hold.
fn events() -> Value {
    let mut generator = generator("/$defs");
    let event = generator.subschema_for::<ShownEvent>();
    let _records = [generator.subschema_for::<SessionMeta>(), generator.subschema_for::<TerminationInfo>()];
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Event",
        "description": "An event of a session, as acpd sends it over REST.",
        "$ref": event.get("$ref"),
        "$defs": definitions(&mut generator),
    })
}

// contract 5: clients are generated from the files, so they are what the code says, and the daemon serves the document as it
// lies there
#[test]
fn the_files_are_what_the_code_says() {
    for (file, is, should) in [
        ("openapi.json", &*super::document::document().expect("it is packed"), document()),
        ("schema/events.json", EVENTS, events()),
    ] {
        let text = serde_json::to_string_pretty(&should).expect("it is JSON") + "\n";
        if std::env::var_os(RENEW).is_some() {
            let path = format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"));
            std::fs::write(path, &text).expect("the file can be written");
            continue;
        }
        let (mut lines, mut should) = (is.lines(), text.lines());
        let stale = (1..).find(|_| match (lines.next(), should.next()) {
            (None, None) => true,
            (is, should) => is != should,
        });
        assert!(is == text, "line {stale:?} of docs/{file} is stale; renew it: cargo xtask openapi");
    }
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

// contract 5: every route is described with its parameters, and nothing else; generated clients would lack it, or call what
// is not there
#[test]
fn the_routes_are_described() {
    let of = |routes: &[Route], is_open| {
        let routes = routes
            .iter()
            .map(|(method, path, takes, _)| format!("{method:?} /v1{path} {is_open} {:?}", takes()));
        routes.collect::<BTreeSet<_>>()
    };
    let described = operations::all().into_iter().map(|operation| {
        let method = MethodFilter::try_from(operation.method.clone()).expect("a method that is routed");
        let parameters = (operation.parameters)().into_iter().filter(|parameter| parameter["in"] == "query");
        let takes: Vec<_> =
            parameters.filter_map(|parameter| parameter["name"].as_str().map(str::to_owned)).collect();
        format!("{method:?} {} {} {takes:?}", operation.path, operation.is_open)
    });
    let routed = &of(&ROUTES, false) | &of(&OPEN_ROUTES, true);
    assert_eq!(described.collect::<BTreeSet<_>>(), routed);
    assert_eq!(operations(&document()).len(), routed.len());
}

// contract 5: generators refuse a document in which a response says nothing of itself (OpenAPI 3.1, Response Object)
#[test]
fn every_response_has_a_description() {
    let document = document();
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

// contract 1.3: a list that is closed is described as one
#[test]
fn closed_lists_are_enums() {
    let document = document();
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
    list("Scope", &["observe", "control", "admin"]);
    member("Whoami", "scope", "Scope");
    list("Sees", &["own", "all"]);
    member("Whoami", "sees", "Sees");
    list("AgentStatus", &["running", "stopped", "error"]);
    member("Agent", "status", "AgentStatus");
    list("SessionState", &["starting", "idle", "running", "waiting", "ended"]);
    member("Session", "state", "SessionState");
    list("Reason", &["completed", "error", "terminated"]);
    member("TerminationInfo", "reason", "Reason");
    list("TerminatedBy", &["agent", "daemon"]);
    member("TerminationInfo", "terminatedBy", "TerminatedBy");
    list("Cause", acpd_record::Cause::NAMES);
    member("TerminationInfo", "cause", "Cause");
    member("ProblemDocument", "type", "ProblemType");
    let urns: Vec<&str> = ProblemKind::ALL.iter().map(|kind| kind.urn()).collect();
    assert!(urns.contains(&"urn:sandbox-agent:error:session_not_found"), "{urns:?}");
    member("ProblemDocument", "terminationInfo", "TerminationInfo");
    list("ProblemType", &urns);
}
