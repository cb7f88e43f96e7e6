//! What may differ between two showings of one log, all of it. Everything else is compared byte for byte.
//!
//! 1. A time that does not stand in the fixture is `<now>`: that of a run which the showing began, or of an end that it
//!    found.
//! 2. An id of a session, or of the agent's, that does not stand in the fixture is `<new id>`.
//! 3. On a line that tells of now: the numbers of processes, the version of the example agent, how long a turn took, and
//!    which steps of the ladder it took to stop the agent: one that is about to be stopped may leave a moment before.
//! 4. In a list, sessions that changed now come last, in the order of their ids: which of two ends came first is a matter
//!    of milliseconds.

use crate::events::Session;
use acpd_host::iso8601;
use std::collections::HashSet;
use std::path::Path;

const NOW: &str = "<now>";
const STEPS: &str = "\"escalation\":[";

/// The rules, for one showing.
#[derive(Debug)]
pub(crate) struct Rules {
    /// Times and ids that stand in the fixture.
    known: HashSet<String>,
}

impl Rules {
    /// For a fixture with these sessions, and this directory of its agents.
    pub(crate) fn new(sessions: &[Session], agent: &Path) -> Self {
        let mut known = HashSet::new();
        for session in sessions {
            known.insert(session.id.clone());
            known.extend(session.times_ms.map(iso8601));
            for event in &session.events {
                known.insert(iso8601(event.at_ms));
                let payload = String::from_utf8_lossy(&event.payload);
                let told = payload.split(|c| !is_word(c)).filter(|word| is_time(word) || is_id(word));
                known.extend(told.map(str::to_owned));
            }
        }
        let kept = std::fs::read_dir(agent).expect("it is in the fixture").flatten();
        known.extend(kept.filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned())));
        Self { known }
    }

    /// A line as it is compared.
    pub(crate) fn apply(&self, line: &str) -> String {
        let mut out = String::with_capacity(line.len());
        let mut rest = line;
        while let Some(start) = rest.find(is_word) {
            let (between, word) = rest.split_at(start);
            let (word, behind) = word.split_at(word.find(|c| !is_word(c)).unwrap_or(word.len()));
            out.push_str(between);
            out.push_str(self.word(word));
            rest = behind;
        }
        out.push_str(rest);
        if out.contains(NOW) {
            for member in ["\"pid\":", "\"agentPid\":", "\"version\":", "\"durationMs\":"] {
                out = without_value(&out, member);
            }
            while let Some(from) = out.find(STEPS) {
                let length = out[from..].find("],").map_or(out.len() - from, |end| end + 2);
                out.replace_range(from..from + length, "");
            }
        }
        out
    }

    fn word<'a>(&self, word: &'a str) -> &'a str {
        match word {
            _ if self.known.contains(word) => word,
            _ if is_time(word) => NOW,
            _ if is_id(word) => "<new id>",
            _ => word,
        }
    }
}

/// Entries of a list: those that changed now last.
pub(crate) fn put_changed_last(entries: &mut [String]) {
    let place = |entry: &String| entry.contains(NOW).then(|| entry.clone());
    entries.sort_by_key(place);
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '.')
}

fn is_shaped(word: &str, shape: &str) -> bool {
    word.len() == shape.len()
        && word.bytes().zip(shape.bytes()).all(|(byte, shape)| match shape {
            b'0' => byte.is_ascii_digit(),
            b'x' => byte.is_ascii_hexdigit(),
            other => byte == other,
        })
}

fn is_time(word: &str) -> bool {
    is_shaped(word, "0000-00-00T00:00:00.000Z")
}

/// An id of acpd's, or of an example agent's.
fn is_id(word: &str) -> bool {
    let number = word.strip_prefix("example-");
    is_shaped(word, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
        || number.is_some_and(|number| is_shaped(number, "xxxxxxxxxxxxxxxx"))
}

fn without_value(line: &str, member: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(member) {
        let (before, value) = rest.split_at(at + member.len());
        out.push_str(before);
        out.push_str("<its own>");
        rest = &value[value.find([',', '}']).unwrap_or(value.len())..];
    }
    out + rest
}

// Rules that go too far would hide what they are to show.
#[test]
fn only_what_differs_is_replaced() {
    let known = ["0198c0de-0000-7000-8000-000000000001", "2026-01-01T23:59:59.999Z"];
    let rules = Rules { known: known.map(str::to_owned).into() };
    for (line, expected) in [
        (r#"{"at":"2026-01-01T23:59:59.999Z","pid":7}"#, r#"{"at":"2026-01-01T23:59:59.999Z","pid":7}"#),
        (r#"{"at":"2026-01-02T00:00:00.000Z","pid":7}"#, r#"{"at":"<now>","pid":<its own>}"#),
        (
            r#"{"endedAt":"2026-01-02T00:00:00.000Z","escalation":["a","b"],"x":[1]}"#,
            r#"{"endedAt":"<now>","x":[1]}"#,
        ),
        (r#"{"escalation":["a"],"x":[1]}"#, r#"{"escalation":["a"],"x":[1]}"#),
        (r#"["0198c0de-0000-7000-8000-000000000001"]"#, r#"["0198c0de-0000-7000-8000-000000000001"]"#),
        (r#"["0198c0de-0000-7000-8000-000000000002"]"#, r#"["<new id>"]"#),
        ("example-0123456789abcdef example-agent 1.0.0", "<new id> example-agent 1.0.0"),
        ("ünïcode \u{0} 2026", "ünïcode \u{0} 2026"),
    ] {
        assert_eq!(rules.apply(line), expected);
    }
    let mut entries = ["c <now>", "b", "z", "a <now>", "a"].map(str::to_owned);
    put_changed_last(&mut entries);
    assert_eq!(entries, ["b", "z", "a", "a <now>", "c <now>"]);
}
