//! `POST /v1/prune`, `keep_for` and `keep_bytes`: what goes, what stays, and who learns of it.

use crate::door::{JSON, ask, bearer, client, entry, plain};
use acpd_e2e::{Answer, Daemon, Http, Scratch, until};
use rustix::process::Signal;
use serde_json::{Value, json};

fn prune(daemon: &Daemon, body: &Value) -> Answer {
    Http::on(daemon.connect()).request("POST", "/v1/prune", &[JSON], &body.to_string())
}

fn pruned(daemon: &Daemon, body: &Value) -> Vec<Value> {
    let answer = prune(daemon, body);
    assert_eq!(answer.status, 200, "{body}: {}", answer.json());
    answer.json()["sessions"].as_array().expect("a list").clone()
}

fn ids(sessions: &[Value]) -> Vec<String> {
    sessions.iter().map(|session| session["sessionId"].as_str().expect("an id").to_owned()).collect()
}

fn all(daemon: &Daemon) -> Vec<String> {
    let list = plain(daemon, "GET", "/v1/sessions?limit=500", &[]).json();
    ids(list["sessions"].as_array().expect("a list"))
}

fn status(daemon: &Daemon, session: &str) -> u16 {
    plain(daemon, "GET", &format!("/v1/sessions/{session}"), &[]).status
}

/// A session that has said something; its agent lives.
fn begun(daemon: &Daemon, scratch: &Scratch, prompt: &str) -> String {
    let body = json!({"cwd": scratch.work(), "prompt": prompt, "closeAfterTurn": true}).to_string();
    let answer = Http::on(daemon.connect()).request("POST", "/v1/sessions", &[JSON], &body);
    assert_eq!(answer.status, 201, "{}", answer.json());
    answer.json()["sessionId"].as_str().expect("an id").to_owned()
}

/// The same once it has ended.
fn ended(daemon: &Daemon, scratch: &Scratch, prompt: &str) -> String {
    let session = begun(daemon, scratch, prompt);
    let path = format!("/v1/sessions/{session}");
    until("its end", || (plain(daemon, "GET", &path, &[]).json()["ended"] == true).then_some(()));
    session
}

/// Text that no packing makes much shorter.
fn noise(bytes: usize) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + (state >> 32) as u8 % 90)
    };
    (0..bytes).map(|_| next()).filter(|c| !matches!(c, '"' | '\\')).collect()
}

// contract 7.1, contract 7.3: the oldest go, a dry run removes nothing, what is live stays, and what is gone is unknown
#[test]
fn old_sessions_are_removed_over_rest() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let [first, second, third] = ["one", "two", "three"].map(|text| ended(&daemon, &scratch, text));
    let live = begun(&daemon, &scratch, "ask edit");
    let every = pruned(&daemon, &json!({"olderThanMs": 0, "dryRun": true}));
    assert_eq!(ids(&every), [&*first, &second, &third]);
    let sizes: Vec<u64> = every.iter().map(|session| session["bytes"].as_u64().expect("bytes")).collect();
    assert!(sizes.iter().all(|bytes| *bytes > 100), "{sizes:?}");
    assert_eq!(all(&daemon).len(), 4, "nothing was removed");
    assert!(pruned(&daemon, &json!({"olderThanMs": 3_600_000})).is_empty());
    assert!(pruned(&daemon, &json!({"keepBytes": 1 << 30})).is_empty());
    let mut owner = daemon.over_websocket(&scratch, "/acp");
    owner.initialize();
    assert_eq!(ids(&pruned(&daemon, &json!({"olderThanMs": 0}))), [&*first, &second, &third]);
    assert_eq!(all(&daemon), [&*live]);
    assert_eq!([&first, &second, &third].map(|session| status(&daemon, session)), [404, 404, 404]);
    let params = json!({"sessionId": first, "cwd": scratch.work(), "mcpServers": []});
    assert_eq!(owner.refused("session/load", &params)["code"], -32002);
    // Each is counted and told.
    let metrics = plain(&daemon, "GET", "/metrics", &[]).body;
    let metrics = String::from_utf8_lossy(&metrics).into_owned();
    assert!(metrics.contains("\nacpd_sessions_pruned_total 3\n"), "{metrics}");
    assert_eq!(plain(&daemon, "DELETE", &format!("/v1/sessions/{live}"), &[]).status, 204);
    owner.close_input();
    owner.read_to_end();
    let stderr = daemon.stop();
    assert!(stderr.contains("old sessions removed") && stderr.contains(&*second), "{stderr}");
}

// contract 7.2: the oldest ended ones go while all together take more
#[test]
fn the_oldest_make_room() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let text = noise(300_000);
    let sessions: Vec<String> = (0..4).map(|_| ended(&daemon, &scratch, &text)).collect();
    let every = pruned(&daemon, &json!({"keepBytes": 0, "dryRun": true}));
    assert_eq!(ids(&every), sessions);
    let bytes: Vec<u64> = every.iter().map(|session| session["bytes"].as_u64().expect("bytes")).collect();
    let taken: u64 = bytes.iter().sum();
    assert!(taken > 4 * 300_000, "{taken}");
    assert_eq!(ids(&pruned(&daemon, &json!({"keepBytes": taken - 1}))), sessions[..1]);
    // They are not of one size, which is that of what was said and of how it came in pieces; and a busy machine indexes late.
    let half = json!({"keepBytes": bytes[2] + bytes[3] + 100_000});
    assert_eq!(ids(&pruned(&daemon, &half)), sessions[1..2]);
    assert!(pruned(&daemon, &half).is_empty());
    daemon.stop();
}

// contract 7.3: bad input names the field and the fix, and removes nothing; only an admin may
#[test]
fn what_is_asked_wrongly_removes_nothing() {
    let tokens = [entry("admin", "scope = \"admin\""), entry("user", "scope = \"control\"")];
    let scratch = Scratch::new().config(&tokens.join("\n"));
    let mut daemon = scratch.serve();
    let mut user = client(&daemon, &scratch, "user");
    let session = user.new_session();
    user.call("session/close", &json!({"sessionId": session}));
    let asked = |token: &str, body: &str| {
        let headers = [JSON, ("Authorization", &*bearer(token))];
        Http::on(daemon.connect()).request("POST", "/v1/prune", &headers, body)
    };
    for (body, status, words) in [
        ("", 409, "keep_for or keep_bytes"),
        ("{}", 409, "olderThanMs or keepBytes"),
        (r#"{"dryRun":true}"#, 409, "all sessions are kept"),
        (r#"{"olderThan":"30d"}"#, 400, "olderThan"),
        (r#"{"olderThanMs":-1}"#, 400, "olderThanMs"),
        (r#"{"olderThanMs":"30d"}"#, 400, "olderThanMs"),
        (r#"{"keepBytes":1.5}"#, 400, "keepBytes"),
        (r#"{"olderThanMs":0,"dryRun":1}"#, 400, "dryRun"),
        ("[0]", 400, "an object is required"),
    ] {
        let answer = asked("admin", body);
        assert_eq!(answer.status, status, "{body}: {}", answer.json());
        assert!(answer.json()["detail"].as_str().expect("words").contains(words), "{}", answer.json());
    }
    assert_eq!(asked("user", r#"{"olderThanMs":0}"#).problem(), "forbidden");
    let path = format!("/v1/sessions/{session}");
    assert_eq!(ask(&daemon, "admin", "GET", &path).status, 200);
    assert_eq!(
        ids(asked("admin", r#"{"olderThanMs":0}"#).json()["sessions"].as_array().expect("a list")),
        [&*session]
    );
    assert_eq!(ask(&daemon, "admin", "GET", &path).status, 404);
    user.close_input();
    user.read_to_end();
    daemon.stop();
}

// contract 7.2: a daemon removes them by itself, at its start and when a reload says so
#[test]
fn a_daemon_goes_by_its_configuration() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let gone = ended(&daemon, &scratch, "gone");
    let config = std::fs::read_to_string(scratch.path("config.toml")).expect("a file");
    let keep = |keys: &str| {
        std::fs::write(scratch.path("config.toml"), format!("{config}\n[storage]\n{keys}\n"))
            .expect("written");
    };
    keep("keep_for = \"1h\"");
    daemon.signal(Signal::HUP);
    keep("keep_for = \"1ms\"");
    daemon.signal(Signal::HUP);
    until("it is removed", || (status(&daemon, &gone) == 404).then_some(()));
    // Pruning on request uses the same.
    assert_eq!(prune(&daemon, &json!({})).json(), json!({"sessions": []}));
    daemon.stop();
    drop(daemon);

    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let session = ended(&daemon, &scratch, &noise(600_000));
    let newer = ended(&daemon, &scratch, &noise(600_000));
    daemon.stop();
    let scratch = scratch.config("[storage]\nkeep_bytes = \"2 MiB\"");
    let mut daemon = scratch.serve();
    until("it is removed", || (status(&daemon, &session) == 404).then_some(()));
    assert_eq!(status(&daemon, &newer), 200);
    daemon.stop();
}

// contract 7.3: a reader of a session that is removed is told, over REST too when it has not seen all
#[test]
fn a_reader_over_rest_is_told() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let text = noise(6_000_000);
    let session = ended(&daemon, &scratch, &[&*text, &text].join("\n"));
    daemon.stop();
    // In another daemon nothing of it is in memory.
    let mut daemon = scratch.serve();
    let events = |query: &str| {
        Http::on(daemon.connect()).events(&format!("/v1/sessions/{session}/events{query}"), &[])
    };
    let mut slow = events("").expect("a stream");
    slow.until("the first event", |event| event.id.as_deref() == Some("1"));
    assert_eq!(ids(&pruned(&daemon, &json!({"olderThanMs": 0}))), [&*session]);
    let last = slow.until("why it ends", |event| event.event.as_deref() == Some("closed"));
    assert_eq!((last.json()["reason"].clone(), last.id), (json!("deleted"), None));
    assert_eq!(slow.next_event(), None);
    assert_eq!(events("").err().map(|answer| answer.status), Some(404));
    daemon.stop();
}

// contract 7.3: a daemon that is killed while it removes leaves each session whole or gone, and the next goes on
#[test]
fn a_kill_in_the_middle_leaves_whole_sessions() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let sessions: Vec<String> = (0..30).map(|_| begun(&daemon, &scratch, &noise(20_000))).collect();
    let all_ended = || pruned(&daemon, &json!({"olderThanMs": 0, "dryRun": true})).len() == sessions.len();
    until("all have ended", || all_ended().then_some(()));
    let mut asking = Http::on(daemon.connect());
    asking.send("POST", "/v1/prune", &[JSON], &json!({"olderThanMs": 0}).to_string());
    let oldest = ids(&pruned(&daemon, &json!({"olderThanMs": 0, "dryRun": true})));
    until("one is gone", || oldest.first().is_none_or(|oldest| status(&daemon, oldest) == 404).then_some(()));
    daemon.kill();
    let mut daemon = scratch.serve();
    let left = all(&daemon);
    for session in &left {
        let shown = plain(&daemon, "GET", &format!("/v1/sessions/{session}"), &[]).json();
        let path = format!("/v1/sessions/{session}/events?limit=1000");
        let events = plain(&daemon, "GET", &path, &[]).json()["events"].as_array().expect("events").len();
        assert_eq!(json!(events), shown["eventCount"], "{session}");
    }
    assert_eq!(pruned(&daemon, &json!({"olderThanMs": 0})).len(), left.len());
    assert!(all(&daemon).is_empty());
    daemon.stop();
}
