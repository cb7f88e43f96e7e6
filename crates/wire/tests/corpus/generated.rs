//! Lines with the counted names at all places, in all orders, with white space, escapes and duplicates; then cut and changed.

use super::wire_check;
use acpd_wire::{Member, Skimmer, UpdateKind, scan};
use proptest::prelude::*;

const NAMES: [&str; 20] = [
    "params",
    "params",
    "update",
    "update",
    "jsonrpc",
    "id",
    "method",
    "result",
    "error",
    "sessionId",
    "requestId",
    "_meta",
    "sessionUpdate",
    "sessionUpdate",
    "senderSessionId",
    "recipientSessionId",
    "messageId",
    "toolCallId",
    "content",
    "",
];
const SCALARS: [&str; 22] = [
    "null",
    "true",
    "false",
    "0",
    "-0.5e+7",
    "12345678901234567890123",
    "1E-2",
    r#""2.0""#,
    r#""plan""#,
    r#""notice""#,
    r#""\u0070lan""#,
    r#""tool_call""#,
    r#""agent_message_chunk""#,
    r#""s""#,
    r#""sessionUpdate""#,
    r#""\"sessionUpdate\":\"plan\"""#,
    r#""\\""#,
    r#""\ud83d""#,
    r#""\ud83d\ude00\/\b\f\n\r\t""#,
    r#""größe 😀 and so much that it fills more than one block, up to the \"end\"""#,
    "[]",
    "{}",
];

/// A name as a string of JSON, some of its characters escaped.
fn name() -> impl Strategy<Value = String> {
    (prop::sample::select(&NAMES[..]), prop::option::weighted(0.2, any::<u32>())).prop_map(
        |(name, escaped)| {
            let each = name.bytes().enumerate().map(|(at, byte)| match escaped {
                Some(bits) if bits & (1 << at) != 0 => format!("\\u{byte:04x}"),
                _ => char::from(byte).to_string(),
            });
            format!("\"{}\"", each.collect::<String>())
        },
    )
}

fn space() -> impl Strategy<Value = &'static str> {
    prop_oneof![6 => Just(""), 1 => Just(" "), 1 => Just("\t\r ")]
}

fn object(value: BoxedStrategy<String>) -> BoxedStrategy<String> {
    let member = (space(), name(), space(), space(), value, space())
        .prop_map(|(a, name, b, c, value, d)| format!("{a}{name}{b}:{c}{value}{d}"));
    prop::collection::vec(member, 0..7).prop_map(|members| format!("{{{}}}", members.join(","))).boxed()
}

fn value() -> BoxedStrategy<String> {
    let scalar = prop::sample::select(&SCALARS[..]).prop_map(str::to_owned).boxed();
    let nested = scalar.prop_recursive(4, 40, 6, |inner| {
        let array =
            prop::collection::vec(inner.clone(), 0..4).prop_map(|values| format!("[{}]", values.join(" ,")));
        prop_oneof![3 => object(inner.boxed()), 1 => array]
    });
    nested.boxed()
}

/// A line like those of agents, with something at each level that may be in the way.
fn line() -> impl Strategy<Value = String> {
    let update =
        (object(value()), name(), value(), any::<bool>()).prop_map(|(update, name, value, is_first)| {
            let inside = &update[1..update.len() - 1];
            let comma = if inside.trim().is_empty() { "" } else { "," };
            if is_first {
                format!("{{{name}:{value}{comma}{inside}}}")
            } else {
                format!("{{{inside}{comma}{name}:{value}}}")
            }
        });
    let exact = (value(), update, value()).prop_map(|(before, update, behind)| {
        format!(r#"{{"_x":{before},"params":{{"a":{before},"update":{update},"b":{behind}}},"y":{behind}}}"#)
    });
    prop_oneof![object(value()), exact]
}

proptest! {
    // FR-5, FR-8: the same verdict and the same places as serde_json, whatever stands where
    #[test]
    fn lines_are_read_as_serde_json_reads_them(line in line()) {
        wire_check::check_line(line.as_bytes());
    }

    // FR-5: what was cut off or changed is accepted exactly when serde_json accepts it
    #[test]
    fn damaged_lines_are_judged_as_serde_json_judges_them(
        line in line(),
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4), 1..4),
    ) {
        let mut skimmer = Skimmer::default();
        let _of_the_line = skimmer.skim(line.as_bytes());
        let mut bytes = line.into_bytes();
        for (place, byte, damage) in places {
            let at = place.index(bytes.len() + 1);
            match damage {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, byte),
                2 => bytes.insert(at, b"\"\\{}[],:0-."[usize::from(byte) % 11]),
                _ if at < bytes.len() => bytes[at] = byte,
                _ => {}
            }
        }
        wire_check::check_line(&bytes);
        // ADR 31: the line that was skimmed before says nothing of another.
        if let Ok(scan) = scan(&bytes)
            && scan.kind() != UpdateKind::Other
        {
            let skim = skimmer.skim(&bytes).expect("a scan accepts it");
            prop_assert_eq!((skim.session(), skim.kind()), (scan.span(Member::SessionId), scan.kind()));
        }
    }
}
