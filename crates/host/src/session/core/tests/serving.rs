//! Requests that acpd serves, and terminals.

use super::*;
use crate::services::Notice;
use crate::session::owed::Inherited;
use acpd_record::Json;

fn served(result: &str) -> Result<Served, ServiceError> {
    let summary: Json = serde_json::from_str(result).expect("JSON");
    Ok(Served { result: Bytes::copy_from_slice(result.as_bytes()), summary })
}

// FS-1, SE-3: a request and its answer are an event; what was written is not in it
#[test]
fn a_served_request_is_recorded_with_its_answer() {
    let mut stage = Stage::new();
    let effects = stage.take([asks(1, "fs/write_text_file", r#""path":"/x","content":"words""#)]);
    assert_eq!(acts(&effects, |act| matches!(act, Act::Serve { number: 1, .. })), 1);
    assert!(stage.kinds().is_empty());
    let effects = stage.take([Input::Served { number: 1, outcome: served("{}") }]);
    assert_eq!(told(&effects), ["result of 1: {}"]);
    assert_eq!(
        stage.last(),
        r#"{"answer":{},"message":{"method":"fs/write_text_file","params":{"sessionId":"ours","path":"/x","contentBytes":5}}}"#
    );
    assert!(told(&stage.take([Input::Served { number: 1, outcome: served("{}") }])).is_empty(), "once");
}

// TE-3: looking at output is not worth an event
#[test]
fn a_look_is_not_recorded() {
    let mut stage = Stage::new();
    stage.take([asks(1, "terminal/output", r#""terminalId":"t""#)]);
    let effects = stage.take([Input::Served { number: 1, outcome: served("{}") }]);
    assert_eq!((told(&effects).len(), stage.kinds().len()), (1, 0));
}

// a service's error reaches the agent, and the log
#[test]
fn an_error_is_told() {
    let mut stage = Stage::new();
    stage.take([asks(1, "fs/read_text_file", r#""path":"/x""#)]);
    let effects =
        stage.take([Input::Served { number: 1, outcome: Err(ServiceError::new(-32002, "no such file")) }]);
    assert_eq!(told(&effects), [r#"error of 1: {"code":-32002,"message":"no such file"}"#]);
    assert!(stage.last().starts_with(r#"{"answer":{"error":{"code":-32002,"message":"no such file"}},"#));
}

// contract 2.2: what an agent wants outside is told to those who watch, behind the record of the request
// quirk file-outside
#[test]
fn a_warning_is_told_to_those_who_watch() {
    let mut stage = Stage::new();
    stage.take([asks(1, "fs/read_text_file", r#""path":"/x""#)]);
    let notice = Notice { title: "\"/x\" was refused".to_owned(), description: "files = false".to_owned() };
    let error = ServiceError { notice: Some(notice), ..ServiceError::new(-32602, "outside") };
    let effects = stage.take([Input::Served { number: 1, outcome: Err(error) }]);
    assert_eq!(told(&effects), [r#"error of 1: {"code":-32602,"message":"outside"}"#]);
    assert_eq!(stage.kinds(), ["agent_request", "update"]);
    for part in [
        r#""sessionUpdate":"notice""#,
        r#""severity":"warning""#,
        r#""title":"\"/x\" was refused""#,
        r#""ours""#,
    ] {
        assert!(stage.last().contains(part), "{}", stage.last());
    }
}

// PR-10: what the agent takes back is stopped; it is still answered, once
#[test]
fn a_served_request_can_be_withdrawn() {
    let mut stage = Stage::new();
    stage.take([asks(1, "terminal/wait_for_exit", r#""terminalId":"t""#)]);
    let effects = stage.take([Input::Agent(FromAgent::Withdrawn { id: id("1"), position: 0 })]);
    assert_eq!(acts(&effects, |act| *act == Act::WithdrawService(1)), 1);
}

// at most 256 at once
#[test]
fn too_many_requests_are_refused() {
    let mut stage = Stage::new();
    let wait = |number| asks(number, "terminal/wait_for_exit", r#""terminalId":"t""#);
    stage.take((0..256).map(wait));
    assert!(told(&stage.take([wait(256)]))[0].contains("256 requests are being served already"));
}

// contract 7.3: what an agent is not offered it cannot use
#[test]
fn what_is_not_offered_is_not_served() {
    let mut stage = Stage::with(RunFacts {
        offered: Offered { files: false, terminals: false, ..Offered::default() },
        ..facts()
    });
    for method in ["fs/read_text_file", "terminal/create"] {
        assert!(told(&stage.take([asks(1, method, r#""x":1"#)]))[0].contains("-32601"), "{method}");
    }
}

// TE-10: what a terminal says is an event
#[test]
fn a_terminals_words_are_recorded() {
    let mut stage = Stage::new();
    let event = TerminalEvent::Output { terminal: "t".into(), dropped: 3, text: "x\n".into() };
    stage.take([Input::Terminal(event)]);
    assert_eq!(stage.last(), r#"{"terminalId":"t","output":"x\n","droppedBytes":3}"#);
}

// contract 7.3: a command that a host that is gone had begun to start is not started again; what it had created is told
#[test]
fn a_command_is_not_started_again() {
    let mut stage = Stage::new();
    let inherited = Inherited {
        begun: vec![id("1"), id("2"), id("3")],
        terminals: vec![(id("2"), "t".into())],
        ..Inherited::default()
    };
    stage.core.go_on(inherited, stage.now);
    let create = |number| asks(number, "terminal/create", r#""command":"sh""#);
    let interrupted = stage.take([create(1)]);
    assert_eq!(acts(&interrupted, |act| matches!(act, Act::Serve { .. })), 0);
    assert!(told(&interrupted)[0].contains("acpd was restarted"), "{:?}", told(&interrupted));
    assert_eq!(told(&stage.take([create(2)])), [r#"result of 2: {"terminalId":"t"}"#]);
    let again = stage.take([asks(3, "fs/read_text_file", r#""path":"/x""#), create(2)]);
    assert_eq!(acts(&again, |act| matches!(act, Act::Serve { .. })), 2, "files, and new requests");
}
