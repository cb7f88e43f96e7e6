//! One session that hangs holds up no other (SE-21).

use crate::asking::{TERMINATE, close, listed, of, taking};
use crate::tapped::tapped;
use acpd_e2e::{Client, Scratch};
use serde_json::json;

/// An agent that never answers what concerns the directory `slow`.
fn slow(scratch: Scratch, shared: bool) -> Scratch {
    let sed = "/\"method\":\"session\\/\\(new\\|load\\|resume\\)\".*slow\"/d";
    let scratch = tapped(scratch, "slow", sed, "");
    std::fs::create_dir(scratch.path("slow")).expect("a directory in the scratch");
    if shared { scratch.config("share_process = true") } else { scratch }
}

/// What a client does with sessions that do not hang.
fn lives(client: &mut Client, scratch: &Scratch, known: &str) {
    let fresh = client.new_session();
    for session in [&fresh, known] {
        assert_eq!(client.turn(session, "hello"), "end_turn");
    }
    client.call("session/load", &taking(scratch, known));
    assert!(listed(client, &json!({})).len() >= 2);
    close(client, &fresh);
    client.call("session/resume", &taking(scratch, &fresh));
    client.call(TERMINATE, &of(&fresh));
}

// SE-21, FR-3: a `session/new` and a take-up that hang; acpd's end answers them
#[test]
fn a_session_that_hangs_holds_up_no_other() {
    for shared in [false, true] {
        let scratch = slow(Scratch::new(), shared);
        let (mut client, session) = scratch.session("slow");
        let stuck = client.new_session();
        close(&mut client, &stuck);
        let params = json!({"cwd": scratch.path("slow"), "mcpServers": []});
        let mut hanging =
            vec![client.request("session/new", &params), client.request("session/new", &params)];
        let mut params = taking(&scratch, &stuck);
        params["cwd"] = json!(scratch.path("slow"));
        hanging.push(client.request("session/resume", &params));
        lives(&mut client, &scratch, &session);
        client.close_input();
        client.read_to_end();
        for asked in &hanging {
            let answer = client.answer(asked);
            assert!(answer.json.get("error").is_some(), "{}", answer.raw);
        }
        client.expect_good_end();
    }
}

// SE-21, IN-6: what hangs is bounded by the time that a start may take
#[test]
fn a_session_that_hangs_is_given_up() {
    for shared in [false, true] {
        let scratch = slow(Scratch::new().timeout("initialize", "1s"), shared);
        let (mut client, session) = scratch.session("slow");
        let params = json!({"cwd": scratch.path("slow"), "mcpServers": []});
        let asked = client.request("session/new", &params);
        assert_eq!(client.turn(&session, "hello"), "end_turn");
        let error = client.error(&asked);
        let message = error["message"].as_str().unwrap();
        assert_eq!(message, "the agent did not answer session/new within 1 s");
        // Its process is not taken for a good one.
        let next = client.new_session();
        assert_eq!(client.turn(&next, "hello"), "end_turn");
        client.finish();
    }
}

// SE-21: a turn that never ends in one session, and one that floods, are nothing to another
// quirk one-session-only (agents that mix their sessions): each session has a process of its own, unless
// `share_process` says that it need not
#[test]
fn a_busy_session_holds_up_no_other() {
    for agent in ["example", "shared"] {
        let scratch = Scratch::new().example("shared", &[]).config("share_process = true");
        let (mut client, hanging) = scratch.session(agent);
        let (flooding, other) = (client.new_session(), client.new_session());
        client.prompt(&hanging, "begun\nhang");
        client.until_text("begun");
        let flood = client.prompt(&flooding, "stream 30000 200");
        assert_eq!(client.turn(&other, "hello"), "end_turn");
        client.call("session/load", &taking(&scratch, &other));
        assert_eq!(client.result(&flood)["stopReason"], "end_turn");
        client.finish();
    }
}
