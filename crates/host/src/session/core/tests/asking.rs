//! Questions of the agent: asked, answered, answered without a client.

use super::*;
use crate::viewers::ViewerInfo;
use acpd_record::ConnectionId;

fn viewer(connection: &str) -> ViewerInfo {
    ViewerInfo {
        connection: connection.into(),
        answers: true,
        forms: true,
        urls: true,
        reads: true,
        writes: true,
    }
}

const CANCELLED: &str = r#"{"outcome":{"outcome":"cancelled"}}"#;

// PE-1, PE-2: the first valid answer wins, and both are events
#[test]
fn a_permission_is_asked_and_answered() {
    let mut stage = Stage::new();
    stage.prompt(1);
    stage.take([permission(5)]);
    assert!(stage.core.state() == SessionState::Waiting);
    assert!(stage.last().starts_with(r#"{"request":4,"message":{"#) && stage.last().contains(r#""ours""#));
    let refused = stage.take([chosen(4, "maybe")]).refused.expect("not offered");
    assert_eq!(refused.again.expect("still open").number, QuestionNumber(4));
    let effects = stage.take([chosen(4, "yes")]);
    assert_eq!(told(&effects), [r#"result of 5: {"outcome":{"outcome":"selected","optionId":"yes"}}"#]);
    assert!(effects.refused.is_none());
    let refused = stage.take([chosen(4, "no")]).refused.expect("late");
    assert_eq!((refused.reason.as_str(), refused.again), ("it was answered already", None));
    assert_eq!(stage.kinds(), ["prompt", "permission_requested", "permission_resolved"]);
}

// contract 2.1: a mode answers at once
#[test]
fn a_mode_answers_without_a_client() {
    let mut stage = Stage::with(RunFacts { permission_mode: PermissionMode::Deny, ..facts() });
    let effects = stage.take([permission(5)]);
    assert_eq!(told(&effects), [r#"result of 5: {"outcome":{"outcome":"selected","optionId":"no"}}"#]);
    assert!(stage.log[2].1.starts_with(r#"{"unasked":true,"request":3,"#));
    assert_eq!(
        stage.last(),
        r#"{"request":3,"by":{"mode":"deny"},"result":{"outcome":{"outcome":"selected","optionId":"no"}}}"#
    );
}

// PE-1: no mode makes a choice; a client does, or the prompter over REST, else it is cancelled
// quirk question-as-permission
#[test]
fn a_choice_goes_to_the_clients_whatever_the_mode() {
    let which = |number| {
        let options = r#""options":[{"optionId":"mon","kind":"allow_once","name":"Monday"},{"optionId":"tue","kind":"allow_once","name":"Tuesday"}]"#;
        asks(number, "session/request_permission", &format!(r#""toolCall":{{"toolCallId":"t"}},{options}"#))
    };
    let bypass = || RunFacts { permission_mode: PermissionMode::BypassPermissions, ..facts() };
    let mut stage = Stage::with(bypass());
    assert_eq!(told(&stage.take([which(1)])), [format!("result of 1: {CANCELLED}")]);
    assert!(stage.last().contains(r#""cause":"nobody""#), "{}", stage.last());
    let only_watches = stage.viewers.add(ViewerInfo { answers: false, ..viewer("watches") });
    assert_eq!(told(&stage.take([which(2)])), [format!("result of 2: {CANCELLED}")]);
    drop(only_watches);
    let _me = stage.viewers.add(viewer("me"));
    assert!(told(&stage.take([which(3)])).is_empty() && stage.last().contains("Tuesday"), "{}", stage.last());

    let mut over_rest = Stage::with(bypass());
    let Input::Request { request, method, params, .. } = prompt(1) else { panic!("a request") };
    let caller = ClientRef { connection: ConnectionId::rest(), name: "me".into() };
    over_rest.take([Input::Request { request, method, params, client: caller }]);
    assert!(told(&over_rest.take([which(1)])).is_empty() && over_rest.last().contains("Tuesday"));
}

// PE-4, PR-5, PR-10: timeout, cancel, end of the turn, withdrawal
#[test]
fn a_question_is_closed_by_what_makes_it_needless() {
    let rejected = r#"{"outcome":{"outcome":"selected","optionId":"no"}}"#;
    type Close = fn(&mut Stage) -> Effects;
    let cases: [(&str, &str, Close); 4] = [
        ("timeout", rejected, |stage| stage.wait(Duration::from_secs(60))),
        ("cancel", CANCELLED, |stage| stage.take([cancel()])),
        ("turn_ended", CANCELLED, |stage| stage.take([turn_answered(1)])),
        ("agent", CANCELLED, |stage| {
            stage.take([Input::Agent(FromAgent::Withdrawn { id: id("5"), position: 0 })])
        }),
    ];
    for (cause, result, close) in cases {
        let mut stage = Stage::new();
        stage.prompt(1);
        stage.take([permission(5)]);
        let effects = close(&mut stage);
        assert!(told(&effects).contains(&format!("result of 5: {result}")), "{cause}: {:?}", told(&effects));
        let resolved = format!(r#"{{"request":4,"by":{{"cause":"{cause}"}},"result":{result}}}"#);
        assert!(stage.log.iter().any(|(_, payload)| *payload == resolved), "{cause}: {:?}", stage.log);
        assert!(stage.core.state() != SessionState::Waiting);
    }
    let mut stage = Stage::new();
    stage.take([permission(5), end(acpd_record::Cause::ClientClose)]);
    assert_eq!(stage.last(), format!(r#"{{"request":3,"by":{{"cause":"end"}},"result":{CANCELLED}}}"#));
}

// PR-5: no client is asked for a turn that is being cancelled, nor for one that was given up
#[test]
fn a_cancelled_turn_asks_nothing() {
    let mut stage = Stage::new();
    stage.prompt(1);
    stage.take([cancel()]);
    for number in [5, 6] {
        let effects = stage.take([permission(number)]);
        assert_eq!(told(&effects), [format!("result of {number}: {CANCELLED}")]);
        stage.wait(Duration::from_secs(10));
    }
}

// PE-5: a form goes to those who can fill it in, a URL to one, the prompter if it can; its end goes there too
#[test]
fn an_elicitation_goes_to_those_who_can_answer() {
    let mut stage = Stage::new();
    let form = |number| asks(number, "elicitation/create", r#""mode":"form","message":"?""#);
    let url = |number| asks(number, "elicitation/create", r#""mode":"url","elicitationId":"e""#);
    assert_eq!(told(&stage.take([form(1)])), [r#"result of 1: {"action":"decline"}"#]);
    assert!(stage.last().contains(r#""cause":"nobody""#));
    // A client over REST can answer what it caused, and is no viewer.
    let mut over_rest = Stage::new();
    let Input::Request { request, method, params, .. } = prompt(1) else { panic!("a request") };
    let caller = ClientRef { connection: ConnectionId::rest(), name: "me".into() };
    over_rest.take([Input::Request { request, method, params, client: caller }]);
    assert!(told(&over_rest.take([form(1)])).is_empty() && over_rest.last().contains("elicitation/create"));

    let _other = stage.viewers.add(viewer("other"));
    let me = stage.viewers.add(viewer("me"));
    stage.prompt(1);
    assert!(told(&stage.take([url(2)])).is_empty());
    assert!(stage.last().starts_with(r#"{"only":"me","request":6,"#), "{}", stage.last());
    let complete = r#"{"jsonrpc":"2.0","method":"elicitation/complete","params":{"sessionId":"native","elicitationId":"e"}}"#;
    let done = || {
        let (line, session) = line(complete);
        Input::Agent(FromAgent::Notification { line, session, update: None, position: 0 })
    };
    // Only the one that is asked may answer; when it is gone, it has declined.
    let other =
        Input::Answer { number: QuestionNumber(6), result: Some("{}".into()), client: client("other") };
    assert!(stage.take([other]).refused.expect("not asked").again.is_none());
    drop(me);
    assert_eq!(told(&stage.take([Input::ViewerLeft])), [r#"result of 2: {"action":"decline"}"#]);
    stage.take([done()]);
    assert!(stage.last().starts_with(r#"{"only":"me","message":"#));
    let events = stage.log.len();
    stage.take([done()]);
    assert_eq!(stage.log.len(), events, "its end is told once");
}

// FS-5: a file goes to a client that serves files; if that will not answer, acpd serves it
#[test]
fn a_file_is_asked_of_the_client_first() {
    let mut stage = Stage::new();
    let read = |number| asks(number, "fs/read_text_file", r#""path":"/x""#);
    assert_eq!(acts(&stage.take([read(1)]), |act| matches!(act, Act::Serve { .. })), 1);
    let _me = stage.viewers.add(viewer("me"));
    stage.take([read(2)]);
    assert_eq!(stage.kinds(), ["file_forwarded"]);
    let content = Input::Answer {
        number: QuestionNumber(3),
        result: Some(r#"{"content":"x"}"#.into()),
        client: client("me"),
    };
    assert_eq!(told(&stage.take([content])), [r#"result of 2: {"content":"x"}"#]);
    // What is in a file is in the file.
    assert_eq!(stage.last(), r#"{"request":3,"by":{"client":"me"}}"#);
    stage.take([read(4)]);
    let declined = Input::Answer { number: QuestionNumber(5), result: None, client: client("me") };
    assert_eq!(acts(&stage.take([declined]), |act| matches!(act, Act::Serve { .. })), 1);
    stage.take([read(6)]);
    let effects = stage.take([cancel()]);
    assert!(told(&effects).iter().any(|told| told.starts_with("error of 6: ")), "{:?}", told(&effects));
}

// contract 2.1: at most 256 are open
#[test]
fn too_many_questions_are_refused() {
    let mut stage = Stage::new();
    stage.take((0..256).map(permission));
    let effects = stage.take([permission(256)]);
    assert!(told(&effects)[0].contains("256 questions are open already"));
}

// FR-10: a question that cannot be asked is answered with the field and the fix
#[test]
fn a_malformed_question_is_refused() {
    let mut stage = Stage::new();
    for (question, field) in [
        (asks(1, "session/request_permission", r#""options":7"#), "options: "),
        (asks(2, "elicitation/create", r#""mode":"song""#), "mode: "),
        (asks(3, "no/such", r#""x":1"#), "method not found: no/such"),
    ] {
        assert!(told(&stage.take([question]))[0].contains(field));
    }
    assert_eq!(stage.kinds(), ["agent_request", "agent_request", "agent_request"]);
}
