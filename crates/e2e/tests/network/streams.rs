//! Streams of events: which carries what, how they are taken up again, who reads them.

use crate::raw::{JSON, Raw, answer, prompt, text, text_before};
use acpd_e2e::{Event, Events, Http, Scratch, request};
use serde_json::{Value, json};

fn id(event: &Event) -> (String, u64) {
    let id = event.id.as_ref().expect("every event has an id");
    let (tag, number) = id.rsplit_once('-').expect("ours have a number");
    (tag.to_owned(), number.parse().expect("a number"))
}

/// The last event of a stream that acpd closes, and why.
fn reason(events: &mut Events) -> String {
    let last = events.until("its end", |event| event.event.as_deref() == Some("closed"));
    assert_eq!((last.id.as_ref(), events.next_event()), (None, None), "it has no id, and is the last");
    last.json()["params"]["reason"].as_str().expect("a word").to_owned()
}

// HT-4, HT-5: a stream that is opened before the session is known gets it all; the answer to load comes behind its replay
#[test]
fn a_load_comes_behind_its_replay_on_the_sessions_stream() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut one, _connection, session) = Raw::with_session(&daemon, &scratch);
    let mut own = one.open(Some(&session));
    one.post(&prompt(10, &session, "stream 500 100"));
    answer(&mut own, 10);
    let mut two = Raw::new(&daemon);
    let mut elsewhere = two.open(None);
    let mut events = two.open(Some(&session));
    let load = two.load(&scratch, &session);
    let mut chunks = 0;
    loop {
        let event = events.next_data().expect("an answer comes");
        let (_, number) = id(&event);
        let message = event.json();
        if message["id"] == load {
            assert!(message["result"].is_object(), "{message}");
            break;
        }
        chunks += u64::from(text(&message).is_some());
        assert!(number > 0 && message["method"] == "session/update", "{message}");
    }
    assert_eq!(chunks, 500);
    two.post(&request(11, "session/list", &json!({})));
    let first = elsewhere.next_data().expect("an answer").json();
    assert_eq!(first["id"], 11, "nothing of the session came on the connection's stream");
    daemon.stop();
}

// HT-5: without a stream of the session both come on the connection's, in the same order
// quirk session-stream-missing (clients of the SDK for Python): the messages of the session come on the stream of the
// connection
#[test]
fn a_load_without_a_stream_comes_on_the_connections() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut one, mut connection, session) = Raw::with_session(&daemon, &scratch);
    // The client never opens it: what it asks for comes where it reads.
    one.post(&prompt(10, &session, "said without a stream"));
    assert_eq!(text_before(&mut connection, 10), "said without a stream");
    let mut two = Raw::new(&daemon);
    let mut events = two.open(None);
    let load = two.load(&scratch, &session);
    assert_eq!(text_before(&mut events, load), "said without a stream");
    // An error of a session that is not there comes there too.
    two.post(&prompt(12, "nowhere", "x"));
    assert_eq!(answer(&mut events, 12)["error"]["code"], -32002);
    daemon.stop();
}

// HT-4: one who opens a session's stream only later gets what was before, and nobody waited for that
// quirk session-stream-late (clients of the SDK for TypeScript): the messages of the session wait for its stream
#[test]
fn a_session_waits_for_its_stream_and_nothing_else_does() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut client, mut connection, session) = Raw::with_session(&daemon, &scratch);
    let quiet = client.open(Some(&session));
    quiet.close();
    client.post(&prompt(10, &session, "stream 2000 1000"));
    // Two MiB that nobody reads are in nobody's way.
    let other = client.new_session(&scratch, &mut connection);
    let mut events = client.open(Some(&other));
    client.post(&prompt(11, &other, "the other one"));
    assert_eq!(text_before(&mut events, 11), "the other one");
    let mut late = client.open(Some(&session));
    assert_eq!(text_before(&mut late, 10).len(), 2_000 * 1_000);
    daemon.stop();
}

// HT-6: a reader that comes back with its cursor gets exactly what is missing, again and again
#[test]
fn a_reader_comes_back_with_its_cursor() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut client, _connection, session) = Raw::with_session(&daemon, &scratch);
    let mut events = client.open(Some(&session));
    client.post(&prompt(10, &session, "stream 3000 200"));
    let (mut next, mut last, mut chunks, mut readers) = (1, None, 0, 1);
    loop {
        let Some(event) = events.next_data().filter(|event| event.event.is_none()) else {
            panic!("a stream that is read does not end")
        };
        let (_, number) = id(&event);
        assert_eq!(number, next, "no hole, and nothing twice");
        next += 1;
        last.clone_from(&event.id);
        let message = event.json();
        chunks += u64::from(text(&message).is_some());
        if message["id"] == 10 {
            break;
        }
        if number % 250 == 0 {
            readers += 1;
            // The one before is still open: it is taken over from.
            let more = client.try_open(Some(&session), last.as_deref()).expect("it is kept");
            std::mem::replace(&mut events, more).close();
        }
    }
    assert!(chunks == 3000 && readers > 10, "{chunks} chunks, {readers} readers");
    daemon.stop();
}

// HT-6: a cursor that cannot be taken up is refused, and nothing begins silently
#[test]
fn a_cursor_of_elsewhere_is_refused() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut client, _connection, session) = Raw::with_session(&daemon, &scratch);
    let mut events = client.open(Some(&session));
    client.post(&prompt(10, &session, "hello"));
    let first = events.next_data().expect("an event").id.expect("an id");
    let refused = |session: Option<&str>, last: &str| {
        let answer = client.try_open(session, Some(last)).expect_err("it is refused");
        (answer.status, answer.problem())
    };
    assert_eq!(refused(None, &first), (409, "cursor_of_another_stream".to_owned()));
    assert_eq!(refused(Some("unknown"), &first), (409, "cursor_of_another_stream".to_owned()));
    let future = format!("{}-999", first.split('-').next().expect("a tag"));
    assert_eq!(refused(Some(&session), &future), (409, "cursor_in_the_future".to_owned()));
    assert_eq!(refused(Some(&session), "garbage"), (400, "cursor_unreadable".to_owned()));
    // The reader that was there has not noticed any of that.
    answer(&mut events, 10);
    daemon.stop();
}

// HT-7, HT-8: a new reader replaces one that may be dead, and gets again what may have been lost with it
#[test]
fn a_new_reader_takes_over_from_a_dead_one() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut client, mut connection, session) = Raw::with_session(&daemon, &scratch);
    // It never reads: what it is given goes nowhere.
    let mut dead = client.open(Some(&session));
    client.post(&prompt(10, &session, "lost and found"));
    let seen: Value = loop {
        let status = client.next_id();
        client.post(&request(status, "session/list", &json!({})));
        let listed = answer(&mut connection, status);
        if listed["result"]["sessions"][0]["_meta"]["sandboxagent.dev"]["state"] == "idle" {
            break listed;
        }
    };
    assert!(seen["error"].is_null());
    let mut new = client.open(Some(&session));
    assert_eq!(text_before(&mut new, 10), "lost and found");
    assert_eq!(reason(&mut dead), "replaced");
    daemon.stop();
}

// SC-5: when the daemon ends, streams bring the end of the session, then say why they end
#[test]
fn streams_end_with_the_daemon() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut events, mut connection) = {
        let (client, connection, session) = Raw::with_session(&daemon, &scratch);
        (client.open(Some(&session)), connection)
    };
    daemon.signal(rustix::process::Signal::TERM);
    events.until("the end of the session", |event| {
        event.json()["method"] == "_sandboxagent/session/ended" && event.id.is_some()
    });
    assert_eq!(
        (reason(&mut events), reason(&mut connection)),
        ("shutdown".to_owned(), "shutdown".to_owned())
    );
    daemon.expect_good_end();
}

// contract 7.3: a reader of a session that is removed is told, behind all that there was of it
#[test]
fn readers_of_a_removed_session_are_told() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut left, connection, first) = Raw::with_session(&daemon, &scratch);
    let mut after_leaving = left.open(Some(&first));
    let close = left.next_id();
    left.post(&request(close, "session/close", &json!({"sessionId": first})));
    answer(&mut after_leaving, close);
    let (mut watching, also_connection, second) = Raw::with_session(&daemon, &scratch);
    let mut at_the_end = watching.open(Some(&second));
    watching.post(&prompt(10, &second, "said\nexit 3"));
    answer(&mut at_the_end, 10);
    let mut socket = daemon.over_websocket(&scratch, "/acp");
    socket.initialize();
    let third = socket.new_session();
    let crash = socket.prompt(&third, "exit 3");
    socket.error(&crash);
    let prune =
        || Http::on(daemon.connect()).request("POST", "/v1/prune", &[JSON], r#"{"olderThanMs":0}"#).json();
    assert_eq!(prune()["sessions"].as_array().map(Vec::len), Some(3));
    assert_eq!([reason(&mut after_leaving), reason(&mut at_the_end)], ["deleted", "deleted"]);
    let told = socket.until("that it is gone", |message| message.method() == Some("_sandboxagent/closed"));
    assert_eq!(told.json["params"]["sessionId"], *third);
    assert_eq!(told.json["params"]["reason"], "deleted");
    // The connections live on. A client that removes a session itself has its answer.
    let own = socket.new_session();
    socket.call("session/delete", &json!({"sessionId": own}));
    drop((connection, also_connection));
    socket.close_input();
    socket.read_to_end();
    let closed = socket.received().iter().filter(|message| message.method() == Some("_sandboxagent/closed"));
    assert_eq!(closed.count(), 1);
    daemon.stop();
}
