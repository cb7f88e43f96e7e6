//! How far something is that takes its time, for a person who waits: a line on stderr that is gone when it is over.

use crate::streams::{remark, remark_open, remark_over};
use std::io::{self, IsTerminal};
use std::time::Duration;
use tokio::time::Instant;

/// Nothing is shown of what takes no longer.
const NOTICED: Duration = Duration::from_secs(1);
const MIB: usize = 1 << 20;

/// Waits for something that says nothing of itself; `what` is shown, if it may be, once it takes long.
pub(crate) async fn waiting<T>(what: &str, may_show: bool, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    if let Ok(done) = tokio::time::timeout(NOTICED, &mut work).await {
        return done;
    }
    let shows = may_show && io::stderr().is_terminal();
    if shows {
        remark_open(&format!("{what} ... "));
    }
    let done = work.await;
    if shows {
        remark("");
    }
    done
}

pub(crate) struct Progress {
    what: &'static str,
    shows: bool,
    is_shown: bool,
    next: Instant,
    bytes: usize,
}

impl Progress {
    /// Shows bytes, if `may_show`, and if stderr is a terminal.
    pub(crate) fn new(what: &'static str, may_show: bool) -> Self {
        let shows = may_show && io::stderr().is_terminal();
        Self { what, shows, is_shown: false, next: Instant::now() + NOTICED, bytes: 0 }
    }

    pub(crate) fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        let now = Instant::now();
        if self.shows && now >= self.next {
            (self.is_shown, self.next) = (true, now + NOTICED);
            remark_over(&format!("{} {} MiB ", self.what, self.bytes / MIB));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            remark("");
        }
    }
}
