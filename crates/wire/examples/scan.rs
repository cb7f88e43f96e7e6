//! What the scan of a line costs, by turns with what it replaced: the envelope by serde_json, and looks at bytes for the
//! session and for the kind of the update. Run with `--release`.
//!
//! Prints a line of JSON for each kind of line: its size, and the nanoseconds of each way, the best of several rounds.

use std::hint::black_box;
use std::time::{Duration, Instant};

use acpd_wire::{Member, member, scan};
use serde::de::{Deserialize, Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

const ROUNDS: usize = 15;
/// Bytes of a round, about.
const ROUND: usize = 4 * 1024 * 1024;

fn main() {
    let chunk = |text: &str| format!(r#""content":{{"type":"text","text":"{text}"}}"#);
    let kind = r#""sessionUpdate":"agent_message_chunk""#;
    let session = r#""sessionId":"0198f1c2-aaaa-7000-8000-000000000001""#;
    let update = |inside: &str| line(&format!(r#"{session},"update":{{{inside}}}"#));
    let diff = r#"{\"a\":\t1}\n+ let x = \"y\";\n"#.repeat(2000);
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    for (name, line) in [
        ("60 bytes", line(r#""update":{}"#)),
        ("a short chunk", update(&format!("{kind},{}", chunk("Hello")))),
        ("a short chunk, kind last", update(&format!("{},{kind}", chunk("Hello")))),
        (
            "a short chunk, session last",
            line(&format!(r#""update":{{{kind},{}}},{session}"#, chunk("Hello"))),
        ),
        ("a tool call", update(&tool_call())),
        ("2 KiB of text", update(&format!("{kind},{}", chunk(&"the quick brown fox ".repeat(100))))),
        (
            "2 KiB of text, kind last",
            update(&format!("{},{kind}", chunk(&"the quick brown fox ".repeat(100)))),
        ),
        ("64 KiB of a diff with escapes", update(&format!("{kind},{}", chunk(&diff)))),
        ("10,000 levels", update(&format!(r#"{kind},"rawInput":{deep}"#))),
        ("a long string: 64 KiB of text", update(&format!("{kind},{}", chunk(&"x".repeat(65_536))))),
        ("a long string: 50 MiB of base64", update(&format!("{kind},{}", chunk(&"QUJD".repeat(13_107_200))))),
    ] {
        measure(name, line.as_bytes());
    }
}

fn line(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{{{params}}}}}"#)
}

fn tool_call() -> String {
    let locations = r#"{"path":"project/src/main.rs","line":12}"#;
    format!(
        r#""sessionUpdate":"tool_call","toolCallId":"call_8a2f","title":"Read main.rs","kind":"read","status":"pending","locations":[{locations},{locations}],"rawInput":{{"path":"src/main.rs","limit":200,"offset":null}},"content":[]"#
    )
}

/// The best time of each way, in nanoseconds, by turns.
fn measure(name: &str, line: &[u8]) {
    let times = (ROUND / line.len()).clamp(1, 20_000);
    let mut best = [Duration::MAX; 3];
    for _ in 0..ROUNDS {
        for (way, best) in [old_parse, old_update, new_scan].into_iter().zip(&mut best) {
            #[expect(clippy::disallowed_methods, reason = "this program measures time")]
            let start = Instant::now();
            for _ in 0..times {
                black_box(way(black_box(line)));
            }
            *best = start.elapsed().min(*best);
        }
    }
    let [parse, update, scan] = best.map(|time| time.as_nanos() as f64 / times as f64);
    let bytes = line.len();
    print(&serde_json::json!({"what": name, "bytes": bytes, "parse": parse, "update": update, "scan": scan}));
}

#[expect(clippy::print_stdout, reason = "the report is the purpose of this program")]
fn print(line: &serde_json::Value) {
    println!("{line}");
}

/// What is read of an update now: its session, its kind, and that it is a message.
fn new_scan(line: &[u8]) -> usize {
    let scan = scan(line).expect("JSON");
    scan.span(Member::SessionId).map_or(0, |span| span.end) + scan.kind() as usize
}

/// The envelope as it was read before.
fn old_parse(line: &[u8]) -> usize {
    envelope(line).map_or(0, |params| params.get().len())
}

/// What was read of an update before.
fn old_update(line: &[u8]) -> usize {
    const FIRST: &str = "{\"sessionId\":\"";
    let Some(params) = envelope(line) else { return 0 };
    let session = match params.get().strip_prefix(FIRST).and_then(|rest| rest.find(['"', '\\'])) {
        Some(length) => length,
        None => member(params, "sessionId").map_or(0, |id| id.get().len()),
    };
    let front = &line[..line.len().min(1024)];
    let kind = memchr::memmem::find(front, b"\"sessionUpdate\"").and_then(|at| {
        let rest = &front[at + 15..];
        let open = rest.iter().position(|byte| *byte == b'"')?;
        let length = rest[open + 1..].iter().position(|byte| *byte == b'"')?;
        std::str::from_utf8(&rest[open + 1..open + 1 + length]).ok()
    });
    session + kind.map_or(0, str::len)
}

fn envelope(line: &[u8]) -> Option<&RawValue> {
    let text = std::str::from_utf8(line).ok()?;
    let mut json = serde_json::Deserializer::from_str(text);
    let [version, method, params] = json.deserialize_map(Members).ok()?;
    json.end().ok()?;
    let version = version.is_none_or(|version| version.get() == "\"2.0\"");
    let method = method?.get().strip_prefix('"')?.strip_suffix('"')?;
    let is_plain = memchr::memchr(b'\\', method.as_bytes()).is_none();
    params.filter(|_| version && is_plain)
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = [Option<&'de RawValue>; 3];

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = [None; 3];
        while let Some(Name(name)) = map.next_key()? {
            match members.get_mut(name) {
                Some(member) => *member = Some(map.next_value()?),
                None => {
                    let IgnoredAny = map.next_value()?;
                }
            }
        }
        Ok(members)
    }
}

/// The place of a member among those that are kept.
struct Name(usize);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Known;

        impl Visitor<'_> for Known {
            type Value = Name;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a member name")
            }

            fn visit_str<E>(self, name: &str) -> Result<Name, E> {
                Ok(Name(match name {
                    "jsonrpc" => 0,
                    "method" => 1,
                    "params" => 2,
                    _ => 3,
                }))
            }
        }

        deserializer.deserialize_identifier(Known)
    }
}
