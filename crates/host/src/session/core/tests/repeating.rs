//! Prompts under keys: sent again, they do not run again.

use super::*;
use crate::session::Prompted;

const END: &str = r#"{"stopReason":"end_turn"}"#;

/// A prompt of a client that does not wait for its end, and where it is.
fn left(stage: &mut Stage, request: u64, key: &str, text: &str) -> Result<Prompted, String> {
    let (request, params) = (ClientRequest(request), keyed_params(key, text));
    let effects = stage.take([Input::Prompt { request, params, client: client("rest") }]);
    effects.prompted.expect("it is told").map_err(|error| error.to_string())
}

fn began(turn: u64, seq: u64) -> Result<Prompted, String> {
    Ok(Prompted::Began { turn: TurnNumber(turn), seq })
}

// contract 7.3: a client that does not wait is told its turn and event, or its place, or why it has none
#[test]
fn a_prompt_that_is_left_is_told_where_it_is() {
    let mut stage = Stage::new();
    assert_eq!(left(&mut stage, 1, "a", "x"), began(1, 3));
    assert!(stage.last().contains(r#""idempotencyKey":"a""#), "{}", stage.last());
    for before in 1..=16 {
        let key = format!("waits-{before}");
        assert_eq!(left(&mut stage, before + 1, &key, "x"), Ok(Prompted::Waits { before: before as usize }));
    }
    assert_eq!(left(&mut stage, 18, "b", "x"), Err("16 prompts are waiting already".to_owned()));
    let params = Bytes::from_static(br#"{"prompt":"text"}"#);
    let bad = Input::Prompt { request: ClientRequest(19), params, client: client("rest") };
    assert!(stage.take([bad]).prompted.expect("it is told").is_err());
    stage.take([turn_answered(1)]);
    assert_eq!(stage.kinds(), ["prompt", "turn_ended", "prompt"]);
    assert_eq!(left(&mut stage, 20, "waits-1", "x"), began(2, 5), "its turn came");
    stage.take([end(acpd_record::Cause::ClientClose)]);
    let late =
        Input::Prompt { request: ClientRequest(21), params: keyed_params("c", "x"), client: client("rest") };
    assert!(stage.take([late]).prompted.is_none());
}

// contract 7.3: the agent hears of a keyed prompt behind its commit: a host that dies before would begin it twice
#[test]
fn a_keyed_prompt_waits_for_its_commit() {
    let after = |effects: &Effects| {
        let waits = effects.acts.iter().filter_map(|ordered| match ordered.act {
            Act::Request { repeatable, .. } => Some(ordered.behind.filter(|_| repeatable)),
            _ => None,
        });
        waits.collect::<Vec<_>>()
    };
    let mut stage = Stage::new();
    assert_eq!(after(&stage.prompt(1)), [None]);
    stage.take([keyed(2, "a", "x")]);
    assert_eq!(after(&stage.take([turn_answered(1)])), [Some(5)]);
}

// contract 7.3: a key stands for one prompt, whether that waits, runs or is over; another prompt under it is refused
#[test]
fn a_key_is_of_one_prompt() {
    let mut stage = Stage::new();
    assert_eq!(left(&mut stage, 1, "a", "x"), began(1, 3));
    assert_eq!(left(&mut stage, 2, "b", "x"), Ok(Prompted::Waits { before: 1 }));
    let check = |stage: &mut Stage, second: Result<Prompted, String>| {
        let events = stage.log.len();
        assert_eq!(left(stage, 3, "a", "x"), began(1, 3));
        assert_eq!(left(stage, 4, "b", "x"), second);
        for key in ["a", "b"] {
            let refused = left(stage, 5, key, "y").expect_err("another prompt");
            assert!(refused.starts_with("idempotencyKey: "), "{refused}");
            let effects = stage.take([keyed(6, key, "y")]);
            assert!(answered(&effects)[0].2.starts_with("idempotencyKey: "), "{effects:?}");
        }
        assert_eq!(stage.log.len(), events, "nothing began");
    };
    check(&mut stage, Ok(Prompted::Waits { before: 1 }));
    stage.take([turn_answered(1)]);
    check(&mut stage, began(2, 5));
    stage.take([turn_answered(2)]);
    check(&mut stage, began(2, 5));
}

// contract 7.3: over ACP a prompt that comes again is answered with the end of the first one's turn
#[test]
fn a_repeated_prompt_is_answered_with_its_turn() {
    let mut stage = Stage::new();
    stage.take([keyed(1, "a", "x")]);
    stage.take([keyed(2, "b", "x")]);
    for (request, key) in [(3, "a"), (4, "b"), (5, "a")] {
        let effects = stage.take([keyed(request, key, "x")]);
        assert!(answered(&effects).is_empty() && told(&effects).is_empty());
    }
    let requests = |effects: &Effects| -> Vec<u64> { answered(effects).iter().map(|(of, ..)| *of).collect() };
    let effects = stage.take([turn_answered(1)]);
    assert_eq!(requests(&effects), [1, 3, 5]);
    assert!(answered(&effects).iter().all(|(_, _, body)| body == END));
    let error = r#"{"code":-7,"message":"no"}"#;
    let effects = stage.take([answer_of(Ticket::Turn(TurnNumber(2)), error, true)]);
    assert_eq!(requests(&effects), [2, 4]);
    // What has ended is answered at once, an error with an error.
    assert_eq!(answered(&stage.take([keyed(6, "a", "x")])), [(6, 6, END.to_owned())]);
    let effects = stage.take([keyed(7, "b", "x")]);
    assert!(
        matches!(&effects.answers[0].body, Err(crate::HostError::Agent { error: told }) if told == error)
    );
    assert_eq!(stage.kinds(), ["prompt", "turn_ended", "prompt", "turn_ended"]);
}

// contract 7.3: a successor of the host knows the keys; a turn that was lost with its run is told as such
#[test]
fn keys_outlive_the_host() {
    let mut stage = Stage::new();
    stage.take([keyed(1, "a", "x")]);
    let rebuilt = |log: &[(u16, String)]| {
        let mut next = Stage::new();
        let (viewers, now) = (Viewers::default(), next.now);
        next.core =
            SessionCore::new(facts(), fold(log), SessionMeta::default(), viewers, Handover::default(), now);
        next.log = log.to_vec();
        next
    };
    // The turn goes on, and the request that began it is lost.
    let mut next = rebuilt(&stage.log);
    assert_eq!(left(&mut next, 1, "a", "x"), began(1, 3));
    assert!(answered(&next.take([keyed(2, "a", "x")])).is_empty());
    assert_eq!(answered(&next.take([turn_answered(1)])), [(2, 4, END.to_owned())]);
    // A new run: the turn is over for good.
    let lost = r#"{"reason":"error","terminatedBy":"daemon","endedAt":"x","turnActive":true,"leaked":false}"#;
    let started = serde_json::to_string(&RunStarted::default()).expect("JSON");
    stage
        .log
        .extend([(EventKind::Ended.number(), lost.to_owned()), (EventKind::RunStarted.number(), started)]);
    let mut next = rebuilt(&stage.log);
    assert_eq!(left(&mut next, 1, "a", "x"), began(1, 3));
    let again = answered(&next.take([keyed(2, "a", "x")]));
    assert_eq!(again, [(2, 5, "turn 1 was interrupted by the end of its run".to_owned())]);
    assert_eq!(left(&mut next, 3, "b", "x"), began(2, 6));
}

// contract 7.3: of a prompt under a key any client says that it is not wanted: what waits leaves the line, what runs is
// cancelled, what is over or unknown is told so, and a key that never began is free
#[test]
fn a_prompt_is_taken_back_by_its_key() {
    let take_back = |key: &str| Input::TakeBack { key: key.to_owned(), client: client("other") };
    let mut stage = Stage::new();
    for (request, key) in (11..).zip(["runs", "b", "c", "d"]) {
        stage.take([keyed(request, key, "x")]);
    }
    let events = stage.log.len();
    // key, whether it was there, requests answered, what the agent is told, kinds of new events
    type Row<'a> = (&'a str, bool, usize, &'a [&'a str], &'a [&'a str]);
    let table: [Row<'_>; 7] = [
        ("c", true, 1, &[], &[]),
        ("c", false, 0, &[], &[]),
        ("unknown", false, 0, &[], &[]),
        ("runs", true, 0, &["session/cancel"], &["cancel_requested"]),
        ("runs", true, 0, &[], &["cancel_requested"]),
        ("d", true, 1, &[], &["cancel_requested"]),
        ("d", false, 0, &[], &["cancel_requested"]),
    ];
    for (key, there, ends, agent, kinds) in table {
        let effects = stage.take([take_back(key)]);
        let ended = answered(&effects);
        assert_eq!((effects.taken_back, ended.len()), (there, ends), "{key}");
        assert!(ended.iter().all(|(.., body)| body == r#"{"stopReason":"cancelled"}"#), "{ended:?}");
        assert_eq!(told(&effects), agent, "{key}");
        assert_eq!(&stage.kinds()[events - 2..], kinds, "{key}");
    }
    assert!(stage.last().contains("other"), "{}", stage.last());
    stage.take([turn_answered(1)]);
    assert!(!stage.take([take_back("runs")]).taken_back, "it is over");
    // Only what was left in line has begun, and what was taken back may be sent again, as another prompt too.
    assert_eq!(stage.kinds().last(), Some(&"prompt"));
    assert_eq!(left(&mut stage, 1, "b", "x").map(|_| ()), Ok(()));
    assert_eq!(left(&mut stage, 2, "c", "y"), Ok(Prompted::Waits { before: 1 }));
    // A successor of the host, which knows no request of the turn.
    let mut next = Stage::new();
    let (viewers, now) = (Viewers::default(), next.now);
    let log = fold(&stage.log);
    next.core = SessionCore::new(facts(), log, SessionMeta::default(), viewers, Handover::default(), now);
    next.log = stage.log.clone();
    assert!(!next.take([take_back("c")]).taken_back, "the line is lost");
    let effects = next.take([take_back("b")]);
    assert!(effects.taken_back);
    assert_eq!(told(&effects), ["session/cancel"]);
}

// PR-9, contract 7.3: a prompt is one, however often it was sent: withdrawing any of it withdraws it
#[test]
fn a_withdrawn_repeat_withdraws_the_prompt() {
    let withdraw = |request| Input::Withdraw { request: ClientRequest(request) };
    let mut stage = Stage::new();
    stage.take([keyed(1, "a", "x")]);
    stage.take([keyed(2, "b", "x"), keyed(3, "b", "x"), keyed(4, "a", "x")]);
    let effects = stage.take([withdraw(3)]);
    assert_eq!(answered(&effects).iter().map(|(of, ..)| *of).collect::<Vec<_>>(), [2, 3]);
    assert!(told(&effects).is_empty());
    assert_eq!(told(&stage.take([withdraw(4)])), ["session/cancel"]);
    stage.wait(Duration::from_secs(10));
    assert_eq!(stage.kinds(), ["prompt", "cancel_requested", "turn_ended"]);
    assert_eq!(answered(&stage.take([keyed(5, "a", "x")]))[0].2, r#"{"stopReason":"cancelled"}"#);
}

// PR-9, contract 7.3: a prompt that is sent again withdrawn is answered with the end of its turn, which is cancelled; one that
// waits leaves the line, and one that never came is not begun
#[test]
fn a_prompt_that_comes_again_withdrawn_is_cancelled() {
    let withdrawn = |request, key: &str| Input::Withdrawn {
        request: ClientRequest(request),
        params: keyed_params(key, "x"),
        client: client("editor"),
    };
    let cancelled = r#"{"stopReason":"cancelled"}"#;
    let mut stage = Stage::new();
    assert_eq!(answered(&stage.take([withdrawn(1, "new")]))[0].2, cancelled);
    assert_eq!(stage.kinds(), [] as [&str; 0], "nothing began");
    stage.take([keyed(2, "runs", "x")]);
    stage.take([keyed(3, "waits", "x")]);
    // As in a successor of the host: the request that began the turn is lost.
    let (viewers, now) = (Viewers::default(), stage.now);
    let mut next = Stage::new();
    next.core = SessionCore::new(
        facts(),
        fold(&stage.log),
        SessionMeta::default(),
        viewers,
        Handover::default(),
        now,
    );
    next.log = stage.log.clone();
    let effects = next.take([withdrawn(1, "runs")]);
    assert!(answered(&effects).is_empty(), "its turn runs");
    assert_eq!(told(&effects), ["session/cancel"]);
    assert_eq!(next.kinds(), ["prompt", "cancel_requested"]);
    assert!(told(&next.take([withdrawn(2, "runs")])).is_empty(), "once is enough");
    let effects = next.take([turn_answered(1)]);
    let requests: Vec<u64> = answered(&effects).iter().map(|(of, ..)| *of).collect();
    assert_eq!(requests, [1, 2]);
    // In the same host, as with a second connection of one client.
    let effects = stage.take([withdrawn(4, "waits")]);
    let requests: Vec<u64> = answered(&effects).iter().map(|(of, ..)| *of).collect();
    assert_eq!(requests, [3, 4]);
    assert!(stage.kinds() == ["prompt"] && told(&effects).is_empty());
    stage.take([turn_answered(1)]);
    assert_eq!(answered(&stage.take([withdrawn(5, "runs")]))[0].2, END, "it is over");
}

// contract 7.3: what is told again is the whole result of the agent
#[test]
fn an_answer_that_is_told_again_is_whole() {
    let result = r#"{"stopReason":"end_turn","usage":{"totalTokens":7},"_meta":{"x":1}}"#;
    let mut stage = Stage::new();
    stage.take([keyed(1, "a", "x")]);
    stage.take([answer_of(Ticket::Turn(TurnNumber(1)), result, false)]);
    assert_eq!(answered(&stage.take([keyed(2, "a", "x")]))[0].2, result);
}

// contract 7.3: the prompt that a session was created with is taken back by the key of the creation, which its client knows
#[test]
fn the_first_prompt_is_taken_back_by_the_key_of_the_creation() {
    let body: &RawValue = serde_json::from_str("{}").expect("JSON");
    let take_back = |key: &str| Input::TakeBack { key: key.to_owned(), client: client("rest") };
    let mut stage = Stage::new();
    stage.core.meta.created_under = acpd_record::RequestKey::new("job", body);
    stage.take([keyed(1, "ours", "x")]);
    assert!(!stage.take([take_back("other")]).taken_back);
    let effects = stage.take([take_back("job")]);
    assert!(effects.taken_back && told(&effects) == ["session/cancel"]);
    // A prompt of that key is meant before.
    stage.take([keyed(2, "job", "x")]);
    assert_eq!(answered(&stage.take([take_back("job")])).len(), 1);
}
