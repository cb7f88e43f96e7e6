//! What counts of what agents tell, and what does not.

use super::*;
use crate::event::Event;
use crate::projection::{Position, Projection};
use serde_json::json;

/// What is told in a log of one session, in short.
enum Told {
    Created,
    Forked,
    /// A run begins, by this method.
    Run(&'static str),
    Prompt(u64),
    /// A turn ends with this result.
    End(u64, &'static str),
    /// A `usage_update` with this cost.
    Cost(&'static str),
    /// The state of a fork, behind the history of its source.
    CopyOver,
    Ended,
}
use Told::{CopyOver, Cost as Costs, Created, End, Ended, Forked, Prompt, Run};

fn stored(told: &Told) -> (u16, String) {
    match told {
        Created => (1, r#"{"agent":"a","cwd":"/"}"#.to_owned()),
        Forked => (1, r#"{"agent":"a","cwd":"/","forkedFrom":"s"}"#.to_owned()),
        Run("") => (2, r#"{"pid":1}"#.to_owned()),
        Run(method) => (2, format!(r#"{{"pid":1,"method":"{method}"}}"#)),
        Prompt(turn) => (3, format!(r#"{{"turn":{turn},"prompt":[]}}"#)),
        End(turn, result) => (6, format!(r#"{{"turn":{turn},"stopReason":"end_turn","result":{result}}}"#)),
        Costs(cost) => {
            (4, format!(r#"{{"params":{{"update":{{"sessionUpdate":"usage_update","used":1,"cost":{cost}}}}}}}"#))
        }
        CopyOver => (20, "{}".to_owned()),
        Ended => (
            9,
            r#"{"reason":"completed","terminatedBy":"agent","endedAt":"x","turnActive":false,"leaked":false}"#
                .to_owned(),
        ),
    }
}

/// Takes events, which have to be legal, a second apart.
fn folded(log: &[Told]) -> Projection {
    let mut projection = Projection::default();
    for (seq, told) in (1..).zip(log) {
        let (kind, payload) = stored(told);
        let event = Event::read(kind, payload.as_bytes()).expect("readable");
        projection.check(seq, &event).unwrap_or_else(|illegal| panic!("{seq} {payload}: {illegal}"));
        projection.apply(Position { seq, at_ms: seq as i64 * 1000 }, &event);
    }
    projection
}

/// As clients see it.
fn used(log: &[Told]) -> String {
    serde_json::to_string(&folded(log).usage().shown()).expect("JSON")
}

// contract 7.3: the sums over the turns of all runs, by kind
#[test]
fn tokens_of_turns_are_summed() {
    let first = r#"{"usage":{"inputTokens":11,"outputTokens":7,"cachedReadTokens":0,"totalTokens":18}}"#;
    let second = r#"{"usage":{"inputTokens":22,"outputTokens":14,"thoughtTokens":3,"_meta":{"xTokens":1}}}"#;
    assert_eq!(
        used(&[
            Created,
            Run(""),
            Prompt(1),
            End(1, first),
            Ended,
            Run("session/load"),
            Prompt(2),
            End(2, second)
        ]),
        r#"{"tokens":{"cachedRead":0,"input":33,"output":21,"thought":3,"total":18}}"#
    );
    assert_eq!(used(&[Created, Run(""), Prompt(1), Ended]), "null");
}

// contract 7.3: what is no count is not counted, and hinders nothing
#[test]
fn what_is_no_count_is_passed_over() {
    for result in [
        "null",
        "7",
        "[]",
        "{}",
        r#"{"usage":null}"#,
        r#"{"usage":7}"#,
        r#"{"usage":{"inputTokens":-1,"outputTokens":1.5,"a":3,"totalTokens":"9","xTokens":null}}"#,
        r#"{"usage":{"inputTokens":1e400,"outputTokens":18446744073709551616,"Tokens":3,"totalTokens":[1]}}"#,
    ] {
        assert_eq!(used(&[Created, Run(""), Prompt(1), End(1, result)]), "null", "{result}");
    }
    let one = r#"{"usage":{"inputTokens":-1,"outputTokens":5}}"#;
    assert_eq!(used(&[Created, Run(""), Prompt(1), End(1, one)]), r#"{"tokens":{"output":5}}"#);
    let most = r#"{"usage":{"inputTokens":18446744073709551615}}"#;
    assert_eq!(
        used(&[Created, Run(""), Prompt(1), End(1, most), Prompt(2), End(2, most)]),
        r#"{"tokens":{"input":18446744073709551615}}"#,
        "what does not fit is as much as fits"
    );
}

// contract 7.3: a running total counts once, over all runs, whatever the agent does with it at their beginning
#[test]
fn the_growth_of_a_running_total_is_what_counts() {
    let usd = |amount: &'static str| match amount {
        "0" => Costs(r#"{"amount":0,"currency":"USD"}"#),
        "0.1" => Costs(r#"{"amount":0.1,"currency":"USD"}"#),
        "0.3" => Costs(r#"{"amount":0.30000000000000004,"currency":"USD"}"#),
        "0.25" => Costs(r#"{"amount":0.25,"currency":"USD"}"#),
        _ => unreachable!("it is none of these"),
    };
    let cases: [(&[Told], &str); 9] = [
        (&[Created, Run(""), usd("0")], "0.0"),
        (&[Created, Run(""), usd("0.1"), usd("0.1"), usd("0.3")], "0.3"),
        // It shrinks within a run: nothing is taken back, and what comes on top counts.
        (&[Created, Run(""), usd("0.3"), usd("0.1"), usd("0.25")], "0.45"),
        // The next run goes on with it.
        (&[Created, Run(""), usd("0.1"), Ended, Run("session/load"), usd("0.3")], "0.3"),
        (&[Created, Run(""), usd("0.3"), Ended, Run("session/resume"), usd("0.3")], "0.3"),
        // It begins anew.
        (&[Created, Run(""), usd("0.3"), Ended, Run("session/load"), usd("0.1"), usd("0.25")], "0.55"),
        // An agent that does not know the session has nothing to go on with.
        (&[Created, Run(""), usd("0.1"), Ended, Run("session/new"), usd("0.3")], "0.4"),
        // A fork has used nothing yet, whether its agent goes on with the total of the source or not.
        (&[Forked, Run(""), usd("0.1"), CopyOver, usd("0.3")], "0.2"),
        (&[Forked, Run(""), usd("0.3"), CopyOver, usd("0.1")], "0.1"),
    ];
    for (at, (log, expected)) in cases.into_iter().enumerate() {
        assert_eq!(used(log), format!(r#"{{"cost":{{"USD":{expected}}}}}"#), "case {at}");
    }
    assert_eq!(
        used(&[Created, Run(""), usd("0.1"), Costs(r#"{"amount":2,"currency":"credits"}"#)]),
        r#"{"cost":{"USD":0.1,"credits":2.0}}"#
    );
}

// contract 7.3: what is no cost is passed over; one that does not fit is as much as fits
#[test]
fn what_is_no_cost_is_passed_over() {
    for cost in [
        "null",
        "0.5",
        "{}",
        r#"{"amount":-1,"currency":"USD"}"#,
        r#"{"amount":"1","currency":"USD"}"#,
        r#"{"amount":1e400,"currency":"USD"}"#,
        r#"{"amount":1,"currency":""}"#,
        r#"{"amount":1,"currency":null}"#,
        r#"{"amount":1}"#,
    ] {
        assert_eq!(used(&[Created, Run(""), Costs(cost)]), "null", "{cost}");
    }
    let most = Costs(r#"{"amount":1e300,"currency":"USD"}"#);
    let log = folded(&[Created, Run(""), Costs(r#"{"amount":1,"currency":"USD"}"#), most]);
    assert_eq!(log.usage().cost_nanos().collect::<Vec<_>>(), [("USD", u64::MAX)]);
}

// contract 7.3: an agent that makes up names fills no memory
#[test]
fn names_are_bounded() {
    let mut meter = Meter::default();
    for number in 0..100 {
        let usage = json!({"usage": {format!("kind{number}Tokens"): 1, "x".repeat(65) + "Tokens": 1}});
        meter.turn_ended(&serde_json::value::to_raw_value(&usage).expect("JSON"));
        for currency in [format!("C{number}"), "y".repeat(65)] {
            let cost = json!({"amount": 1, "currency": currency});
            meter.updated(json!({"params": {"update": {"cost": cost}}}).to_string().as_bytes());
        }
    }
    assert_eq!((meter.used.tokens.len(), meter.used.cost_nanos.len(), meter.told.len()), (16, 8, 8));
    assert!(meter.used.tokens.keys().chain(meter.used.cost_nanos.keys()).all(|name| name.len() < 10));
}

// contract 7.3: what is counted for the metrics of a daemon is what was added
#[test]
fn growth_is_what_was_added() {
    let before =
        folded(&[Created, Run(""), Prompt(1), End(1, r#"{"usage":{"inputTokens":5,"outputTokens":2}}"#)]);
    let mut after = before.clone();
    assert!(after.usage().since(before.usage()).is_empty());
    for (seq, told) in
        [(5, Prompt(2)), (6, End(2, r#"{"usage":{"inputTokens":3,"outputTokens":0,"totalTokens":3}}"#))]
    {
        let (kind, payload) = stored(&told);
        after.see(Position { seq, at_ms: 0 }, kind, payload.as_bytes());
    }
    let growth = after.usage().since(before.usage());
    assert_eq!(growth.tokens().collect::<Vec<_>>(), [("input", 3), ("total", 3)]);
}

// contract 7.3: how the last turn ended, how long it took and when, over all runs
#[test]
fn the_last_turn_is_remembered() {
    let last = |log: &[Told]| {
        let turn = folded(log).tally(u64::MAX).last_turn;
        turn.map(|turn| (turn.stop_reason.map(String::from), turn.duration_ms, turn.ended_ms))
    };
    let end_turn = || Some("end_turn".to_owned());
    assert_eq!(last(&[Created, Run(""), Prompt(1)]), None);
    assert_eq!(last(&[Created, Run(""), Prompt(1), End(1, "{}")]), Some((end_turn(), 1000, 4000)));
    let (done, again) = (End(1, "{}"), Run("session/load"));
    assert_eq!(last(&[Created, Run(""), Prompt(1), done, Ended, again]), Some((end_turn(), 1000, 4000)));
    // Its run ended first.
    assert_eq!(last(&[Created, Run(""), Prompt(1), Costs("null"), Ended]), Some((None, 2000, 5000)));
    assert_eq!(last(&[Forked, Run(""), Prompt(1), End(1, "{}"), CopyOver]), None, "it is the source's");
    let lost =
        folded(&[Created, Run(""), Prompt(1), Costs("null")]).lost_tally().last_turn.expect("there is one");
    assert_eq!((lost.stop_reason, lost.duration_ms, lost.ended_ms), (None, 1000, 4000));
}

// contract 7.3: the end of a lost run is found later, and what is shown before that is what is recorded then
#[test]
fn a_lost_turn_ends_with_the_last_that_was_recorded() {
    let lost = r#"{"reason":"error","terminatedBy":"daemon","cause":"daemon_lost","endedAt":"x","turnActive":true,"leaked":false}"#;
    let mut log = folded(&[Created, Run(""), Prompt(1), Costs("null")]);
    let before = log.clone().lost_tally();
    log.see(Position { seq: 5, at_ms: 9_000_000 }, 9, lost.as_bytes());
    assert_eq!((log.skipped(), log.tally(u64::MAX)), (0, before));
}

// contract 7.3: permission requests and elicitations that wait for an answer
#[test]
fn open_questions_are_counted() {
    let mut log = folded(&[Created, Run(""), Prompt(1)]);
    for (seq, kind) in [(4, 12), (5, 14), (6, 18)] {
        let question = format!(r#"{{"request":{seq},"message":{{"id":{seq}}}}}"#);
        log.see(Position { seq, at_ms: 0 }, kind, question.as_bytes());
    }
    let open = |until| log.tally(until).open_questions;
    assert_eq!((log.skipped(), open(4), open(6), log.clone().lost_tally().open_questions), (0, 1, 2, 0));
}
