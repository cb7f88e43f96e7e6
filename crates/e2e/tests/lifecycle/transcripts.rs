//! Sessions of agents that can neither resume nor load, taken up with a transcript (contract 1.4, the last fallback).

use crate::asking::{close, entry, meta, of, take_part, taking, until_ended};
use crate::stored::{PROMPT, RUN_STARTED, Stored, of_kind, stored};
use crate::tapped::{heard_in_full, tapped, times_heard};
use acpd_e2e::{Scratch, taking_shell_agent};
use serde_json::{Value, json};

const LOAD: &str = "session/load";
const RESUME: &str = "session/resume";
const TRANSCRIPT: u16 = 11;
const OPT_IN: &str = "resume_with_transcript = true";

fn forgetful() -> Scratch {
    tapped(Scratch::new(), "forgetful", "", "--without load,resume").config(OPT_IN)
}

/// The content of each prompt that the agent was sent.
fn prompts(scratch: &Scratch, agent: &str) -> Vec<Value> {
    let heard = heard_in_full(scratch, agent);
    let prompts = heard.into_iter().filter(|line| line["method"] == "session/prompt");
    prompts.map(|line| line["params"]["prompt"].clone()).collect()
}

/// The events of one kind as JSON.
fn events(scratch: &Scratch, session: &str, kind: u16) -> Vec<Value> {
    stored(scratch, session).iter().filter(|event| event.kind == kind).map(Stored::json).collect()
}

// contract 1.4: a new session of the agent's, which is given the history with the next prompt and only with that; the
// user's prompt in the log is as it was, and what was given is an event of its own
#[test]
fn the_next_prompt_brings_the_transcript() {
    for method in [RESUME, LOAD] {
        let scratch = forgetful();
        let (mut client, session) = scratch.session("forgetful");
        assert_eq!(client.turn(&session, "first words"), "end_turn");
        assert_eq!(client.turn(&session, "tool look\nmore words"), "end_turn");
        close(&mut client, &session);
        client.finish();

        let mut later = scratch.stdio("forgetful");
        later.initialize();
        let (result, replayed) = take_part(&mut later, &scratch, method, &session);
        assert_eq!(replayed.is_empty(), method == RESUME);
        let told = meta(&result)["transcript"].clone();
        assert_eq!((&told["messages"], &told["omittedMessages"]), (&json!(5), &json!(0)), "{result}");
        assert_eq!((&told["truncated"], meta(&result).get("resumable")), (&json!(false), None));
        assert_eq!(meta(&entry(&mut later, &session))["ended"], false);
        // Whoever attaches while the run lives is told too.
        let (again, _) = take_part(&mut later, &scratch, RESUME, &session);
        assert_eq!(meta(&again)["transcript"], told);
        let asked = later.prompt(&session, "third words");
        assert_eq!(later.result(&asked)["stopReason"], "end_turn");
        let said = later.text_since(&asked, &session);
        assert!(said.starts_with("[resource acpd://sessions/") && said.ends_with("\nthird words"), "{said}");
        assert_eq!(later.turn(&session, "fourth words"), "end_turn");

        let prompts = prompts(&scratch, "forgetful");
        let words = |text: &str| json!({"type": "text", "text": text});
        assert_eq!(prompts.len(), 4);
        assert_eq!((&prompts[2][1], prompts[2].get(2)), (&words("third words"), None));
        assert_eq!(prompts[3], json!([words("fourth words")]));
        let given = &prompts[2][0];
        assert_eq!(given["type"], "resource", "the example agent takes resources");
        let text = given["resource"]["text"].as_str().expect("it is text");
        assert!(
            text.ends_with(
                "\n\n## User\n\nfirst words\n\n## Agent\n\nfirst words\n\n## User\n\ntool look\nmore words\
                 \n\n## Tool call: look\n\ncompleted\n\n## Agent\n\nmore words\n"
            ),
            "{text}"
        );
        assert_eq!(json!(text.len()), told["bytes"]);
        assert_eq!(times_heard(&scratch, "forgetful", "session/new"), 2, "in each run one");

        // To whoever reads, the user has said what the user said.
        let (_, replayed) = take_part(&mut later, &scratch, LOAD, &session);
        let by_user: Vec<&String> =
            replayed.iter().filter(|line| line.contains("user_message_chunk")).collect();
        assert_eq!(by_user.len(), 4);
        assert!(by_user.iter().all(|line| !line.contains("transcript")), "{by_user:#?}");
        later.finish();
        let runs = events(&scratch, &session, RUN_STARTED);
        assert_eq!((&runs[1]["method"], &runs[1]["transcript"]), (&json!("session/new"), &told));
        let mut expected = told;
        expected["turn"] = json!(3);
        assert_eq!(events(&scratch, &session, TRANSCRIPT), [expected]);
        let events = stored(&scratch, &session);
        let said: Vec<Value> =
            of_kind(&events, PROMPT).iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        assert_eq!(said[2]["prompt"], json!([words("third words")]));
        let place = events.iter().position(|event| event.kind == TRANSCRIPT).expect("it is there");
        assert_eq!(events[place - 1].kind, PROMPT);
    }
}

/// An agent that takes text only, and keeps what it hears: it fails, repeats its prompt, or crashes when told so.
fn plain() -> Scratch {
    let scratch = Scratch::new();
    let tap = scratch.path("plain.heard");
    let repeat = r#"block=${line#*'"prompt":['}; block=${block%%',{"type":"text","text":"repeat'*}
        printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"shell-1","update":'
        printf '{"sessionUpdate":"user_message_chunk","content":%s}}}\n' "$block""#;
    // What it was told last is what counts, not what the transcript repeats.
    let body = format!(
        "take; answer '{{\"protocolVersion\":1,\"agentCapabilities\":{{}}}}'\n\
         while take; do printf '%s\\n' \"$line\" >>'{}'; case ${{line##*'\"text\":'}} in\n\
         *'\"session/new\"'*) answer '{{\"sessionId\":\"shell-1\"}}';;\n\
         '\"fail'*) printf '{{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{{\"code\":-32603,\"message\":\"no\"}}}}\\n' $id;;\n\
         '\"crash'*) update half; exit 1;;\n\
         '\"repeat'*) {repeat}; update said; answer '{{\"stopReason\":\"end_turn\"}}';;\n\
         *) update said; answer '{{\"stopReason\":\"end_turn\"}}';;\n\
         esac; done",
        tap.display()
    );
    scratch.shell("plain", &taking_shell_agent(&body)).config(OPT_IN)
}

// contract 1.4: what a crash interrupted is in it, and a run after that has all of it again
#[test]
fn each_run_is_given_all_that_was_before() {
    let scratch = plain();
    let (mut client, session) = scratch.session("plain");
    for round in 1..=2 {
        client.prompt(&session, &format!("crash {round}"));
        assert_eq!(until_ended(&mut client, &session, round)["exit_code"], 1);
        take_part(&mut client, &scratch, RESUME, &session);
    }
    assert_eq!(client.turn(&session, "at last"), "end_turn");
    client.finish();
    let prompts = prompts(&scratch, "plain");
    let text = |prompt: usize| prompts[prompt][0]["text"].as_str().expect("it was given").to_owned();
    assert!(text(1).contains("## User\n\ncrash 1\n\n## Agent\n\nhalf\n\n---\n\n"), "{}", text(1));
    assert!(text(1).ends_with("What the user says now follows.\n\n"), "{}", text(1));
    assert_eq!(text(2).matches("## User").count(), 2, "{}", text(2));
    assert_eq!(text(2).matches("transcript of the conversation").count(), 1);
    assert_eq!(prompts[2][1]["text"], "at last");
}

// contract 1.4: also where an agent only says that it has the methods, and where it has them and refuses
// quirk load-fails (agents that lose sessions): with `resume_with_transcript`, a new session of the agent is given the
// history as text
#[test]
fn it_stands_in_where_the_agent_has_no_way() {
    let missing = r#"s/"method":"session\/\(load\|resume\)"/"method":"session\/none"/"#;
    let scratch = tapped(Scratch::new(), "forgetful", missing, "").config(OPT_IN);
    let scratch = scratch.example("stateless", &["--no-state"]).config(OPT_IN);
    for agent in ["forgetful", "stateless"] {
        let (mut client, session) = scratch.session(agent);
        assert_eq!(client.turn(&session, "words"), "end_turn");
        close(&mut client, &session);
        let (result, _) = take_part(&mut client, &scratch, RESUME, &session);
        assert_eq!(meta(&result)["transcript"]["messages"], 2);
        let asked = client.prompt(&session, "more");
        assert_eq!(client.result(&asked)["stopReason"], "end_turn");
        assert!(client.text_since(&asked, &session).starts_with("[resource acpd://sessions/"));
        client.finish();
    }
}

/// A shell agent that refuses to load its session with `error`, and makes new ones.
fn refusing(error: &str) -> Scratch {
    let body = r#"
        take; answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}'
        while take; do case $line in
        *'"session/new"'*) answer '{"sessionId":"shell-1"}';;
        *'"session/load"'*) printf '{"jsonrpc":"2.0","id":%s,"error":%s}\n' "$id" 'ERROR';;
        *) update said; answer '{"stopReason":"end_turn"}';;
        esac; done"#;
    Scratch::new().shell("refusing", &taking_shell_agent(&body.replace("ERROR", error)))
}

// contract 1.4, SE-9: why an agent does not take a session up is said in a sentence, under acpd's own id of the session;
// one that wants a login has lost nothing yet, so nothing stands in for it
// quirk unknown-session-codes
#[test]
fn a_refusal_is_told_in_words() {
    let lost =
        r#"{"code":-32603,"message":"Internal error","data":{"details":"no chat of shell-1\nis there"}}"#;
    let login = r#"{"code":-32000,"message":"Authentication required"}"#;
    let wants_login = "Authentication required; `acpd agents login refusing` logs it in";
    for (error, config, expected) in
        [(lost, "", "Internal error: no chat of ID is there"), (login, OPT_IN, wants_login)]
    {
        let scratch = refusing(error).config(config);
        let (mut client, session) = scratch.session("refusing");
        assert_eq!(client.turn(&session, "words"), "end_turn");
        close(&mut client, &session);
        let reason = format!(
            "session cannot be taken up again: agent refusing refused session/load: {}",
            expected.replace("ID", &session)
        );
        assert_eq!(client.refused(RESUME, &taking(&scratch, &session))["message"], reason);
        let (result, _) = take_part(&mut client, &scratch, LOAD, &session);
        assert_eq!(meta(&result)["reason"], reason);
        client.finish();
    }
}

// contract 1.4: an empty history needs no transcript
#[test]
fn nothing_said_is_nothing_given() {
    let scratch = forgetful();
    let (mut client, session) = scratch.session("forgetful");
    close(&mut client, &session);
    let (result, _) = take_part(&mut client, &scratch, RESUME, &session);
    assert_eq!(meta(&result).get("transcript"), None);
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    client.finish();
    assert_eq!(prompts(&scratch, "forgetful"), [json!([{"type": "text", "text": "hello"}])]);
}

// contract 1.4: text for an agent that takes no resources; given again after a turn that failed; and an agent that
// repeats what it is prompted with does not make it the user's words
#[test]
fn it_is_given_until_a_turn_with_it_ends_well() {
    let scratch = plain();
    let (mut client, session) = scratch.session("plain");
    assert_eq!(client.turn(&session, "before"), "end_turn");
    close(&mut client, &session);
    take_part(&mut client, &scratch, RESUME, &session);
    let asked = client.prompt(&session, "fail");
    assert_eq!(client.error(&asked)["message"], "no");
    let asked = client.prompt(&session, "repeat");
    client.result(&asked);
    assert_eq!(client.text_since(&asked, &session), "said");
    assert_eq!(client.turn(&session, "after"), "end_turn");
    let (_, replayed) = take_part(&mut client, &scratch, LOAD, &session);
    assert!(replayed.iter().all(|line| !line.contains("transcript")), "{replayed:#?}");
    client.call("session/close", &of(&session));
    client.finish();
    let prompts = prompts(&scratch, "plain");
    let blocks: Vec<usize> = prompts.iter().map(|prompt| prompt.as_array().map_or(0, Vec::len)).collect();
    assert_eq!(blocks, [1, 2, 2, 1]);
    for prompt in &prompts[1..3] {
        assert_eq!(prompt[0]["type"], "text");
        let text = prompt[0]["text"].as_str().expect("it is text");
        assert!(text.contains("## User\n\nbefore\n\n## Agent\n\nsaid"), "{text}");
    }
    assert_eq!(prompts[1][0], prompts[2][0]);
    assert_eq!(events(&scratch, &session, TRANSCRIPT).len(), 2);
}
