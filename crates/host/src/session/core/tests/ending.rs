//! Ends of runs: what is waited for, and what is answered.

use super::*;
use acpd_record::Cause;
use acpd_supervisor::{Containment, ExitReport, ExitStatus, StderrExcerpt};

fn gone(status: ExitStatus) -> Ended {
    let report = ExitReport {
        pid: 1,
        status,
        leaked: 0,
        rungs: Vec::new(),
        oom_kills: 0,
        stderr: StderrExcerpt::default(),
        containment: Containment::Subreaper,
    };
    Ended::Gone(Arc::new(AgentEnd { report: Arc::new(report), fault: None }))
}

fn over(stage: &Stage, ended: Ended) -> Input {
    let committed = stage.log.len() as u64;
    Input::Over(Box::new(EndOfRun { ended, failure: None, committed }))
}

fn crashed(stage: &mut Stage) -> Effects {
    let input = over(stage, gone(ExitStatus::Code(3)));
    stage.take([input])
}

fn record(stage: &Stage) -> serde_json::Value {
    serde_json::from_str(stage.last()).expect("JSON")
}

// contract 1.1: an idle session of its own process: stopped at once, recorded by whom
#[test]
fn an_idle_session_ends_at_once() {
    let mut stage = Stage::new();
    let effects = stage.take([end(Cause::ClientTerminate)]);
    assert_eq!((stops(&effects), told(&effects).len()), (Some(Stop::Agent), 0));
    let input = over(&stage, gone(ExitStatus::Signal("SIGKILL".into())));
    stage.take([input]);
    let record = record(&stage);
    assert_eq!((&record["reason"], &record["terminatedBy"]), (&"terminated".into(), &"daemon".into()));
    assert_eq!((&record["cause"], &record["initiator"]), (&"client_terminate".into(), &"me".into()));
    assert_eq!(record["lastEventSeq"], 2);
}

// contract 1.1: the turn is cancelled first; what waits in line is given back, and the ladder starts in time
#[test]
fn a_running_turn_is_cancelled_first() {
    let mut stage = Stage::new();
    stage.prompt(1);
    stage.prompt(2);
    let effects = stage.take([end(Cause::ClientTerminate)]);
    assert_eq!((told(&effects), stops(&effects)), (vec!["session/cancel".to_owned()], None));
    assert_eq!(answered(&effects), [(2, 3, r#"{"stopReason":"cancelled"}"#.to_owned())]);
    assert_eq!(acts(&effects, |act| *act == Act::ReleaseTerminals), 1);
    assert_eq!(stops(&stage.wait(Duration::from_millis(599))), None);
    assert_eq!(stops(&stage.wait(Duration::from_millis(1))), Some(Stop::Agent));
    assert_eq!(stops(&stage.wait(Duration::from_secs(9))), None, "the ladder runs once");
    // PR-11: what is still open is answered in front of the end.
    let effects = crashed(&mut stage);
    assert_eq!(answered(&effects), [(1, 3, r#"{"stopReason":"cancelled"}"#.to_owned())]);
    assert_eq!(effects.answers[0].before, Some(4));
}

// contract 1.1, PR-12: a turn that is closed has a part of the time that its agent has to end in, so that under load its end is
// recorded too; another end does not wait so long
#[test]
fn a_closed_turn_has_time_to_end() {
    for (cause, waits) in
        [(Cause::ClientClose, true), (Cause::ClientTerminate, false), (Cause::DaemonShutdown, false)]
    {
        let mut stage = Stage::new();
        stage.prompt(1);
        stage.take([end(cause)]);
        let stopped = stops(&stage.wait(Duration::from_millis(1499)));
        assert_eq!(stopped, (!waits).then_some(Stop::Agent), "{cause:?}");
        if waits {
            stage.take([answer_of(Ticket::Turn(TurnNumber(1)), r#"{"stopReason":"cancelled"}"#, false)]);
            assert_eq!(stage.kinds(), ["prompt", "turn_ended"]);
            assert_eq!(stage.core.log().last_stop_reason(), Some("cancelled"));
        }
    }
}

// contract 1.1, PR-12: an agent that answers when its end has begun, but before it is gone, has its turn recorded, and is not
// stopped a second time, which would kill it
#[test]
fn a_turn_that_is_answered_late_is_recorded() {
    for cause in [Cause::ClientClose, Cause::ClientTerminate, Cause::DaemonShutdown] {
        let mut stage = Stage::new();
        stage.prompt(1);
        stage.take([end(cause)]);
        assert_eq!(stops(&stage.wait(Duration::from_secs(2))), Some(Stop::Agent), "{cause:?}");
        let answer = answer_of(Ticket::Turn(TurnNumber(1)), r#"{"stopReason":"cancelled"}"#, false);
        let effects = stage.take([answer]);
        assert_eq!((stops(&effects), told(&effects).len()), (None, 0), "{cause:?}");
        assert_eq!(stops(&stage.wait(Duration::from_secs(2))), None, "{cause:?}");
        let input = over(&stage, gone(ExitStatus::Code(0)));
        stage.take([input]);
        assert_eq!(stage.kinds(), ["prompt", "turn_ended", "ended"], "{cause:?}");
        let record = record(&stage);
        assert_eq!((&record["turnActive"], &record["lastStopReason"]), (&false.into(), &"cancelled".into()));
    }
}

// contract 7.3: an end that a client asked for is that of the run, also where the host died before it was recorded
#[test]
fn an_end_is_gone_on_with() {
    for (cause, reason) in [
        (Cause::ClientTerminate, "terminated"),
        (Cause::ClientClose, "completed"),
        (Cause::IdleTimeout, "error"),
    ] {
        let mut stage = Stage::with(RunFacts { is_kept: true, ..facts() });
        stage.take([end(cause)]);
        let ending = stage.core.meta().ending.clone();
        assert_eq!(ending.is_some(), cause != Cause::IdleTimeout);
        let mut meta = SessionMeta::default();
        meta.ending = ending;
        let (viewers, now) = (Viewers::default(), stage.now);
        let mut next = Stage::with(RunFacts { is_kept: true, ..facts() });
        let log = fold(&stage.log);
        next.core = SessionCore::new(next.core.facts.clone(), log, meta, viewers, Handover::default(), now);
        next.log = stage.log.clone();
        let input = over(&next, gone(ExitStatus::Signal("SIGKILL".into())));
        next.take([input]);
        assert_eq!(record(&next)["reason"], reason, "{}", next.last());
        assert!(next.core.meta().ending.is_none());
    }
}

// contract 1.1: an agent that ends its turn in time is stopped then
#[test]
fn a_turn_that_ends_in_time_settles_the_end() {
    let mut stage = Stage::new();
    stage.prompt(1);
    stage.take([end(Cause::ClientTerminate)]);
    assert_eq!(stops(&stage.take([turn_answered(1)])), Some(Stop::Agent));
}

// SE-17, contract 1.4: close lets the agent close its session; whatever it says, and if it cannot, the end goes on
#[test]
fn close_asks_the_agent() {
    for answer in [
        answer_of(Ticket::Close, "{}", false),
        answer_of(Ticket::Close, r#"{"code":-32601,"message":"?"}"#, true),
        Input::CannotClose,
    ] {
        let mut stage = Stage::new();
        let effects = stage.take([end(Cause::ClientClose)]);
        assert_eq!((told(&effects), stops(&effects)), (vec!["close".to_owned()], None));
        assert_eq!(stops(&stage.take([answer])), Some(Stop::Agent));
    }
    let mut stage = Stage::new();
    stage.take([end(Cause::ClientClose)]);
    assert_eq!(stops(&stage.wait(Duration::from_millis(300))), Some(Stop::Agent), "it does not answer");
    // The first cause stands; a terminate only hurries.
    let mut stage = Stage::new();
    stage.take([end(Cause::ClientClose)]);
    assert_eq!(stops(&stage.take([end(Cause::ClientTerminate)])), Some(Stop::Agent));
    crashed(&mut stage);
    assert_eq!(record(&stage)["cause"], "client_close");
}

// contract 1.1: a shared process is left; the agent is told, and what it asked for is answered
#[test]
fn a_shared_process_is_left() {
    let mut stage = Stage::with(RunFacts { is_shared: true, ..facts() });
    stage.take([asks(1, "terminal/wait_for_exit", r#""terminalId":"t""#)]);
    assert_eq!(told(&stage.take([end(Cause::ClientTerminate)])), ["close"]);
    let effects = stage.take([Input::CannotClose]);
    assert_eq!(stops(&effects), Some(Stop::Leave));
    assert!(told(&effects)[0].starts_with("error of 1: "));
    let input = over(&stage, Ended::Released);
    stage.take([input]);
    assert_eq!((&record(&stage)["reason"], record(&stage).get("exitCode")), (&"terminated".into(), None));
}

// contract 1.2, PR-11: a crash in a turn is told to all that waited, with the questions closed
#[test]
fn a_crash_answers_everything() {
    let mut stage = Stage::new();
    stage.prompt(1);
    stage.take([permission(5)]);
    let effects = crashed(&mut stage);
    assert!(told(&effects).is_empty(), "there is no agent to tell");
    assert_eq!(answered(&effects)[0].0, 1);
    assert_eq!(stage.kinds(), ["prompt", "permission_requested", "permission_resolved", "ended"]);
    let record = record(&stage);
    assert_eq!((&record["cause"], &record["exitCode"]), (&"agent_crash".into(), &3.into()));
    assert_eq!((&record["turnActive"], &record["lastEventSeq"]), (&true.into(), &5.into()));
}

// requests that come while it ends are answered with how it ended
#[test]
fn a_late_request_learns_the_end() {
    let mut stage = Stage::new();
    stage.take([end(Cause::DaemonShutdown)]);
    assert!(answered(&stage.prompt(1)).is_empty());
    let effects = crashed(&mut stage);
    assert_eq!(answered(&effects), [(1, 3, "session has ended".to_owned())]);
    assert_eq!(effects.answers[0].before, None);
}

// contract 1.2: what cannot be recorded ends the run, and nothing more is shown of it
#[test]
fn a_log_that_fails_ends_the_run() {
    let mut stage = Stage::new();
    stage.prompt(1);
    let effects = stage.take([Input::LogFailed]);
    assert_eq!(stops(&effects), Some(Stop::Agent));
    assert_eq!(stops(&stage.take([Input::LogFailed])), None);
    stage.take([said("a"), turn_answered(1)]);
    assert_eq!(stage.kinds(), ["prompt"]);
    let (failure, committed) = (Some("disk full".to_owned()), 2);
    let ended = gone(ExitStatus::Code(0));
    stage.take([Input::Over(Box::new(EndOfRun { ended, failure, committed }))]);
    let record = record(&stage);
    assert_eq!((&record["message"], &record["lastEventSeq"]), (&"disk full".into(), &2.into()));
}

// contract 1.2: idle_timeout is counted from the last thing that happened, and not in a turn
#[test]
fn an_idle_session_ends_by_itself() {
    let idle = Duration::from_secs(60);
    let mut stage = Stage::with(RunFacts { limits: Limits { idle: Some(idle), ..limits() }, ..facts() });
    stage.now.at += idle / 2;
    stage.prompt(1);
    assert_eq!(stops(&stage.wait(idle * 2)), None);
    stage.take([turn_answered(1)]);
    assert_eq!(stops(&stage.wait(idle / 2)), None);
    assert_eq!(stops(&stage.wait(idle / 2)), Some(Stop::Agent));
    crashed(&mut stage);
    assert_eq!(record(&stage)["cause"], "idle_timeout");
}

/// A run that is closed behind a turn.
fn closing_behind_a_turn() -> Stage {
    let after_turn = Some(AfterTurn { client: "me".into(), turns: TurnNumber(0) });
    Stage::with(RunFacts { is_shared: true, after_turn, ..facts() })
}

// contract 7.3: closeAfterTurn, and a prompt that was accepted has its turn first, whatever became of the one before
#[test]
fn a_run_is_closed_behind_its_last_turn() {
    let mut stage = closing_behind_a_turn();
    assert_eq!(stops(&stage.wait(Duration::from_secs(1))), None, "none has ended yet");
    stage.prompt(1);
    stage.prompt(2);
    assert_eq!(told(&stage.take([turn_answered(1)])), ["session/prompt Turn(TurnNumber(2))"]);
    stage.take([cancel()]);
    let effects = stage.take([turn_answered(2)]);
    assert_eq!(acts(&effects, |act| matches!(act, Act::Close { .. })), 1, "{effects:?}");
    assert_eq!(stage.kinds(), ["prompt", "turn_ended", "prompt", "cancel_requested", "turn_ended"]);
    // What comes now comes too late, and is told so.
    assert!(answered(&stage.prompt(3)).is_empty());
    stage.take([Input::CannotClose]);
    let input = over(&stage, Ended::Released);
    assert!(answered(&stage.take([input]))[0].2.contains("has ended"));
    assert_eq!(record(&stage)["cause"], "client_close");
}

// contract 7.3, PR-6: a turn that was given up has ended; one in line waits until the agent is done, or is withdrawn
#[test]
fn a_run_is_closed_behind_a_turn_that_was_given_up() {
    let closes = |effects: &Effects| acts(effects, |act| matches!(act, Act::Close { .. })) == 1;
    let mut stage = closing_behind_a_turn();
    stage.prompt(1);
    stage.take([cancel()]);
    assert!(closes(&stage.wait(Duration::from_secs(10))));
    let mut stage = closing_behind_a_turn();
    stage.prompt(1);
    stage.prompt(2);
    stage.take([cancel()]);
    assert!(!closes(&stage.wait(Duration::from_secs(10))));
    assert!(closes(&stage.take([Input::Withdraw { request: ClientRequest(2) }])));
}
