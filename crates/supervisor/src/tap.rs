//! All lines of stderr for a second reader, such as a log file.
//!
//! Owner: the process task. Invariant: stderr is drained whatever the reader does; what does not fit is dropped and
//! counted, never waited for. Not the excerpt, which is kept without a tap too.

use tokio::sync::mpsc;

/// One line of a program's stderr, at most [`StderrExcerpt::LINE_BYTES`](crate::StderrExcerpt::LINE_BYTES) of it, or
/// only how many were lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StderrLine {
    /// Lines that were dropped before this one, because the reader was slow.
    pub lost_before: u64,
    /// The line, with invalid bytes as U+FFFD; None when lines were lost at the very end.
    pub text: Option<String>,
}

/// Where lines go.
#[derive(Debug)]
pub(crate) struct StderrTap {
    lines: Option<mpsc::Sender<StderrLine>>,
    lost: u64,
}

impl StderrTap {
    /// `lines` is None without a reader.
    pub(crate) fn new(lines: Option<mpsc::Sender<StderrLine>>) -> Self {
        Self { lines, lost: 0 }
    }

    pub(crate) fn give(&mut self, text: &str) {
        let Some(lines) = &self.lines else { return };
        let line = StderrLine { lost_before: self.lost, text: Some(text.to_owned()) };
        match lines.try_send(line) {
            Ok(()) => self.lost = 0,
            Err(mpsc::error::TrySendError::Full(_)) => self.lost += 1,
            Err(mpsc::error::TrySendError::Closed(_)) => self.lines = None,
        }
    }

    /// So many lines never came here.
    pub(crate) fn lose(&mut self, lines: u64) {
        self.lost += lines;
    }

    /// Says what was lost last, if there is room.
    pub(crate) fn finish_now(&mut self) {
        if let Some(lines) = self.lines.take().filter(|_| self.lost > 0) {
            let _full = lines.try_send(StderrLine { lost_before: self.lost, text: None });
        }
    }

    /// Says what was lost last; waits for room.
    pub(crate) async fn finish(&mut self) {
        if let Some(lines) = self.lines.take().filter(|_| self.lost > 0) {
            // A reader that is gone does not care.
            let _gone = lines.send(StderrLine { lost_before: self.lost, text: None }).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // SU-4: a slow reader loses lines and is told how many
    #[tokio::test]
    async fn what_does_not_fit_is_counted() {
        let (sender, mut lines) = mpsc::channel(2);
        let mut tap = StderrTap::new(Some(sender));
        let line = |lost_before: u64, text: &str| StderrLine { lost_before, text: Some(text.to_owned()) };
        ["1", "2", "3", "4"].iter().for_each(|text| tap.give(text));
        assert_eq!((lines.recv().await, lines.recv().await), (Some(line(0, "1")), Some(line(0, "2"))));
        ["5", "6", "7"].iter().for_each(|text| tap.give(text));
        assert_eq!((lines.recv().await, lines.recv().await), (Some(line(2, "5")), Some(line(0, "6"))));
        tap.finish().await;
        assert_eq!(lines.recv().await, Some(StderrLine { lost_before: 1, text: None }));
        assert_eq!(lines.recv().await, None);
        tap.give("no reader");
    }
}
