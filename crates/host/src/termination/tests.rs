//! Each way to end, and the exact shape of its record.

use super::*;
use acpd_record::SessionId;
use acpd_supervisor::{Containment, Rung};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

fn ended(status: ExitStatus) -> AgentEnd {
    let report = ExitReport {
        pid: 1,
        status,
        leaked: 0,
        rungs: Vec::new(),
        oom_kills: 0,
        stderr: StderrExcerpt::default(),
        containment: Containment::Subreaper,
    };
    AgentEnd { report: Arc::new(report), fault: None }
}

fn facts(turn_active: bool) -> SessionFacts {
    SessionFacts { turn_active, ..SessionFacts::default() }
}

fn info(end: &AgentEnd, turn_active: bool) -> TerminationInfo {
    of_agent(end, None, &facts(turn_active), 0)
}

// contract 1.2, TM-2: what counts as what
#[test]
fn each_end_has_its_reason() {
    use Cause::{AgentCrash, AgentExit};
    use Reason::{Completed, Error};
    use TerminatedBy::{Agent, Daemon};
    let code = ExitStatus::Code;
    let killed = || ExitStatus::Signal("SIGKILL".into());
    for (status, turn, reason, by, cause, exit, signal) in [
        (code(0), false, Completed, Agent, AgentExit, None, None),
        (code(0), true, Error, Agent, AgentExit, Some(0), None),
        (code(1), false, Error, Agent, AgentCrash, Some(1), None),
        (code(143), true, Error, Agent, AgentCrash, Some(143), None),
        (killed(), true, Error, Agent, AgentCrash, None, Some("SIGKILL")),
        (ExitStatus::Unknown, true, Error, Daemon, AgentCrash, None, None),
    ] {
        let got = info(&ended(status.clone()), turn);
        let case = format!("{status:?} {turn}");
        assert_eq!((got.reason, got.terminated_by, got.cause), (reason, by, Some(cause)), "{case}");
        assert_eq!((got.exit_code, got.signal.as_deref()), (exit, signal), "{case}");
        assert_eq!(got.message.is_some(), reason == Error, "{case}");
        assert_eq!(got.turn_active, turn, "{case}");
    }
    assert_eq!(info(&ended(code(1)), true).message.as_deref(), Some("agent exited with exit status: 1"));
}

// contract 1.2: the first cause wins; TM-2: how the process ended after our stop does not matter
#[test]
fn a_requested_end_is_not_the_agents_fault() {
    let requested = RequestedEnd { cause: Cause::DaemonShutdown, initiator: "editor".into() };
    let mut end = ended(ExitStatus::Signal("SIGKILL".into()));
    let mut report = (*end.report).clone();
    (report.rungs, report.leaked) = (vec![Rung::StdinClosed, Rung::Terminated, Rung::Killed], 2);
    report.stderr = StderrExcerpt { head: "noise".into(), tail: None, truncated: false, total_lines: 1 };
    end.report = Arc::new(report);
    let got = of_agent(&end, Some(&requested), &facts(true), 0);
    let expected = json!({
        "reason": "completed", "terminatedBy": "daemon", "endedAt": "1970-01-01T00:00:00.000Z",
        "cause": "daemon_shutdown", "initiator": "editor", "turnActive": true, "leaked": true,
        "escalation": ["stdin_closed", "terminated", "killed"], "containment": "subreaper",
    });
    assert_eq!(json!(got), expected);
}

// contract 7.2: a session whose agent ends because daemons of different versions follow each other has ended in good order
#[test]
fn an_upgrade_is_an_end_by_the_daemon() {
    let expected = json!({
        "reason": "completed", "terminatedBy": "daemon", "endedAt": "1970-01-01T00:00:00.000Z",
        "cause": "daemon_upgrade", "initiator": "daemon", "turnActive": true, "leaked": false,
    });
    assert_eq!(json!(daemon_upgrade(&facts(true), 0)), expected);
}

// contract 7.3: `fenced` and `superseded` are errors by the daemon, and say why and by whom
#[test]
fn an_end_for_the_fleet_is_an_error_by_the_daemon() {
    for (cause, initiator, message) in [
        (Cause::Fenced, "daemon", FENCED),
        (Cause::Superseded, "build-2", "node build-2 has taken the session up"),
    ] {
        let requested = RequestedEnd { cause, initiator: initiator.into() };
        let expected = json!({
            "reason": "error", "terminatedBy": "daemon", "message": message, "endedAt": "1970-01-01T00:00:00.000Z",
            "cause": cause.as_str(), "initiator": initiator, "turnActive": true, "leaked": false,
        });
        assert_eq!(json!(of_release(&requested, &facts(true), 0)), expected);
    }
}

// contract 7.3: `containment` says how far acpd sees, where there was a process to see
#[test]
fn a_record_says_how_much_was_seen() {
    let mut end = ended(ExitStatus::Code(0));
    for (containment, expected) in
        [(Containment::Subreaper, json!("subreaper")), (Containment::ProcessGroup, json!("group"))]
    {
        end.report = Arc::new(ExitReport { containment, ..(*end.report).clone() });
        assert_eq!(json!(info(&end, false))["containment"], expected);
        let early = AgentStartError::Uninitialized {
            failure: InitializeFailure::Timeout { after: Duration::from_secs(1), dropped: None },
            end: Arc::new(end.clone()),
        };
        assert_eq!(json!(of_start(&early, 0))["containment"], expected);
    }
    let requested = RequestedEnd { cause: Cause::ClientClose, initiator: "editor".into() };
    for of_no_process in
        [of_release(&requested, &facts(false), 0), daemon_lost(&facts(true), 0), of_import(0)]
    {
        assert_eq!(of_no_process.containment, None, "{of_no_process:?}");
    }
}

// contract 1.2: exact payload of the notification
#[test]
fn the_ended_payload_is_exact() {
    let mut end = ended(ExitStatus::Code(1));
    let mut report = (*end.report).clone();
    report.stderr = StderrExcerpt {
        head: "Error: module not found".into(),
        tail: Some("node exited".into()),
        truncated: true,
        total_lines: 250,
    };
    end.report = Arc::new(report);
    let expected = json!({"session_id": "s", "data": {
        "reason": "error", "terminated_by": "agent", "message": "agent exited with exit status: 1",
        "exit_code": 1,
        "stderr": {
            "head": "Error: module not found", "tail": "node exited", "truncated": true, "total_lines": 250,
        },
    }});
    let id = SessionId::parse("s").expect("an id");
    assert_eq!(json!(info(&end, true).ended_params(&id)), expected);
    let quiet = json!({"session_id": "s", "data": {"reason": "completed", "terminated_by": "agent"}});
    assert_eq!(json!(info(&ended(ExitStatus::Code(0)), false).ended_params(&id)), quiet);
}

// SU-8: a broken connection is the agent's fault, and no exit code is invented for it
#[test]
fn a_fault_comes_before_the_exit_it_led_to() {
    let mut end = ended(ExitStatus::Code(0));
    end.fault = Some(AgentFault::Broken("agent closed its stdout and kept running".into()));
    let got = info(&end, false);
    assert_eq!((got.reason, got.cause, got.exit_code), (Reason::Error, Some(Cause::ProtocolError), None));
}

// contract 1.2: the record survives the log
#[test]
fn a_record_can_be_read_back() {
    let got = info(&ended(ExitStatus::Signal("SIGSEGV".into())), true);
    let back: TerminationInfo = serde_json::from_value(json!(got)).expect("the same shape");
    assert_eq!(back, got);
}

// contract 7.2: an agent that its keeper gave up was lost with its daemon; one that ended by itself, or with its keeper, was not
#[test]
fn an_end_in_the_gap_is_told_apart() {
    for (status, rungs, cause) in [
        (ExitStatus::Signal("SIGKILL".to_owned()), vec![Rung::StdinClosed, Rung::Killed], Cause::DaemonLost),
        (ExitStatus::Code(0), vec![Rung::StdinClosed], Cause::DaemonLost),
        (ExitStatus::Code(3), vec![], Cause::AgentCrash),
        (ExitStatus::Unknown, vec![Rung::Killed], Cause::AgentCrash),
    ] {
        let mut report = ExitReport::clone(&ended(status.clone()).report);
        report.rungs = rungs;
        let end = AgentEnd { report: Arc::new(report), fault: None };
        let told = in_the_gap(&end, &SessionFacts::default(), 0);
        assert_eq!((told.cause, told.reason), (Some(cause), Reason::Error), "{status:?}");
    }
}
