//! What a turn came to, for its last lines: files that were changed, permissions that were given or refused.
//!
//! Pure. Invariant: bounded; what is the same is one line. Not here: how the turn ended, see [`ending`](super::ending).

use super::call::{Call, State};
use super::paint::Paint;
use super::question::Kind;
use crate::clean::line;

/// So many different lines of each sort are kept.
const KEPT: usize = 256;
/// So many of each sort are shown.
const SHOWN: usize = 10;
/// Characters of an option's name.
const OPTION_WIDTH: usize = 40;

#[derive(Debug, Default)]
pub(super) struct Tally {
    files: Vec<File>,
    answers: Vec<(&'static str, String, usize)>,
    /// What was not kept.
    more_files: usize,
    more_answers: usize,
}

#[derive(Debug)]
struct File {
    done: &'static str,
    path: String,
    lines: Option<(usize, usize)>,
}

/// What an answer of that kind does.
pub(super) fn spoken_answer(kind: Kind) -> &'static str {
    match kind {
        Kind::AllowOnce | Kind::AllowAlways => "allowed",
        Kind::RejectOnce | Kind::RejectAlways => "refused",
        Kind::Other => "answered",
    }
}

impl Tally {
    /// A call was completed, or failed and did nothing.
    pub(super) fn completed(&mut self, call: &Call) {
        if call.state == State::Failed {
            return;
        }
        let done = match call.kind() {
            "delete" => "deleted",
            "move" => "moved",
            _ => "edited",
        };
        for (path, lines) in call.files() {
            match self.files.iter().position(|file| file.done == done && file.path == path) {
                Some(at) => self.files[at].lines = sum(self.files[at].lines, lines),
                None if self.files.len() == KEPT => self.more_files += 1,
                None => self.files.push(File { done, path: path.to_owned(), lines }),
            }
        }
    }

    /// A permission request was answered: `answer` in words, for what, and the name of the option.
    pub(super) fn answered(&mut self, answer: &'static str, what: &str, option: &str) {
        let what = format!("{what} ({})", line(option, OPTION_WIDTH));
        match self.answers.iter().position(|(before, known, _)| *before == answer && *known == what) {
            Some(at) => self.answers[at].2 += 1,
            None if self.answers.len() == KEPT => self.more_answers += 1,
            None => self.answers.push((answer, what, 1)),
        }
    }

    pub(super) fn lines(&self, paint: Paint) -> Vec<String> {
        let file = |File { done, path, lines }: &File| {
            let counts = lines.map(|(added, removed)| format!(" +{added} -{removed}")).unwrap_or_default();
            format!("  {done:<8} {path}{counts}")
        };
        let answer = |(answer, what, times): &(&str, String, usize)| {
            let times = if *times > 1 { format!(" x{times}") } else { String::new() };
            format!("  {answer:<8} {what}{times}")
        };
        let files = cut(self.files.iter().map(file), self.files.len() + self.more_files, "files");
        let answers = cut(self.answers.iter().map(answer), self.answers.len() + self.more_answers, "answers");
        files.into_iter().chain(answers).map(|line| paint.dim(line)).collect()
    }
}

/// Unknown and something is something.
fn sum(one: Option<(usize, usize)>, other: Option<(usize, usize)>) -> Option<(usize, usize)> {
    match (one, other) {
        (Some((added, removed)), Some((more_added, more_removed))) => {
            Some((added + more_added, removed + more_removed))
        }
        (one, other) => one.or(other),
    }
}

fn cut(lines: impl Iterator<Item = String>, total: usize, what: &str) -> Vec<String> {
    let mut lines: Vec<String> = lines.take(SHOWN).collect();
    if total > lines.len() {
        lines.push(format!("  and {} more {what}", total - lines.len()));
    }
    lines
}
