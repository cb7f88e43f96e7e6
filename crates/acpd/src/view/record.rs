//! One session in full: what it is, and the whole record of how its last run ended.
//!
//! Pure. Nothing of an agent or a daemon gets past the filters of `clean`.

use super::ending::{self, spoken};
use super::facts::{grouped, paid};
use super::paint::{Paint, Screen};
use super::session_rows::state;
use super::spans::{age, date_and_time, span};
use crate::clean::line;
use crate::daemon::{LastTurn, Session};
use crate::moment::Moment;
use acpd_host::ShownUsage;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::time::Duration;

/// Characters of a line that are shown at most.
const WIDTH: usize = 1_000;
/// The room for the names of facts, at least.
const NAMES: usize = 12;
/// The longest name that the others are brought in line with.
const LONGEST_NAME: usize = 24;

/// Facts, a line each.
#[derive(Default)]
struct Facts(Vec<(String, String)>);

impl Facts {
    /// Adds one; nothing without a value.
    fn add(&mut self, name: &str, value: Option<String>) {
        self.0.extend(value.filter(|value| !value.is_empty()).map(|value| (name.to_owned(), value)));
    }

    /// Where the values begin: two columns behind the longest name.
    fn width(&self) -> usize {
        let widths = self.0.iter().map(|(name, _)| name.chars().count() + 2);
        widths.filter(|width| *width <= LONGEST_NAME).max().unwrap_or_default().max(NAMES)
    }

    fn lines(&self, paint: Paint) -> Vec<String> {
        let width = self.width();
        let line = |(name, value): &(String, String)| {
            let gap = if name.chars().count() + 2 > width { "  " } else { "" };
            format!("{}{value}", paint.dim(format_args!("{name:<width$}{gap}")))
        };
        self.0.iter().map(line).collect()
    }
}

/// A name as a program writes it, as words.
fn spaced(name: &str) -> String {
    let words = name.chars().flat_map(|c| {
        let gap = c.is_ascii_uppercase().then_some(' ');
        gap.into_iter().chain([c.to_ascii_lowercase()])
    });
    words.collect()
}

/// What an agent offers to choose from, by the snapshot of a session.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Chosen {
    modes: Value,
    models: Value,
    config_options: Value,
}

impl Chosen {
    fn of(session: &Session) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Whole {
            snapshot: Chosen,
        }
        let whole =
            session.raw.as_deref().and_then(|raw| acpd_wire::read::<Whole>(raw.get().as_bytes()).ok());
        whole.unwrap_or_default().snapshot
    }

    /// The name of a mode or model for people, else its id.
    fn name(&self, what: &str, id: Option<&str>) -> Option<String> {
        let id = id?;
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let options = list(&self.config_options).into_iter();
        let of_kind = options.filter(|option| option["category"] == what || option["id"] == what);
        // They may be in groups.
        let choices = of_kind.flat_map(|option| list(&option["options"])).flat_map(|choice| {
            let grouped = list(&choice["options"]);
            if grouped.is_empty() { vec![choice] } else { grouped }
        });
        let (modes, models) = (list(&self.modes["availableModes"]), list(&self.models["availableModels"]));
        let named = choices
            .chain(if what == "mode" { modes } else { models })
            .find(|choice| ["value", "id", "modelId"].iter().any(|key| choice[*key].as_str() == Some(id)));
        let name = named.and_then(|choice| Some(line(choice["name"].as_str()?, WIDTH)));
        name.filter(|name| !name.is_empty()).or_else(|| Some(line(id, WIDTH)))
    }
}

/// A session for a person, line by line.
pub(crate) fn session_record(session: &Session, now: Timestamp, screen: Screen) -> Vec<String> {
    let paint = Paint::new(screen.colour);
    let mut facts = Facts::default();
    let time = |at: Moment| format!("{} UTC ({} ago)", date_and_time(at), age(at, now));
    let mut fact = |name: &str, value: Option<String>| facts.add(name, value);
    let chosen = Chosen::of(session);
    let text = |text: &str| Some(line(text, WIDTH));
    let of = |value: &Option<String>| value.as_deref().and_then(text);
    fact("session", text(&session.session_id));
    fact("state", Some(state(session).text));
    fact("detached", session.detached_since.map(|since| detached(since, session.detached_until, now)));
    fact("node", session.node.as_deref().map(|node| on_node(node, session, now)));
    fact("agent", text(&session.agent));
    fact("title", of(&session.title));
    fact("first prompt", of(&session.first_prompt).filter(|_| session.title.is_none()));
    fact("cwd", text(&session.cwd));
    fact("model", chosen.name("model", session.model.as_deref()));
    fact("mode", chosen.name("mode", session.mode.as_deref()));
    fact("created", Some(time(session.created_at)));
    fact("changed", Some(time(session.updated_at)));
    fact("events", Some(grouped(session.event_count)));
    fact("questions", (session.open_questions > 0).then(|| open(session.open_questions)));
    fact("turn", session.turn_started_at.map(|at| format!("running for {}", age(at, now))));
    fact("last turn", session.last_turn.as_ref().map(|turn| last_turn(turn, now)));
    fact("tokens", session.usage.as_ref().map(tokens));
    fact("cost", session.usage.as_ref().map(cost));
    fact("agent's id", of(&session.native_session_id));
    let metadata: Map<String, Value> = session.metadata.read().unwrap_or_default();
    for (name, value) in &metadata {
        fact(&spaced(&line(name, 40)), plain(value));
    }
    let mut lines = facts.lines(paint);
    if let Some(info) = session.termination_info.read::<Value>().filter(|_| session.ended) {
        lines.push(String::new());
        lines.extend(termination(&info, &session.agent, paint));
    }
    lines
}

/// Its node, and since when that cannot be reached: what is told of the session is then what was known of it.
fn on_node(node: &str, session: &Session, now: Timestamp) -> String {
    let node = line(node, 64);
    match session.unreachable_since {
        Some(since) => {
            let (at, ago) = (date_and_time(since), age(since, now));
            format!("{node}, which cannot be reached since {at} UTC ({ago} ago); this is what it said last")
        }
        None => node,
    }
}

/// For how long its agent has had no daemon, and how long it waits for the next one.
fn detached(since: Moment, until: Option<Moment>, now: Timestamp) -> String {
    let left = until.and_then(|until| until.0).map(|until| span(until.as_second() - now.as_second()));
    let left =
        left.map(|left| format!(", and waits {left} more for the next `acpd serve`")).unwrap_or_default();
    format!("for {}{left}", age(since, now))
}

fn open(questions: u64) -> String {
    format!("{} open", grouped(questions))
}

/// How the last turn ended, how long it took, and how long ago that is.
fn last_turn(turn: &LastTurn, now: Timestamp) -> String {
    let reason =
        turn.stop_reason.as_deref().map_or_else(|| "not finished".to_owned(), |reason| line(reason, 60));
    let took = spoken(Duration::from_millis(turn.duration_ms));
    format!("{reason} after {took}, {} UTC ({} ago)", date_and_time(turn.ended_at), age(turn.ended_at, now))
}

/// What was used, by kind; the agent's own sum is the last.
fn tokens(usage: &ShownUsage) -> String {
    let (sums, kinds): (Vec<_>, Vec<_>) = usage.tokens.iter().partition(|(kind, _)| *kind == "total");
    let told = |(kind, count): (&String, &u64)| format!("{} {}", grouped(*count), spaced(&line(kind, 60)));
    kinds.into_iter().chain(sums).map(told).collect::<Vec<_>>().join(", ")
}

fn cost(usage: &ShownUsage) -> String {
    let told = |(currency, amount): (&String, &f64)| paid(*amount, currency);
    usage.cost.iter().map(told).collect::<Vec<_>>().join(", ")
}

/// The record of an end, with all there is of the process's stderr.
fn termination(info: &Value, agent: &str, paint: Paint) -> Vec<String> {
    let mut facts = Facts::default();
    let mut fact = |name: &str, value: Option<String>| facts.add(name, value);
    let text = |key: &str| info[key].as_str().map(|text| line(text, WIDTH));
    let words = |key: &str| text(key).map(|text| text.replace('_', " "));
    let yes = |key: &str| (info[key].as_bool() == Some(true)).then(|| "yes".to_owned());
    let reason = text("reason").unwrap_or_else(|| "?".to_owned());
    fact("ended", Some(format!("{reason} by {}", text("terminatedBy").unwrap_or_else(|| "?".to_owned()))));
    fact("message", text("message"));
    fact("cause", words("cause"));
    fact("asked by", text("initiator"));
    fact("exit code", info["exitCode"].as_i64().map(|code| code.to_string()));
    fact("signal", text("signal"));
    fact("in a turn", yes("turnActive"));
    fact("last turn", text("lastStopReason"));
    fact("left over", yes("leaked").map(|_| "processes, which were killed".to_owned()));
    fact("stopped by", plain(&info["escalation"]));
    fact("seen of it", text("containment").map(|seen| containment(&seen)));
    fact("began", text("startedAt").map(|at| format!("{} UTC", date_and_time(at.as_str().into()))));
    fact("at", text("endedAt").map(|at| format!("{} UTC", date_and_time(at.as_str().into()))));
    fact("last event", info["lastEventSeq"].as_u64().map(grouped));
    let mut lines = facts.lines(paint);
    lines.extend(stderr(&info["stderr"], paint));
    lines.extend(ending::hint(info, &line(agent, 60)).map(|hint| format!("{} {hint}", paint.kind("next:"))));
    lines
}

/// What acpd saw of what an agent started.
fn containment(seen: &str) -> String {
    match seen {
        "subreaper" => "all that it started".to_owned(),
        "group" => "its process group only".to_owned(),
        other => other.to_owned(),
    }
}

/// What the record has of a process's stderr.
fn stderr(stderr: &Value, paint: Paint) -> Vec<String> {
    let mut lines = ending::stderr_lines(stderr, [usize::MAX; 2], WIDTH, paint);
    if let Some(head) = lines.first_mut() {
        *head = paint.dim(format_args!("{:<NAMES$}{head}:", "stderr"));
    }
    lines
}

/// A value without its JSON, if it is a simple one or a list of such.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::Object(_) => None,
        Value::String(text) => Some(line(text, WIDTH)),
        Value::Array(list) => Some(list.iter().filter_map(plain).collect::<Vec<_>>().join(", ")),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(info: Value) -> String {
        let session = Session {
            session_id: "019a-full".to_owned(),
            agent: "quits".to_owned(),
            state: "ended".to_owned(),
            ended: true,
            title: Some("a\u{1b}[31m title".to_owned()),
            created_at: "2026-11-21T11:00:00Z".into(),
            updated_at: "2026-11-21T11:59:00Z".into(),
            termination_info: info.into(),
            metadata: json!({"createdBy": "ci", "nothing": null, "deep": {"x": 1}}).into(),
            ..Session::default()
        };
        let now = "2026-11-21T12:00:00Z".parse().expect("a time");
        session_record(&session, now, Screen::default()).join("\n")
    }

    // contract 1.2, contract 6: acpd sessions show prints the whole record of an end, with all of its stderr
    #[test]
    fn the_whole_record_is_told() {
        let lines = |from: u32| (from..from + 50).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        let text = shown(json!({
            "reason": "error", "terminatedBy": "agent", "message": "agent exited with exit status: 1",
            "exitCode": 1, "cause": "agent_crash", "initiator": "daemon", "turnActive": true,
            "lastStopReason": "end_turn", "leaked": true, "escalation": ["SIGTERM", "SIGKILL"], "containment": "group",
            "startedAt": "2026-11-21T11:00:01Z", "endedAt": "2026-11-21T11:59:00Z", "lastEventSeq": 1234,
            "stderr": {"head": lines(1), "tail": lines(201), "truncated": true, "totalLines": 250},
        }));
        for part in [
            "session     019a-full\nstate       ended: error\nagent       quits\ntitle       a␛[31m title\n",
            "created     2026-11-21 11:00:00 UTC (1h ago)\n",
            "created by  ci\n",
            "ended       error by agent\nmessage     agent exited with exit status: 1\ncause       agent crash\n",
            "asked by    daemon\nexit code   1\nin a turn   yes\nlast turn   end_turn\n",
            "left over   processes, which were killed\nstopped by  SIGTERM, SIGKILL\nseen of it  its process group only\n",
            "at          2026-11-21 11:59:00 UTC\nlast event  1,234\nstderr      250 lines:\n  │ line 1\n",
            "  │ line 50\n  ┊ 150 lines left out\n  │ line 201\n",
            "  │ line 250\nnext: ",
        ] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
        assert!(!text.contains("deep"), "{text}");
    }

    // contract 7.3: what a session has used, how its last turn ended, and what is asked
    #[test]
    fn what_was_used_is_told() {
        let session = json!({
            "sessionId": "s", "state": "waiting", "openQuestions": 2,
            "usage": {
                "tokens": {"cachedRead": 3, "input": 12_345, "total": 12_348, "x\u{1b}[2J": 0},
                "cost": {"USD": 0.00412, "credits": 2.0},
            },
            "turnStartedAt": "2026-11-21T11:59:20Z",
            "lastTurn": {"stopReason": "end_turn", "durationMs": 72_000, "endedAt": "2026-11-21T11:59:00Z"},
        });
        let mut session: Session = serde_json::from_value(session).expect("a session");
        let now = "2026-11-21T12:00:00Z".parse().expect("a time");
        let text = session_record(&session, now, Screen::default()).join("\n");
        for part in [
            "state       waiting: 2\n",
            "questions   2 open\n",
            "turn        running for 40s\n",
            "last turn   end_turn after 1 m 12 s, 2026-11-21 11:59:00 UTC (1m ago)\n",
            "tokens      3 cached read, 12,345 input, 0 x␛[2 j, 12,348 total\n",
            "cost        0.0041 USD, 2.00 credits",
        ] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
        assert!(!text.contains("detached"), "{text}");
        (session.detached_since, session.detached_until) =
            (Some("2026-11-21T11:59:30Z".into()), Some("2026-11-21T12:09:30Z".into()));
        let text = session_record(&session, now, Screen::default()).join("\n");
        assert!(
            text.contains("detached    for 30s, and waits 9m more for the next `acpd serve`\n"),
            "{text}"
        );
        (session.detached_since, session.detached_until) = (None, None);
        assert!(!text.contains("node "), "{text}");
        (session.node, session.unreachable_since) = (Some("b".to_owned()), None);
        let text = session_record(&session, now, Screen::default()).join("\n");
        assert!(text.contains("\nnode        b\n"), "{text}");
        session.unreachable_since = Some("2026-11-21T11:58:00Z".into());
        let text = session_record(&session, now, Screen::default()).join("\n");
        let away = "node        b, which cannot be reached since 2026-11-21 11:58:00 UTC (2m ago); ";
        assert!(text.contains(away), "{text}");
        if let Some(turn) = &mut session.last_turn {
            turn.stop_reason = None;
        }
        (session.usage, session.open_questions) = (None, 0);
        let text = session_record(&session, now, Screen::default()).join("\n");
        assert!(text.contains("last turn   not finished after 1 m 12 s, "), "{text}");
        assert!(!["tokens", "cost", "questions"].iter().any(|name| text.contains(name)), "{text}");
    }

    // issue 28, RA9: names for people in the place of ids, and values that stand apart from their names
    #[test]
    fn what_was_chosen_has_its_name() {
        let raw = json!({
            "sessionId": "s", "mode": "https://m.test#agent", "model": "$m|openai", "firstPrompt": "say hello",
            "metadata": {"permissionMode": "default"},
            "snapshot": {
                "modes": {"availableModes": [{"id": "https://m.test#agent", "name": "Ag\u{1b}ent"}]},
                "configOptions": [{"id": "m", "category": "model", "options": [
                    {"group": "g", "options": [{"value": "other", "name": "No"}, {"value": "$m|openai", "name": "M"}]},
                ]}],
            },
        });
        let session = |raw: &Value| {
            Session::read(serde_json::value::to_raw_value(raw).expect("JSON")).expect("a session")
        };
        let now = "2026-11-21T12:00:00Z".parse().expect("a time");
        let text = session_record(&session(&raw), now, Screen::default()).join("\n");
        for part in [
            "\nmodel            M\n",
            "\nmode             Ag␛ent\n",
            "\nfirst prompt     say hello\n",
            "\npermission mode  default",
        ] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
        let mut other = raw;
        other["snapshot"] =
            json!({"modes": 7, "configOptions": [[], {"category": "model", "options": [{}]}]});
        let text = session_record(&session(&other), now, Screen::default()).join("\n");
        assert!(text.contains("model            $m|openai\n"), "without a name it is the id: {text}");
    }

    // contract 6: nothing of an agent reaches the terminal unfiltered
    #[test]
    fn a_hostile_record_is_harmless() {
        let text = shown(json!({
            "reason": "\u{1b}[2J", "message": "a\nb\u{7}", "escalation": ["\u{9b}"],
            "stderr": {"head": "x\u{1b}]52;c;\u{7}\r\ny", "truncated": false, "totalLines": 2},
        }));
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
}
