//! One tool call: what is known of it from its updates, and the lines that show it.
//!
//! Pure; owned by [`calls`](super::calls). Invariants: what is kept is bounded and clean; what a person has to decide
//! by is never left out without saying so.

use std::path::Path;

use serde_json::Value;

use super::diff::{self, Shown};
use super::paint::Paint;
use crate::clean::{line, verbatim, without_styles};

/// Characters of a title that are kept; with agents that do not say the command otherwise, it is the command.
const TITLE_KEPT: usize = 1_000;
/// Characters of a title in a line about the call.
const TITLE_WIDTH: usize = 200;
/// Characters of a title in a sentence.
const NAME_WIDTH: usize = 60;
const PATH_WIDTH: usize = 120;
const SHOWN_LOCATIONS: usize = 3;
const SHOWN_DIFFS: usize = 10;
/// Lines of an error that a failed call brought.
const SHOWN_REASON: usize = 3;
/// Lines of text that are kept: of a plan, of a reason.
const TEXT_LINES: usize = 40;
const TEXT_WIDTH: usize = 300;
/// Characters of a command that are shown. All of it should be seen before it is allowed, within reason.
const COMMAND: usize = 4_000;
/// How deep a change may stand in the raw input.
const PATCH_DEPTH: usize = 4;
/// Members of the raw input that are shown, and characters of each.
const INPUT_LINES: usize = 8;
const INPUT_WIDTH: usize = 200;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Open,
    Completed,
    Failed,
}

/// The change of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FileChange {
    pub(super) path: String,
    pub(super) change: Shown,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Call {
    pub(super) id: String,
    title: String,
    kind: String,
    /// Paths, and lines if they are told.
    locations: Vec<(String, Option<u64>)>,
    pub(super) changes: Vec<FileChange>,
    /// Files that are changed and not in `changes`.
    more_changes: usize,
    text: Text,
    /// What the raw input says beyond the title.
    input: Vec<String>,
    /// The lines of the changes in the raw input, for agents that send them nowhere else.
    patch: Text,
    pub(super) state: State,
}

/// The first lines of a text.
#[derive(Debug, Clone, Default)]
struct Text {
    lines: Vec<String>,
    /// Lines that were not kept.
    more: usize,
}

impl Call {
    pub(super) fn new(id: &str) -> Self {
        Self { id: id.to_owned(), ..Self::default() }
    }

    /// Present fields replace; content without a change keeps the changes, which agents send once.
    pub(super) fn merge(&mut self, update: &Value, cwd: Option<&Path>, paint: Paint) {
        if let Some(title) = update["title"].as_str() {
            self.title = line(title, TITLE_KEPT);
        }
        if let Some(kind) = update["kind"].as_str() {
            self.kind = kind_word(kind);
        }
        if let Some(locations) = update["locations"].as_array() {
            self.locations = locations.iter().filter_map(|location| seen_location(location, cwd)).collect();
        }
        if let Some(content) = update["content"].as_array() {
            let diffs: Vec<&Value> = content.iter().filter(|item| item["type"] == "diff").collect();
            if !diffs.is_empty() {
                let seen = |diff: &&Value| seen_change(diff, cwd);
                self.changes = diffs.iter().take(SHOWN_DIFFS).filter_map(seen).collect();
                self.more_changes = diffs.len().saturating_sub(SHOWN_DIFFS);
            }
            let text = content.iter().find_map(|item| item.pointer("/content/text")?.as_str());
            self.text = text.map(seen_text).unwrap_or_default();
        }
        if self.text.lines.is_empty() {
            let raw = &update["rawOutput"];
            let raw = raw.as_str().or(raw["error"].as_str());
            self.text = raw.map(seen_text).unwrap_or_default();
        }
        if let Some(input) = update.get("rawInput") {
            self.input = self.seen_input(input, cwd, paint);
            self.patch = patch_lines(input);
        }
    }

    /// Its kind and title, for a sentence.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.kind(), self.title(NAME_WIDTH))
    }

    /// The line about it, with `mark` in front.
    pub(super) fn line(&self, mark: &str, paint: Paint) -> String {
        let mut shown =
            format!("{mark} {} {}", paint.kind(format_args!("{:<6}", self.kind())), self.title(TITLE_WIDTH));
        shown.push_str(&self.places(paint));
        shown
    }

    /// The lines about it when it has finished: how, what it changed, why it failed.
    pub(super) fn finished(&self, told: Option<&[FileChange]>, paint: Paint) -> Vec<String> {
        let (mark, details) = match self.state {
            State::Failed => (paint.bad("✗"), self.reason(paint)),
            _ => (paint.good("✓"), self.change_lines(usize::MAX, told, paint)),
        };
        let details = details.iter().map(|detail| format!("    {detail}"));
        std::iter::once(self.line(&mark, paint)).chain(details).collect()
    }

    /// What it changed, a head and at most `most` lines; of what a question has `told` already, the heads.
    fn change_lines(&self, most: usize, told: Option<&[FileChange]>, paint: Paint) -> Vec<String> {
        let mut lines = Vec::new();
        let mut room = most;
        for file in &self.changes {
            let FileChange { path, change } = file;
            lines.push(paint.dim(format_args!("{path} +{} -{}", change.added, change.removed)));
            if told.is_none_or(|told| !told.contains(file)) {
                let own = change.lines(room, paint);
                room = room.saturating_sub(own.len());
                lines.extend(own);
            }
        }
        if self.more_changes > 0 {
            lines.push(paint.dim(format_args!("... {} more files", self.more_changes)));
        }
        lines
    }

    /// Why it failed, as far as it says.
    fn reason(&self, paint: Paint) -> Vec<String> {
        let said = |line: &&String| !line.trim().is_empty() && !line.starts_with("```");
        let cut = |line: &String| paint.dim(verbatim(line, TITLE_WIDTH));
        self.text.lines.iter().filter(said).take(SHOWN_REASON).map(cut).collect()
    }

    /// What the decision about a permission needs. A command is there in full; of changes and text there are
    /// about `room` lines. And whether the changes are there in full.
    pub(super) fn question(&self, room: usize, paint: Paint) -> (Vec<String>, bool) {
        let kind = paint.kind(format_args!("{:<6}", self.kind()));
        let head = format!("{} {kind} {}", paint.notable("?"), paint.bold(self.title(TITLE_KEPT)));
        let mut details = self.input.clone();
        let room = room.saturating_sub(details.len());
        let whole = self.changes.iter().map(|file| file.change.kept()).sum::<usize>() <= room;
        if !self.changes.is_empty() {
            if self.kind != "run" {
                // Its values are the change.
                details.clear();
            }
            details.extend(self.change_lines(room, None, paint));
        } else if !self.patch.lines.is_empty() {
            details.extend(self.patch.lines.iter().take(room).map(|text| patch_line(text, paint)));
            let more = self.patch.more + self.patch.lines.len().saturating_sub(room);
            details.extend((more > 0).then(|| paint.dim(format_args!("... {more} more lines"))));
        } else if !self.text.lines.iter().all(|text| self.title.contains(line(text, TITLE_KEPT).as_str())) {
            details.extend(self.text.lines.iter().take(room).cloned());
            let more = self.text.more + self.text.lines.len().saturating_sub(room);
            if more > 0 {
                details.push(paint.dim(format_args!("... {more} more lines")));
            }
        }
        let details = details.into_iter().map(|detail| format!("    {detail}"));
        (std::iter::once(head + &self.places(paint)).chain(details).collect(), whole)
    }

    /// Files that it changes: path, lines added and removed if it says so.
    pub(super) fn files<'a>(&'a self) -> Vec<(&'a str, Option<(usize, usize)>)> {
        if !self.changes.is_empty() {
            let file = |FileChange { path, change }: &'a FileChange| {
                (path.as_str(), Some((change.added, change.removed)))
            };
            return self.changes.iter().map(file).collect();
        }
        match self.kind.as_str() {
            "edit" | "delete" | "move" => {
                self.locations.iter().map(|(path, _)| (path.as_str(), None)).collect()
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn kind(&self) -> &str {
        if self.kind.is_empty() { "tool" } else { &self.kind }
    }

    fn title(&self, most: usize) -> String {
        line(if self.title.is_empty() { &self.id } else { &self.title }, most)
    }

    /// Where it works, but for what the title says.
    fn places(&self, paint: Paint) -> String {
        let title = self.title(TITLE_WIDTH);
        let shown = |(path, line): &(String, Option<u64>)| match line {
            Some(number) => format!("{path}:{number}"),
            None => path.clone(),
        };
        let places: Vec<String> =
            self.locations.iter().map(shown).filter(|place| !title.contains(place)).collect();
        let mut shown = String::new();
        for place in places.iter().take(SHOWN_LOCATIONS) {
            shown.push_str("  ");
            shown.push_str(&paint.dim(place));
        }
        if places.len() > SHOWN_LOCATIONS {
            shown.push_str(&paint.dim(format_args!("  +{}", places.len() - SHOWN_LOCATIONS)));
        }
        shown
    }

    /// The command in full, and the other members in short; nothing that the title or the locations say.
    fn seen_input(&self, input: &Value, cwd: Option<&Path>, paint: Paint) -> Vec<String> {
        let Value::Object(members) = input else {
            let text = if input.is_null() { String::new() } else { line(&input.to_string(), INPUT_WIDTH) };
            return Some(text).filter(|text| !text.is_empty()).into_iter().collect();
        };
        let mut lines = Vec::new();
        let command =
            ["command", "cmd"].into_iter().find_map(|key| Some((key, spoken_command(members.get(key)?)?)));
        if let Some((_, command)) = &command {
            let one_line = !command.trim().contains('\n') && command.len() <= TITLE_KEPT;
            if !(one_line && self.title.contains(&line(command, TITLE_KEPT))) {
                lines = command_lines(command, paint);
            }
        }
        let others = members.iter().filter(|(key, _)| command.as_ref().is_none_or(|(own, _)| own != key));
        let known = |text: &str| {
            let place = seen_path(text, cwd);
            self.title.contains(line(text, TITLE_KEPT).as_str())
                || place.is_none_or(|place| self.locations.iter().any(|(path, _)| *path == place))
        };
        let told = others.filter_map(|(key, value)| match value {
            Value::Null => None,
            Value::String(text) if known(text) || is_patch(text) => None,
            Value::String(text) => Some((key, line(text, INPUT_WIDTH))),
            value if !patch_lines(value).lines.is_empty() => None,
            value => Some((key, line(&value.to_string(), INPUT_WIDTH))),
        });
        let told: Vec<String> = told.map(|(key, value)| format!("{}: {value}", line(key, 40))).collect();
        lines.extend(told.iter().take(INPUT_LINES).map(|line| paint.dim(line)));
        if told.len() > INPUT_LINES {
            lines.push(paint.dim(format_args!("... {} more", told.len() - INPUT_LINES)));
        }
        lines
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

/// A command line, or the words of one.
fn spoken_command(command: &Value) -> Option<String> {
    match command {
        Value::String(command) => Some(command.clone()),
        Value::Array(words) => {
            let word = |word: &Value| {
                let word = word.as_str()?;
                let plain =
                    !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || "'\"\\$`".contains(c));
                Some(if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) })
            };
            Some(words.iter().map(word).collect::<Option<Vec<_>>>()?.join(" "))
        }
        _ => None,
    }
}

fn command_lines(command: &str, paint: Paint) -> Vec<String> {
    let command = command.trim();
    let end = command.char_indices().nth(COMMAND).map_or(command.len(), |(end, _)| end);
    let marks = std::iter::once("$").chain(std::iter::repeat(" "));
    let line = |(mark, line): (&str, &str)| format!("{} {}", paint.dim(mark), verbatim(line, COMMAND));
    let mut lines: Vec<String> = marks.zip(command[..end].split('\n')).map(line).collect();
    let hidden = command[end..].chars().count();
    if hidden > 0 {
        lines.push(paint.notable(format_args!("  ... {hidden} more characters are not shown")));
    }
    lines
}

fn seen_location(location: &Value, cwd: Option<&Path>) -> Option<(String, Option<u64>)> {
    Some((seen_path(location["path"].as_str()?, cwd)?, location["line"].as_u64()))
}

/// The path as seen from the session's directory; `None` for that directory itself.
fn seen_path(path: &str, cwd: Option<&Path>) -> Option<String> {
    let below = cwd.and_then(|cwd| Path::new(path).strip_prefix(cwd).ok()?.to_str());
    let shown = line(below.unwrap_or(path), PATH_WIDTH);
    (!shown.is_empty()).then_some(shown)
}

fn seen_change(diff: &Value, cwd: Option<&Path>) -> Option<FileChange> {
    let change = diff::show(diff["oldText"].as_str(), diff["newText"].as_str()?);
    let path = diff["path"].as_str().and_then(|path| seen_path(path, cwd)).unwrap_or_default();
    Some(FileChange { path, change })
}

/// Whether a text is a change as `diff` and git write it, or in the form that models are taught.
fn is_patch(text: &str) -> bool {
    let begins = |start: &str| text.lines().take(8).any(|line| line.starts_with(start));
    begins("@@ ") || begins("diff --git ") || begins("*** Begin Patch") || begins("--- ") && begins("+++ ")
}

/// The changes in a raw input, wherever they stand in it.
fn patch_lines(input: &Value) -> Text {
    fn collect<'v>(value: &'v Value, depth: usize, found: &mut Vec<&'v str>) {
        match value {
            Value::String(text) if is_patch(text) => found.push(text),
            Value::Object(members) if depth > 0 => {
                members.values().for_each(|value| collect(value, depth - 1, found));
            }
            Value::Array(list) if depth > 0 => list.iter().for_each(|value| collect(value, depth - 1, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(input, PATCH_DEPTH, &mut found);
    seen_text(&found.join("\n"))
}

fn patch_line(text: &str, paint: Paint) -> String {
    match text.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => paint.dim(text),
        [b'+', ..] => paint.good(text),
        [b'-', ..] => paint.bad(text),
        [b' ', ..] => text.to_owned(),
        _ => paint.dim(text),
    }
}

fn seen_text(text: &str) -> Text {
    let text = &*without_styles(text);
    let lines = text.lines().take(TEXT_LINES).map(|line| verbatim(line, TEXT_WIDTH)).collect();
    Text { lines, more: text.lines().count().saturating_sub(TEXT_LINES) }
}
