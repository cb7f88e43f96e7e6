//! Lines of the agent that are no messages, while an answer is awaited: one of them may have been meant to be it.
//!
//! Pure and bounded: the beginning of the first such line is kept, until another answer begins to be awaited.

/// As much of a line is shown, in bytes.
const SHOWN: usize = 200;

/// The lines that were dropped while an answer is awaited.
#[derive(Debug, Default)]
pub(super) struct DroppedLines {
    /// The beginning of the first one.
    first: Option<Box<str>>,
}

impl DroppedLines {
    /// Takes a line; gives its beginning, and whether it is the first one while an answer `is_awaited`.
    pub(super) fn add(&mut self, line: &[u8], is_awaited: bool) -> (String, bool) {
        let shown = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]).into_owned();
        let is_first = is_awaited && self.first.is_none();
        if is_first {
            self.first = Some(shown.as_str().into());
        }
        (shown, is_first)
    }

    /// The beginning of the first line.
    pub(super) fn first(&self) -> Option<&str> {
        self.first.as_deref()
    }

    /// An answer begins to be awaited, after none was.
    pub(super) fn begin(&mut self) {
        self.first = None;
    }
}
