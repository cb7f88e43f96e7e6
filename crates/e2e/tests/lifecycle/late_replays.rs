//! Agents that answer `session/load` and then go on with the replay: what is recorded is neither recorded nor shown
//! again, and what is new is (SE-7).

use crate::asking::{close, take_part, taking, updates};
use crate::stored::{PROMPT, UPDATE, of_kind, stored};
use acpd_e2e::{Client, Scratch, taking_shell_agent};
use serde_json::{Value, json};

const LOAD: &str = "session/load";

/// A shell agent that says what it is prompted with, and does `load` when it is to load its session.
fn loading(load: &str) -> Scratch {
    let body = r#"
        says() {
            printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"shell-1","update":'
            printf '{"sessionUpdate":"%s","content":{"type":"text","text":"%s"}}}}\n' "$1" "$2"
        }
        user() { says user_message_chunk "$1"; }
        agent() { says agent_message_chunk "$1"; }
        tool() {
            printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"shell-1","update":'
            printf '{"sessionUpdate":"tool_call","toolCallId":"%s","title":"look"}}}\n' "$1"
        }
        said() { text=${line##*'"text":"'}; text=${text%%'"'*}; }
        turn() {
            case $text in tool*) tool "${text#tool }";; esac
            agent "$text"; answer '{"stopReason":"end_turn"}'
        }
        take; answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}'
        while take; do case $line in
        *'"session/new"'*) answer '{"sessionId":"shell-1"}';;
        *'"session/load"'*) LOAD;;
        *'"session/prompt"'*) said; turn;;
        esac; done"#;
    Scratch::new().shell("replaying", &taking_shell_agent(&body.replace("LOAD", load)))
}

/// A closed session with some turns.
fn with_turns(scratch: &Scratch, prompts: &[&str]) -> (Client, String) {
    let (mut client, session) = scratch.session("replaying");
    for prompt in prompts {
        assert_eq!(client.turn(&session, prompt), "end_turn");
    }
    close(&mut client, &session);
    (client, session)
}

/// What was said in some updates, by whom: `u:one`.
fn said<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let word = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let update = &line["params"]["update"];
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        format!("{}:{}", &kind[..1], update["content"]["text"].as_str().unwrap_or_default())
    };
    lines.into_iter().map(word).collect()
}

/// Loads, lets `meanwhile` be, and gives what the client was shown of the session behind the answer.
fn shown_behind(
    client: &mut Client,
    scratch: &Scratch,
    session: &str,
    meanwhile: impl FnOnce(&mut Client),
) -> Vec<String> {
    let asked = client.request(LOAD, &taking(scratch, session));
    client.result(&asked);
    let before = updates(client.since(&asked), session).len();
    meanwhile(client);
    said(updates(client.since(&asked), session).split_off(before))
}

/// What a load shows from the log.
fn history(scratch: &Scratch, session: &str) -> Vec<String> {
    let mut reader = scratch.stdio("example");
    reader.initialize();
    let (_, lines) = take_part(&mut reader, scratch, LOAD, session);
    reader.finish();
    said(lines.iter().map(String::as_str))
}

const THREE: [&str; 3] = ["one", "two", "three"];
const TOLD: &str = "user one; agent one; user two; agent two; user three; agent three";

// SE-7: in time, early, in the middle; a take-up after a take-up adds nothing, and chunks may be cut anew
// quirk late-replay (agents that replay in the background): what was recorded before is not recorded again, whenever
// it comes
#[test]
fn a_replay_behind_the_answer_is_not_recorded() {
    for load in [
        format!("{TOLD}; answer '{{}}'"),
        format!("answer '{{}}'; {TOLD}"),
        "user one; agent one; user two; answer '{}'; agent two; user three; agent three".to_owned(),
        "answer '{}'; user o; user ne; agent on; agent e; user two; agent two; user three; agent thr; agent ee"
            .to_owned(),
    ] {
        let scratch = loading(&load);
        let (mut client, session) = with_turns(&scratch, &THREE);
        for turn in ["four", "five"] {
            let shown = shown_behind(&mut client, &scratch, &session, |client| {
                assert_eq!(client.turn(&session, turn), "end_turn");
            });
            assert_eq!(shown, [format!("a:{turn}")], "{load}");
            close(&mut client, &session);
        }
        client.finish();
        let events = stored(&scratch, &session);
        assert_eq!((of_kind(&events, PROMPT).len(), of_kind(&events, UPDATE).len()), (5, 5), "{load}");
        let expected: Vec<String> = ["one", "two", "three", "four", "five"]
            .iter()
            .flat_map(|word| [format!("u:{word}"), format!("a:{word}")])
            .collect();
        assert_eq!(history(&scratch, &session), expected);
    }
}

// SE-7: a prompt in the middle of a replay ends none of it, and its answer is new
#[test]
fn a_prompt_meets_a_replay() {
    for load in [
        // The rest of the replay comes when the agent has the prompt.
        "answer '{}'; user one; agent one; take; said; user two; agent two; user three; agent three; turn",
        "user one; agent one; user two; answer '{}'; take; said; agent two; user three; agent three; turn",
        // All of it.
        "answer '{}'; take; said; user one; agent one; user two; agent two; user three; agent three; turn",
        // The agent has not kept all turns: the replay ends before the history does.
        "answer '{}'; user one; agent one; user two; take; said; agent two; turn",
        "answer '{}'; user one; agent o; take; said; agent ne; turn",
        "answer '{}'; take; said; user one; agent one; turn",
    ] {
        let scratch = loading(load);
        let (mut client, session) = with_turns(&scratch, &THREE);
        let shown = shown_behind(&mut client, &scratch, &session, |client| {
            assert_eq!(client.turn(&session, "threefold"), "end_turn");
        });
        assert_eq!(shown, ["a:threefold"], "{load}");
        client.finish();
        assert_eq!(of_kind(&stored(&scratch, &session), UPDATE).len(), 4, "{load}");
    }
}

// SE-7: nothing new is lost: what an agent says behind its answer of its own accord, and an answer that begins like one
// that a crash cut off
#[test]
fn news_behind_the_answer_are_recorded() {
    for (prompts, load, next, shown) in [
        (
            &["one", "two"][..],
            "answer '{}'; user one; agent one; agent 'by the way'",
            "on",
            &["a:by the way", "a:on"][..],
        ),
        (&["one"][..], "answer '{}'; agent 'Welcome back'", "one", &["a:Welcome back", "a:one"][..]),
        (&["one", "two"][..], "user one; agent one; answer '{}'; tool new-1", "two", &["t:", "a:two"][..]),
        // The agent has lost the second turn, or knows its prompt only.
        (&["one", "hello there"][..], "user one; agent one; answer '{}'", "hello", &["a:hello"][..]),
        (
            &["one", "hello there"][..],
            "user one; agent one; user 'hello there'; answer '{}'",
            "hello",
            &["a:hello"][..],
        ),
    ] {
        let scratch = loading(load);
        let (mut client, session) = with_turns(&scratch, prompts);
        let seen = shown_behind(&mut client, &scratch, &session, |client| {
            assert_eq!(client.turn(&session, next), "end_turn");
        });
        assert_eq!(seen, shown, "{load}");
        client.finish();
        let updates = of_kind(&stored(&scratch, &session), UPDATE).len();
        assert_eq!(updates, prompts.len() + shown.len(), "{load}");
    }
}

// SE-7: tool calls by their ids; and what a replay shows as the user's words though the user never said it, as some
// agents show what a tool gave, is no news: there was no prompt
// quirk late-replay
#[test]
fn another_shape_of_the_same_is_a_replay() {
    let told =
        "user 'tool c-1'; tool c-1; user '[Function Response: look]'; agent 'tool c-1'; user two; agent two";
    let scratch = loading(&format!("answer '{{}}'; {told}"));
    let (mut client, session) = with_turns(&scratch, &["tool c-1", "two"]);
    let shown = shown_behind(&mut client, &scratch, &session, |client| {
        assert_eq!(client.turn(&session, "three"), "end_turn");
    });
    assert_eq!(shown, ["a:three"]);
    client.finish();
    let events = stored(&scratch, &session);
    assert_eq!(of_kind(&events, UPDATE).len(), 4);
    assert!(events.iter().all(|event| !event.text.contains("Function Response")));
}

// SE-7, SE-8: nothing of it reaches another viewer either, and a run that ends in the middle of it ends as it should
#[test]
fn a_replay_that_a_close_cuts_off_leaves_no_trace() {
    let scratch = loading("answer '{}'; user one; agent one; user two; while take; do :; done");
    let (mut client, session) = with_turns(&scratch, &["one", "two"]);
    let shown = shown_behind(&mut client, &scratch, &session, |client| close(client, &session));
    assert_eq!(shown, [] as [String; 0]);
    assert_eq!(client.call("session/list", &json!({}))["sessions"].as_array().map(Vec::len), Some(1));
    client.finish();
    assert_eq!(of_kind(&stored(&scratch, &session), UPDATE).len(), 2);
}
