//! What the service manager is told, where there is one that listens (sd_notify(3)).

use acpd_host::{TaskScope, chain};
use sd_notify::NotifyState;
use std::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The time that a message waits for a manager that takes none: its socket has room for a few. A moment for one that is busy.
const PATIENCE: Duration = Duration::from_secs(1);

/// The longest time between two messages of a migration to the manager.
const MIGRATION: Duration = Duration::from_secs(120);

/// How a daemon stands.
#[derive(Debug)]
pub(super) enum Standing {
    /// It starts, and migrates the state directory first, which is so far.
    Migrating(String),
    /// It serves, here.
    Ready(String),
    /// It reads its configuration anew, and says so again when it has.
    Reloading,
    Stopping,
    /// It gets to do things.
    Alive,
}

impl Standing {
    fn states(&self) -> Vec<NotifyState<'_>> {
        match self {
            Self::Migrating(status) => {
                let within = u32::try_from(MIGRATION.as_micros()).unwrap_or(u32::MAX);
                vec![NotifyState::ExtendTimeoutUsec(within), NotifyState::Status(status)]
            }
            Self::Ready(status) => vec![NotifyState::Ready, NotifyState::Status(status)],
            Self::Reloading => {
                // Without the time, newer managers take the reading for failed.
                let now = NotifyState::monotonic_usec_now().ok();
                [NotifyState::Reloading].into_iter().chain(now).collect()
            }
            Self::Stopping => vec![NotifyState::Stopping, NotifyState::Status("ending its sessions")],
            Self::Alive => vec![NotifyState::Watchdog],
        }
    }
}

/// Tells how this process stands. The daemon works without a listener, too, and with one that takes no messages.
pub(super) async fn tell(standing: Standing) {
    if tokio::time::timeout(PATIENCE, send(standing)).await.is_err() {
        tracing::warn!("the service manager takes no messages");
    }
}

/// Says again and again that this process gets to do things, where the manager wants to hear it (`WatchdogSec=`); until
/// the guard is dropped.
pub(super) fn keep_watch(scope: &TaskScope) -> Option<DropGuard> {
    let within = sd_notify::watchdog_enabled()?;
    let over = CancellationToken::new();
    let guard = over.clone().drop_guard();
    scope.spawn("watchdog", async move {
        let mut beats = tokio::time::interval((within / 2).max(Duration::from_millis(1)));
        let beating = async {
            loop {
                beats.tick().await;
                send(Standing::Alive).await;
            }
        };
        over.run_until_cancelled(beating).await;
    });
    Some(guard)
}

/// Sends a message, once the manager has room for it.
///
/// # Cancel safety
/// The message is sent all the same when the future is dropped.
async fn send(standing: Standing) {
    // It blocks while there is no room.
    let sent = tokio::task::spawn_blocking(move || sd_notify::notify(&standing.states()));
    let sent = sent.await.unwrap_or_else(|panic| Err(std::io::Error::other(panic)));
    if let Err(error) = sent {
        tracing::warn!(error = chain(&error), "the service manager cannot be told how acpd stands");
    }
}
