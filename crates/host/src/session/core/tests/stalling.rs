//! An agent that says nothing: when that is told, and when it is not.

use super::*;

const STALL: Duration = Duration::from_secs(300);

fn stage() -> Stage {
    Stage::with(RunFacts { limits: Limits { stall: Some(STALL), ..limits() }, ..facts() })
}

// contract 7.3: a silent turn is told once, and once more when it goes on, in front of what shows it
#[test]
fn a_silent_turn_is_told() {
    let mut stage = stage();
    assert_eq!(stage.core.deadline(), None, "nothing is waited for");
    stage.prompt(1);
    stage.wait(STALL - Duration::from_secs(1));
    assert_eq!(stage.kinds(), ["prompt"]);
    stage.wait(Duration::from_secs(1));
    assert_eq!(stage.last(), r#"{"turn":1,"silentMs":300000}"#);
    assert_eq!(stage.core.deadline(), None, "it is told once");
    stage.wait(STALL);
    stage.take([said("a"), said("b")]);
    assert_eq!(stage.kinds(), ["prompt", "stalled", "stalled", "update", "update"]);
    assert_eq!(stage.log[4].1, r#"{"turn":1,"silentMs":600000,"goesOn":true}"#);
    // Silent again.
    stage.wait(STALL);
    assert_eq!(stage.last(), r#"{"turn":1,"silentMs":300000}"#);
}

// contract 7.2: whatever comes from the agent begins the time anew
#[test]
fn what_comes_begins_the_time_anew() {
    for heard in
        [said("a"), asks(5, "no/such", r#""x":1"#), asks(6, "session/request_permission", r#""x":1"#)]
    {
        let mut stage = stage();
        stage.prompt(1);
        stage.wait(STALL / 2);
        stage.take([heard]);
        stage.wait(STALL / 2);
        assert!(!stage.kinds().contains(&"stalled"));
        stage.wait(STALL / 2);
        assert_eq!(stage.last(), r#"{"turn":1,"silentMs":300000}"#);
    }
}

// contract 7.3: the end of a turn says by itself that it goes on, and the next one begins anew
#[test]
fn the_end_of_the_turn_ends_its_stall() {
    let mut stage = stage();
    stage.prompt(1);
    stage.prompt(2);
    stage.wait(STALL);
    stage.take([turn_answered(1)]);
    assert_eq!(stage.kinds(), ["prompt", "stalled", "turn_ended", "prompt"]);
    stage.wait(STALL);
    assert_eq!(stage.last(), r#"{"turn":2,"silentMs":300000}"#);
    stage.take([turn_answered(2)]);
    assert!(stage.wait(STALL * 2).recording.is_empty(), "no turn runs");
}

// contract 7.3: an agent that waits for an answer, or for acpd, has not stalled
#[test]
fn an_agent_that_waits_has_not_stalled() {
    let forever = Limits { permission: None, stall: Some(STALL), ..limits() };
    let mut stage = Stage::with(RunFacts { limits: forever, ..facts() });
    stage.prompt(1);
    stage.take([permission(5)]);
    stage.wait(STALL * 3);
    assert_eq!(stage.kinds(), ["prompt", "permission_requested"]);
    stage.take([chosen(4, "yes")]);
    stage.wait(STALL - Duration::from_secs(1));
    assert_eq!(stage.kinds(), ["prompt", "permission_requested", "permission_resolved"]);
    stage.wait(Duration::from_secs(1));
    assert_eq!(stage.last(), r#"{"turn":1,"silentMs":300000}"#);
    // It waits for a command.
    let mut stage = self::stage();
    stage.prompt(1);
    stage.take([asks(5, "terminal/wait_for_exit", r#""terminalId":"t""#)]);
    stage.wait(STALL * 3);
    assert_eq!(stage.kinds(), ["prompt"]);
    let summary: acpd_record::Json = serde_json::from_str("{}").expect("JSON");
    stage.take([Input::Served { number: 1, outcome: Ok(Served { result: "{}".into(), summary }) }]);
    stage.wait(STALL);
    assert_eq!(stage.kinds().last(), Some(&"stalled"));
}

// SE-8: after a restart of the host a stalled turn is told to go on, and is not told again before
#[test]
fn a_stall_survives_the_host() {
    let mut stage = stage();
    stage.prompt(1);
    stage.wait(STALL);
    let facts = RunFacts { limits: Limits { stall: Some(STALL), ..limits() }, ..facts() };
    let (log, meta) = (fold(&stage.log), SessionMeta::default());
    stage.core = SessionCore::new(facts, log, meta, stage.viewers.clone(), Handover::default(), stage.now);
    assert_eq!(stage.core.deadline(), None);
    stage.now.at += Duration::from_secs(2);
    stage.take([said("a")]);
    assert_eq!(stage.kinds(), ["prompt", "stalled", "stalled", "update"]);
    assert_eq!(stage.log[4].1, r#"{"turn":1,"silentMs":2000,"goesOn":true}"#);
}

// contract 7.2: "never"
#[test]
fn stalls_need_not_be_told() {
    let mut stage = Stage::new();
    stage.prompt(1);
    stage.wait(STALL * 1_000);
    assert_eq!(stage.kinds(), ["prompt"]);
}
