//! Turns: what is recorded, what the agent is told, what clients are answered.

use super::*;

// PR-1, PR-3: the prompt is an event, under our id there and under the agent's id to the agent
#[test]
fn a_turn_is_recorded_from_prompt_to_answer() {
    let mut stage = Stage::new();
    let effects = stage.prompt(7);
    assert_eq!(told(&effects), ["session/prompt Turn(TurnNumber(1))"]);
    assert!(
        effects.acts.iter().any(|ordered| matches!(&ordered.act, Act::Request { params: Some(params), .. }
        if params.as_ref() == br#"{"sessionId":"native","prompt":[{"type":"text","text":"hi"}]}"#))
    );
    assert_eq!(stage.last(), r#"{"turn":1,"by":"me","via":"me","prompt":[{"type":"text","text":"hi"}]}"#);
    assert!(stage.core.state() == SessionState::Running);
    stage.take([said("a")]);
    assert!(stage.last().contains(r#""sessionId":"ours""#), "{}", stage.last());
    // The answer stands behind the event of its turn's end, before what the agent says next.
    let effects = stage.take([turn_answered(1), said("b")]);
    assert_eq!(answered(&effects), [(7, 5, r#"{"stopReason":"end_turn"}"#.to_owned())]);
    assert_eq!(stage.kinds(), ["prompt", "update", "turn_ended", "update"]);
    assert!(stage.core.state() != SessionState::Running);
}

// contract 7.3: what the first prompt was is in the index while its turn runs, for who lists the sessions of a daemon that died
#[test]
fn the_first_prompt_is_indexed_when_it_comes() {
    let mut stage = Stage::new();
    assert_eq!(stage.core.meta.tally.first_prompt, None);
    stage.prompt(1);
    assert_eq!(stage.core.meta.tally.first_prompt.as_deref(), Some("hi"));
}

// PR-8: one at a time, in order; the next begins with the end of the one before
#[test]
fn a_second_prompt_waits_its_turn() {
    let mut stage = Stage::new();
    stage.prompt(1);
    assert!(told(&stage.prompt(2)).is_empty());
    let effects = stage.take([turn_answered(1)]);
    assert_eq!(told(&effects), ["session/prompt Turn(TurnNumber(2))"]);
    assert_eq!(stage.kinds(), ["prompt", "turn_ended", "prompt"]);
    assert_eq!(answered(&effects).len(), 1);
}

// PR-8: at most 16 wait
#[test]
fn too_many_prompts_are_refused() {
    let mut stage = Stage::new();
    for request in 0..17 {
        assert!(answered(&stage.prompt(request)).is_empty(), "{request}");
    }
    assert_eq!(answered(&stage.prompt(17))[0].2, "16 prompts are waiting already");
}

// PR-2, FR-10: a prompt that the agent cannot take is answered and not recorded
#[test]
fn a_bad_prompt_is_refused() {
    let mut stage = Stage::new();
    let effects = stage.take([Input::Request {
        request: ClientRequest(1),
        method: "session/prompt".to_owned(),
        params: Some(r#"{"prompt":[{"type":"image"}]}"#.into()),
        client: client("me"),
    }]);
    assert!(answered(&effects)[0].2.starts_with("prompt[0]: "));
    assert!(stage.kinds().is_empty() && told(&effects).is_empty());
}

// PR-4, PR-6: a cancel is passed on once, an abort that the agent calls an error is a result, terminals of the turn end
#[test]
fn a_cancelled_turn_ends_as_cancelled() {
    let mut stage = Stage::new();
    stage.prompt(1);
    stage.take([asks(5, "terminal/create", r#""command":"x""#)]);
    let created = r#"{"terminalId":"t"}"#;
    let summary: acpd_record::Json = serde_json::from_str(created).expect("JSON");
    let served = Served { result: created.into(), summary };
    stage.take([Input::Served { number: 1, outcome: Ok(served) }]);
    let effects = stage.take([cancel()]);
    assert_eq!(told(&effects), ["session/cancel"]);
    assert!(told(&stage.take([cancel()])).is_empty(), "it has heard of it");
    let effects =
        stage.take([answer_of(Ticket::Turn(TurnNumber(1)), r#"{"code":-1,"message":"aborted"}"#, true)]);
    assert_eq!(
        answered(&effects)[0].2,
        r#"{"stopReason":"cancelled","_meta":{"sandboxagent.dev":{"agentError":{"code":-1,"message":"aborted"}}}}"#
    );
    assert_eq!(acts(&effects, |act| *act == Act::KillTerminals(vec!["t".into()])), 1);
    assert_eq!(stage.kinds(), ["prompt", "agent_request", "cancel_requested", "turn_ended"]);
}

// PR-6: an agent that ignores the cancel loses its say, and the next turn waits until it is done with this one
#[test]
fn a_turn_is_given_up() {
    let mut stage = Stage::new();
    stage.prompt(1);
    stage.prompt(2);
    stage.take([cancel()]);
    assert!(answered(&stage.wait(Duration::from_secs(9))).is_empty());
    let effects = stage.wait(Duration::from_secs(1));
    assert_eq!(answered(&effects), [(1, 5, r#"{"stopReason":"cancelled"}"#.to_owned())]);
    assert_eq!(told(&effects), ["withdraw Turn(TurnNumber(1))"]);
    assert_eq!(stage.last(), r#"{"turn":1,"stopReason":"cancelled","agentIgnoredCancel":true}"#);
    assert!(stage.core.state() != SessionState::Running);
    // Its answer goes nowhere, and the next begins.
    let effects = stage.take([turn_answered(1)]);
    assert_eq!((answered(&effects).len(), told(&effects).len()), (0, 1));
    assert_eq!(stage.kinds(), ["prompt", "cancel_requested", "turn_ended", "prompt"]);
}

// an answer to a turn that does not run, or ran before, changes nothing
#[test]
fn a_stray_answer_is_dropped() {
    let mut stage = Stage::new();
    stage.take([turn_answered(1)]);
    stage.prompt(1);
    stage.take([turn_answered(2), turn_answered(1), turn_answered(1)]);
    assert_eq!(stage.kinds(), ["prompt", "turn_ended"]);
}

// contract 7.3: a cancel reaches the agent also when no turn is known to run
#[test]
fn a_cancel_without_a_turn_is_passed_on() {
    let mut stage = Stage::new();
    assert_eq!(told(&stage.take([cancel()])), ["session/cancel"]);
    assert!(stage.kinds().is_empty());
}

// an error of the agent ends the turn with it
#[test]
fn an_error_ends_the_turn() {
    let mut stage = Stage::new();
    stage.prompt(1);
    stage.take([answer_of(Ticket::Turn(TurnNumber(1)), r#"{"code":-32603,"message":"no"}"#, true)]);
    assert_eq!(stage.last(), r#"{"turn":1,"error":{"code":-32603,"message":"no"}}"#);
}

// an agent that does not read its input has no turn
#[test]
fn a_prompt_that_cannot_be_passed_on_ends_its_turn() {
    let mut stage = Stage::new();
    stage.prompt(1);
    stage.prompt(2);
    let ticket = Ticket::Turn(TurnNumber(1));
    let effects = stage.take([Input::Agent(FromAgent::NotReading { ticket, waiting: 9 })]);
    assert!(answered(&effects)[0].2.contains("does not read"));
    assert_eq!(stage.kinds(), ["prompt", "turn_ended", "prompt"]);
    let request = |request| Input::Request {
        request: ClientRequest(request),
        method: "session/set_mode".to_owned(),
        params: None,
        client: client("me"),
    };
    stage.take([request(3)]);
    let ticket = Ticket::Client(ClientRequest(3));
    let effects = stage.take([Input::Agent(FromAgent::NotReading { ticket, waiting: 9 })]);
    assert_eq!(answered(&effects)[0].0, 3);
}

// PR-3: the user's own words, repeated by the agent, are an echo
#[test]
fn an_echo_is_told_from_an_update() {
    let mut stage = Stage::new();
    let echo = |text: &str| {
        update(&format!(
            r#"{{"sessionUpdate":"user_message_chunk","content":{{"type":"text","text":"{text}"}}}}"#
        ))
    };
    stage.prompt(1);
    stage.take([echo("hi"), echo("ho")]);
    assert_eq!(stage.kinds(), ["prompt", "echo", "update"]);
}

// UP-6, contract 1.5: what an agent accepts without an update is an event
#[test]
fn an_accepted_change_is_recorded() {
    let mut stage = Stage::new();
    stage.take([update(r#"{"sessionUpdate":"current_mode_update","currentModeId":"a"}"#)]);
    let effects = stage.take([Input::Request {
        request: ClientRequest(1),
        method: "session/set_mode".to_owned(),
        params: Some(r#"{"sessionId":"ours","modeId":"b"}"#.into()),
        client: client("me"),
    }]);
    assert_eq!(told(&effects), ["session/set_mode Client(ClientRequest(1))"]);
    let effects = stage.take([answer_of(Ticket::Client(ClientRequest(1)), "{}", false)]);
    assert_eq!(answered(&effects), [(1, 4, "{}".to_owned())]);
    assert_eq!(stage.last(), r#"{"currentModeId":"b","by":"me"}"#);
    assert_eq!(stage.core.meta().mode.as_deref(), Some("b"));
}

// contract 1.4: a method that the agent does not have is remembered
#[test]
fn a_missing_method_is_remembered() {
    let mut stage = Stage::new();
    stage.take([Input::Request {
        request: ClientRequest(1),
        method: "session/set_model".to_owned(),
        params: None,
        client: client("me"),
    }]);
    let missing = r#"{"code":-32601,"message":"?"}"#;
    let effects = stage.take([answer_of(Ticket::Client(ClientRequest(1)), missing, true)]);
    assert_eq!(acts(&effects, |act| *act == Act::RememberMissing("session/set_model".to_owned())), 1);
}

// PR-9: a withdrawn prompt that waits is answered at once, one that runs is cancelled
#[test]
fn a_prompt_can_be_withdrawn() {
    let mut stage = Stage::new();
    stage.prompt(1);
    stage.prompt(2);
    let withdraw = |request| Input::Withdraw { request: ClientRequest(request) };
    assert_eq!(answered(&stage.take([withdraw(2)])), [(2, 3, r#"{"stopReason":"cancelled"}"#.to_owned())]);
    assert_eq!(told(&stage.take([withdraw(1)])), ["session/cancel"]);
    assert!(told(&stage.take([withdraw(9)])).is_empty());
}
