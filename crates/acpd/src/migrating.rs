//! Moves the sessions of a state directory that an earlier acpd began from its database to files, for whoever wants them there.
//!
//! The move comes first, however long it takes, and is told meanwhile: in the log, and on a terminal or to the service manager. Not here:
//! how it is done, and what a death leaves (`acpd_eventlog::migration`).

use crate::exit::Failure;
use crate::progress;
use acpd_eventlog::migration::{self, Migrated, NotMigrated, Progress};
use acpd_host::chain;
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio::sync::watch;

/// The time between two lines of the log that say how far it is.
const PACE: Duration = Duration::from_secs(5);

/// The one who waits for a migration in the process that does it.
pub(crate) enum Waits {
    /// A person, perhaps.
    OnTerminal,
    /// A service, which is told percentages.
    AsService(watch::Sender<u64>),
}

/// Migrates a state directory if it has a database of sessions, and logs what came of it.
///
/// # Errors
/// A database that cannot be migrated, with what to do.
///
/// # Cancel safety
/// It goes on without the one who waits, up to the end of the process. The next one goes on behind that.
pub(crate) async fn migrate(dir: &Path, waits: &Waits) -> Result<(), Failure> {
    let (sender, progress) = watch::channel(None);
    let (dir, shows) = (dir.to_owned(), matches!(waits, Waits::OnTerminal));
    let told = move |now| {
        sender.send_replace(Some(now));
    };
    let work = tokio::task::spawn_blocking(move || work(&dir, shows, told));
    tokio::pin!(work);
    let mut beats = tokio::time::interval_at(tokio::time::Instant::now() + PACE, PACE);
    let done = loop {
        tokio::select! {
            done = &mut work => break done.map_err(|error| Failure::Failed(chain(&error)))?,
            _ = beats.tick() => {
                let percent = progress.borrow().map_or(0, percent);
                tracing::info!(percent, "sessions of an earlier acpd are moved from its database to files");
                if let Waits::AsService(told) = waits {
                    told.send_replace(percent);
                }
            }
        }
    };
    match done {
        Ok(migrated) => migrated.iter().for_each(log_migrated),
        // Which of the two counts is told where the log is opened.
        Err(NotMigrated::Occupied) => {}
        Err(why) => return Err(Failure::Failed(why.to_string())),
    }
    Ok(())
}

/// Migrates a state directory, and shows how far it is if there is a terminal for that.
pub(crate) fn work(
    dir: &Path,
    shows: bool,
    mut told: impl FnMut(Progress),
) -> Result<Option<Migrated>, NotMigrated> {
    let (mut shown, mut before) = (progress::Progress::new("moved to files:", shows), 0);
    migration::migrate(dir, &mut |now| {
        let more = now.done - std::mem::replace(&mut before, now.done);
        shown.add(usize::try_from(more).unwrap_or(usize::MAX));
        told(now);
    })
}

fn percent(Progress { done, all }: Progress) -> u64 {
    done.saturating_mul(100).checked_div(all).unwrap_or(100)
}

fn log_migrated(migrated: &Migrated) {
    let Migrated { sessions, bytes, lost } = migrated;
    tracing::info!(sessions, bytes, "database migrated: sessions are files now");
    for events in lost {
        let (session, first, last) = (&events.session, events.first, events.last);
        tracing::error!(session, first, last, "events of the database could not be read");
    }
}

/// Removes the database that was migrated, in time.
pub(crate) async fn remove_old(dir: PathBuf) {
    let now = SystemTime::from(Timestamp::now());
    let removing = tokio::task::spawn_blocking(move || migration::remove_kept(&dir, Some(now)));
    match removing.await.unwrap_or_else(|panic| Err(std::io::Error::other(panic))) {
        Ok(Some(bytes)) => tracing::info!(bytes, "database of an earlier acpd removed"),
        Ok(None) => {}
        Err(error) => tracing::warn!(error = chain(&error), "database of an earlier acpd not removed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // issue 29: progress is told as a percentage, whatever there is to copy
    #[test]
    fn progress_is_a_percentage() {
        for (done, all, expected) in [(0, 0, 100), (0, 9, 0), (1, 3, 33), (3, 3, 100), (1 << 50, 1 << 51, 50)]
        {
            assert_eq!(percent(Progress { done, all }), expected, "{done} of {all}");
        }
    }
}
