//! What the service manager is told, where there is one that listens (sd_notify(3)).

use acpd_host::{TaskScope, chain};
use sd_notify::NotifyState;
use std::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How a daemon stands.
#[derive(Debug, Clone, Copy)]
pub(super) enum Standing<'a> {
    /// It serves, here.
    Ready(&'a str),
    /// It reads its configuration anew, and says so again when it has.
    Reloading,
    Stopping,
}

/// Tells how this process stands. The daemon works without a listener, too.
pub(super) fn tell(standing: Standing<'_>) {
    let status;
    let states = match standing {
        Standing::Ready(listening) => {
            status = format!("listening on {listening}");
            vec![NotifyState::Ready, NotifyState::Status(&status)]
        }
        Standing::Reloading => {
            // Without the time, newer managers take the reading for failed.
            let now = NotifyState::monotonic_usec_now().ok();
            [NotifyState::Reloading].into_iter().chain(now).collect()
        }
        Standing::Stopping => vec![NotifyState::Stopping, NotifyState::Status("ending its sessions")],
    };
    send(&states);
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
                send(&[NotifyState::Watchdog]);
            }
        };
        over.run_until_cancelled(beating).await;
    });
    Some(guard)
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(error = chain(&error), "the service manager cannot be told how acpd stands");
    }
}
