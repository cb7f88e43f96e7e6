//! What REST shows of sessions and their events, and what it says when it is asked wrongly.

use crate::door::{client, plain};
use acpd_e2e::{Answer, Client, Daemon, Event, Http, Scratch};
use serde_json::{Value, json};

/// The sessions of a list, and the cursor of the next page.
fn list(daemon: &Daemon, query: &str) -> (Vec<String>, Option<String>) {
    let answer = plain(daemon, "GET", &format!("/v1/sessions?{query}"), &[]);
    assert_eq!(answer.status, 200, "{query}: {}", answer.json());
    let page = answer.json();
    let ids = page["sessions"].as_array().expect("a list").iter();
    let ids = ids.map(|session| session["sessionId"].as_str().expect("an id").to_owned()).collect();
    (ids, page["nextCursor"].as_str().map(str::to_owned))
}

fn bad(daemon: &Daemon, path: &str, field: &str) {
    let answer = plain(daemon, "GET", path, &[]);
    assert_eq!((answer.status, &*answer.problem()), (400, "bad_request"), "{path}");
    assert!(answer.json()["detail"].as_str().expect("words").contains(field), "{path}: {}", answer.json());
}

fn session_in(client: &mut Client, cwd: &str) -> String {
    let result = client.call("session/new", &json!({"cwd": cwd, "mcpServers": []}));
    result["sessionId"].as_str().expect("an id").to_owned()
}

// contract 7.3: a list has the records of ends without `stderr`, the session by itself has its own with
#[test]
fn a_list_has_no_stderr() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut client = daemon.over_websocket(&scratch, "/acp");
    client.initialize();
    let session = session_in(&mut client, &scratch.work().to_string_lossy());
    let crash = client.prompt(&session, "stderr 200\nexit 3");
    let error = client.error(&crash);
    let told = &error["data"]["terminationInfo"];
    assert_eq!(told["stderr"]["totalLines"], 200, "{told}");
    let list = plain(&daemon, "GET", "/v1/sessions", &[]).json();
    let mut shorter = told.as_object().expect("a record").clone();
    assert!(shorter.remove("stderr").is_some());
    assert_eq!(list["sessions"][0]["terminationInfo"], Value::Object(shorter));
    let shown = plain(&daemon, "GET", &format!("/v1/sessions/{session}"), &[]).json();
    assert_eq!(shown["terminationInfo"], *told);
    daemon.stop();
}

// contract 1.3, SE-12: filters, alone and together; what is wrong with a query is told by its name
#[test]
fn lists_are_filtered() {
    let scratch = Scratch::new().example("second", &[]);
    let mut daemon = scratch.serve();
    let (work, other) = (scratch.work(), scratch.path("other & more"));
    std::fs::create_dir(&other).expect("a directory");
    let [work, other] = [work, other].map(|path| path.to_string_lossy().into_owned());
    let mut first = daemon.over_websocket(&scratch, "/acp");
    first.initialize();
    let mut second = daemon.over_websocket(&scratch, "/acp?agent=second");
    second.initialize();
    let a = session_in(&mut first, &work);
    let b = session_in(&mut first, &other);
    let c = session_in(&mut second, &work);
    first.call("session/close", &json!({"sessionId": b}));
    let in_other = other.replace(' ', "%20").replace('&', "%26");
    for (query, expected) in [
        (String::new(), vec![&b, &c, &a]),
        ("agent=example".to_owned(), vec![&b, &a]),
        ("agent=second".to_owned(), vec![&c]),
        ("agent=nobody".to_owned(), vec![]),
        (format!("cwd={work}"), vec![&c, &a]),
        (format!("cwd={in_other}"), vec![&b]),
        ("ended=true".to_owned(), vec![&b]),
        ("ended=false".to_owned(), vec![&c, &a]),
        (format!("ended=false&agent=example&cwd={work}"), vec![&a]),
        (format!("ended=true&agent=example&cwd={work}"), vec![]),
    ] {
        let (listed, next) = list(&daemon, &query);
        assert_eq!((listed.iter().collect::<Vec<_>>(), next), (expected, None), "{query}");
        let both = ["/v1", "/v2"].map(|v| plain(&daemon, "GET", &format!("{v}/sessions?{query}"), &[]).body);
        assert_eq!(both[0], both[1]);
    }
    let (_, cursor) = list(&daemon, "agent=example&limit=1");
    let cursor = cursor.expect("there is another");
    for (query, field) in [
        (format!("cursor={cursor}"), "cursor"),
        (format!("agent=second&cursor={cursor}"), "cursor"),
        (format!("agent=example&ended=true&cursor={cursor}"), "cursor"),
        (format!("agent=example&cwd={work}&cursor={cursor}"), "cursor"),
        ("cursor=zz".to_owned(), "cursor"),
        ("cursor=".to_owned(), "cursor"),
        ("limit=0".to_owned(), "limit"),
        ("limit=501".to_owned(), "limit"),
        ("limit=-1".to_owned(), "limit"),
        ("limit=x".to_owned(), "limit"),
        ("limit=1&limit=2".to_owned(), "limit"),
        ("ended=maybe".to_owned(), "ended"),
        ("cwd=relative".to_owned(), "cwd"),
    ] {
        bad(&daemon, &format!("/v1/sessions?{query}"), field);
    }
    assert_eq!(list(&daemon, &format!("agent=example&limit=500&cursor={cursor}")).0, [a]);
    daemon.stop();
}

// contract 1.3, SE-12: pages show each session once, whatever happens between them
#[test]
fn pages_are_stable_under_changes() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut client = daemon.over_websocket(&scratch, "/acp");
    client.initialize();
    let mut sessions: Vec<_> = (0..5).map(|_| client.new_session()).collect();
    sessions.reverse();
    let (mut seen, mut cursor) = list(&daemon, "limit=2");
    assert_eq!(client.turn(&seen[0], "this one changes"), "end_turn");
    client.call("session/close", &json!({"sessionId": seen[1]}));
    client.new_session();
    while let Some(next) = cursor {
        let page = list(&daemon, &format!("limit=2&cursor={next}"));
        assert!((1..=2).contains(&page.0.len()), "{page:?}");
        seen.extend(page.0);
        cursor = page.1;
    }
    assert_eq!(seen, sessions);
    daemon.stop();
}

// contract 1.3, contract 1.2, contract 1.5: one session, with what a late viewer needs, and how it ended
#[test]
fn a_session_is_shown_with_its_state_and_its_end() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut client = daemon.over_websocket(&scratch, "/acp");
    client.initialize();
    let session = client.new_session();
    assert_eq!(client.turn(&session, "title A title\ncommands one,two\nplan x,y"), "end_turn");
    let path = format!("/v1/sessions/{session}");
    let shown = plain(&daemon, "GET", &path, &[]).json();
    for (member, expected) in [
        ("sessionId", json!(session)),
        ("agent", json!("example")),
        ("cwd", json!(scratch.work())),
        ("title", json!("A title")),
        ("ended", json!(false)),
        ("state", json!("idle")),
    ] {
        assert_eq!(shown[member], expected, "{shown}");
    }
    assert!(shown.get("terminationInfo").is_none() && shown["metadata"].is_object(), "{shown}");
    let snapshot = shown["snapshot"].to_string();
    assert!(
        snapshot.contains("\"one\"") && snapshot.contains("\"two\"") && snapshot.contains("\"y\""),
        "{snapshot}"
    );
    let asked = client.prompt(&session, "crash");
    client.error(&asked);
    for version in ["/v1", "/v2"] {
        let shown = plain(&daemon, "GET", &format!("{version}/sessions/{session}"), &[]).json();
        let listed = plain(&daemon, "GET", &format!("{version}/sessions"), &[]).json()["sessions"][0].clone();
        for (entry, lines) in [(shown, json!(250)), (listed, Value::Null)] {
            assert_eq!((&entry["ended"], &entry["state"]), (&json!(true), &json!("ended")), "{entry}");
            let info = &entry["terminationInfo"];
            let facts =
                (&info["reason"], &info["terminatedBy"], &info["exitCode"], &info["stderr"]["totalLines"]);
            assert_eq!(facts, (&json!("error"), &json!("agent"), &json!(1), &lines), "{info}");
            assert_eq!((&info["turnActive"], info.get("signal")), (&json!(true), None));
        }
    }
    daemon.stop();
}

/// All events of a stream to its end: id, kind and data.
fn read(daemon: &Daemon, path: &str, last: Option<&str>) -> Vec<(u64, String, Value)> {
    let headers: Vec<_> = last.map(|last| ("Last-Event-ID", last)).into_iter().collect();
    let mut events = match Http::on(daemon.connect()).events(path, &headers) {
        Err(nothing) if nothing.status == 204 => return Vec::new(),
        events => events.expect("a stream"),
    };
    for (name, value) in
        [("cache-control", "no-cache"), ("x-accel-buffering", "no"), ("content-type", "text/event-stream")]
    {
        assert_eq!(events.head.header(name), Some(value));
    }
    let entry = |event: Event| {
        let id = event.id.as_ref().expect("an id").parse().expect("a number");
        (id, event.event.clone().expect("a kind"), event.json())
    };
    std::iter::from_fn(|| events.next_data()).map(entry).collect()
}

/// A session that has ended after a few events.
fn ended(daemon: &Daemon, scratch: &Scratch) -> (String, Vec<(u64, String, Value)>) {
    let mut client = daemon.over_websocket(scratch, "/acp");
    client.initialize();
    let session = client.new_session();
    assert_eq!(client.turn(&session, "one two three\ntool x\nplan a,b"), "end_turn");
    client.call("session/close", &json!({"sessionId": session}));
    let all = read(daemon, &format!("/v1/sessions/{session}/events"), None);
    (session, all)
}

// contract 1.6: ids from 1 without holes; streams and pages show the same, from any place, also after a crash
#[test]
fn events_go_on_from_any_place() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (session, all) = ended(&daemon, &scratch);
    let last = all.len() as u64;
    assert!(all.iter().map(|(id, ..)| *id).eq(1..=last) && last > 8, "{all:?}");
    for (id, kind, data) in &all {
        assert_eq!((&data["seq"], &data["kind"]), (&json!(id), &json!(kind)));
        assert_eq!(data["at"].as_str().expect("a time").len(), "2026-01-01T00:00:00.000Z".len());
        if kind == "update" {
            assert_eq!(data["message"]["params"]["sessionId"], *session, "the raw message: {data}");
        }
    }
    let kinds: Vec<_> = all.iter().map(|(_, kind, _)| kind.as_str()).collect();
    for kind in ["prompt", "update", "turn_ended"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    assert_eq!(kinds.last(), Some(&"ended"));
    assert_eq!(all[all.len() - 1].2["terminationInfo"]["reason"], "completed");
    for killed in [false, true] {
        if killed {
            daemon.kill();
            daemon = scratch.serve();
        }
        let path = format!("/v1/sessions/{session}/events");
        for seen in [0, 1, last / 2, last - 1, last] {
            let rest = &all[usize::try_from(seen).expect("it is small")..];
            let number = seen.to_string();
            assert_eq!(read(&daemon, &path, Some(&number)), rest);
            assert_eq!(read(&daemon, &format!("{path}?after={seen}"), None), rest);
            assert_eq!(read(&daemon, &format!("{path}?after=0").replace("/v1", "/v2"), Some(&number)), rest);
            let page = plain(&daemon, "GET", &format!("{path}?after={seen}&limit=1000"), &[]).json();
            let data: Vec<_> = rest.iter().map(|(_, _, data)| data.clone()).collect();
            assert_eq!(page, json!({"events": data}));
        }
        for limit in [1, 2, 3, last - 1, last] {
            let (mut seen, mut place) = (Vec::new(), "0".to_owned());
            loop {
                let page = plain(&daemon, "GET", &format!("{path}?limit={limit}&after={place}"), &[]).json();
                let events = page["events"].as_array().expect("a list").clone();
                assert!(!events.is_empty() && events.len() as u64 <= limit);
                seen.extend(events);
                let Some(next) = page["nextCursor"].as_str() else { break };
                next.clone_into(&mut place);
            }
            assert!(seen.iter().eq(all.iter().map(|(_, _, data)| data)), "limit {limit}");
        }
    }
    daemon.stop();
}

// contract 1.6: a cursor that cannot be followed is an error with a type of its own, never a stream from elsewhere
#[test]
fn wrong_cursors_are_told_apart() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (session, all) = ended(&daemon, &scratch);
    let (other, _) = ended(&daemon, &scratch);
    let path = format!("/v1/sessions/{session}/events");
    let future = (all.len() + 1).to_string();
    let foreign = format!("1@{other}");
    for (cursor, status, problem) in [
        ("x", 400, "cursor_unreadable"),
        ("-1", 400, "cursor_unreadable"),
        ("1.5", 400, "cursor_unreadable"),
        ("18446744073709551616", 400, "cursor_unreadable"),
        (&*future, 409, "cursor_in_the_future"),
        ("18446744073709551615", 409, "cursor_in_the_future"),
        (&*foreign, 409, "cursor_of_another_session"),
    ] {
        let stream = |path: &str, headers: &[(&str, &str)]| -> Answer {
            Http::on(daemon.connect()).events(path, headers).expect_err("the cursor is wrong")
        };
        for answer in [
            stream(&path, &[("Last-Event-ID", cursor)]),
            stream(&format!("{path}?after={cursor}"), &[]),
            plain(&daemon, "GET", &path, &[("Last-Event-ID", cursor)]),
            plain(&daemon, "GET", &format!("{path}?after={cursor}"), &[]),
        ] {
            assert_eq!((answer.status, &*answer.problem()), (status, problem), "{cursor}");
            assert_eq!(answer.json()["sessionId"], *session);
        }
    }
    bad(&daemon, &format!("{path}?limit=0"), "limit");
    bad(&daemon, &format!("{path}?limit=1001"), "limit");
    bad(&daemon, &format!("{path}?after=1&after=2"), "after");
    let unknown = Http::on(daemon.connect()).events("/v1/sessions/never/events", &[]).expect_err("unknown");
    assert_eq!((unknown.status, &*unknown.problem()), (404, "session_not_found"));
    assert_eq!(unknown.json()["sessionId"], "never");
    daemon.stop();
}

// contract 1.6: an EventSource that has all events of a session that has ended is told not to come again
#[test]
fn an_event_source_is_told_when_there_is_nothing_more() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let json = ("Content-Type", "application/json");
    let post = |path: &str, body: &str| Http::on(daemon.connect()).request("POST", path, &[json], body);
    let body = serde_json::json!({"agent": "example", "cwd": scratch.work()}).to_string();
    let begun = post("/v1/sessions", &body);
    let path = format!("/v1/sessions/{}", begun.json()["sessionId"].as_str().expect("an id"));
    let last = || {
        let info = Http::on(daemon.connect()).request("GET", &path, &[], "").json();
        info["eventCount"].as_u64().expect("a number")
    };
    // Its answer is all that is read: a stream of a live session does not end.
    let asks = |query: &str, last: Option<u64>| {
        let http = Http::on(daemon.connect());
        let last = last.map(|last| last.to_string());
        let headers: Vec<_> = last.as_deref().map(|last| ("Last-Event-ID", last)).into_iter().collect();
        http.events(&format!("{path}/events{query}"), &headers)
            .map(|_| 200)
            .unwrap_or_else(|answer| answer.status)
    };
    assert_eq!(asks("", Some(last())), 200, "it is live");
    assert_eq!(post(&format!("{path}/close"), "").status, 204);
    let end = last();
    assert_eq!(asks("", Some(end - 1)), 200, "there is one more");
    assert_eq!((asks("", None), asks("?after=0", None)), (200, 200));
    assert_eq!((asks("", Some(end)), asks(&format!("?after={end}"), None)), (204, 204));
    assert_eq!(
        Http::on(daemon.connect()).request("GET", &format!("{path}/events?after={end}"), &[], "").status,
        200
    );
    // It goes on, and so do its events.
    assert_eq!(post(&format!("{path}/resume"), "").status, 200);
    assert_eq!(asks("", Some(end)), 200);
    daemon.stop();
}

// contract 1.3: errors are problem documents, whatever is wrong: path, method, id
#[test]
fn every_error_is_a_problem_document() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let allow = |answer: &Answer| answer.header("allow").map(|allow| allow.replace(' ', ""));
    for (method, path, status, problem, allowed) in [
        ("GET", "/v1/nothing", 404, "not_found", None),
        ("GET", "/v1/sessions/", 404, "not_found", None),
        ("GET", "/v3/sessions", 404, "not_found", None),
        ("GET", "/v1/sessions/never", 404, "session_not_found", None),
        ("DELETE", "/v1/sessions/never", 404, "session_not_found", None),
        ("POST", "/v1/sessions/never/close", 404, "session_not_found", None),
        ("POST", "/v1/sessions/never/terminate", 404, "session_not_found", None),
        ("POST", "/v1/sessions", 400, "bad_request", None),
        ("DELETE", "/v2/sessions", 405, "method_not_allowed", Some("GET,HEAD,POST")),
        ("PUT", "/v1/sessions/never", 405, "method_not_allowed", Some("GET,HEAD,DELETE")),
        ("GET", "/v1/sessions/never/close", 405, "method_not_allowed", Some("POST")),
        ("GET", "/v1/sessions/never/terminate", 405, "method_not_allowed", Some("POST")),
        ("POST", "/v1/sessions/never/events", 405, "method_not_allowed", Some("GET,HEAD")),
        ("GET", "/v1/sessions/never/fork", 405, "method_not_allowed", Some("POST")),
        ("POST", "/v1/sessions/never/resume", 404, "session_not_found", None),
        ("POST", "/v1/agents/never/check", 404, "agent_not_found", None),
        ("POST", "/v1/agents/%FF/check", 404, "agent_not_found", None),
        ("POST", "/v1/agents", 405, "method_not_allowed", Some("GET,HEAD")),
        ("POST", "/v1/health", 405, "method_not_allowed", Some("GET,HEAD")),
        ("DELETE", "/v2/ready", 405, "method_not_allowed", Some("GET,HEAD")),
        ("POST", "/metrics", 405, "method_not_allowed", Some("GET,HEAD")),
        ("POST", "/openapi.json", 405, "method_not_allowed", Some("GET,HEAD")),
        ("PATCH", "/acp", 405, "method_not_allowed", Some("GET,POST,DELETE")),
        ("GET", "/v1/sessions/%FF", 404, "session_not_found", None),
        ("GET", "/v1/sessions/%00", 404, "session_not_found", None),
        ("POST", "/v1/sessions/%FF/close", 404, "session_not_found", None),
        ("GET", "/v1/sessions/%FF/events", 404, "session_not_found", None),
    ] {
        let answer = plain(&daemon, method, path, &[]);
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (status, Some("application/problem+json")),
            "{method} {path}"
        );
        assert_eq!((&*answer.problem(), allow(&answer).as_deref()), (problem, allowed), "{method} {path}");
        let document = answer.json();
        assert_eq!(document["status"], status);
        assert!(document["title"].is_string() && document["detail"].is_string(), "{document}");
    }
    daemon.stop();
}

// contract 1.6, UP-4: a stream goes on while the session does, for who sees all and for who made it
#[test]
fn a_stream_follows_a_live_session() {
    let entry = crate::door::entry("own", "scope = \"control\"");
    let scratch = Scratch::new().config(&entry);
    let mut daemon = scratch.serve();
    let mut owner = client(&daemon, &scratch, "own");
    let session = owner.new_session();
    let path = format!("/v1/sessions/{session}/events");
    let mut events = crate::door::stream(&daemon, "own", &path).expect("a stream");
    assert!(events.next_event().expect("it is there").comment.is_some(), "before anything happens");
    for turn in ["first", "second"] {
        assert_eq!(owner.turn(&session, turn), "end_turn");
        events.until(turn, |event| {
            event.event.as_deref() == Some("prompt") && event.json().to_string().contains(turn)
        });
        events.until("the end of the turn", |event| event.event.as_deref() == Some("turn_ended"));
    }
    owner.call("session/close", &json!({"sessionId": session}));
    events.until("the end", |event| event.event.as_deref() == Some("ended"));
    assert_eq!(events.next_event(), None);
    daemon.stop();
}
