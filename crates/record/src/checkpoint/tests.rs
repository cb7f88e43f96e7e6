//! The law of checkpoints: a fold that goes on from one comes to what a fold over the whole log comes to.

use super::*;
use crate::projection::Position;
use proptest::prelude::*;
use std::collections::BTreeSet;

const AT_MOST: usize = 1024 * 1024;

fn id(text: &str) -> SessionId {
    SessionId::parse(text).expect("an id")
}

type Stored = (u16, String);

fn see(projection: &mut Projection, seq: u64, (kind, payload): &Stored) {
    projection.see(Position { seq, at_ms: seq as i64 * 7 }, *kind, payload.as_bytes());
}

/// The order of members counts too, which equality does not see.
fn is_the_same(one: &Projection, other: &Projection) -> bool {
    one == other && serde_json::to_vec(one).expect("JSON") == serde_json::to_vec(other).expect("JSON")
}

/// Values that are easily read as others; `any_digits`: also numbers that are not read exactly.
fn value(any_digits: bool) -> impl Strategy<Value = String> {
    let number = any::<f64>().prop_map(move |number| match any_digits && number.is_finite() {
        true => number.to_string(),
        false => "0.25".to_owned(),
    });
    prop_oneof![
        number,
        Just("null".to_owned()),
        Just("1e400".to_owned()),
        Just("-0.0".to_owned()),
        Just("18446744073709551615".to_owned()),
        Just(r#"{"b": [1.50, "\u00e4\ud83d\ude00\u0000"], "a":{}}"#.to_owned()),
        any::<String>().prop_map(|text| serde_json::to_string(&text).expect("JSON")),
    ]
}

/// A `session/update` of any kind that a snapshot keeps something of.
fn update(any_digits: bool) -> impl Strategy<Value = Stored> {
    let says = move |kind: &'static str, members: &'static str| {
        value(any_digits).prop_map(move |value| {
            let members = members.replace('%', &value);
            format!(r#"{{"sessionUpdate":"{kind}",{members}}}"#)
        })
    };
    let call = (0..3_u8, prop_oneof![Just("pending"), Just("completed")], value(any_digits)).prop_map(
        |(call, status, value)| {
            format!(
                r#"{{"sessionUpdate":"tool_call","toolCallId":"{call}","status":"{status}","rawInput":{value}}}"#
            )
        },
    );
    let kind = prop_oneof![
        says("available_commands_update", r#""availableCommands":%"#),
        says("current_mode_update", r#""currentModeId":%"#),
        says("config_option_update", r#""configOptions":%"#),
        says("plan", r#""entries":%"#),
        says("usage_update", r#""cost":%,"used":3"#),
        (0..9_u8, 0..3_u8).prop_map(|(amount, currency)| {
            format!(
                r#"{{"sessionUpdate":"usage_update","cost":{{"amount":{amount}.1,"currency":"{currency}"}}}}"#
            )
        }),
        says("session_info_update", r#""title":%"#),
        call,
    ];
    kind.prop_map(|update| (4, format!(r#"{{"params":{{"update":{update}}}}}"#)))
}

/// An event whose numbers may fit to what was before it, or not.
fn event(any_digits: bool) -> impl Strategy<Value = Stored> {
    let number = 0..12_u64;
    let state = || {
        value(any_digits)
            .prop_map(|value| format!(r#"{{"modes":{value},"currentModeId":{value},"models":{{}}}}"#))
    };
    let question =
        (prop_oneof![Just(12), Just(14), Just(18)], number.clone(), any::<bool>(), value(any_digits))
            .prop_map(|(kind, request, unasked, value)| {
                let message =
                    format!(r#"{{"id": "\u0061{request}", "params":{{"elicitationId":"e","x":{value}}}}}"#);
                (
                    kind,
                    format!(r#"{{"only":"v","unasked":{unasked},"request":{request},"message":{message}}}"#),
                )
            });
    prop_oneof![
        2 => Just((2, r#"{"pid":1}"#.to_owned())),
        1 => Just((2, r#"{"pid":1,"method":"session/new"}"#.to_owned())),
        1 => state().prop_map(|state| (2, format!(r#"{{"pid":1,"state":{state}}}"#))),
        1 => state().prop_map(|state| (20, state)),
        6 => update(any_digits),
        2 => question,
        2 => (prop_oneof![Just(13), Just(15), Just(19)], number.clone())
            .prop_map(|(kind, request)| (kind, format!(r#"{{"request":{request}}}"#))),
        3 => (number.clone(), value(any_digits)).prop_map(|(turn, value)| {
            let key = if turn % 2 == 0 { format!(r#""idempotencyKey":"k{turn}","#) } else { String::new() };
            (3, format!(r#"{{"turn":{turn},"via":"c{turn}",{key}"prompt":[ {{"text":{value}}} ]}}"#))
        }),
        1 => number.clone().prop_map(|turn| (6, format!(r#"{{"turn":{turn},"error":{{"code":-1,"message":"no"}}}}"#))),
        2 => (number, any::<bool>(), any::<u64>()).prop_map(|(turn, ignored, tokens)| {
            let usage = format!(r#""result":{{"usage":{{"inputTokens":{tokens},"outputTokens":7}}}}"#);
            (6, format!(r#"{{"turn":{turn},"stopReason":"end_turn","agentIgnoredCancel":{ignored},{usage}}}"#))
        }),
        1 => value(any_digits).prop_map(|value| (5, format!(r#"{{"params":{{"tools":[{value}]}}}}"#))),
        1 => Just((7, "{}".to_owned())),
        1 => Just((8, r#"{"answer":{"terminalId":"t"},"message":{"method":"terminal/create"}}"#.to_owned())),
        1 => Just((9, r#"{"reason":"completed","terminatedBy":"agent","endedAt":"x","turnActive":false,"leaked":false}"#.to_owned())),
        1 => Just((16, r#"{"message":{"params":{"elicitationId":"e"}}}"#.to_owned())),
        1 => (0..25_u16, ".{0,20}"),
    ]
}

/// Numbers that fit, so that logs are deep and not only illegal.
fn fitting(events: Vec<Stored>) -> Vec<Stored> {
    let (mut turn, mut asked) = (0, 0);
    let fit = |(seq, (kind, payload)): (u64, Stored)| {
        let payload = match serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&payload) {
            Ok(mut members) => {
                turn += u64::from(kind == 3);
                asked = if matches!(kind, 12 | 14 | 18) { seq } else { asked };
                if let Some(member) = members.get_mut("turn") {
                    *member = turn.into();
                }
                if let Some(member) = members.get_mut("request") {
                    *member = asked.into();
                }
                serde_json::to_string(&members).expect("JSON")
            }
            Err(_) => payload,
        };
        (kind, payload)
    };
    let begun = [(1, r#"{"agent":"a","cwd":"/"}"#.to_owned()), (2, r#"{"pid":1}"#.to_owned())];
    (1..).zip(begun.into_iter().chain(events)).map(fit).collect()
}

/// Folds a log, and at each event once more from a checkpoint there. Gives how many could not be had.
fn follows(log: &[Stored], is_fork: bool) -> Result<usize, TestCaseError> {
    let session = id("s");
    let mut whole = Projection::new(is_fork);
    let mut begun = vec![(0, whole.clone())];
    for (seq, event) in (1..).zip(log) {
        see(&mut whole, seq, event);
        begun.push((seq, whole.clone()));
    }
    let mut refused = 0;
    for (seq, at) in begun {
        let Some(checkpoint) = at.to_checkpoint(&session, AT_MOST) else {
            refused += 1;
            continue;
        };
        let mut from = Projection::of_checkpoint(&session, &checkpoint).expect("it was just written");
        prop_assert!(is_the_same(&from, &at), "{at:?}");
        for (seq, event) in (seq + 1..).zip(&log[seq as usize..]) {
            see(&mut from, seq, event);
        }
        prop_assert!(is_the_same(&from, &whole), "from {seq}: {from:?} {whole:?}");
    }
    Ok(refused)
}

proptest! {
    // ADR 0012: legal or not, a fold that goes on from a checkpoint comes to the same, and each event has one
    #[test]
    fn a_fold_goes_on_from_any_event(
        events in proptest::collection::vec(event(false), 0..40), fits in any::<bool>(), is_fork in any::<bool>(),
    ) {
        let log = if fits { fitting(events) } else { events };
        prop_assert_eq!(follows(&log, is_fork)?, 0);
    }

    // ADR 0012: a number that would be read as another is in no checkpoint
    #[test]
    fn a_fold_goes_on_whatever_the_numbers_are(events in proptest::collection::vec(event(true), 0..40)) {
        follows(&fitting(events), false)?;
    }

    // ADR 0012: what is no checkpoint of this fold and session counts as absent
    #[test]
    fn what_was_touched_is_not_used(at in any::<proptest::sample::Index>(), bit in 0..8_u32, bytes in any::<Vec<u8>>()) {
        let checkpoint = checkpoint();
        let mut changed = checkpoint.clone();
        changed[at.index(checkpoint.len())] ^= 1 << bit;
        prop_assert_eq!(Projection::of_checkpoint(&id("s"), &changed), None);
        prop_assert_eq!(Projection::of_checkpoint(&id("s"), &checkpoint[..at.index(checkpoint.len())]), None);
        prop_assert_eq!(Projection::of_checkpoint(&id("s"), &bytes), None);
    }
}

fn folded(events: &[(u16, &str)]) -> Projection {
    let mut projection = Projection::default();
    for (seq, (kind, payload)) in (1..).zip(events) {
        see(&mut projection, seq, &(*kind, (*payload).to_owned()));
    }
    projection
}

fn long() -> Projection {
    folded(&[
        (1, r#"{"agent":"a","cwd":"/"}"#),
        (2, r#"{"pid":1,"state":{"currentModeId":null}}"#),
        (4, r#"{"params":{"update":{"sessionUpdate":"usage_update","cost":0.30000000000000004}}}"#),
        (3, r#"{"turn":1,"via":"v","prompt":[]}"#),
        (12, r#"{"only":"v","request":5,"message":{"id": "\u0061"}}"#),
        (
            4,
            r#"{"params":{"update":{"sessionUpdate":"tool_call","toolCallId":"1","rawInput":{"b":1,"a":2}}}}"#,
        ),
    ])
}

fn checkpoint() -> Vec<u8> {
    long().to_checkpoint(&id("s"), AT_MOST).expect("it is small")
}

// ADR 0012: the usual has a checkpoint, of its own session; one that is too large is none
#[test]
fn a_checkpoint_is_small_and_of_one_session() {
    let checkpoint = checkpoint();
    assert_eq!(Projection::of_checkpoint(&id("s"), &checkpoint), Some(long()));
    assert_eq!(Projection::of_checkpoint(&id("t"), &checkpoint), None);
    assert_eq!(long().to_checkpoint(&id("s"), checkpoint.len()).as_ref(), Some(&checkpoint));
    assert_eq!(long().to_checkpoint(&id("s"), checkpoint.len() - 1), None);
    let question = long();
    let question = question.open_questions().next().expect("one is open").1;
    assert_eq!(question.agent_id.as_ref().map(|id| id.as_raw()), Some(r#""\u0061""#));
}

// ADR 0012: a checkpoint of another fold counts as absent, without anyone thinking of it
#[test]
fn every_source_of_the_fold_is_in_its_seal() {
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let found = std::fs::read_dir(sources).expect("the sources").map(|entry| entry.expect("readable").path());
    let found = found.filter(|path| path.is_file());
    let found: BTreeSet<String> =
        found.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect();
    let named: BTreeSet<String> = FILES.iter().map(|file| (*file).to_owned()).collect();
    assert_eq!(named, found, "name each file of crates/record/src in checkpoint.rs");
    assert_ne!(hash(START, b"a"), hash(START, b"b"));
}
