//! Gives back what deleted sessions took in the index: first their turns, then the pages at the end of the file.
//!
//! A piece at a time, when the writer has nothing else to do, or as a job among the others. What a process that is killed leaves, the
//! next one finds. Not here: which sessions are deleted; their files go at once.

use crate::failure::WriteError;
use crate::files;
use crate::log::EventLog;
use crate::schema::PAGE_BYTES;
use crate::writer::Writer;

/// What deleted sessions may have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Turns, and then free pages.
    Turns,
    /// Free pages.
    Pages,
    Nothing,
}

/// Free pages that stay in the file, for what is written next: 1 MiB.
const KEPT_PAGES: u64 = 1024 * 1024 / PAGE_BYTES;

/// Pages that are given back in one transaction: each can be the move of another one, with the page that leads to it.
const PAGES_AT_ONCE: u64 = 128;

/// `auto_vacuum` of a file that can shrink.
const INCREMENTAL: i64 = 2;

impl EventLog {
    /// Gives back what deleted sessions took in the index, and waits for that. It would be done anyway, when nothing else is.
    ///
    /// # Errors
    ///
    /// When the file cannot be written. What is left then is tried again at the next start.
    pub async fn reclaim(&self) -> Result<(), WriteError> {
        while self.shared.ask(0, Writer::reclaim_piece).await?? {}
        Ok(())
    }
}

impl Writer {
    /// Gives a piece back. False: nothing is left.
    pub(crate) fn reclaim_piece(&mut self) -> Result<bool, WriteError> {
        let left = match self.left() {
            Left::Turns => self.remove_turns(),
            Left::Pages => self.give_pages_back(),
            Left::Nothing => Ok(Left::Nothing),
        };
        self.expect(*left.as_ref().unwrap_or(&Left::Nothing));
        left.map(|left| left != Left::Nothing)
    }

    fn remove_turns(&mut self) -> Result<Left, WriteError> {
        let removed = self.transact(0, |transaction| files::remove_garbage(transaction));
        let more = removed.inspect_err(
            |error| tracing::warn!(%error, "the turns of deleted sessions stay until the next start"),
        )?;
        if more {
            return Ok(Left::Turns);
        }
        self.recover();
        Ok(Left::Pages)
    }

    /// Not where room is short: what moves is written to the write-ahead file first.
    fn give_pages_back(&mut self) -> Result<Left, WriteError> {
        let free: u64 = self.pragma("freelist_count")?;
        let surplus = free.saturating_sub(KEPT_PAGES);
        let given = surplus.min(PAGES_AT_ONCE);
        if surplus == 0 || self.pragma::<i64>("auto_vacuum")? != INCREMENTAL || self.check_plenty().is_err() {
            return Ok(Left::Nothing);
        }
        let bytes = given * PAGE_BYTES;
        self.transact(usize::try_from(bytes).unwrap_or(usize::MAX), |transaction| {
            let mut statement = transaction.prepare(&format!("PRAGMA incremental_vacuum({given})"))?;
            // A row for each page.
            let mut pages = statement.query([])?;
            while pages.next()?.is_some() {}
            Ok(())
        })
        .inspect_err(|error| tracing::debug!(%error, "the index of sessions stays as large as it is"))?;
        if given == surplus {
            // The file itself becomes shorter now.
            self.shorten();
            return Ok(Left::Nothing);
        }
        Ok(Left::Pages)
    }
}
