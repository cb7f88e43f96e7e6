//! The status codes of `/acp`, and who may use a connection.

use crate::raw::{JSON, Raw, answer, once, prompt, text_before};
use acpd_e2e::{Scratch, initialize, request};
use serde_json::json;

// HT-1: initialize is answered at once, with the connection's id; everything else is accepted, and answered on a stream
#[test]
fn initialize_is_answered_and_the_rest_is_accepted() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let answer_to = once(&daemon, "POST", &[JSON], &initialize().to_string());
    assert_eq!((answer_to.status, answer_to.header("content-type")), (200, Some("application/json")));
    assert_eq!(answer_to.json()["result"]["protocolVersion"], 1);
    let id = answer_to.header("acp-connection-id").expect("it is given");
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    let mut client = Raw::new(&daemon);
    assert_ne!(client.id, id, "each has its own");
    let mut events = client.open(None);
    assert_eq!(events.head.header("cache-control"), Some("no-cache"));
    // HT-9
    assert_eq!(events.head.header("x-accel-buffering"), Some("no"));
    client.post(&request(7, "session/list", &json!({})));
    assert_eq!(answer(&mut events, 7)["result"]["sessions"], json!([]));
    // An initialize that is refused gives no connection; the agent that is named is the connection's.
    let unknown = acpd_e2e::Http::on(daemon.connect()).request(
        "POST",
        "/acp?agent=nobody",
        &[JSON],
        &initialize().to_string(),
    );
    assert_eq!((unknown.status, unknown.header("acp-connection-id")), (200, None));
    assert_eq!(unknown.json()["error"]["code"], -32602);
    daemon.stop();
}

// HT-2
#[test]
fn what_is_wrong_with_a_request_is_its_status() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let client = Raw::new(&daemon);
    let known = ("Acp-Connection-Id", &*client.id);
    let body = request(9, "session/list", &json!({})).to_string();
    let unknown = ("Acp-Connection-Id", "0123456789abcdef0123456789abcdef");
    let stream = ("Accept", "text/event-stream");
    for (method, headers, body, status, problem) in [
        ("POST", vec![("Content-Type", "text/plain"), known], &*body, 415, "unsupported_media_type"),
        ("POST", vec![known], &body, 415, "unsupported_media_type"),
        ("POST", vec![JSON, known, ("Accept", "text/html")], &body, 406, "not_acceptable"),
        ("GET", vec![known, ("Accept", "application/json")], "", 406, "not_acceptable"),
        ("GET", vec![known], "", 406, "not_acceptable"),
        ("POST", vec![JSON], &body, 400, "connection_id_missing"),
        ("GET", vec![stream], "", 400, "connection_id_missing"),
        ("DELETE", vec![], "", 400, "connection_id_missing"),
        ("POST", vec![JSON, unknown], &body, 404, "connection_not_found"),
        ("GET", vec![stream, unknown], "", 404, "connection_not_found"),
        ("DELETE", vec![unknown], "", 404, "connection_not_found"),
        ("POST", vec![JSON, known, ("Acp-Session-Id", "no-such-session")], &body, 404, "session_not_found"),
        ("PUT", vec![JSON, known], &body, 405, "method_not_allowed"),
        ("PATCH", vec![JSON, known], &body, 405, "method_not_allowed"),
        ("GET", vec![known, stream, ("Last-Event-ID", "7")], "", 400, "cursor_unreadable"),
        ("GET", vec![known, ("Upgrade", "websocket")], "", 426, "websocket_version"),
    ] {
        let answer = once(&daemon, method, &headers, body);
        assert_eq!((answer.status, &*answer.problem()), (status, problem), "{method} {headers:?}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        if status == 405 {
            assert_eq!(answer.header("allow"), Some("GET, POST, DELETE"));
        }
    }
    daemon.stop();
}

// HT-2, FR-5: what is no message is refused with a message, and nothing of a batch is executed
#[test]
fn batches_and_garbage_are_refused_whole() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut client = Raw::new(&daemon);
    let id = client.id.clone();
    let headers = [JSON, ("Acp-Connection-Id", &*id)];
    let new = request(5, "session/new", &json!({"cwd": scratch.work(), "mcpServers": []}));
    for (body, code) in [
        (json!([new]).to_string(), -32600),
        ("[]".to_owned(), -32600),
        ("{\"jsonrpc\":".to_owned(), -32700),
        (String::new(), -32600),
        ("\"text\"".to_owned(), -32600),
    ] {
        let answer = once(&daemon, "POST", &headers, &body);
        assert_eq!((answer.status, answer.header("content-type")), (400, Some("application/json")), "{body}");
        let json = answer.json();
        assert_eq!((&json["id"], &json["error"]["code"]), (&json!(null), &json!(code)), "{body}");
    }
    let mut events = client.open(None);
    client.post(&request(6, "session/list", &json!({})));
    let first = events.next_data().expect("an answer").json();
    assert_eq!((&first["id"], &first["result"]["sessions"]), (&json!(6), &json!([])));
    daemon.stop();
}

// HT-3: the session in the header, in the params, or in both; FR-1: a body of many rows is one message
// quirk no-session-header (clients of the SDK for Python): the session is taken from the message itself
#[test]
fn a_session_is_named_in_the_header_or_the_params() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut client, _connection, session) = Raw::with_session(&daemon, &scratch);
    let mut events = client.open(Some(&session));
    let both = prompt(20, &session, "in both");
    let mut header_only = prompt(21, &session, "in the header");
    header_only["params"].as_object_mut().expect("an object").remove("sessionId");
    for (id, message, header, said) in [
        (20, both.clone(), Some(&*session), "in both"),
        (21, header_only.clone(), Some(&*session), "in the header"),
        (22, prompt(22, &session, "in the params"), None, "in the params"),
    ] {
        assert_eq!(client.try_post(&message, header).status, 202);
        assert_eq!(text_before(&mut events, id), said);
    }
    let mismatch = client.try_post(&both, Some("another"));
    assert_eq!((mismatch.status, &*mismatch.problem()), (400, "session_id"));
    let missing = client.try_post(&header_only, None);
    assert_eq!((missing.status, &*missing.problem()), (400, "session_id"));
    let rows = serde_json::to_string_pretty(&prompt(23, &session, "in rows")).expect("JSON");
    let id = client.id.clone();
    let answer = once(&daemon, "POST", &[JSON, ("Acp-Connection-Id", &*id)], &rows.replace('\n', "\r\n"));
    assert_eq!((answer.status, text_before(&mut events, 23)), (202, "in rows".to_owned()));
    daemon.stop();
}
