//! Prompts, cancels and the queue between them (requirements PR).

use acpd_e2e::{Client, Gate, Scratch, shell_agent};
use serde_json::{Value, json};

fn cancel(client: &mut Client, session: &str) {
    client.notify("session/cancel", &json!({"sessionId": session}));
}

fn withdraw(client: &mut Client, id: Value) {
    client.notify("$/cancel_request", &json!({"requestId": id}));
}

/// Waits for the answer to something harmless: whatever was sent before it has been dealt with.
fn settle(client: &mut Client) {
    client.call("_example/ping", &json!({}));
}

// PR-1: every update of the turn before the answer, none after
#[test]
fn updates_come_before_the_answer() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    for _ in 0..20 {
        let asked = client.prompt(&session, "stream 50\nplan a,b\ntool look\nthink well\nusage 5 10");
        assert_eq!(client.result(&asked)["stopReason"], "end_turn");
        settle(&mut client);
        let since = client.since(&asked);
        let answer = since.iter().position(|m| m.is_answer()).unwrap();
        assert_eq!(answer, 50 + 1 + 3 + 1 + 1);
        assert!(since[answer + 1..].iter().all(|m| m.is_answer()));
    }
    client.finish();
}

// PR-4: a result, not an error
#[test]
fn cancel_ends_the_turn_and_nothing_else() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let agents = scratch.mark().running("example-agent");
    let asked = client.prompt(&session, "begun\nhang");
    client.until_text("begun");
    cancel(&mut client, &session);
    assert_eq!(client.result(&asked), json!({"stopReason": "cancelled"}));
    // PR-7: not the process either.
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    assert_eq!(scratch.mark().running("example-agent")[0].pid, agents[0].pid);
    client.finish();
}

// PR-6: an agent that ignores the cancel loses its say after a bound; turns never mix
// quirk cancel-ignored
#[test]
fn a_cancel_that_is_ignored_is_bounded() {
    let scratch = Scratch::new().timeout("cancel", "300ms");
    let gate = Gate::new(scratch.path("gate"));
    // It reads the cancel when it has said all that it wants to.
    let body = format!(
        "take; first=$id; update begun; {}; update 'late words'\n\
         id=$first; answer '{{\"stopReason\":\"end_turn\"}}'\n\
         while take; do case $line in\n\
         *'\"session/prompt\"'*) update 'next words'; answer '{{\"stopReason\":\"end_turn\"}}';;\n\
         esac; done",
        gate.line()
    );
    let scratch = scratch.shell("deaf", &shell_agent(&body));
    let (mut client, session) = scratch.session("deaf");
    let ignored = client.prompt(&session, "begin");
    client.until_text("begun");
    let next = client.prompt(&session, "next words");
    cancel(&mut client, &session);
    assert_eq!(client.result(&ignored), json!({"stopReason": "cancelled"}));
    assert_eq!(client.text_since(&ignored, &session), "begun");
    gate.let_one_through();
    assert_eq!(client.result(&next)["stopReason"], "end_turn");
    let text = client.text_since(&ignored, &session);
    assert!(text.ends_with("late wordsnext words"), "{text}");
    assert_eq!(client.received().iter().filter(|m| m.is_answer()).count(), 4);
    client.finish();
}

// PR-7
#[test]
fn a_stray_cancel_is_nothing() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    for _ in 0..10 {
        cancel(&mut client, &session);
        assert_eq!(client.turn(&session, "hello there"), "end_turn");
        cancel(&mut client, &session);
        cancel(&mut client, &session);
    }
    client.finish();
}

// contract 7.3: an agent that has answered and works on hears of a cancel too; it is no event, because no turn ended by it
#[test]
fn a_cancel_reaches_an_agent_that_works_on() {
    let body = "while take; do case $line in\n\
         *'\"session/cancel\"'*) update stopped;;\n\
         *) answer '{\"stopReason\":\"end_turn\"}';;\n\
         esac; done";
    let scratch = Scratch::new().shell("early", &shell_agent(body));
    let (mut client, session) = scratch.session("early");
    assert_eq!(client.turn(&session, "work on"), "end_turn");
    cancel(&mut client, &session);
    assert_eq!(client.until_text("stopped").session(), Some(session.as_str()));
    assert_eq!(client.turn(&session, "next"), "end_turn");
    client.finish();
}

// PR-7: a cancel in the very next frame is not lost
#[test]
fn a_cancel_right_behind_its_prompt_is_not_lost() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    for id in 100..110 {
        let prompt = json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt",
            "params": {"sessionId": session, "prompt": [{"type": "text", "text": "hang"}]}});
        let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
        client.tolerant();
        client.write_line(format!("{prompt}\n{cancel}"));
        let answer = client.until("the answer", |m| m.json["id"] == id);
        assert_eq!(answer.json["result"], json!({"stopReason": "cancelled"}));
    }
    client.finish();
}

// PR-8: in order, each answered; the 17th that waits is refused; cancel clears the running one only
// quirk second-prompt (agents that cancel, mix or forget one of two prompts): the agent is given one prompt at a time,
// and the others wait in line
#[test]
fn prompts_wait_in_line() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let running = client.prompt(&session, "begun\nhang");
    client.until_text("begun");
    let waiting: Vec<_> = (0..16).map(|n| client.prompt(&session, &format!("<{n}>"))).collect();
    let refused = client.prompt(&session, "too many");
    let error = client.error(&refused);
    assert!(error["message"].as_str().unwrap().contains("16 prompts are waiting"), "{error}");
    cancel(&mut client, &session);
    assert_eq!(client.result(&running), json!({"stopReason": "cancelled"}));
    for asked in &waiting {
        assert_eq!(client.result(asked)["stopReason"], "end_turn");
    }
    let expected: String = (0..16).map(|n| format!("<{n}>")).collect();
    assert_eq!(client.text_since(&running, &session), format!("begun{expected}"));
    let answers: Vec<_> = client.since(&running).iter().filter(|m| m.is_answer()).collect();
    let ids: Vec<u64> = answers.iter().map(|m| m.json["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), 18);
    assert!(ids[1..].is_sorted(), "answered in order: {ids:?}");
    client.finish();
}

// PR-9: for the running prompt, for one in line, for one that never was
#[test]
fn a_prompt_can_be_withdrawn() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let prompt = |text: &str| json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    let running = client.request_as("\"run\"", "session/prompt", &prompt("begun\nhang"));
    client.until_text("begun");
    let queued = client.request_as("1000", "session/prompt", &prompt("never"));
    let last = client.request_as("\"last\"", "session/prompt", &prompt("at last"));
    withdraw(&mut client, json!("nobody"));
    withdraw(&mut client, json!(77));
    withdraw(&mut client, json!(1000));
    assert_eq!(client.result(&queued), json!({"stopReason": "cancelled"}));
    withdraw(&mut client, json!("run"));
    assert_eq!(client.result(&running), json!({"stopReason": "cancelled"}));
    assert_eq!(client.result(&last)["stopReason"], "end_turn");
    withdraw(&mut client, json!("last"));
    settle(&mut client);
    assert_eq!(client.text_since(&running, &session), "begunat last");
    assert_eq!(client.since(&running).iter().filter(|m| m.is_answer()).count(), 4);
    client.finish();
}

// PR-9: another request is withdrawn under the id that the agent knows
#[test]
fn a_request_is_withdrawn_under_the_agents_id() {
    let body = "take; slow=$id\ntake; case $line in *cancel_request*\\\"requestId\\\":$slow\\}*) answer=yes;; esac\n\
                id=$slow; answer \"{\\\"cancelled\\\":\\\"$answer\\\"}\"; take";
    let scratch = Scratch::new().shell("slow", &shell_agent(body));
    let (mut client, session) = scratch.session("slow");
    let asked = client.request_as("\"mine\"", "_slow/request", &json!({"sessionId": session}));
    withdraw(&mut client, json!("mine"));
    assert_eq!(client.result(&asked), json!({"cancelled": "yes"}));
    client.finish();
}

// PR-2: what the agent has not said it takes is refused, and not forwarded
#[test]
fn content_that_the_agent_lacks_is_refused() {
    let scratch = Scratch::new().shell(
        "plain",
        &shell_agent("while take; do update seen; answer '{\"stopReason\":\"end_turn\"}'; done"),
    );
    let (mut client, session) = scratch.session("plain");
    let text = json!({"type": "text", "text": "look"});
    for block in [
        json!({"type": "image", "mimeType": "image/png", "data": "AAAA"}),
        json!({"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}),
        json!({"type": "resource", "resource": {"uri": "file:///a", "text": "a"}}),
    ] {
        let error = client.refused("session/prompt", &json!({"sessionId": session, "prompt": [text, block]}));
        assert_eq!(error["code"], -32602);
        assert!(error["message"].as_str().unwrap().starts_with("prompt[1]: "), "{error}");
    }
    let link = json!({"type": "resource_link", "name": "a", "uri": "file:///a"});
    let asked = client.request("session/prompt", &json!({"sessionId": session, "prompt": [text, link]}));
    assert_eq!(client.result(&asked)["stopReason"], "end_turn");
    let seen: Vec<_> = client.received().iter().filter_map(|m| m.text()).collect();
    assert_eq!(seen, ["seen"]);
    client.finish();
}

// PR-2
#[test]
fn content_that_the_agent_takes_is_forwarded() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let image = json!({"type": "image", "mimeType": "image/png", "data": "AAAA", "uri": "file:///x.png"});
    let asked = client.request("session/prompt", &json!({"sessionId": session, "prompt": [image]}));
    assert_eq!(client.result(&asked)["stopReason"], "end_turn");
    assert_eq!(client.text_since(&asked, &session), "[image file:///x.png]");
    client.finish();
}

// PR-1, PR-8: the answer to a turn stands between its updates and those of the next
#[test]
fn answers_stand_between_the_turns() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    for round in 0..20 {
        let turns: Vec<_> = (0..10).map(|n| client.prompt(&session, &format!("<{round}.{n}>"))).collect();
        client.result(&turns[9]);
        let seen: Vec<String> = client
            .since(&turns[0])
            .iter()
            .map(|m| match m.text() {
                Some(text) => text.to_owned(),
                None => m.json["result"]["stopReason"].to_string(),
            })
            .collect();
        let expected: Vec<String> =
            (0..10).flat_map(|n| [format!("<{round}.{n}>"), "\"end_turn\"".to_owned()]).collect();
        assert_eq!(seen, expected);
    }
    client.finish();
}

// PR-1: also before what an agent says right behind its answer, and before the end
// quirk late-text
#[test]
fn an_agent_that_speaks_behind_its_answer() {
    let body = "n=0; while [ $n -lt 20 ]; do take; n=$((n+1)); update in; answer '{\"stopReason\":\"end_turn\"}'; update behind; done";
    let scratch = Scratch::new().shell("talker", &shell_agent(body));
    let (mut client, session) = scratch.session("talker");
    let first = client.prompt(&session, "x");
    client.result(&first);
    for _ in 1..20 {
        let asked = client.prompt(&session, "x");
        client.result(&asked);
    }
    client.until("the end", |m| m.method() == Some("_sandboxagent/session/ended"));
    let kinds: String = client
        .since(&first)
        .iter()
        .map(|m| match m.text() {
            Some(text) => text.to_owned(),
            None if m.is_answer() => "|".to_owned(),
            None => "end".to_owned(),
        })
        .collect();
    assert_eq!(kinds, "in|behind".repeat(20) + "end");
    client.finish();
}
