//! Sessions as files, over HTTP: what comes out, what goes in, and what is refused.

use crate::door::{ask, bearer, entry};
use acpd_e2e::{Answer, Client, Daemon, Http, Scratch, noise, session_bytes};
use serde_json::{Value, json};

/// What an export is sent as.
const LINES: (&str, &str) = ("Content-Type", "application/x-ndjson");

fn scratch() -> Scratch {
    let tokens = [
        entry("o", "scope = \"observe\"\nsees = \"all\""),
        entry("own", "scope = \"control\""),
        entry("root", "scope = \"admin\"\nsees = \"all\""),
    ];
    let told = ["resume_with_transcript = true", &tokens.join("\n")].join("\n");
    Scratch::new().example("plain", &[]).example("told", &["--without", "load,resume"]).config(&told)
}

fn import(daemon: &Daemon, token: &str, export: &str) -> Answer {
    Http::on(daemon.connect()).request(
        "POST",
        "/v1/import",
        &[("Authorization", &bearer(token)), LINES],
        export,
    )
}

fn export(daemon: &Daemon, session: &str) -> String {
    let answer = ask(daemon, "o", "GET", &format!("/v1/sessions/{session}/export"));
    assert_eq!(answer.status, 200, "{answer:?}");
    String::from_utf8(answer.body).expect("it is text")
}

fn list(daemon: &Daemon) -> Value {
    ask(daemon, "root", "GET", "/v1/sessions").json()["sessions"].clone()
}

/// A session of agent `agent` that has said a little of everything.
fn session(daemon: &Daemon, scratch: &Scratch, agent: &str) -> (Client, String) {
    let path = format!("/acp?agent={agent}");
    let mut client = daemon.over_websocket_with(scratch, &path, &[("Authorization", &bearer("root"))]);
    client.initialize();
    let session = client.new_session();
    client.turn(&session, "title Moved\nplan a,b\ntool look\nhello \u{e4}");
    (client, session)
}

/// A session that is no longer there, and its export.
fn moved_out(daemon: &Daemon, scratch: &Scratch) -> (String, String) {
    let (client, id) = session(daemon, scratch, "plain");
    let whole = export(daemon, &id);
    drop(client);
    ask(daemon, "root", "DELETE", &format!("/v1/sessions/{id}"));
    (id, whole)
}

// contract 7.3: all of a session, also while it is live; the importer becomes the creator, the session has ended, and its export
// is byte-equal to what was imported
#[test]
fn a_session_moves_to_another_machine() {
    let (from, to) = (scratch(), scratch());
    let (mut source, mut target) = (from.serve(), to.serve());
    let (client, id) = session(&source, &from, "plain");
    let live = ask(&source, "o", "GET", &format!("/v1/sessions/{id}/export"));
    assert_eq!(live.header("content-type"), Some("application/x-ndjson"));
    let named = format!("attachment; filename=\"{id}.jsonl\"");
    assert_eq!(live.header("content-disposition"), Some(&*named));
    let file = export(&source, &id);
    let events = ask(&source, "o", "GET", &format!("/v1/sessions/{id}")).json()["eventCount"].clone();
    assert_eq!(json!(file.lines().count() - 1), events);
    let before = ask(&source, "o", "GET", &format!("/v1/sessions/{id}")).json();

    assert_eq!(import(&target, "own", &file).problem(), "forbidden");
    let answer = import(&target, "root", &file);
    assert_eq!((answer.status, answer.header("location")), (201, Some(&*format!("/v1/sessions/{id}"))));
    let info = answer.json();
    assert_eq!(info, ask(&target, "root", "GET", &format!("/v1/sessions/{id}")).json());
    for member in ["sessionId", "agent", "cwd", "createdAt", "title"] {
        assert_eq!(info[member], before[member], "{member}");
    }
    assert_eq!((&info["state"], &info["metadata"]["createdBy"]), (&json!("ended"), &json!("root")));
    assert_eq!(info["terminationInfo"]["message"], "the session was live when it was exported");
    assert_eq!(info.get("nativeSessionId"), None);
    assert!(before["nativeSessionId"].is_string(), "{before}");
    assert_eq!(info["snapshot"]["plan"], before["snapshot"]["plan"]);
    assert_eq!(export(&target, &id), file);
    let again = import(&target, "root", &file);
    assert_eq!((again.status, again.problem().as_str()), (409, "session_exists"));

    // Over a restart as well.
    target.stop();
    let mut target = to.serve();
    assert_eq!(export(&target, &id), file);
    let told = ask(&target, "o", "GET", &format!("/v1/sessions/{id}/export?format=markdown"));
    assert_eq!(told.header("content-type"), Some("text/markdown; charset=utf-8"));
    let told = String::from_utf8(told.body).expect("it is text");
    assert!(told.starts_with("# Moved\n") && told.contains("- Tool call: look: completed"), "{told}");
    assert!(told.contains("the session was live when it was exported"), "{told}");
    let wrong = ask(&target, "o", "GET", &format!("/v1/sessions/{id}/export?format=pdf"));
    assert_eq!(
        (wrong.status, &wrong.json()["detail"]),
        (400, &json!("format: jsonl or markdown is required"))
    );
    drop(client);
    source.stop();
    target.stop();
}

// contract 7.3: an imported session goes on by transcript only, when the entry of its agent allows that
#[test]
fn an_imported_session_goes_on_with_a_transcript() {
    let (from, to) = (scratch(), scratch());
    let (mut source, mut target) = (from.serve(), to.serve());
    for (agent, goes_on) in [("plain", false), ("told", true)] {
        let (client, id) = session(&source, &from, agent);
        let file = export(&source, &id)
            .replace(&from.work().display().to_string(), &to.work().display().to_string());
        assert_eq!(import(&target, "root", &file).status, 201);
        drop(client);
        let path = format!("/acp?agent={agent}");
        let mut later = target.over_websocket_with(&to, &path, &[("Authorization", &bearer("root"))]);
        later.initialize();
        let setup = json!({"sessionId": id, "cwd": to.work(), "mcpServers": []});
        if !goes_on {
            let error = later.refused("session/resume", &setup);
            let why = error.to_string();
            assert!(
                why.contains("it was imported") && why.contains("resume_with_transcript = true"),
                "{why}"
            );
            assert_eq!(export(&target, &id), file);
            continue;
        }
        later.call("session/resume", &setup);
        assert_eq!(later.turn(&id, "and now"), "end_turn");
        let now = export(&target, &id);
        assert!(now.lines().count() > file.lines().count() + 4, "{now}");
        assert!(now.contains(r#""kind":"transcript""#), "{now}");
        // What has gone on here can be moved again, the end that the import added with it.
        let third = scratch();
        let mut next = third.serve();
        assert_eq!(import(&next, "root", &now).status, 201);
        assert_eq!(export(&next, &id), now);
        next.stop();
    }
    source.stop();
    target.stop();
}

// contract 7.3: an import is untrusted: nothing of it is taken over, and the answer names the line, the member and the fix
#[test]
fn hostile_exports_leave_nothing() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let (id, whole) = moved_out(&daemon, &scratch);
    assert_eq!(list(&daemon), json!([]));
    let lines: Vec<&str> = whole.lines().collect();
    let without = |left_out: usize| {
        let lines = lines.iter().enumerate().filter(|(at, _)| *at != left_out);
        lines.map(|(_, line)| format!("{line}\n")).collect::<String>()
    };
    let deep = format!(
        r#"{{"seq":3,"atMs":0,"kind":"update","payload":{}{}}}"#,
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    for (file, expected) in [
        (without(2), "line 3: seq: event 2 is required here, and it is 3"),
        (without(0), "line 1: type: \"acpd-export\" is required"),
        (without(lines.len() - 1), ": it was cut off"),
        (whole.trim_end().to_owned(), "it has no end: the export was cut off"),
        (
            whole.replacen("\"prompt\",\"payload\":{\"turn\":1", "\"prompt\",\"payload\":{\"turn\":4", 1),
            "turn 4 began after turn 0",
        ),
        (
            whole.replacen(
                &format!("\"sessionId\":\"{id}\",\"agent\""),
                "\"sessionId\":\"other\",\"agent\"",
                1,
            ),
            "a message names another session than line 1 does",
        ),
        (
            whole.replacen(
                &format!("\"sessionId\":\"{id}\",\"agent\""),
                "\"sessionId\":\"../../etc\",\"agent\"",
                1,
            ),
            "line 1: sessionId: an id of at most 128",
        ),
        (
            [lines[0], lines[1], lines[2], &deep, ""].join("\n"),
            "line 4: payload: a notification of an agent is required",
        ),
        (String::new(), "line 1: line: the first line of an export is required"),
        ("{\"type\":\"acpd-export\"}\n".repeat(3), "line 1: version: a number is required"),
    ] {
        assert_ne!(file, whole, "{expected}");
        let answer = import(&daemon, "root", &file);
        let detail = answer.json()["detail"].as_str().unwrap_or_default().to_owned();
        assert_eq!((answer.status, answer.problem().as_str()), (400, "bad_request"), "{detail}");
        assert!(detail.contains(expected), "{detail}\nand not\n{expected}");
        assert_eq!(list(&daemon), json!([]), "{expected}");
    }
    let mut http = Http::on(daemon.connect());
    let body = [whole.as_bytes(), b"\xff\n"].concat();
    let head = format!(
        "POST /v1/import HTTP/1.1\r\nHost: localhost\r\nAuthorization: {}\r\nContent-Type: application/x-ndjson\r\nContent-Length: {}\r\n\r\n",
        bearer("root"),
        body.len()
    );
    http.write(&[head.as_bytes(), &body].concat());
    let detail = http.answer().json()["detail"].clone();
    assert!(detail.as_str().is_some_and(|detail| detail.ends_with("line: UTF-8 is required")), "{detail}");
    assert_eq!(import(&daemon, "root", &whole).status, 201, "nothing is in its way");
    daemon.stop();
}

// contract 7.3: kill -9 during an import leaves nothing that can be found, and the next start cleans up
#[test]
fn an_import_that_dies_with_its_daemon_was_none() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let (id, whole) = moved_out(&daemon, &scratch);
    // Enough that pieces of it are written.
    let update = whole.lines().find(|line| line.contains(r#""kind":"update""#)).expect("there is one");
    let payload = update.split_once("\"payload\":").expect("it is whole").1;
    let head = whole.lines().next().expect("a first line");
    let (before, _) = head.split_once("\"events\":").expect("it says how many");
    let opening: Vec<&str> = whole.lines().skip(1).take(2).collect();
    let mut long = format!("{before}\"events\":20002}}\n{}\n{}\n", opening[0], opening[1]);
    // What repeats is packed into next to nothing.
    let noise = noise(1);
    for (seq, word) in (3..=20_002).zip(noise.as_bytes().chunks(50)) {
        let word = String::from_utf8_lossy(word);
        let payload = payload.replacen('{', &format!("{{\"_meta\":{{\"word\":\"{word}\"}},"), 1);
        long.push_str(&format!("{{\"seq\":{seq},\"atMs\":9,\"kind\":\"update\",\"payload\":{payload}\n"));
    }
    let stored = session_bytes(&scratch.state());
    let mut http = Http::on(daemon.connect());
    let head = format!(
        "POST /v1/import HTTP/1.1\r\nHost: localhost\r\nAuthorization: {}\r\nContent-Type: application/x-ndjson\r\nContent-Length: {}\r\n\r\n",
        bearer("root"),
        long.len()
    );
    http.write(head.as_bytes());
    http.write(&long.as_bytes()[..long.len() - 100]);
    acpd_e2e::until("a piece in the log", || {
        (session_bytes(&scratch.state()) > stored + 100_000).then_some(())
    });
    assert_eq!(list(&daemon), json!([]));
    daemon.kill();
    let mut daemon = scratch.serve();
    assert_eq!(list(&daemon), json!([]));
    assert_eq!(import(&daemon, "root", &long).status, 201, "nothing is in its way");
    assert_eq!(export(&daemon, &id), long);
    daemon.stop();
}
