//! Clients that leave, and connections that are left behind. Sessions live on.

use crate::raw::{JSON, Raw, answer, once, prompt, text_before};
use acpd_e2e::{Http, Scratch, initialize, request, until};
use serde_json::json;

// HT-11, MC-2, PR-12: DELETE ends the connection and its streams; the session and its turn go on
#[test]
fn a_client_that_leaves_ends_no_session() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut one, mut connection, session) = Raw::with_session(&daemon, &scratch);
    let mut events = one.open(Some(&session));
    one.post(&prompt(10, &session, "ask edit Go on?"));
    events.until("the question", |event| event.json()["method"] == "session/request_permission");
    assert_eq!((one.delete(), one.delete()), (202, 404));
    let mut ended = 0;
    while let Some(event) = connection.next_data() {
        assert_eq!(event.json()["params"]["reason"], "deleted");
        ended += 1;
    }
    assert_eq!(ended, 1);
    let gone = one.try_post(&prompt(11, &session, "x"), None);
    assert_eq!((gone.status, &*gone.problem()), (404, "connection_not_found"));

    let mut two = Raw::new(&daemon);
    let _connection = two.open(None);
    let mut events = two.open(Some(&session));
    two.load(&scratch, &session);
    let asked = events.until("the question", |event| event.json()["method"] == "session/request_permission");
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}});
    two.post(&json!({"jsonrpc": "2.0", "id": asked.json()["id"], "result": outcome}));
    events.until("its effect", |event| {
        event.data.as_ref().is_some_and(|data| data.contains("permission selected allow-once"))
    });
    daemon.stop();
}

// HT-10: a connection that nobody reads expires, one that is read does not; the session stays
#[test]
fn a_connection_without_a_reader_expires() {
    let scratch = Scratch::new().timeout("connection_idle", "300ms");
    let mut daemon = scratch.serve();
    let (one, connection, session) = Raw::with_session(&daemon, &scratch);
    let mut read = Raw::new(&daemon);
    let mut events = read.open(None);
    connection.close();
    until("it expires", || is_unknown(&daemon, &one.id).then_some(()));
    assert!(!is_unknown(&daemon, &read.id), "this one is read");
    let load = read.load(&scratch, &session);
    assert!(answer(&mut events, load)["result"].is_object());
    daemon.stop();
}

/// Whether a connection is unknown, without being heard by it: a cursor that cannot be read is refused first.
fn is_unknown(daemon: &acpd_e2e::Daemon, id: &str) -> bool {
    let headers = [("Acp-Connection-Id", id), ("Accept", "text/event-stream"), ("Last-Event-ID", "garbage")];
    once(daemon, "GET", &headers, "").status == 404
}

// HT-12, SU-1: a client that does not wait for the answer to initialize leaves nothing behind, not even a dead keeper
#[test]
fn a_client_that_gives_up_initialize_leaves_nothing() {
    let scratch = Scratch::new().shell("silent", &["-c".to_owned(), "cat > /dev/null".to_owned()]);
    let mut daemon = scratch.serve();
    let mut http = Http::on(daemon.connect());
    http.send("POST", "/acp?agent=silent", &[JSON], &initialize().to_string());
    let runs = || !scratch.mark().running("cat > /dev/null").is_empty();
    until("the agent starts", || runs().then_some(()));
    drop(http);
    until("the agent goes with its client", || (!runs()).then_some(()));
    daemon.stop();
}

// MC-4: whoever only asks for the status is not attached, and hears nothing
#[test]
fn a_status_attaches_nobody() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut one, _connection, session) = Raw::with_session(&daemon, &scratch);
    let mut own = one.open(Some(&session));
    let mut two = Raw::new(&daemon);
    let mut elsewhere = two.open(None);
    let mut watching = two.open(Some(&session));
    two.post(&request(20, "session/status", &json!({"sessionId": session})));
    assert_eq!(answer(&mut watching, 20)["result"]["status"], "open");
    one.post(&prompt(10, &session, "only for one"));
    assert_eq!(text_before(&mut own, 10), "only for one");
    two.post(&prompt(21, &session, "not attached"));
    let first = watching.next_data().expect("an answer").json();
    assert_eq!((&first["id"], &first["error"]["code"]), (&json!(21), &json!(-32002)), "nothing came before");
    two.post(&request(22, "session/list", &json!({})));
    assert_eq!(elsewhere.next_data().expect("an answer").json()["id"], 22);
    daemon.stop();
}

// HT-11, HT-12: a client that reads nothing at all and asks for ever more can still leave, and holds nothing up
#[test]
fn a_client_that_reads_nothing_can_leave() {
    let scratch = Scratch::new().config("[limits]\nconnections = 2");
    let mut daemon = scratch.serve();
    let (mut one, mut connection, session) = Raw::with_session(&daemon, &scratch);
    let mut mute = Raw::new(&daemon);
    // More than a viewer that nobody reads takes, and then more than waits for the connection.
    let load = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
    let busy = (0..400).find_map(|_| {
        let id = mute.next_id();
        let answer = mute.try_post(&request(id, "session/load", &load), None);
        (answer.status != 202).then_some(answer)
    });
    let busy = busy.expect("it does not take all of them");
    assert_eq!((busy.status, &*busy.problem(), busy.header("retry-after")), (503, "busy", Some("1")));
    // Nobody else has noticed.
    one.post(&request(900, "session/status", &json!({"sessionId": session})));
    assert_eq!(answer(&mut connection, 900)["result"]["status"], "open");
    assert_eq!(mute.delete(), 202);
    let place = || once(&daemon, "POST", &[JSON], &initialize().to_string());
    until("its place is free again", || (place().status != 429).then_some(()));
    daemon.stop();
}

// SC-5: nor does it hold up the end of the daemon
#[test]
fn a_client_that_reads_nothing_does_not_hold_up_the_end() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (_one, _connection, session) = Raw::with_session(&daemon, &scratch);
    let mut mute = Raw::new(&daemon);
    for _ in 0..270 {
        mute.load(&scratch, &session);
    }
    daemon.stop();
}
