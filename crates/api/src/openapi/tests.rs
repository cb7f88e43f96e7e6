//! The files in `docs`, and what generators need of them.

use super::{document, event_schema};
use crate::operations::Op;
use crate::problem::ProblemKind;
use serde_json::Value;
use std::collections::BTreeSet;

/// Set by `cargo xtask openapi`: the files are to be written, not compared.
const RENEW: &str = "ACPD_RENEW_OPENAPI";

// contract 5: clients are generated from the files, so they are what the code says
#[test]
fn the_files_are_what_the_code_says() {
    for (file, should) in [("openapi.json", document()), ("schema/events.json", event_schema())] {
        let path = format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = serde_json::to_string_pretty(&should).expect("it is JSON") + "\n";
        if std::env::var_os(RENEW).is_some() {
            std::fs::write(&path, &text).expect("the file can be written");
            continue;
        }
        let is = std::fs::read_to_string(&path).expect("the file can be read");
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

// issue 30: the parameters that are described are those that a query is checked against
#[test]
fn the_described_parameters_are_those_that_are_read() {
    let document = document();
    for op in Op::ALL {
        let (path, verb) = (format!("/v1{}", op.spec().path), op.spec().verb.as_str().to_lowercase());
        let described = document["paths"][&path][&verb]["parameters"].as_array().into_iter().flatten();
        let in_query = described.filter(|parameter| parameter["in"] == "query");
        let names: BTreeSet<&str> = in_query.filter_map(|parameter| parameter["name"].as_str()).collect();
        assert_eq!(names, op.query().iter().copied().collect(), "{op:?}");
    }
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
