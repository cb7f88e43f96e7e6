//! Ends and take-ups that race: with each other, with a dying host, with another process.

use crate::asking::{DETACH, TERMINATE, close, entry, meta, of, take_part, taking, until_ended};
use acpd_e2e::{Client, Scratch};
use rustix::process::Signal;
use serde_json::{Value, json};

const LOAD: &str = "session/load";
const RESUME: &str = "session/resume";

// contract 2.1: a mode that a session was given stays with it, through ends, forks and the death of acpd
#[test]
fn a_session_keeps_its_permission_mode() {
    let scratch = Scratch::new().example("free", &[]).config("permission_mode = \"bypassPermissions\"");
    let params = json!({"cwd": scratch.work(), "mcpServers": [],
        "_meta": {"sandboxagent.dev": {"permissionMode": "deny"}}});
    let is_denied = |client: &mut Client, session: &str| {
        let asked = client.prompt(session, "ask edit something");
        client.result(&asked);
        client.text_since(&asked, session).contains("reject")
    };
    let mut client = scratch.stdio("free");
    client.initialize();
    let session = client.call("session/new", &params)["sessionId"].as_str().unwrap().to_owned();
    assert!(is_denied(&mut client, &session));
    for method in [LOAD, RESUME] {
        close(&mut client, &session);
        take_part(&mut client, &scratch, method, &session);
        assert!(is_denied(&mut client, &session), "{method}");
    }
    let fork = client.call("session/fork", &taking(&scratch, &session));
    assert!(is_denied(&mut client, fork["sessionId"].as_str().unwrap()));
    client.signal(Signal::KILL);
    client.ended();
    let mut later = scratch.stdio("free");
    later.initialize();
    take_part(&mut later, &scratch, RESUME, &session);
    assert!(is_denied(&mut later, &session));
    // Whoever takes it up may give it another.
    close(&mut later, &session);
    let mut other = taking(&scratch, &session);
    other["_meta"] = json!({"sandboxagent.dev": {"permissionMode": "bypassPermissions"}});
    later.call(LOAD, &other);
    assert!(!is_denied(&mut later, &session));
    later.finish();
}

// contract 1.1: an end right behind a load is an end
#[test]
fn an_end_stops_a_take_up() {
    let scratch = Scratch::new();
    let mut client = scratch.stdio("example");
    client.initialize();
    for method in [TERMINATE, "session/close", "session/delete"] {
        for take in [LOAD, RESUME] {
            let session = client.new_session();
            client.turn(&session, "hello");
            close(&mut client, &session);
            let taken = client.request(take, &taking(&scratch, &session));
            let ended = client.request(method, &of(&session));
            client.result(&ended);
            client.answer(&taken);
            if method == "session/delete" {
                assert_eq!(client.refused("session/status", &of(&session))["code"], -32002);
            } else {
                assert_eq!(
                    client.call("session/status", &of(&session))["status"],
                    "saved",
                    "{method} {take}"
                );
            }
        }
    }
    client.finish();
}

// contract 1.1, SU-2: two who terminate get one end, by the whole ladder
#[test]
fn two_who_terminate_do_not_skip_the_graces() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    client.prompt(&session, "ignore-cancel\nignore-sigterm\nready\nhang");
    client.until_text("ready");
    let both = [(); 2].map(|()| client.request(TERMINATE, &of(&session)));
    for asked in &both {
        assert_eq!(client.result(asked)["reason"], "terminated");
    }
    let info = meta(&entry(&mut client, &session))["terminationInfo"].clone();
    assert_eq!(info["escalation"], json!(["stdin_closed", "terminated", "killed"]));
    client.finish();
}

// contract 1.1: rule 4, the first cause wins, and who comes second is told so
#[test]
fn a_terminate_behind_a_close_tells_of_the_close() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    client.prompt(&session, "ignore-cancel\nready\nhang");
    client.until_text("ready");
    let closed = client.request("session/close", &of(&session));
    let terminated = client.request(TERMINATE, &of(&session));
    let expected = json!({"terminated": true, "reason": "completed", "terminatedBy": "daemon",
        "alreadyEnded": true});
    assert_eq!(client.result(&terminated), expected);
    client.result(&closed);
    client.finish();
}

// contract 6, SE-10: nobody goes on with a session while the agent that it was lost with still lives
#[test]
fn a_lost_session_waits_for_its_old_agent() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    client.prompt(&session, "ignore-sigterm\nready\nhang");
    client.until_text("ready");
    let old = scratch.mark().running("example-agent")[0].pid;
    let mut later = scratch.stdio("example");
    later.initialize();
    client.signal(Signal::KILL);
    client.read_to_end();
    later.call(RESUME, &taking(&scratch, &session));
    let living = scratch.mark().running("example-agent");
    assert!(living.iter().all(|process| process.pid != old), "{living:?}");
    assert_eq!(later.turn(&session, "hello"), "end_turn");
    later.finish();
    client.ended();
}

// contract 6: of two processes one takes a session up, and the other says which
#[test]
fn two_processes_do_not_take_up_one_session() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    client.turn(&session, "hello");
    client.finish();
    let mut both = [(); 2].map(|()| scratch.stdio("example"));
    both.iter_mut().for_each(|client| drop(client.initialize()));
    let asked = both.each_mut().map(|client| client.request(LOAD, &taking(&scratch, &session)));
    let [first, second] = &mut both;
    let results = [first.result(&asked[0]), second.result(&asked[1])];
    let lost: Vec<&Value> = results.iter().map(meta).filter(|meta| meta["resumable"] == false).collect();
    assert_eq!(lost.len(), 1, "{results:?}");
    assert!([first.pid(), second.pid()].iter().any(|pid| lost[0]["pid"] == *pid), "{lost:?}");
    both.iter_mut().for_each(Client::close_input);
    both.iter_mut().for_each(Client::read_to_end);
    both[0].ended();
    both[1].ended();
}

// SE-10: two loads of an ended session at once start one process
#[test]
fn two_loads_at_once_start_one_process() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    close(&mut client, &session);
    let both = [LOAD, RESUME].map(|method| client.request(method, &taking(&scratch, &session)));
    both.iter().for_each(|asked| drop(client.result(asked)));
    assert_eq!(scratch.mark().running("example-agent").len(), 1);
    client.finish();
}

// TM-1, PR-11: a record of a lost session knows of the turn, and so does who goes on with it
#[test]
fn a_lost_turn_is_told() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    client.turn(&session, "hello");
    client.prompt(&session, "ready\nhang");
    client.until_text("ready");
    client.signal(Signal::KILL);
    client.ended();
    let mut later = scratch.stdio("example");
    later.initialize();
    let info = meta(&entry(&mut later, &session))["terminationInfo"].clone();
    assert_eq!((&info["turnActive"], &info["lastStopReason"]), (&json!(true), &json!("end_turn")), "{info}");
    let result = later.call(LOAD, &taking(&scratch, &session));
    assert_eq!(meta(&result)["previousTerminationInfo"], info);
    // Once: who attaches to the live session is not told of an end.
    let result = later.call(LOAD, &taking(&scratch, &session));
    assert!(meta(&result).get("previousTerminationInfo").is_none());
    later.finish();
}

// contract 1, TM-3: what cannot be says why
#[test]
fn refusals_say_why() {
    let scratch = Scratch::new().example("other", &[]);
    let (mut client, session) = scratch.session("example");
    client.call(DETACH, &of(&session));
    let asked = client.prompt(&session, "hello");
    let error = client.error(&asked);
    assert_eq!(error["message"], "not attached to this session; load or resume it first");
    client.call(RESUME, &taking(&scratch, &session));
    client.call(TERMINATE, &of(&session));
    until_ended(&mut client, &session, 1);
    let error = client.refused(RESUME, &taking(&scratch, &session));
    assert_eq!(error["data"]["terminationInfo"]["reason"], "terminated", "{error}");
    client.finish();
    let mut other = scratch.stdio("other");
    other.initialize();
    let error = other.refused("session/fork", &taking(&scratch, &session));
    assert!(error["message"].as_str().unwrap().contains("it belongs to agent example"), "{error}");
    other.finish();
}
