//! `session/list` and `session/status`: from the store, live and ended, across restarts, starting nothing.

use crate::asking::{close, entry, ids, listed, meta, of, take_part, until_ended};
use acpd_e2e::{Client, Scratch, shell_agent};
use serde_json::{Value, json};

fn all_agents() -> Value {
    json!({"_meta": {"sandboxagent.dev": {"allAgents": true}}})
}

fn processes(scratch: &Scratch) -> Vec<u32> {
    let mut pids: Vec<u32> = scratch.mark().processes().iter().map(|process| process.pid).collect();
    pids.sort_unstable();
    pids
}

/// The latest change first, then the id.
fn is_sorted(entries: &[Value]) -> bool {
    let key = |entry: &Value| {
        ["updatedAt", "sessionId"].map(|name| entry[name].as_str().expect("an entry has it").to_owned())
    };
    entries.windows(2).all(|pair| {
        let (one, two) = (key(&pair[0]), key(&pair[1]));
        one[0] > two[0] || (one[0] == two[0] && one[1] < two[1])
    })
}

// SE-11, contract 1.3
#[test]
fn without_sessions_the_list_is_empty() {
    let scratch = Scratch::new();
    let mut client = scratch.stdio("example");
    client.initialize();
    assert_eq!(client.call("session/list", &json!({})), json!({"sessions": []}));
    assert_eq!(client.call("session/list", &all_agents()), json!({"sessions": []}));
    client.finish();
}

// contract 1.3, contract 7.3, SE-11, SE-13, TM-3: the exact entry, live and ended
#[test]
fn an_entry_says_what_the_contract_names() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    assert_eq!(client.turn(&session, "title A name"), "end_turn");
    let live = entry(&mut client, &session);
    let (created, updated) = (&meta(&live)["createdAt"], &live["updatedAt"]);
    for time in [created, updated] {
        let text = time.as_str().unwrap_or_default();
        assert!(text.len() == 24 && text.ends_with('Z') && text.as_bytes()[10] == b'T', "{time}");
    }
    assert!(created.as_str() <= updated.as_str());
    let count = &meta(&live)["eventCount"];
    let turn = json!({"stopReason": "end_turn", "endedAt": updated,
        "durationMs": meta(&live)["lastTurn"]["durationMs"].as_u64()});
    let own = json!({"agent": "example", "createdAt": created, "ended": false, "eventCount": count,
        "state": "idle", "lastTurn": turn, "openQuestions": 0});
    let expected = json!({"sessionId": session, "cwd": scratch.work(), "title": "A name", "updatedAt": updated,
        "_meta": {"sandboxagent.dev": own}});
    assert_eq!(live, expected);
    // Created, run started, prompt, update, turn ended.
    assert_eq!(count, 5);

    let slow = client.prompt(&session, "begun\nhang");
    client.until_text("begun");
    assert_eq!(meta(&entry(&mut client, &session))["state"], "running");
    close(&mut client, &session);
    client.answer(&slow);
    let ended = entry(&mut client, &session);
    let own = meta(&ended).as_object().unwrap();
    let names: Vec<&str> = own.keys().map(String::as_str).collect();
    let of_turns = ["lastTurn", "openQuestions"];
    let expected =
        [&["agent", "createdAt", "ended", "eventCount", "state"], &of_turns[..], &["terminationInfo"]];
    assert_eq!(names, expected.concat());
    assert_eq!((&own["ended"], &own["state"]), (&json!(true), &json!("ended")));
    assert_eq!(own["terminationInfo"]["endedAt"], ended["updatedAt"]);
    assert_eq!((&ended["title"], &own["createdAt"]), (&json!("A name"), created));
    client.finish();
}

// contract 7.3: an entry has the record of the end without `stderr`, the status of the session has it with
#[test]
fn an_entry_has_no_stderr() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let crash = client.prompt(&session, "stderr 200\nexit 3");
    let error = client.error(&crash);
    until_ended(&mut client, &session, 1);
    let told = &error["data"]["terminationInfo"];
    assert_eq!(told["stderr"]["totalLines"], 200, "{told}");
    let mut shorter = told.as_object().expect("a record").clone();
    assert!(shorter.remove("stderr").is_some());
    assert_eq!(meta(&entry(&mut client, &session))["terminationInfo"], Value::Object(shorter));
    let status = client.call("session/status", &of(&session));
    assert_eq!(meta(&status)["terminationInfo"], *told);
    client.finish();
}

// SE-13, contract 1.3: a connection's own agent, or all; the same after a restart
#[test]
fn the_list_spans_agents_and_restarts() {
    let scratch = Scratch::new().example("other", &["--no-state"]);
    let (mut one, live) = scratch.session("example");
    let closed = one.new_session();
    close(&mut one, &closed);
    let (mut other, second) = scratch.session("other");
    assert_eq!(ids(&listed(&mut one, &json!({}))).len(), 2);
    assert_eq!(ids(&listed(&mut other, &json!({}))), [&second]);
    let all = listed(&mut one, &all_agents());
    assert!(is_sorted(&all));
    assert_eq!(ids(&all), [&second, &closed, &live]);
    // A session that another process has live is not an ended one.
    assert_eq!(meta(&all[0])["ended"], false);
    other.close_input();
    other.read_to_end();
    one.finish();
    other.finish();

    let mut later = scratch.stdio("other");
    later.initialize();
    let all = listed(&mut later, &all_agents());
    assert!(is_sorted(&all));
    let mut found = ids(&all);
    found.sort_unstable();
    let mut expected = [live.as_str(), &closed, &second];
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert!(all.iter().all(|entry| meta(entry)["ended"] == true && entry["cwd"] == json!(scratch.work())));
    later.finish();
}

// SE-13, SE-19, contract 1.3: looking starts nothing and changes nothing
#[test]
fn looking_starts_nothing() {
    let scratch = Scratch::new();
    let (mut client, live) = scratch.session("example");
    let closed = client.new_session();
    close(&mut client, &closed);
    let (before, processes_before) = (listed(&mut client, &json!({})), processes(&scratch));
    for _ in 0..3 {
        listed(&mut client, &all_agents());
        for session in [&live, &closed] {
            client.call("session/status", &of(session));
        }
        assert_eq!(client.refused("session/status", &of("nobody"))["code"], -32002);
    }
    assert_eq!(processes(&scratch), processes_before);
    assert_eq!(listed(&mut client, &json!({})), before);
    client.finish();
}

// SE-19
#[test]
fn status_says_whether_a_session_is_live() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let status = |client: &mut Client| client.call("session/status", &of(&session));
    let open = status(&mut client);
    assert_eq!((&open["status"], &meta(&open)["state"]), (&json!("open"), &json!("idle")));
    // For any connection.
    let mut other = scratch.stdio("example");
    other.initialize();
    assert_eq!(status(&mut other)["status"], "open");
    close(&mut client, &session);
    for client in [&mut client, &mut other] {
        let saved = status(client);
        assert_eq!((&saved["status"], &meta(&saved)["ended"]), (&json!("saved"), &json!(true)));
    }
    take_part(&mut client, &scratch, "session/resume", &session);
    let open = status(&mut client);
    assert_eq!((&open["status"], meta(&open).get("terminationInfo")), (&json!("open"), None));
    assert_eq!(client.refused("session/status", &of("nobody"))["data"], of("nobody"));
    other.close_input();
    other.read_to_end();
    client.finish();
    other.finish();
}

// SE-11: the title follows its updates, absent leaves it and null clears it, live and ended
#[test]
fn titles_follow_their_updates() {
    let update = |info: &str| {
        format!(
            "take; printf '{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"shell-1\",\"update\":{{\"sessionUpdate\":\"session_info_update\",{info}}}}}}}\\n'; answer '{{\"stopReason\":\"end_turn\"}}'\n"
        )
    };
    let body = [
        update("\"title\":\"one\""),
        update("\"updatedAt\":\"2020-01-01T00:00:00Z\""),
        update("\"title\":null"),
        update("\"title\":\"two\""),
        "while take; do :; done".to_owned(),
    ];
    let scratch = Scratch::new().shell("titled", &shell_agent(&body.concat()));
    let (mut client, session) = scratch.session("titled");
    assert_eq!(entry(&mut client, &session).get("title"), None);
    for expected in [Some("one"), Some("one"), None, Some("two")] {
        assert_eq!(client.turn(&session, "x"), "end_turn");
        assert_eq!(entry(&mut client, &session)["title"].as_str(), expected);
    }
    close(&mut client, &session);
    until_ended(&mut client, &session, 1);
    assert_eq!(entry(&mut client, &session)["title"], "two");
    client.finish();
    let mut later = scratch.stdio("titled");
    later.initialize();
    assert_eq!(entry(&mut later, &session)["title"], "two");
    later.finish();
}

// SE-11: the latest change is first
#[test]
fn a_change_comes_first() {
    let scratch = Scratch::new();
    let (mut client, first) = scratch.session("example");
    let (second, third) = (client.new_session(), client.new_session());
    for session in [&second, &first, &third, &second] {
        assert_eq!(client.turn(session, "hello"), "end_turn");
        let list = listed(&mut client, &json!({}));
        assert!(is_sorted(&list));
        let newest = &list[0]["updatedAt"];
        let tied = list.iter().take_while(|entry| entry["updatedAt"] == *newest);
        assert!(tied.into_iter().any(|entry| entry["sessionId"] == *session), "{list:#?}");
    }
    client.finish();
}
