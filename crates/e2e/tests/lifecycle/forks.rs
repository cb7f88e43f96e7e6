//! `session/fork`: a session of its own with the history of another (SE-18).

use crate::asking::{TERMINATE, entry, listed, meta, of, take_part, taking, updates};
use crate::stored::{PROMPT, TURN_ENDED, UPDATE, of_kind, stored};
use acpd_e2e::{Client, Gate, Scratch, taking_shell_agent};
use serde_json::json;

fn fork(client: &mut Client, scratch: &Scratch, source: &str) -> String {
    let result = client.call("session/fork", &taking(scratch, source));
    result["sessionId"].as_str().expect("a fork has an id").to_owned()
}

fn on(agent: &str) -> (Scratch, Client, String) {
    let scratch = Scratch::new().example("shared", &[]).config("share_process = true");
    let (client, session) = scratch.session(agent);
    (scratch, client, session)
}

// SE-18: the source is untouched, and neither sees what the other does
#[test]
fn a_fork_goes_its_own_way() {
    for agent in ["example", "shared"] {
        let (scratch, mut client, source) = on(agent);
        assert_eq!(client.turn(&source, "common words"), "end_turn");
        let before = entry(&mut client, &source);
        let asked = client.request("session/fork", &taking(&scratch, &source));
        let copy = client.result(&asked)["sessionId"].as_str().unwrap().to_owned();
        assert_ne!(copy, source);
        assert_eq!(entry(&mut client, &source), before);
        assert!(updates(client.since(&asked), &copy).is_empty(), "what it was born with is seen by a load");

        let turns = [(&source, "of the source"), (&copy, "of the copy"), (&source, "again")];
        for (session, words) in turns {
            let asked = client.prompt(session, words);
            client.result(&asked);
            let other = if session == &source { &copy } else { &source };
            assert_eq!(client.text_since(&asked, session), words);
            assert!(updates(client.since(&asked), other).is_empty());
        }
        let text = |client: &mut Client, session: &str| {
            let (_, lines) = take_part(client, &scratch, "session/load", session);
            assert!(lines.iter().all(|line| line.contains(session)));
            lines.concat()
        };
        let (of_source, of_copy) = (text(&mut client, &source), text(&mut client, &copy));
        assert!(of_source.contains("common") && of_copy.contains("common"));
        assert!(of_source.contains("source") && !of_source.contains("copy"));
        assert!(of_copy.contains("copy") && !of_copy.contains("source"));
        // The end of one is nothing to the other.
        client.call(TERMINATE, &of(&source));
        assert_eq!(client.turn(&copy, "on"), "end_turn");
        assert_eq!(meta(&entry(&mut client, &copy))["ended"], false);
        client.finish();
        let events = stored(&scratch, &copy);
        assert_eq!((of_kind(&events, PROMPT).len(), of_kind(&events, UPDATE).len()), (3, 2 + 3 + 1));
        assert!(of_kind(&events, UPDATE).iter().all(|line| line.contains(&copy)));
    }
}

// SE-18, contract 1.1: a source that is deleted while it is being forked is not found, and no half fork is left
#[test]
fn a_source_that_is_deleted_meanwhile_leaves_no_fork() {
    let scratch = Scratch::new();
    let gate = Gate::new(scratch.path("gate"));
    let script = format!(
        "take; answer '{{\"protocolVersion\":1,\"agentCapabilities\":{{\"sessionCapabilities\":{{\"fork\":{{}}}}}}}}'\n\
         while take; do case $line in\n\
         *'\"session/new\"'*) answer '{{\"sessionId\":\"shell-1\"}}';;\n\
         *'\"session/fork\"'*) {}; answer '{{\"sessionId\":\"shell-2\"}}';;\n\
         *) update words; answer '{{\"stopReason\":\"end_turn\"}}';;\n\
         esac; done",
        gate.line()
    );
    let scratch = scratch.shell("forking", &taking_shell_agent(&script));
    let (mut client, source) = scratch.session("forking");
    client.turn(&source, "hello");
    let fork = client.request("session/fork", &taking(&scratch, &source));
    let arrival = gate.arrival();
    client.call("session/delete", &of(&source));
    arrival.go();
    let error = client.error(&fork);
    assert_eq!((&error["code"], &error["data"]["sessionId"]), (&json!(-32002), &json!(source)), "{error}");
    assert_eq!(listed(&mut client, &json!({})), [] as [serde_json::Value; 0]);
    client.finish();
}

// SE-18: a session in a turn, an ended one and a fork can be forked
#[test]
fn any_session_can_be_forked() {
    let (scratch, mut client, source) = on("example");
    assert_eq!(client.turn(&source, "common"), "end_turn");
    let running = client.prompt(&source, "begun\nhang");
    client.until_text("begun");
    let first = fork(&mut client, &scratch, &source);
    client.notify("session/cancel", &of(&source));
    assert_eq!(client.result(&running), json!({"stopReason": "cancelled"}));
    let second = fork(&mut client, &scratch, &first);
    client.call(TERMINATE, &of(&source));
    let third = fork(&mut client, &scratch, &source);
    for session in [&first, &second, &third] {
        let (_, lines) = take_part(&mut client, &scratch, "session/load", session);
        assert!(lines.concat().contains("common"));
        assert_eq!(client.turn(session, "on"), "end_turn");
        client.call("session/close", &of(session));
    }
    client.is_alone();
    client.finish();
}

// SE-18: the log of a fork is whole: a turn that was cut off in its source, or that runs there, ends in the fork
#[test]
fn every_turn_of_a_fork_has_ended() {
    let (scratch, mut client, source) = on("example");
    let cut_off = client.prompt(&source, "begun\nexit 3");
    client.error(&cut_off);
    take_part(&mut client, &scratch, "session/load", &source);
    let running = client.prompt(&source, "again\nhang");
    client.until_text("again");
    let copy = fork(&mut client, &scratch, &source);
    client.notify("session/cancel", &of(&source));
    assert_eq!(client.result(&running), json!({"stopReason": "cancelled"}));
    assert_eq!(client.turn(&copy, "on"), "end_turn");
    client.finish();
    let events = stored(&scratch, &copy);
    assert_eq!(events[0].json()["forkedFrom"], source.as_str());
    let turns: Vec<u16> =
        events.iter().map(|event| event.kind).filter(|kind| [PROMPT, TURN_ENDED].contains(kind)).collect();
    assert_eq!(turns, [PROMPT, TURN_ENDED].repeat(3));
    let error = json!({"code": -32603, "message": "the turn had not ended when the session was forked"});
    for (turn, ended) in (1..).zip(&of_kind(&events, TURN_ENDED)[..2]) {
        let ended: serde_json::Value = serde_json::from_str(ended).unwrap();
        assert_eq!(ended, json!({"turn": turn, "error": error}));
    }
}

// SE-18, contract 1.5: a fork has the state of its source, and can be closed and taken up like any other
#[test]
fn a_fork_keeps_the_state() {
    let (scratch, mut client, source) = on("example");
    assert_eq!(client.turn(&source, "title A name\nmode plan\nwords"), "end_turn");
    let result = client.call("session/fork", &taking(&scratch, &source));
    assert_eq!(result["modes"]["currentModeId"], "plan");
    let copy = result["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(entry(&mut client, &copy)["title"], "A name");
    client.call("session/close", &of(&copy));
    assert_eq!(entry(&mut client, &copy)["title"], "A name");
    let (result, lines) = take_part(&mut client, &scratch, "session/load", &copy);
    assert_eq!((&result["modes"]["currentModeId"], lines.len()), (&json!("plan"), 1 + 2 + 1));
    client.finish();
}

// SE-18: a fork that fails leaves nothing behind
#[test]
fn a_failed_fork_leaves_nothing() {
    let (scratch, mut client, source) = on("example");
    let mut params = taking(&scratch, &source);
    params["cwd"] = json!("relative");
    assert_eq!(client.refused("session/fork", &params)["code"], -32602);
    assert_eq!(client.call("session/list", &json!({}))["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(client.turn(&source, "hello"), "end_turn");
    client.finish();
}

/// A shell agent that forks only sessions that its process knows, and tells them again when it loads one.
fn keeping_them_in_its_process(capabilities: &str) -> Scratch {
    let body = r#"
        known=
        refuse() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"Session not found: shell-1","data":{"session_id":"shell-1"}}}\n' "$id"; }
        take; answer '{"protocolVersion":1,"agentCapabilities":CAPABILITIES}'
        while take; do case $line in
        *'"session/new"'*) known=1; answer '{"sessionId":"shell-1"}';;
        *'"session/load"'*) known=1; update common; answer '{}'; update common;;
        *'"session/fork"'*) if [ "$known" ]; then answer '{"sessionId":"shell-2"}'; else refuse; fi;;
        *'"sessionId":"shell-2"'*) answer '{"stopReason":"max_tokens"}';;
        *) update common; answer '{"stopReason":"end_turn"}';;
        esac; done"#;
    Scratch::new().shell("in-process", &taking_shell_agent(&body.replace("CAPABILITIES", capabilities)))
}

// SE-18: an agent whose sessions live in its process is given the source there first; what it tells of it then is
// dropped
#[test]
fn a_source_is_brought_to_the_process_that_forks_it() {
    let scratch = keeping_them_in_its_process(r#"{"loadSession":true,"sessionCapabilities":{"fork":{}}}"#);
    let (mut client, source) = scratch.session("in-process");
    assert_eq!(client.turn(&source, "hello"), "end_turn");
    let copy = fork(&mut client, &scratch, &source);
    assert_eq!(client.turn(&copy, "hello"), "max_tokens", "it is the agent's other session");
    assert_eq!(client.turn(&source, "again"), "end_turn");
    let (_, lines) = take_part(&mut client, &scratch, "session/load", &copy);
    assert_eq!(lines.len(), 2 + 1, "{lines:#?}");
    client.finish();
    assert_eq!(of_kind(&stored(&scratch, &source), UPDATE).len(), 2);
    assert_eq!(of_kind(&stored(&scratch, &copy), UPDATE).len(), 1);
}

// SE-18, contract 1: an agent that cannot be helped refuses under acpd's own id
#[test]
fn a_refused_fork_names_the_session_by_its_own_id() {
    let scratch = keeping_them_in_its_process(r#"{"sessionCapabilities":{"fork":{}}}"#);
    let (mut client, source) = scratch.session("in-process");
    assert_eq!(client.turn(&source, "hello"), "end_turn");
    let error = client.refused("session/fork", &taking(&scratch, &source));
    let expected = json!({"code": -32602, "message": format!("Session not found: {source}"),
        "data": {"session_id": source}});
    assert_eq!(error, expected);
    client.finish();
}

/// A shell agent that locks each session to one process.
fn locking_them() -> Scratch {
    let scratch = Scratch::new();
    let locks = scratch.path("locks");
    std::fs::create_dir(&locks).expect("the scratch directory is writable");
    let body = r#"
        refuse() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":"%s"}}\n' "$id" "$1" "$2"; }
        owner() { read -r owner < "LOCKS/$sid"; }
        open() { echo $$ > "LOCKS/$1"; }
        take; answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"fork":{},"close":{}}}}'
        while take; do sid=${line#*'"sessionId":"'}; sid=${sid%%'"'*}; case $line in
        *'"session/new"'*) open s$$; answer "{\"sessionId\":\"s$$\"}";;
        *'"session/fork"'*) if owner 2>/dev/null && [ "$owner" = $$ ]; then
            open "$sid-f"; answer "{\"sessionId\":\"$sid-f\"}"; else refuse -32602 "Session not found: $sid"; fi;;
        *'"session/load"'*) if owner 2>/dev/null; then refuse -31002 "Session is already open"; else open "$sid"; answer '{}'; fi;;
        *'"session/close"'*) rm -f "LOCKS/$sid"; answer '{}';;
        *'"hang"'*) update begun;;
        *'"session/prompt"'*) answer '{"stopReason":"end_turn"}';;
        esac; done"#;
    scratch.shell("locking", &taking_shell_agent(&body.replace("LOCKS", &locks.display().to_string())))
}

// quirk session-lock (agents in Python): a live session is forked by the process that has it open, which lets go of the fork; in a
// turn the fork is refused in the agent's own words, with what to do
#[test]
fn a_source_that_is_locked_is_forked_where_it_is_open() {
    let scratch = locking_them();
    let (mut client, source) = scratch.session("locking");
    assert_eq!(client.turn(&source, "hello"), "end_turn");
    let copy = fork(&mut client, &scratch, &source);
    for session in [&copy, &source, &copy] {
        assert_eq!(client.turn(session, "again"), "end_turn");
    }
    client.prompt(&source, "hang");
    let error = client.refused("session/fork", &taking(&scratch, &source));
    let told = (&error["code"], error["message"].as_str());
    assert_eq!(told, (&json!(-31002), Some("Session is already open; close the session first")), "{error}");
    client.finish();
}
