//! Every answer to every kind of question.

use super::*;
use std::time::Duration;

const PERMISSION: &str = r#"{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"never","name":"N","kind":"reject_always"},{"optionId":"no","name":"No","kind":"reject_once"}]}}"#;

fn question(topic: Topic) -> OpenQuestion {
    OpenQuestion { topic, only: None, agent_id: None, message: PERMISSION.into() }
}

fn refusal(topic: Topic, result: &str) -> Option<String> {
    check(&question(topic), result.as_bytes()).err()
}

// PE-1, PE-2: what was offered, verbatim; each refusal names the field and the fix
#[test]
fn only_an_answer_to_the_question_counts() {
    use Topic::{Elicitation, File, Permission};
    let selected = |option: &str| {
        format!(r#"{{"outcome":{{"outcome":"selected","optionId":"{option}"}},"_meta":{{"kept":1.0}}}}"#)
    };
    let outcome = "outcome.outcome: selected or cancelled is required";
    let action = "action: accept, decline or cancel is required";
    for (topic, result, refused) in [
        (Permission, selected("no"), None),
        (Permission, r#"{"outcome":{"outcome":"cancelled"}}"#.into(), None),
        (
            Permission,
            selected("maybe"),
            Some("outcome.optionId: \"maybe\" was not offered; choose one of yes, never, no"),
        ),
        (
            Permission,
            r#"{"outcome":{"outcome":"selected"}}"#.into(),
            Some("outcome.optionId: the id of an option is required: yes, never, no"),
        ),
        (Permission, "{}".into(), Some(outcome)),
        (Permission, "null".into(), Some(outcome)),
        (Permission, r#"{"outcome":"selected"}"#.into(), Some(outcome)),
        (Elicitation, r#"{"action":"accept","content":{}}"#.into(), None),
        (Elicitation, "{}".into(), Some(action)),
        (Elicitation, "7".into(), Some(action)),
        (File, r#"{"content":"x"}"#.into(), None),
        (File, "null".into(), Some("result: an object is required")),
    ] {
        assert_eq!(refusal(topic, &result).as_deref(), refused, "{topic:?} {result}");
    }
    assert!(refusal(Permission, "no JSON").is_some());
}

// PR-5, PR-10, PE-4: what is answered without a client
#[test]
fn each_cause_has_its_answer() {
    use AutoAnswer::{Cancelled, Declined, Ended, Nobody, TimedOut, TurnOver, Withdrawn};
    let cancelled = r#"{"outcome":{"outcome":"cancelled"}}"#;
    let rejected = r#"{"outcome":{"outcome":"selected","optionId":"no"}}"#;
    for why in [Cancelled, TurnOver, Ended, Withdrawn, TimedOut, Declined, Nobody] {
        let permission = if why == TimedOut { rejected } else { cancelled };
        assert_eq!(auto_answer(Topic::Permission, PERMISSION.as_bytes(), why), permission, "{why:?}");
        let action = if matches!(why, Declined | Nobody) { "decline" } else { "cancel" };
        let expected = format!(r#"{{"action":"{action}"}}"#);
        assert_eq!(auto_answer(Topic::Elicitation, b"{}", why), expected, "{why:?}");
    }
}

// PE-4: each has its own time
#[test]
fn questions_are_due_in_time() {
    let (mut deadlines, now) = (Deadlines::default(), tokio::time::Instant::now().into_std());
    let at = |seconds| now + Duration::from_secs(seconds);
    deadlines.set(QuestionNumber(1), Some(at(2)));
    deadlines.set(QuestionNumber(2), None);
    deadlines.set(QuestionNumber(3), Some(at(1)));
    assert_eq!((deadlines.next(), deadlines.due(now)), (Some(at(1)), vec![]));
    assert_eq!(deadlines.due(at(2)), [QuestionNumber(1), QuestionNumber(3)]);
    deadlines.drop(QuestionNumber(3));
    assert_eq!(deadlines.next(), Some(at(2)));
}
