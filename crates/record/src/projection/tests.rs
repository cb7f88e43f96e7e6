//! The fold over logs as hosts write them, and over logs that no host should have written.

use super::*;
use crate::legality::Illegal;
use proptest::prelude::*;

const CREATED: (u16, &str) = (1, r#"{"agent":"a","cwd":"/"}"#);
const RUN: (u16, &str) = (2, r#"{"pid":1}"#);
const PROMPT: (u16, &str) = (3, r#"{"turn":1,"by":"c","via":"v","prompt":[{"type":"text","text":"hi"}]}"#);
const TURN_ENDED: (u16, &str) = (6, r#"{"turn":1,"stopReason":"end_turn","result":{}}"#);
const GIVEN_UP: (u16, &str) = (6, r#"{"turn":1,"stopReason":"cancelled","agentIgnoredCancel":true}"#);
const ENDED: (u16, &str) =
    (9, r#"{"reason":"completed","terminatedBy":"agent","endedAt":"x","turnActive":false,"leaked":false}"#);

/// Takes events, which have to be legal.
fn folded(events: &[(u16, &str)]) -> Projection {
    let mut projection = Projection::default();
    for (seq, (kind, payload)) in (1..).zip(events) {
        let event = Event::read(*kind, payload.as_bytes()).expect("readable");
        projection.check(seq, &event).unwrap_or_else(|illegal| panic!("{seq} {payload}: {illegal}"));
        projection.apply(Position { seq, at_ms: 0 }, &event);
    }
    assert_eq!(projection.skipped(), 0);
    projection
}

/// Takes events as they are stored, whatever they are.
fn seen(events: &[(u16, &str)]) -> Projection {
    let mut projection = Projection::default();
    for (seq, (kind, payload)) in (1..).zip(events) {
        projection.see(Position { seq, at_ms: 0 }, *kind, payload.as_bytes());
    }
    projection
}

fn refused(events: &[(u16, &str)], last: (u16, &str)) -> Illegal {
    let mut projection = folded(events);
    let seq = projection.last_seq() + 1;
    let event = Event::read(last.0, last.1.as_bytes()).expect("readable");
    let illegal = projection.check(seq, &event).expect_err("it cannot follow");
    let before = projection.clone();
    projection.apply(Position { seq, at_ms: 0 }, &event);
    assert_eq!((projection.skipped(), projection.last_seq()), (1, seq));
    assert_eq!(Projection { skipped: 0, last_seq: seq - 1, ..projection }, before);
    illegal
}

// contract 1.5: updates, answers and tools lists of all runs; the latest counts
#[test]
fn the_whole_log_tells_the_state() {
    let got = folded(&[
        CREATED,
        (2, r#"{"pid":1,"state":{"currentModeId":"a","modes":{"currentModeId":"a"}}}"#),
        (5, r#"{"method":"session/started","params":{"tools":["t"]}}"#),
        PROMPT,
        (4, r#"{"params":{"update":{"sessionUpdate":"session_info_update","title":"One"}}}"#),
        (4, r#"{"params":{"update":{"sessionUpdate":"tool_call","toolCallId":"1","kind":"edit"}}}"#),
        (20, r#"{"by":"me","currentModeId":"b","modes":{"currentModeId":"b"}}"#),
        (12, r#"{"request":8,"message":{"method":"x"}}"#),
        ENDED,
        (2, r#"{"pid":2}"#),
    ]);
    assert_eq!((got.turns(), got.runs(), got.is_live()), (TurnNumber(1), RunNumber(2), true));
    assert_eq!(
        got.shown(99).get(),
        r#"{"currentModeId":"b","modes":{"currentModeId":"b"},"tools":["t"],"title":"One","openToolCalls":[],"openPermissionRequests":[]}"#
    );
}

// contract 1.5: a permission request is open until it is answered or its turn is over, and shown once it can be read
#[test]
fn open_questions_are_told() {
    let mut events = vec![
        CREATED,
        RUN,
        PROMPT,
        (12, r#"{"request":4,"message":{"id": 1}}"#),
        (12, r#"{"request":5,"message":{"id": 2}}"#),
        (12, r#"{"unasked":true,"request":6,"message":{}}"#),
        (13, r#"{"request":6,"by":{"mode":"deny"},"result":{}}"#),
        (14, r#"{"request":8,"message":{}}"#),
        (13, r#"{"request":4,"by":{"client":"c"},"result":{}}"#),
    ];
    let open = |events: &[(u16, &str)]| -> Vec<u64> {
        folded(events).open_questions().map(|(number, _)| number.0).collect()
    };
    assert_eq!(open(&events), [5, 8]);
    let shown = |until| folded(&events).shown(until).get().to_owned();
    assert!(
        shown(5).ends_with(r#""openPermissionRequests":[{"request":5,"message":{"id":2}}]}"#),
        "{}",
        shown(5)
    );
    assert!(shown(4).ends_with(r#""openPermissionRequests":[]}"#));
    // Number 10 is put to one client alone.
    let both = [&events[..], &[(14, r#"{"only":"v","request":10,"message":{}}"#)]].concat();
    let expected = r#""openPermissionRequests":[{"request":5,"message":{"id":2}}],"openElicitations":[{"request":8,"message":{}}]}"#;
    assert!(folded(&both).shown(10).get().ends_with(expected));
    events.push(TURN_ENDED);
    assert!(open(&events).is_empty());
    // How it was resolved may stand behind the end of the turn, once.
    let late = (13, r#"{"request":5,"by":{"cause":"turn_ended"},"result":{}}"#);
    assert!(matches!(refused(&events, (13, r#"{"request":4}"#)), Illegal::NotOpen { .. }));
    events.push(late);
    assert!(matches!(refused(&events, late), Illegal::NotOpen { .. }));
}

// contract 7.3: what became of a keyed prompt is known from the log alone, over all runs
#[test]
fn keyed_turns_are_remembered() {
    use crate::keys::KeyedEnd::{Answered, Failed, Interrupted, Stopped};
    let keyed = (3, r#"{"turn":1,"by":"c","idempotencyKey":"k","prompt":[]}"#);
    let end = |log: &[(u16, &str)]| {
        let log = folded(log);
        let known = log.keyed_turn("k").expect("it is known").clone();
        assert_eq!((known.turn, known.seq), (TurnNumber(1), 3));
        assert_eq!(log.key_of(TurnNumber(1)).map(RequestKey::as_str), Some("k"));
        known.end
    };
    assert_eq!(end(&[CREATED, RUN, keyed]), None);
    let stopped = |reason: &str| Some(Stopped(Some(reason.into())));
    let ended = (6, r#"{"turn":1,"stopReason":"end_turn"}"#);
    assert_eq!(end(&[CREATED, RUN, keyed, ended]), stopped("end_turn"));
    assert_eq!(end(&[CREATED, RUN, keyed, ended, ENDED, RUN]), stopped("end_turn"));
    assert_eq!(end(&[CREATED, RUN, keyed, GIVEN_UP, ENDED]), stopped("cancelled"));
    assert_eq!(end(&[CREATED, RUN, keyed, ENDED, RUN]), Some(Interrupted));
    let result = r#"{"stopReason":"end_turn","usage":{"totalTokens":7},"_meta":{"x":1}}"#;
    let whole = |result| format!(r#"{{"turn":1,"stopReason":"end_turn","result":{result}}}"#);
    let answered = Json::compact(serde_json::from_str(result).expect("JSON")).map(Answered);
    assert_eq!(end(&[CREATED, RUN, keyed, (6, &whole(result))]), answered);
    let big = format!(r#"{{"stopReason":"end_turn","_meta":"{}"}}"#, "x".repeat(4096));
    assert_eq!(end(&[CREATED, RUN, keyed, (6, &whole(&big))]), stopped("end_turn"));
    let long = format!(r#"{{"turn":1,"error":{{"code":-1,"message":"{}"}}}}"#, "é".repeat(300));
    assert_eq!(end(&[CREATED, RUN, keyed, (6, &long)]), Some(Failed(Some(-1), "é".repeat(256).into())));
    assert_eq!(folded(&[CREATED, RUN, PROMPT]).key_of(TurnNumber(1)), None);
}

// PR-12: how the last turn ended, and what of it the agent may still do
#[test]
fn a_turn_runs_until_it_ends() {
    let running = folded(&[CREATED, RUN, PROMPT]);
    let turn = running.running_turn().expect("it runs");
    assert!(turn.is_echoed_by(br#"{"params":{"update":{"content":{"text":"hi","type":"text"}}}}"#));
    assert!(!turn.is_echoed_by(br#"{"params":{"update":{"content":{"text":"ho","type":"text"}}}}"#));
    assert!(!turn.is_echoed_by(b"{}"));
    assert_eq!(running.prompted_via().map(ConnectionId::as_str), Some("v"));
    let ended = folded(&[CREATED, RUN, PROMPT, TURN_ENDED]);
    assert_eq!((ended.running_turn(), ended.unfinished_turn()), (None, None));
    assert_eq!(ended.last_stop_reason(), Some("end_turn"));
    let given_up = folded(&[CREATED, RUN, PROMPT, GIVEN_UP]);
    assert!(given_up.running_turn().is_none() && given_up.unfinished_turn().is_some());
    assert_eq!(folded(&[CREATED, RUN, PROMPT, TURN_ENDED, ENDED, RUN]).last_stop_reason(), None);
}

// TE-11: terminals of the running turn, to be ended with it
#[test]
fn terminals_belong_to_the_turn_that_creates_them() {
    let create = (8, r#"{"answer":{"terminalId":"t1"},"message":{"method":"terminal/create"}}"#);
    let failed = (8, r#"{"answer":{"error":{}},"message":{"method":"terminal/create"}}"#);
    let got = folded(&[CREATED, RUN, create, PROMPT, create, failed]);
    assert_eq!(got.running_turn().expect("it runs").terminals, ["t1".into()]);
}

// contract 7.3: a turn stalls once, and again after it went on
#[test]
fn a_turn_stalls_and_goes_on() {
    const STALLED: (u16, &str) = (21, r#"{"turn":1,"silentMs":5}"#);
    const GOES_ON: (u16, &str) = (21, r#"{"turn":1,"silentMs":6,"goesOn":true}"#);
    let stalled = |events: &[(u16, &str)]| folded(events).running_turn().expect("it runs").stalled();
    assert!(stalled(&[CREATED, RUN, PROMPT, STALLED]));
    assert!(!stalled(&[CREATED, RUN, PROMPT, STALLED, GOES_ON]));
    assert!(stalled(&[CREATED, RUN, PROMPT, STALLED, GOES_ON, STALLED]));
    let turn = TurnNumber(1);
    for (events, next, expected) in [
        (&[CREATED, RUN][..], STALLED, Illegal::NoTurn { turn }),
        (&[CREATED, RUN, PROMPT, GIVEN_UP], STALLED, Illegal::NoTurn { turn }),
        (&[CREATED, RUN, PROMPT, STALLED], STALLED, Illegal::Stall { turn }),
        (&[CREATED, RUN, PROMPT], GOES_ON, Illegal::Stall { turn }),
        (&[CREATED, RUN, PROMPT, STALLED, GOES_ON], GOES_ON, Illegal::Stall { turn }),
    ] {
        assert_eq!(refused(events, next), expected, "{events:?} {next:?}");
    }
}

// contract 7.3: a run goes on with another host as it stood: its turn, its questions, and what it used
#[test]
fn a_run_goes_on_with_another_host() {
    const REATTACHED: (u16, &str) = (22, r#"{"gapMs":1200}"#);
    let asked = (12, r#"{"request":4,"message":{"id":1}}"#);
    for before in [
        &[CREATED, RUN][..],
        &[CREATED, RUN, PROMPT],
        &[CREATED, RUN, PROMPT, asked],
        &[CREATED, RUN, PROMPT, GIVEN_UP],
        &[CREATED, RUN, PROMPT, TURN_ENDED],
        &[CREATED, RUN, REATTACHED],
    ] {
        let (mut expected, last) = (folded(before), before.len() as u64 + 1);
        let seen = folded(&[before, &[REATTACHED]].concat());
        expected.last_seq = last;
        expected.last_at_ms = seen.last_at_ms;
        assert_eq!((seen.skipped(), &seen), (0, &expected), "{before:?}");
    }
    let open = folded(&[CREATED, RUN, PROMPT, asked, REATTACHED]);
    assert!(open.open_question(QuestionNumber(4)).is_some(), "it is still to be answered");
    let answered = (13, r#"{"request":4,"by":{"client":"c"},"result":{}}"#);
    assert_eq!(folded(&[CREATED, RUN, PROMPT, asked, REATTACHED, answered]).skipped(), 0);
    for before in [&[CREATED][..], &[CREATED, RUN, ENDED]] {
        assert_eq!(refused(before, REATTACHED), Illegal::NoRun, "{before:?}");
    }
    assert_eq!(refused(&[], REATTACHED), Illegal::Creation);
}

// PE-5: the end of an elicitation goes where its URL went
#[test]
fn a_url_is_known_until_it_is_done() {
    let asked = (14, r#"{"only":"v","request":3,"message":{"params":{"elicitationId":"e"}}}"#);
    let answered = (15, r#"{"request":3,"by":{"client":"c"},"result":{}}"#);
    let done = (16, r#"{"only":"v","message":{"params":{"elicitationId":"e"}}}"#);
    let known = folded(&[CREATED, RUN, asked, answered]);
    assert_eq!(known.url_at("e").map(ConnectionId::as_str), Some("v"));
    assert_eq!(folded(&[CREATED, RUN, asked, answered, done]).url_at("e"), None);
}

// contract 1: nothing after an end but a new run, one turn at a time, answers to open questions only
#[test]
fn what_cannot_follow_is_passed_over() {
    let update = (4, "{}");
    let prompt =
        |turn| (3, if turn == 2 { r#"{"turn":2,"prompt":[]}"# } else { r#"{"turn":3,"prompt":[]}"# });
    let (turn, last) = (TurnNumber(1), TurnNumber(1));
    for (events, next, expected) in [
        (&[][..], update, Illegal::Creation),
        (&[CREATED], CREATED, Illegal::Creation),
        (&[CREATED], update, Illegal::NoRun),
        (&[CREATED, RUN], RUN, Illegal::TwoRuns),
        (&[CREATED, RUN, ENDED], update, Illegal::NoRun),
        (&[CREATED, RUN, ENDED], ENDED, Illegal::NoRun),
        (&[CREATED, RUN], TURN_ENDED, Illegal::NoTurn { turn }),
        (&[CREATED, RUN, PROMPT, GIVEN_UP], TURN_ENDED, Illegal::NoTurn { turn }),
        (&[CREATED, RUN, PROMPT], prompt(2), Illegal::TwoTurns { last }),
        (&[CREATED, RUN, PROMPT, TURN_ENDED], prompt(3), Illegal::Turn { turn: TurnNumber(3), last }),
        (&[CREATED, RUN], (7, "{}"), Illegal::NoTurnToCancel),
        (
            &[CREATED, RUN],
            (12, r#"{"request":9,"message":{}}"#),
            Illegal::Question { request: QuestionNumber(9), seq: 3 },
        ),
        (&[CREATED, RUN], (13, r#"{"request":9}"#), Illegal::NotOpen { request: QuestionNumber(9) }),
    ] {
        assert_eq!(refused(events, next), expected, "{events:?} {next:?}");
    }
}

// ADR 0002: a later version may end a run or a turn for a reason that is not known here; it is over all the same
#[test]
fn an_end_that_is_not_readable_is_an_end() {
    let later =
        (9, r#"{"reason":"later","terminatedBy":"agent","endedAt":"x","turnActive":true,"leaked":false}"#);
    let ended = seen(&[CREATED, RUN, PROMPT, later]);
    assert!(!ended.is_live() && ended.running_turn().is_none());
    assert_eq!((ended.skipped(), ended.last_seq()), (1, 4));
    let again = seen(&[CREATED, RUN, PROMPT, later, RUN, (3, r#"{"turn":2,"prompt":[]}"#)]);
    assert_eq!((again.runs(), again.turns(), again.skipped()), (RunNumber(2), TurnNumber(2), 1));

    let turn = seen(&[CREATED, RUN, PROMPT, (6, r#"{"turn":1,"stopReason":{"later":true}}"#)]);
    assert!(turn.is_live() && turn.unfinished_turn().is_none());
    assert_eq!((turn.turns(), turn.last_stop_reason(), turn.skipped()), (TurnNumber(1), None, 1));

    let neither = seen(&[CREATED, later, (6, "7")]);
    assert_eq!((neither.runs(), neither.is_live(), neither.skipped()), (RunNumber(0), false, 2));
}

// SE-5: a log has no holes
#[test]
fn a_hole_is_seen() {
    let projection = folded(&[CREATED, RUN]);
    let update = Event::read(4, b"{}").expect("readable");
    assert_eq!(projection.check(4, &update), Err(Illegal::Gap { seq: 4, last: 2 }));
}

// contract 1: earlier versions copied a turn that was running without an end
#[test]
fn a_fork_may_begin_with_an_unfinished_turn() {
    let second = (3, r#"{"turn":2,"prompt":[]}"#);
    let forked = (1, r#"{"agent":"a","cwd":"/","forkedFrom":"s"}"#);
    assert_eq!(folded(&[forked, RUN, PROMPT, second]).turns(), TurnNumber(2));
    let mut old = Projection::new(true);
    for (seq, (kind, payload)) in (1..).zip([CREATED, RUN, PROMPT, second]) {
        old.see(Position { seq, at_ms: 0 }, kind, payload.as_bytes());
    }
    assert_eq!((old.turns(), old.skipped()), (TurnNumber(2), 0));
}

proptest! {
    // ADR 0002: one odd event never makes a session unreadable
    #[test]
    fn nothing_stops_the_fold(events in proptest::collection::vec((0..25_u16, ".{0,40}"), 0..40)) {
        let mut projection = folded(&[CREATED, RUN, PROMPT]);
        for (seq, (kind, payload)) in (4..).zip(&events) {
            projection.see(Position { seq, at_ms: 0 }, *kind, payload.as_bytes());
        }
        prop_assert_eq!(projection.last_seq(), 3 + events.len() as u64);
        let _shown = projection.shown(99);
    }
}

// contract 1.1: the end of a run that was lost is made final once, by a terminate; another end stays
#[test]
fn a_lost_run_is_ended_for_good() {
    let end = |cause: &str| {
        format!(
            r#"{{"reason":"error","terminatedBy":"daemon","cause":"{cause}","endedAt":"x","turnActive":false,"leaked":false}}"#
        )
    };
    let terminated = end("client_terminate");
    let terminated = (9, &*terminated);
    for cause in ["daemon_lost", "daemon_upgrade", "fenced"] {
        let lost = end(cause);
        let lost = (9, &*lost);
        assert!(!folded(&[CREATED, RUN, lost, terminated]).is_live());
        assert!(matches!(refused(&[CREATED, RUN, lost], lost), Illegal::NoRun));
        assert!(matches!(refused(&[CREATED, RUN, lost, terminated], terminated), Illegal::NoRun));
    }
    assert!(matches!(refused(&[CREATED, RUN, ENDED], terminated), Illegal::NoRun));
}
