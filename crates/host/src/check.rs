//! Whether the host could take on work now (contract 6, `GET /v1/ready`).
//!
//! Anybody may ask as often as he likes: it is found out once for all who ask at about the same moment. Invariant: the
//! answer comes within [`WITHIN`], also from a log that does not answer, and is not older than [`FRESH`].

use crate::host::Host;
use acpd_eventlog::AppendError;
use std::time::Duration;
use tokio::time::Instant;

/// How long the log may take to say that it can be written. With [`FRESH`] below a second.
const WITHIN: Duration = Duration::from_millis(700);

/// For how long an answer is good.
const FRESH: Duration = Duration::from_millis(250);

/// Why the host takes on no work.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unready {
    /// It shuts down.
    #[error("the host is shutting down")]
    ShuttingDown,
    /// Nothing can be recorded.
    #[error("the event log cannot be written")]
    Log(#[from] AppendError),
    /// It is not known whether anything can be recorded.
    #[error("the event log did not answer within {} ms", after.as_millis())]
    Silent {
        /// How long it was waited for.
        after: Duration,
    },
}

/// The last answer of the log, and when it came.
pub(crate) type Checked = tokio::sync::Mutex<Option<(Instant, Result<(), Unready>)>>;

impl Host {
    /// Whether it could take on work now. Answers within a second.
    ///
    /// # Errors
    /// Why it could not.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn check(&self) -> Result<(), Unready> {
        if self.is_closing() {
            return Err(Unready::ShuttingDown);
        }
        let mut checked = self.shared.checked.lock().await;
        if let Some((at, result)) = &*checked
            && at.elapsed() < FRESH
        {
            return result.clone();
        }
        let result = match tokio::time::timeout(WITHIN, self.shared.log.check()).await {
            Ok(written) => written.map_err(Unready::from),
            Err(_) => Err(Unready::Silent { after: WITHIN }),
        };
        *checked = Some((Instant::now(), result.clone()));
        result
    }
}
