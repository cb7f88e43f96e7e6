//! What tool calls and terminals brought: changes of files, texts, output, each a block of code on the page.
//!
//! Pure, and lenient: what is not readable brings nothing. Invariants: what encloses a text is longer than anything alike in it; no
//! control character but ends of lines and tabs comes out, and no style of a terminal. Not here: when they are written.

use super::line_of;
use crate::line_diff::{LineChange, line_changes};
use crate::spoken::Block;
use acpd_record::{ExitStatus, TerminalEnded, TerminalOutput};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;

/// Lines on both sides of a change.
const CONTEXT: usize = 3;
/// The longest path, in bytes, as systems have them.
const PATH: usize = 4096;
/// The end of a terminal's output that is held while it runs, in bytes.
const OUTPUT: usize = 1 << 20;

/// What a tool call brought.
#[derive(Debug, Default)]
pub(super) struct Details {
    /// The changes of files, each a block.
    changes: Vec<String>,
    texts: Vec<String>,
    pub(super) terminals: Vec<String>,
    /// Its raw output, a block.
    raw: Option<String>,
}

/// What the content of a tool call is made of.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Content<'a> {
    #[serde(borrow, default)]
    path: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    old_text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    new_text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    terminal_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Option<Block<'a>>,
}

/// Reads the content of a tool call.
pub(super) fn contents(content: &RawValue) -> Vec<Content<'_>> {
    let parts: Vec<&RawValue> = serde_json::from_str(content.get()).unwrap_or_default();
    parts.into_iter().filter_map(|part| serde_json::from_str(part.get()).ok()).collect()
}

impl Details {
    /// Content takes the place of what was there, but for changes of files, which agents send once.
    pub(super) fn update(&mut self, contents: Option<Vec<Content<'_>>>, raw: Option<&RawValue>) {
        if let Some(raw) = raw {
            let text = serde_json::from_str::<Option<Cow<'_, str>>>(raw.get());
            self.raw = match text {
                Ok(text) => text.filter(|text| !text.trim().is_empty()).map(|text| fenced("", &text)),
                Err(_) => Some(fenced("json", raw.get())),
            };
        }
        let Some(contents) = contents else { return };
        let (mut changes, mut texts, mut terminals) = (Vec::new(), Vec::new(), Vec::new());
        for Content { path, old_text, new_text, terminal_id, content } in contents {
            terminals.extend(terminal_id.map(Cow::into_owned));
            texts.extend(content.map(Block::spoken).filter(|text| !text.trim().is_empty()));
            if let (Some(path), Some(new)) = (path, new_text) {
                changes.push(change(&path, old_text.as_deref(), &new));
            }
        }
        if !changes.is_empty() {
            self.changes = changes;
        }
        self.texts = texts.iter().map(|text| fenced("", text)).collect();
        self.terminals = terminals;
    }

    /// Bytes that are held.
    pub(super) fn held(&self) -> usize {
        let all = [&self.changes, &self.texts, &self.terminals].into_iter().flatten().chain(&self.raw);
        all.map(String::len).sum()
    }

    /// The blocks, in order. The raw output says again what anything else says.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &String> {
        let is_only = self.changes.is_empty() && self.texts.is_empty() && self.terminals.is_empty();
        self.changes.iter().chain(&self.texts).chain(self.raw.iter().filter(move |_| is_only))
    }
}

/// What is known of a terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    pub(super) id: String,
    output: String,
    is_cut: bool,
    end: Option<String>,
}

impl Terminal {
    pub(super) fn new(id: &str) -> Self {
        Self { id: id.to_owned(), output: String::new(), is_cut: false, end: None }
    }

    /// Takes the next output.
    pub(super) fn write(&mut self, news: &TerminalOutput<'_>) {
        self.is_cut |= news.dropped_bytes > 0;
        self.output.push_str(&news.output);
        if self.output.len() > 2 * OUTPUT {
            let from = self.output.ceil_char_boundary(self.output.len() - OUTPUT);
            self.output.drain(..from);
            self.is_cut = true;
        }
    }

    /// Takes its end, which has the end of all that it wrote.
    pub(super) fn end(&mut self, ended: &TerminalEnded<'_>) {
        (self.output, self.is_cut) =
            (ended.final_output.text.clone().into_owned(), ended.final_output.truncated);
        let status = match &ended.exit_status {
            ExitStatus { exit_code: Some(code), .. } => format!("exit code {code}"),
            ExitStatus { signal: Some(signal), .. } => signal.clone(),
            ExitStatus { .. } => "ended".to_owned(),
        };
        let by = Some(&*ended.state).filter(|state| *state != "finished");
        self.end = Some(line_of(&by.map_or(status.clone(), |by| format!("{by}, {status}")), PATH));
    }

    pub(super) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Bytes that are held.
    pub(super) fn held(&self) -> usize {
        self.output.len()
    }

    /// Its line on the page, and what it wrote.
    pub(super) fn write_out(&self) -> (String, Option<String>) {
        let end = self.end.as_deref().unwrap_or("runs");
        let cut = if self.is_cut { "; the end of its output" } else { "" };
        let output = Some(&self.output).filter(|output| !output.trim().is_empty());
        (format!("Terminal {}: {end}{cut}", line_of(&self.id, PATH)), output.map(|output| fenced("", output)))
    }
}

/// The change of a file, as `diff -u` has it.
fn change(path: &str, old: Option<&str>, new: &str) -> String {
    let path = line_of(path, PATH);
    let before = if old.is_some() { &path } else { "/dev/null" };
    let (old, new) = (plain(old.unwrap_or_default()), plain(new));
    fenced("diff", &format!("--- {before}\n+++ {path}\n{}", hunks(&line_changes(&old, &new))))
}

fn hunks(lines: &[LineChange<'_>]) -> String {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let range = at.saturating_sub(CONTEXT)..(at + CONTEXT + 1).min(lines.len());
        match ranges.last_mut() {
            _ if matches!(line, LineChange::Kept(_)) => {}
            Some(last) if range.start <= last.end => last.end = range.end,
            _ => ranges.push(range),
        }
    }
    let (mut text, mut seen, mut old, mut new) = (String::new(), 0, 0, 0);
    for range in ranges {
        (old, new) = (old + range.start - seen, new + range.start - seen);
        seen = range.end;
        let hunk = &lines[range];
        let olds = hunk.iter().filter(|line| !matches!(line, LineChange::Added(_))).count();
        let news = hunk.iter().filter(|line| !matches!(line, LineChange::Removed(_))).count();
        // The line before where there are none.
        let first = |before: usize, count: usize| before + usize::from(count > 0);
        text.push_str(&format!("@@ -{},{olds} +{},{news} @@\n", first(old, olds), first(new, news)));
        for line in hunk {
            let (mark, line) = match line {
                LineChange::Kept(line) => (" ", line),
                LineChange::Removed(line) => ("-", line),
                LineChange::Added(line) => ("+", line),
            };
            text.extend([mark, line, "\n"]);
        }
        (old, new) = (old + olds, new + news);
    }
    text
}

/// A block of code, whatever is in it.
fn fenced(kind: &str, text: &str) -> String {
    let text = plain(text);
    let text = text.trim_end_matches('\n');
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}{kind}\n{text}\n{fence}")
}

/// A text without styles, and without control characters but ends of lines and tabs.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' if chars.next_if_eq(&'[').is_some() => {
                while chars.next_if(|c| ('\u{20}'..='\u{3f}').contains(c)).is_some() {}
                chars.next_if(|c| ('\u{40}'..='\u{7e}').contains(c));
            }
            // What shows progress is written over itself.
            '\r' if chars.peek() != Some(&'\n') => plain.push('\n'),
            c if !c.is_control() || matches!(c, '\n' | '\t') => plain.push(c),
            _ => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests;
