//! The tool calls of a turn: what is known of each from its updates, and the lines that show it.
//!
//! Invariants: a call is told as finished once; what is kept of a call is bounded and clean. An update of an
//! unknown call opens it, because agents ask for permission, and report, before they announce.

use std::collections::VecDeque;
use std::path::Path;

use serde_json::Value;

use super::clean::{line, verbatim};
use super::diff;
use super::paint::Paint;

/// At most this many calls are remembered; the oldest are forgotten, open or not.
const REMEMBERED: usize = 512;
/// So many bytes of an id tell calls apart; real ones have about 40.
const ID_BYTES: usize = 256;
const TITLE_WIDTH: usize = 200;
const PATH_WIDTH: usize = 120;
const SHOWN_LOCATIONS: usize = 3;
const SHOWN_DIFFS: usize = 10;
/// Lines of an error that a failed call brought.
const SHOWN_REASON: usize = 3;

/// What an update changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// A call to show.
    Opened,
    /// An open call may look different.
    Changed,
    /// Completed or failed, for the first time; the lines are [`Calls::finished`].
    Finished,
    /// Nothing to show.
    Nothing,
    /// No id: nobody can tell which call it is about.
    Unreadable,
}

/// All calls, in the order they were announced.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: VecDeque<Call>,
    /// How many there were.
    pub(super) total: usize,
    /// How many failed.
    pub(super) failed: usize,
}

#[derive(Debug, Default)]
struct Call {
    id: String,
    title: String,
    kind: String,
    locations: Vec<String>,
    diffs: Vec<String>,
    reason: Vec<String>,
    state: State,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    Completed,
    Failed,
}

impl Calls {
    /// Takes in a `tool_call` or `tool_call_update`.
    pub(super) fn take(&mut self, update: &Value, cwd: Option<&Path>, paint: Paint) -> Change {
        let Some(id) = call_id(update) else { return Change::Unreadable };
        let announced = update.get("sessionUpdate").and_then(Value::as_str) == Some("tool_call");
        let state = match update.get("status").and_then(Value::as_str) {
            Some("completed") => State::Completed,
            Some("failed") => State::Failed,
            _ => State::Open,
        };
        let known = self.calls.iter().rposition(|call| call.id == id);
        let reused = |at: usize| announced && state == State::Open && self.calls[at].state != State::Open;
        let (at, opened) = match known {
            Some(at) if !reused(at) => (at, false),
            _ => (self.open(id), true),
        };
        let call = &mut self.calls[at];
        if call.state != State::Open {
            return Change::Nothing;
        }
        call.merge(update, cwd, paint);
        call.state = state;
        if state == State::Failed {
            self.failed += 1;
        }
        match (state, opened) {
            (State::Open, true) => Change::Opened,
            (State::Open, false) => Change::Changed,
            _ => Change::Finished,
        }
    }

    fn open(&mut self, id: &str) -> usize {
        if self.calls.len() == REMEMBERED {
            self.calls.pop_front();
        }
        self.total += 1;
        self.calls.push_back(Call { id: id.to_owned(), ..Call::default() });
        self.calls.len() - 1
    }

    /// One line for each open call, with `mark` in front.
    pub(super) fn open_lines(&self, mark: &str, paint: Paint) -> Vec<String> {
        self.calls
            .iter()
            .filter(|call| call.state == State::Open)
            .map(|call| call.line(mark, paint))
            .collect()
    }

    /// The line of the call that `update` is about, with `mark` in front.
    pub(super) fn line(&self, update: &Value, mark: &str, paint: Paint) -> Vec<String> {
        self.find(update).map(|call| call.line(mark, paint)).into_iter().collect()
    }

    /// The lines of the finished call that `update` is about: how it ended, what it changed, why it failed.
    pub(super) fn finished(&self, update: &Value, paint: Paint) -> Vec<String> {
        let Some(call) = self.find(update) else { return Vec::new() };
        let failed = call.state == State::Failed;
        let mark = if failed { paint.bad("✗") } else { paint.good("✓") };
        let details = if failed { &call.reason } else { &call.diffs };
        let mut lines = vec![call.line(&mark, paint)];
        lines.extend(details.iter().map(|detail| format!("    {detail}")));
        lines
    }

    /// Forgets the open calls and gives their lines: the turn is over, nothing more will be heard of them.
    pub(super) fn abandon(&mut self, mark: &str, paint: Paint) -> Vec<String> {
        let lines = self.open_lines(mark, paint);
        self.calls.retain(|call| call.state != State::Open);
        lines.into_iter().map(|line| format!("{line}  {}", paint.dim("not finished"))).collect()
    }

    fn find(&self, update: &Value) -> Option<&Call> {
        let id = call_id(update)?;
        self.calls.iter().rfind(|call| call.id == id)
    }
}

fn call_id(update: &Value) -> Option<&str> {
    let id = update.get("toolCallId")?.as_str()?;
    Some(&id[..id.floor_char_boundary(ID_BYTES)])
}

impl Call {
    /// Present fields replace; content without a change keeps the changes, which agents send once.
    fn merge(&mut self, update: &Value, cwd: Option<&Path>, paint: Paint) {
        if let Some(title) = update.get("title").and_then(Value::as_str) {
            self.title = line(title, TITLE_WIDTH);
        }
        if let Some(kind) = update.get("kind").and_then(Value::as_str) {
            self.kind = kind_word(kind);
        }
        if let Some(locations) = update.get("locations").and_then(Value::as_array) {
            self.locations = locations.iter().filter_map(|location| shown_location(location, cwd)).collect();
        }
        if let Some(content) = update.get("content").and_then(Value::as_array) {
            let diffs: Vec<&Value> = content.iter().filter(|item| item["type"] == "diff").collect();
            if !diffs.is_empty() {
                self.diffs =
                    diffs.iter().take(SHOWN_DIFFS).flat_map(|diff| shown_diff(diff, cwd, paint)).collect();
                if diffs.len() > SHOWN_DIFFS {
                    let more = diffs.len() - SHOWN_DIFFS;
                    self.diffs.push(paint.dim(format_args!("... {more} more files")));
                }
            }
            let text = content.iter().find_map(|item| item.pointer("/content/text")?.as_str());
            self.reason = text.map(|text| shown_reason(text, paint)).unwrap_or_default();
        }
        if self.reason.is_empty() {
            let raw =
                update.get("rawOutput").and_then(|raw| raw.as_str().or_else(|| raw.get("error")?.as_str()));
            self.reason = raw.map(|text| shown_reason(text, paint)).unwrap_or_default();
        }
    }

    fn line(&self, mark: &str, paint: Paint) -> String {
        let kind = if self.kind.is_empty() { "tool" } else { &self.kind };
        let title = if self.title.is_empty() { &self.id } else { &self.title };
        let title = line(title, TITLE_WIDTH);
        let mut shown = format!("{mark} {} {title}", paint.kind(format_args!("{kind:<6}")));
        // A title often is the path already.
        let places: Vec<&str> =
            self.locations.iter().map(String::as_str).filter(|place| !title.contains(place)).collect();
        for place in places.iter().take(SHOWN_LOCATIONS) {
            shown.push_str("  ");
            shown.push_str(&paint.dim(place));
        }
        if places.len() > SHOWN_LOCATIONS {
            shown.push_str(&paint.dim(format_args!("  +{}", places.len() - SHOWN_LOCATIONS)));
        }
        shown
    }
}

/// ACP's kinds in words of at most six letters, so that titles stand in a column.
fn kind_word(kind: &str) -> String {
    match kind {
        "execute" => "run".to_owned(),
        "switch_mode" => "mode".to_owned(),
        "other" => "tool".to_owned(),
        kind => line(kind, 12),
    }
}

fn shown_location(location: &Value, cwd: Option<&Path>) -> Option<String> {
    let path = shown_path(location.get("path")?.as_str()?, cwd)?;
    Some(match location.get("line").and_then(Value::as_u64) {
        Some(number) => format!("{path}:{number}"),
        None => path,
    })
}

/// The path as seen from the session's directory; `None` for that directory itself.
fn shown_path(path: &str, cwd: Option<&Path>) -> Option<String> {
    let below = cwd.and_then(|cwd| Path::new(path).strip_prefix(cwd).ok()?.to_str());
    let shown = line(below.unwrap_or(path), PATH_WIDTH);
    (!shown.is_empty()).then_some(shown)
}

fn shown_diff(diff: &Value, cwd: Option<&Path>, paint: Paint) -> Vec<String> {
    let Some(new) = diff["newText"].as_str() else { return Vec::new() };
    let change = diff::show(diff["oldText"].as_str(), new, paint);
    let path = diff["path"].as_str().and_then(|path| shown_path(path, cwd)).unwrap_or_default();
    let head = paint.dim(format_args!("{path} +{} -{}", change.added, change.removed));
    std::iter::once(head).chain(change.lines).collect()
}

fn shown_reason(text: &str, paint: Paint) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("```"));
    lines.take(SHOWN_REASON).map(|line| paint.dim(verbatim(line, TITLE_WIDTH))).collect()
}
