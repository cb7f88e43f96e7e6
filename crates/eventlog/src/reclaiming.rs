//! Gives back what deleted sessions took: first their blocks, then the pages at the end of the file.
//!
//! A piece at a time, when the writer has nothing else to do, or as a job among the others: no commit waits for more than a
//! piece. What a process that is killed leaves, the next one finds. A file that was made before files could shrink stays as
//! large as it is; its free pages are used again. Not here: which sessions are deleted.

use crate::failure::WriteError;
use crate::log::EventLog;
use crate::presence::Presences;
use crate::schema::PAGE_BYTES;
use crate::store;
use crate::writer::Writer;

/// What deleted sessions may have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Blocks, and then free pages.
    Blocks,
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
    /// Gives back what deleted sessions took, and waits for that. It would be done anyway, when nothing else is.
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
    /// A session was deleted.
    pub(crate) fn removed(&mut self, id: &str, presences: &Presences) {
        self.expect(Left::Blocks);
        presences.end(id);
    }

    /// Gives a piece back. False: nothing is left.
    pub(crate) fn reclaim_piece(&mut self) -> Result<bool, WriteError> {
        let left = match self.left() {
            Left::Blocks => self.remove_blocks(),
            Left::Pages => self.give_pages_back(),
            Left::Nothing => Ok(Left::Nothing),
        };
        self.expect(*left.as_ref().unwrap_or(&Left::Nothing));
        left.map(|left| left != Left::Nothing)
    }

    fn remove_blocks(&mut self) -> Result<Left, WriteError> {
        let removed = self.transact(Some(0), |transaction| store::remove_garbage(transaction).map(Ok));
        let more = removed.inspect_err(
            |error| tracing::warn!(%error, "the blocks of deleted sessions stay until the next start"),
        )?;
        if more {
            return Ok(Left::Blocks);
        }
        self.recover();
        Ok(Left::Pages)
    }

    /// Not where room is short: what moves is written to the write-ahead file first.
    fn give_pages_back(&mut self) -> Result<Left, WriteError> {
        let free: u64 = self.pragma("freelist_count")?;
        let surplus = free.saturating_sub(KEPT_PAGES).min(PAGES_AT_ONCE);
        if surplus == 0 || self.pragma::<i64>("auto_vacuum")? != INCREMENTAL || self.check_plenty().is_err() {
            return Ok(Left::Nothing);
        }
        let bytes = surplus * PAGE_BYTES;
        self.transact_once(usize::try_from(bytes).unwrap_or(usize::MAX), |transaction| {
            let mut statement = transaction.prepare(&format!("PRAGMA incremental_vacuum({surplus})"))?;
            // A row for each page.
            let mut pages = statement.query([])?;
            while pages.next()?.is_some() {}
            Ok(Ok(()))
        })
        .inspect_err(|error| tracing::debug!(%error, "the event log stays as large as it is"))?;
        if surplus < PAGES_AT_ONCE {
            // The file itself becomes shorter now.
            self.checkpoint();
            return Ok(Left::Nothing);
        }
        Ok(Left::Pages)
    }
}
