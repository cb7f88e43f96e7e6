//! Agents that replay a history that acpd has already, or say things that are not history.

use crate::asking::{answer_place, close, meta, take_part, taking, updates};
use crate::stored::{PROMPT, RUN_STARTED, UPDATE, of_kind, stored, update_kinds};
use acpd_e2e::{Scratch, shell_agent, taking_shell_agent};
use serde_json::json;

const RICH: &str = "think first\nplan a,b\ntool look\nsome words\nstream 100";

// SE-7, SE-8: what an agent replays is neither stored twice nor shown twice
#[test]
fn a_replay_is_not_stored_again() {
    let scratch = Scratch::new().example("replaying", &["--without", "resume"]);
    let (mut client, session) = scratch.session("replaying");
    assert_eq!(client.turn(&session, RICH), "end_turn");
    let live = updates(client.received(), &session).len();
    close(&mut client, &session);
    let (_, before) = take_part(&mut client, &scratch, "session/resume", &session);
    assert_eq!(before, Vec::<String>::new(), "a resume shows no history");
    assert_eq!(client.turn(&session, "again"), "end_turn");
    close(&mut client, &session);
    let (_, replayed) = take_part(&mut client, &scratch, "session/load", &session);
    // Both turns, each with the user's words.
    assert_eq!(replayed.len(), live + 1 + 2);
    client.finish();
    let mut later = scratch.stdio("replaying");
    later.initialize();
    let (_, replayed) = take_part(&mut later, &scratch, "session/load", &session);
    assert_eq!(replayed.len(), live + 1 + 2);
    later.finish();
    let events = stored(&scratch, &session);
    assert_eq!(of_kind(&events, UPDATE).len(), live + 1);
    assert_eq!((of_kind(&events, PROMPT).len(), of_kind(&events, RUN_STARTED).len()), (2, 4));
}

// SE-7: nor is what a replay says of the state, where it says nothing new
#[test]
fn a_replayed_state_is_not_stored_again() {
    let scratch = Scratch::new().example("replaying", &["--without", "resume"]);
    let (mut client, session) = scratch.session("replaying");
    assert_eq!(client.turn(&session, "title One\nmode plan\ntitle Two\ncommands a,b\nusage 1 2"), "end_turn");
    close(&mut client, &session);
    let asked = client.request("session/resume", &taking(&scratch, &session));
    let result = client.result(&asked);
    assert_eq!(result["modes"]["currentModeId"], "plan");
    assert_eq!(client.turn(&session, "again"), "end_turn");
    let seen: Vec<_> = client.since(&asked).iter().filter_map(|m| m.update_kind()).collect();
    assert_eq!(seen, ["agent_message_chunk"]);
    client.finish();
    let kinds = update_kinds(&stored(&scratch, &session));
    let expected = [
        "session_info_update",
        "current_mode_update",
        "session_info_update",
        "available_commands_update",
        "usage_update",
        "agent_message_chunk",
    ];
    assert_eq!(kinds, expected);
}

/// A shell agent that resumes, and says `replayed` before it answers that.
fn resuming(replayed: &str) -> Vec<String> {
    taking_shell_agent(&format!(
        "take; answer '{{\"protocolVersion\":1,\"agentCapabilities\":{{\"sessionCapabilities\":{{\"resume\":{{}}}}}}}}'\n\
         while take; do case $line in\n\
         *'\"session/new\"'*) answer '{{\"sessionId\":\"shell-1\"}}';;\n\
         *'\"session/resume\"'*) {replayed}; answer '{{}}';;\n\
         *) update said; answer '{{\"stopReason\":\"end_turn\"}}';;\n\
         esac; done"
    ))
}

// SE-8: also when an agent replays on a resume, which it must not
#[test]
fn a_resume_that_replays_shows_nothing() {
    let scratch = Scratch::new().shell("wrong", &resuming("update said; update said"));
    let (mut client, session) = scratch.session("wrong");
    assert_eq!(client.turn(&session, "x"), "end_turn");
    close(&mut client, &session);
    let asked = client.request("session/resume", &taking(&scratch, &session));
    client.result(&asked);
    assert_eq!(answer_place(&mut client, &asked), 0, "nothing comes before the answer");
    let next = client.prompt(&session, "x");
    client.result(&next);
    assert_eq!(client.text_since(&asked, &session), "said");
    client.finish();
    assert_eq!(of_kind(&stored(&scratch, &session), UPDATE).len(), 2);
}

// SE-1: two agents that give the same id give two sessions
#[test]
fn equal_ids_of_agents_are_different_sessions() {
    let scratch = Scratch::new().shell("one", &resuming(":")).shell("two", &resuming(":"));
    let (mut one, first) = scratch.session("one");
    let second = one.new_session();
    let (mut two, third) = scratch.session("two");
    assert!(first != second && second != third && first != third);
    let asked = one.prompt(&first, "x");
    one.result(&asked);
    assert_eq!((one.text_since(&asked, &first), one.text_since(&asked, &second)), ("said".into(), "".into()));
    two.close_input();
    two.read_to_end();
    one.finish();
    two.finish();
}

// UP-3: a notice is seen when it comes, and not replayed
#[test]
fn a_notice_is_not_replayed() {
    let notice = r#"printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"shell-1","update":{"sessionUpdate":"notice","severity":"info","title":"Look"}}}\n'"#;
    let body = format!(
        "take; {notice}; update words; answer '{{\"stopReason\":\"end_turn\"}}'; while take; do :; done"
    );
    let scratch = Scratch::new().shell("noticing", &shell_agent(&body));
    let (mut client, session) = scratch.session("noticing");
    // The kind is younger than the schema.
    client.tolerant();
    let asked = client.prompt(&session, "x");
    client.result(&asked);
    let kinds: Vec<_> = client.since(&asked).iter().filter_map(|m| m.update_kind()).collect();
    assert_eq!(kinds, ["notice", "agent_message_chunk"]);
    close(&mut client, &session);
    let (result, replayed) = take_part(&mut client, &scratch, "session/load", &session);
    assert_eq!((replayed.len(), &meta(&result)["resumable"]), (2, &json!(false)), "{replayed:#?}");
    assert!(replayed.iter().all(|line| !line.contains("notice")));
    client.finish();
}

// PR-3: an echo of the agent is in the history once, as the user's message
#[test]
fn an_echo_is_in_the_history_once() {
    let echo = r#"printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"shell-1","update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"hi"}}}}\n'"#;
    let body = format!(
        "take; {echo}; update words; answer '{{\"stopReason\":\"end_turn\"}}'; while take; do :; done"
    );
    let scratch = Scratch::new().shell("echoing", &shell_agent(&body));
    let (mut client, session) = scratch.session("echoing");
    assert_eq!(client.turn(&session, "hi"), "end_turn");
    let said = |lines: &[&str]| lines.iter().filter(|line| line.contains("user_message_chunk")).count();
    assert_eq!(said(&updates(client.received(), &session)), 1, "the agent's own, as without acpd");
    for _ in 0..2 {
        let (_, replayed) = take_part(&mut client, &scratch, "session/load", &session);
        let replayed: Vec<&str> = replayed.iter().map(String::as_str).collect();
        assert_eq!((replayed.len(), said(&replayed)), (2, 1), "{replayed:#?}");
    }
    client.finish();
}
