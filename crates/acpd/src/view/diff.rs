//! The lines that differ between two texts, for showing; bounded in size.

use super::paint::Paint;
use crate::clean::verbatim;
use acpd_host::{LineChange, line_changes};

/// At most this many lines of one change are shown.
const SHOWN_LINES: usize = 40;
/// At most this many characters of a line are shown.
const SHOWN_WIDTH: usize = 160;

/// One line of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line<T> {
    Removed(T),
    Added(T),
    /// Lines were left out here.
    Gap,
}

/// The counts and the first changed lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) added: usize,
    pub(super) removed: usize,
    lines: Vec<Line<String>>,
}

impl Shown {
    /// How many lines there are to show at most.
    pub(super) fn kept(&self) -> usize {
        self.lines.len()
    }

    /// The first changed lines, about `most`, ready to print, and how many more there are.
    pub(super) fn lines(&self, most: usize, paint: Paint) -> Vec<String> {
        let shown = pick(&self.lines, most);
        let mut lines: Vec<String> = shown
            .iter()
            .map(|line| match line {
                Line::Added(text) => paint.good(format_args!("+ {text}")),
                Line::Removed(text) => paint.bad(format_args!("- {text}")),
                Line::Gap => paint.dim("⋮"),
            })
            .collect();
        let hidden = self.added + self.removed - shown.iter().filter(|line| **line != Line::Gap).count();
        if hidden > 0 {
            lines.push(paint.dim(format_args!("... {hidden} more")));
        }
        lines
    }
}

/// The change from `old` (`None`: there was no file) to `new`.
pub(super) fn show(old: Option<&str>, new: &str) -> Shown {
    let changes = changed(old.unwrap_or_default(), new);
    let count = |wanted: fn(&Line<&str>) -> bool| changes.iter().filter(|line| wanted(line)).count();
    let added = count(|line| matches!(line, Line::Added(_)));
    let removed = count(|line| matches!(line, Line::Removed(_)));
    let kept = |line: &Line<&str>| match line {
        Line::Added(text) => Line::Added(verbatim(text, SHOWN_WIDTH)),
        Line::Removed(text) => Line::Removed(verbatim(text, SHOWN_WIDTH)),
        Line::Gap => Line::Gap,
    };
    let lines = pick(&changes, SHOWN_LINES).iter().map(kept).collect();
    Shown { added, removed, lines }
}

/// The first `most` lines; when they are all removed ones, some of those that are added instead of the later ones.
fn pick<T: Clone>(lines: &[Line<T>], most: usize) -> Vec<Line<T>> {
    let added = lines.iter().position(|line| matches!(line, Line::Added(_)));
    match added {
        Some(added) if added >= most && most >= 3 => {
            let removed = most / 2;
            let (first, then) = (&lines[..removed], lines[added..].iter().take(most - removed - 1));
            first.iter().chain(&[Line::Gap]).chain(then).cloned().collect()
        }
        _ => lines.iter().take(most).cloned().collect(),
    }
}

/// The lines that differ, with a gap between those that are apart.
fn changed<'a>(old: &'a str, new: &'a str) -> Vec<Line<&'a str>> {
    let (mut lines, mut is_apart) = (Vec::new(), false);
    for change in line_changes(old, new) {
        let line = match change {
            LineChange::Kept(_) => {
                is_apart = !lines.is_empty();
                continue;
            }
            LineChange::Removed(text) => Line::Removed(text),
            LineChange::Added(text) => Line::Added(text),
        };
        lines.extend(std::mem::take(&mut is_apart).then_some(Line::Gap));
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(old: Option<&str>, new: &str) -> (usize, usize, String) {
        let shown = show(old, new);
        (shown.added, shown.removed, shown.lines(usize::MAX, Paint::new(false)).join("\n"))
    }

    // contract 6: the terminal view shows what an edit changed
    #[test]
    fn only_what_differs_is_shown() {
        assert_eq!(shown(None, "a\nb\n"), (2, 0, "+ a\n+ b".into()));
        assert_eq!(shown(Some("a\n"), ""), (0, 1, "- a".into()));
        assert_eq!(shown(Some("a\nb\nc\n"), "a\nB\nc\n"), (1, 1, "- b\n+ B".into()));
        assert_eq!(shown(Some("same"), "same"), (0, 0, String::new()));
        assert_eq!(shown(Some("1\n2\n3\n4\n5\n6"), "0\n2\n3\n4\n5\n7\n6"), (2, 1, "- 1\n+ 0\n⋮\n+ 7".into()));
    }

    // contract 6: a change that has to fit says how much more there is
    #[test]
    fn a_change_is_cut_to_fit() {
        let shown = show(Some("1\n2\n3\n4\n5"), "a\n2\nb\n4\nc");
        assert_eq!(shown.lines(3, Paint::new(false)), ["- 1", "+ a", "⋮", "... 4 more"]);
        assert_eq!(shown.lines(0, Paint::new(false)), ["... 6 more"]);
        // Who decides about it has to see something of what comes, not only what goes.
        let shown = show(Some("1\n2\n3\n4\n5"), "a\nb\nc");
        assert_eq!(shown.lines(4, Paint::new(false)), ["- 1", "- 2", "⋮", "+ a", "... 5 more"]);
    }

    // contract 6: the terminal view is bounded, whatever the agent sends
    #[test]
    fn a_huge_change_is_cut_and_cheap() {
        let old: String = (0..50_000).map(|n| format!("old {n}\n")).collect();
        let new: String = (0..50_000).map(|n| format!("new {n}\n")).collect();
        let (added, removed, lines) = shown(Some(&old), &new);
        assert_eq!((added, removed), (50_000, 50_000));
        assert!(lines.contains("- old 19\n⋮\n+ new 0\n"), "{lines}");
        assert!(lines.ends_with("+ new 18\n... 99961 more"), "{lines}");
        assert_eq!(shown(None, &"x".repeat(1_000_000)).2.chars().count(), 2 + SHOWN_WIDTH + 1);
        assert_eq!(shown(None, "\u{1b}[2Jx\tz").2, "+ ␛[2Jx z");
    }
}
