//! Whether the host could take on work now (contract 6, `GET /v1/ready`).
//!
//! Checks at about the same moment share one answer, so they cost nothing however often they come. Invariant: the
//! answer comes within [`WITHIN`], also from a log that does not answer, and is not older than [`FRESH`].

use crate::chain::chain;
use crate::host::Host;
use crate::host_file::HostFileError;
use crate::metrics;
use acpd_eventlog::WriteError;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;

/// How long the log may take to say that it can be written. With [`FRESH`] below a second.
const WITHIN: Duration = Duration::from_millis(700);

/// For how long an answer is good.
const FRESH: Duration = Duration::from_millis(250);

/// A thread that does nothing needs no more, in bytes.
const PROBE_STACK: usize = 64 * 1024;

/// Why the host takes on no work.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unready {
    /// It shuts down.
    #[error("the host is shutting down")]
    ShuttingDown,
    /// Nothing can be recorded.
    #[error("the event log cannot be used")]
    Log(#[from] WriteError),
    /// No agent could be started.
    #[error("no process or thread can be started: raise the limit (ulimit -u, TasksMax=) or end some")]
    Threads {
        /// What the operating system said.
        #[source]
        source: Arc<io::Error>,
    },
    /// Other processes of the state directory would take what this one records for what a dead host left.
    #[error("this process cannot be seen in its state directory any more: restart it")]
    Unseen {
        /// What is wrong with its file there.
        #[source]
        source: Arc<HostFileError>,
    },
    /// It is not known whether anything can be recorded.
    #[error("the event log did not answer within {} ms", after.as_millis())]
    Silent {
        /// How long it was waited for.
        after: Duration,
    },
}

/// How often a host that was not ready is asked again whether it is.
const AGAIN: Duration = Duration::from_secs(1);

/// What is known of whether the host could take on work.
#[derive(Debug, Default)]
pub(crate) struct CheckCache {
    /// The last answer of the log, and when it came.
    last: Mutex<Option<(Instant, Result<(), Unready>)>>,
    /// For the parts that may see that something cannot be recorded.
    pub(crate) doubts: Doubts,
}

/// Something could not be recorded: whether anything can be is to be found out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doubts(Arc<Notify>);

impl Doubts {
    pub(crate) fn raise(&self) {
        self.0.notify_one();
    }
}

impl Host {
    /// Whether it could take on work now. Answers within a second, and sets the metric.
    ///
    /// # Errors
    /// Why it could not.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn check(&self) -> Result<(), Unready> {
        let result = self.look().await;
        metrics::ready(result.is_ok());
        result
    }

    async fn look(&self) -> Result<(), Unready> {
        if self.is_closing() {
            return Err(Unready::ShuttingDown);
        }
        let mut checked = self.shared.store.check_cache.last.lock().await;
        if let Some((at, result)) = &*checked
            && at.elapsed() < FRESH
        {
            return result.clone();
        }
        let log = &self.shared.store.log;
        let result = match tokio::time::timeout(WITHIN, log.check()).await {
            Ok(written) => written.map_err(Unready::from).and_then(|()| self.can_work()),
            Err(_) => Err(Unready::Silent { after: WITHIN }),
        };
        *checked = Some((Instant::now(), result.clone()));
        result
    }

    /// What a session needs beside the log.
    fn can_work(&self) -> Result<(), Unready> {
        let seen = self.shared.store.host_file.check_place();
        seen.map_err(|source| Unready::Unseen { source: Arc::new(source) })?;
        can_start()
    }

    /// Something went wrong that a log out of order would explain; the [watch](Self::watch) looks.
    pub fn doubt(&self) {
        self.shared.store.doubt();
    }

    /// Tells the operator when the host is not ready, and when it is again, until it shuts down. It looks when there is a
    /// reason to, and then until all is well: a host without trouble costs nothing.
    pub async fn watch(&self) {
        let ended = self.scope().token().clone();
        let watching = async {
            loop {
                self.shared.store.check_cache.doubts.0.notified().await;
                // The last answer may be from before what raised the doubt.
                tokio::time::sleep(FRESH).await;
                let Err(unready) = self.check().await else { continue };
                if self.is_closing() {
                    return;
                }
                let mut reason = chain(&unready);
                tracing::warn!(reason, "not ready");
                let since = Instant::now();
                while let Err(unready) = self.check().await {
                    if self.is_closing() {
                        return;
                    }
                    let now = chain(&unready);
                    if now != reason {
                        tracing::warn!(reason = now, "not ready");
                        reason = now;
                    }
                    tokio::time::sleep(AGAIN).await;
                }
                tracing::warn!(after_s = since.elapsed().as_secs(), "ready again");
            }
        };
        ended.run_until_cancelled(watching).await;
    }
}

/// Whether the operating system would give this process one more thread, which counts there as a process does.
fn can_start() -> Result<(), Unready> {
    let started = std::thread::Builder::new().name("probe".to_owned()).stack_size(PROBE_STACK).spawn(|| ());
    started.map(drop).map_err(|source| Unready::Threads { source: Arc::new(source) })
}
