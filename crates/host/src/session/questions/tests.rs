//! Every answer to every state of a question.

use super::*;
use acpd_wire::RawId;
use proptest::prelude::*;

const PERMISSION: &str = r#"{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"never","name":"N","kind":"reject_always"},{"optionId":"no","name":"No","kind":"reject_once"}]}}"#;
const FORM: &str = r#"{"jsonrpc":"2.0","id":8,"method":"elicitation/create","params":{"sessionId":"s","mode":"form","message":"?","requestedSchema":{}}}"#;

fn id(text: &str) -> OwnedId {
    RawId::new(serde_json::from_str(text).expect("JSON")).expect("an id").to_owned()
}

fn asked(timeout: Option<Duration>, now: Instant) -> OpenQuestions {
    let mut questions = OpenQuestions::new(timeout);
    questions.ask(1, Topic::Permission, id("7"), PERMISSION.into(), None, now);
    questions.ask(2, Topic::Elicitation, id("8"), FORM.into(), Some("me".into()), now);
    questions
}

fn chosen(option: &str) -> String {
    json!({"outcome": {"outcome": "selected", "optionId": option}, "_meta": {"kept": 1.0}}).to_string()
}

// PE-1, PE-2: what was offered, verbatim, once
#[test]
fn the_first_valid_answer_wins() {
    let mut questions = asked(None, Instant::now());
    let refused = questions.answer(1, "x", chosen("maybe").as_bytes()).expect_err("not offered");
    let Refused::Invalid(reason) = refused else { panic!("{refused:?}") };
    assert_eq!(reason, "outcome.optionId: \"maybe\" was not offered; choose one of yes, never, no");
    for bad in ["{}", "null", r#"{"outcome":{"outcome":"selected"}}"#, r#"{"outcome":"selected"}"#] {
        assert!(matches!(questions.answer(1, "x", bad.as_bytes()), Err(Refused::Invalid(_))), "{bad}");
    }
    let (question, result) = questions.answer(1, "x", chosen("no").as_bytes()).expect("offered");
    assert_eq!((question.agent_id.as_raw(), result.as_ref()), ("7", chosen("no").as_bytes()));
    assert_eq!(questions.answer(1, "x", chosen("yes").as_bytes()).expect_err("late"), Refused::NotOpen);
}

// PE-5: a question to one is nobody else's
#[test]
fn a_question_to_one_is_not_answered_by_another() {
    let mut questions = asked(None, Instant::now());
    let decline = br#"{"action":"decline"}"#;
    assert_eq!(questions.answer(2, "you", decline).expect_err("not asked"), Refused::NotOpen);
    assert!(matches!(questions.answer(2, "me", b"{}"), Err(Refused::Invalid(_))));
    assert!(questions.answer(2, "me", decline).is_ok());
}

// PR-5, PR-10, PE-4: what nobody chose
#[test]
fn unasked_answers_follow_the_cause() {
    let mut questions = asked(None, Instant::now());
    let question = questions.withdraw(&id("7")).expect("it is open");
    assert_eq!(question.default_answer(AutoAnswer::Withdrawn), json!({"outcome": {"outcome": "cancelled"}}));
    assert_eq!(question.default_answer(AutoAnswer::Cancelled), json!({"outcome": {"outcome": "cancelled"}}));
    let rejected = json!({"outcome": {"outcome": "selected", "optionId": "no"}});
    assert_eq!(question.default_answer(AutoAnswer::TimedOut), rejected, "reject_once before reject_always");
    assert!(questions.withdraw(&id("7")).is_none());
    let swept = questions.sweep();
    assert_eq!(swept.len(), 1);
    assert_eq!(swept[0].default_answer(AutoAnswer::Cancelled), json!({"action": "cancel"}));
    assert!(questions.is_empty());
}

// PE-4: without a reject option nothing is chosen, and never an allow option
#[test]
fn a_timeout_never_allows() {
    let only_allow = PERMISSION.replace("reject", "allow");
    let mut questions = OpenQuestions::new(Some(Duration::from_secs(5)));
    let now = Instant::now();
    questions.ask(1, Topic::Permission, id("7"), only_allow.into(), None, now);
    assert_eq!(questions.deadline(), Some(now + Duration::from_secs(5)));
    assert!(questions.tick(now + Duration::from_secs(4)).is_empty());
    let due = questions.tick(now + Duration::from_secs(5));
    assert_eq!(due[0].default_answer(AutoAnswer::TimedOut), json!({"outcome": {"outcome": "cancelled"}}));
    assert_eq!(questions.deadline(), None);
}

proptest! {
    // PE-2, FR-3: whatever happens in whatever order, each question is answered once
    #[test]
    fn each_question_is_answered_once(events in prop::collection::vec((0u8..5, 0u64..6), 0..60)) {
        let now = Instant::now();
        let mut questions = OpenQuestions::new(Some(Duration::from_secs(1)));
        let (mut asked, mut answered) = (0, Vec::new());
        for (event, number) in events {
            match event {
                0 => {
                    questions.ask(asked, Topic::Permission, id(&asked.to_string()), PERMISSION.into(), None, now);
                    asked += 1;
                }
                1 => answered.extend(questions.answer(number, "x", chosen("no").as_bytes()).ok().map(|(q, _)| q.number)),
                2 => answered.extend(questions.withdraw(&id(&number.to_string())).map(|q| q.number)),
                3 => answered.extend(questions.sweep().into_iter().map(|q| q.number)),
                _ => answered.extend(questions.tick(now + Duration::from_secs(number)).into_iter().map(|q| q.number)),
            }
        }
        answered.extend(questions.open().iter().map(|q| q.number));
        answered.sort_unstable();
        prop_assert_eq!(answered, (0..asked).collect::<Vec<_>>());
    }
}
