//! Requests that all operations refuse alike, by the document that is served.

use crate::door::{JSON, bearer, entry, plain};
use acpd_e2e::{Daemon, Http, Scratch};
use serde_json::{Value, json};

/// A method, a path with `session` in it, and what the document says of them; below each version.
fn operations(document: &Value, session: &str) -> Vec<(String, String, Value)> {
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("there are paths") {
        let path = path.replace("{id}", session).replace("{name}", "example");
        for (method, operation) in methods.as_object().expect("there are methods") {
            for path in [path.clone(), path.replacen("/v1/", "/v2/", 1)] {
                all.push((method.to_uppercase(), path, operation.clone()));
            }
        }
    }
    all
}

/// Creates a session: its id.
fn created(daemon: &Daemon, scratch: &Scratch, headers: &[(&str, &str)]) -> String {
    let body = json!({"cwd": scratch.work()}).to_string();
    let created = Http::on(daemon.connect()).request("POST", "/v1/sessions", headers, &body).json();
    created["sessionId"].as_str().expect("an id").to_owned()
}

// issue 28, RA8; contract 1.3: every operation, and ACP, refuses a query parameter that it does not have, says which it has, and
// does nothing
#[test]
fn no_operation_passes_over_an_unknown_parameter() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let id = created(&daemon, &scratch, &[JSON]);
    let document = plain(&daemon, "GET", "/openapi.json", &[]).json();
    let acp = ["GET", "POST", "DELETE"].map(|method| {
        let parameters = json!([{"in": "query", "name": "agent"}]);
        (method.into(), "/acp".into(), json!({"parameters": parameters, "responses": {"400": {}}}))
    });
    let all: Vec<_> = operations(&document, &id).into_iter().chain(acp).collect();
    assert!(all.len() > 60, "{}", all.len());
    for (method, path, operation) in all {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let names = parameters.filter(|parameter| parameter["in"] == "query");
        let names: Vec<&str> = names.filter_map(|parameter| parameter["name"].as_str()).collect();
        let takes = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let known: String = names.iter().map(|name| format!("{name}=1&")).collect();
        let answer = plain(&daemon, &method, &format!("{path}?{known}curs%6Fr2=1"), &[]);
        assert_eq!((answer.status, &*answer.problem()), (400, "invalid_request"), "{method} {path}");
        let expected = format!("unknown query parameter \"cursor2\"; this operation takes {takes}");
        assert_eq!(answer.json()["detail"], Value::from(expected), "{method} {path}");
        assert!(operation["responses"]["400"].is_object(), "{method} {path}: 400 is not described");
    }
    let session = plain(&daemon, "GET", &format!("/v1/sessions/{id}"), &[]).json();
    assert_eq!((&session["ended"], &session["state"]), (&json!(false), &json!("idle")), "{session}");
    // A value that is wrong is another kind.
    let answer = plain(&daemon, "GET", "/v1/sessions?limit=x", &[]);
    assert_eq!((answer.status, &*answer.problem()), (400, "bad_request"));
    daemon.stop();
}

// contract 1.7: no POST takes what a form of a page can send, with a body or without; one without a body needs no kind
#[test]
fn a_post_needs_a_kind_where_it_has_a_body() {
    let tokens = format!("{}\n{}", entry("a", "scope = \"admin\""), entry("o", "scope = \"observe\""));
    let scratch = Scratch::new().config(&tokens);
    let mut daemon = scratch.serve();
    let post = |token: &str, path: &str, kind: Option<&str>, body: &str| {
        let bearer = bearer(token);
        let kind = kind.map(|kind| ("Content-Type", kind));
        let headers: Vec<_> = kind.into_iter().chain([("Authorization", &*bearer)]).collect();
        Http::on(daemon.connect()).request("POST", path, &headers, body)
    };
    let bearer = bearer("a");
    let authorization = ("Authorization", &*bearer);
    let id = created(&daemon, &scratch, &[JSON, authorization]);
    let document = plain(&daemon, "GET", "/openapi.json", &[authorization]).json();
    let mut posts = operations(&document, &id);
    posts.retain(|(method, ..)| method == "POST");
    assert!(posts.len() > 30, "{}", posts.len());
    for (_, path, operation) in &posts {
        let kinds = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"];
        let forms = kinds.iter().flat_map(|kind| [(Some(*kind), "{}"), (Some(*kind), "")]);
        for (kind, body) in forms.chain([(None, "{}"), (None, " ")]) {
            let answer = post("a", path, kind, body);
            let told = (answer.status, &*answer.problem());
            assert_eq!(told, (415, "unsupported_media_type"), "{path} {kind:?} {body}");
        }
        assert!(operation["responses"]["415"].is_object(), "{path}: 415 is not described");
    }
    let session = plain(&daemon, "GET", &format!("/v1/sessions/{id}"), &[authorization]).json();
    assert_eq!((&session["ended"], &session["state"]), (&json!(false), &json!("idle")), "{session}");
    for (_, path, operation) in &posts {
        // The daemon is not to go on as another process.
        let token = if path.ends_with("/handover") { "o" } else { "a" };
        for kind in [None, Some("application/json")] {
            let answer = post(token, path, kind, "");
            if operation["requestBody"]["required"] == true {
                assert_eq!((answer.status, &*answer.problem()), (400, "bad_request"), "{path} {kind:?}");
                assert_eq!(answer.json()["detail"], "the body: an object is required", "{path} {kind:?}");
            } else {
                assert_ne!(answer.status, 415, "{path} {kind:?}");
            }
        }
    }
    for (path, status) in [
        ("/v1/sessions/never/close", 404),
        ("/v1/sessions/never/resume", 404),
        // Nothing says what is to be kept.
        ("/v1/prune", 409),
        ("/v1/reload", 200),
    ] {
        assert_eq!(post("a", path, None, "").status, status, "{path}");
        assert_eq!(post("a", path, Some("application/json"), "").status, status, "{path}");
    }
    daemon.stop();
}
