//! Asking a daemon again that was lost: a request that may come twice is asked until it has an answer, as long as a lost daemon
//! is tried again.

use super::error::DaemonError;
use super::request::Daemon;
use super::sessions::FindError;
use backon::{BackoffBuilder, ExponentialBuilder};
use std::time::Duration;
use tokio::time::Instant;

/// The longest wait before another try.
pub(crate) const LONGEST: Duration = Duration::from_secs(2);
/// Waits between tries: from 100 ms on, as a daemon that restarts is back in less than a second; doubled each time, half of it
/// chance, so that the clients of one do not all come back in the same moment.
pub(crate) const BACKOFF: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(50))
    .with_max_delay(Duration::from_secs(1))
    .without_max_times()
    .with_jitter();

/// An error that may be one of the way to the daemon.
pub(crate) trait OfDaemon: From<DaemonError> {
    /// The error of the way to the daemon, if it is one.
    fn of_daemon(&self) -> Option<&DaemonError>;
}

impl OfDaemon for DaemonError {
    fn of_daemon(&self) -> Option<&DaemonError> {
        Some(self)
    }
}

impl OfDaemon for FindError {
    fn of_daemon(&self) -> Option<&DaemonError> {
        match self {
            Self::Daemon(error) => Some(error),
            Self::Unknown { .. } | Self::Ambiguous { .. } => None,
        }
    }
}

impl Daemon {
    /// Asks until there is an answer. A daemon that was there, if only to take the request, is waited for, for as long as a
    /// lost one is tried again; one that never was is an error at once, unless it is `known` to have been there.
    pub(crate) async fn retry<T, E, F>(&self, mut known: bool, ask: impl Fn() -> F) -> Result<T, E>
    where
        E: OfDaemon,
        F: Future<Output = Result<T, E>>,
    {
        let until = Instant::now() + self.reconnect();
        let mut waits = BACKOFF.build();
        loop {
            let error = match ask().await {
                Err(error) => error,
                answered => return answered,
            };
            let of_daemon = error.of_daemon();
            known |= of_daemon.is_some_and(DaemonError::was_there);
            let may_pass = of_daemon.is_some_and(DaemonError::may_pass);
            let now = Instant::now();
            if !known || !may_pass || now >= until {
                return Err(error);
            }
            let wait = waits.next().unwrap_or(LONGEST);
            tokio::time::sleep_until((now + wait).min(until)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Address;
    use crate::config::Wait;
    use std::cell::Cell;
    use std::path::PathBuf;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn daemon(reconnect: Duration) -> Daemon {
        Daemon::new(Address::Local(PathBuf::from("/nowhere")), None, None).tried_for(Wait::After(reconnect))
    }

    fn lost(daemon: &Daemon) -> DaemonError {
        daemon.lost(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
    }

    fn absent() -> DaemonError {
        DaemonError::Absent { at: "there".to_owned(), source: std::io::ErrorKind::ConnectionRefused.into() }
    }

    // contract 7.3: a daemon that took a request and was gone is tried again, one that never was is not, and none for ever
    #[tokio::test(start_paused = true)]
    async fn one_that_was_there_is_asked_again() {
        let daemon = daemon(Duration::from_secs(60));
        let asked = Cell::new(0);
        let answers = daemon.retry(false, || {
            asked.set(asked.get() + 1);
            std::future::ready(match asked.get() {
                1 => Err(lost(&daemon)),
                2 | 3 => Err(absent()),
                tries => Ok(tries),
            })
        });
        assert_eq!(answers.await.ok(), Some(4));
        let never = async |known| {
            let asked = Cell::new(0);
            let found: Result<(), DaemonError> = daemon
                .retry(known, || {
                    asked.set(asked.get() + 1);
                    std::future::ready(Err(absent()))
                })
                .await;
            assert!(matches!(found, Err(DaemonError::Absent { .. })));
            asked.get()
        };
        assert_eq!(never(false).await, 1);
        let began = Instant::now();
        assert!(never(true).await > 20 && began.elapsed() >= Duration::from_secs(60));
    }

    // contract 7.1: what another node knows of a session whose node is lost does not say how many events there are: it is asked
    // again until that is back
    #[tokio::test]
    async fn a_count_is_not_taken_from_a_node_that_may_be_behind() {
        let dir = tempfile::tempdir().expect("a directory");
        let listener = tokio::net::UnixListener::bind(dir.path().join("acpd.sock")).expect("a socket");
        let lost = r#","unreachableSince":"2026-11-28T08:00:00Z""#;
        let answering = async {
            for (events, since) in [(2, lost), (2, lost), (9, "")] {
                let (mut stream, _) = listener.accept().await.expect("a request");
                let mut asked = [0; 4096];
                let read = stream.read(&mut asked).await.expect("a request");
                assert!(
                    asked[..read].starts_with(b"GET /v1/sessions/s "),
                    "{}",
                    String::from_utf8_lossy(&asked)
                );
                let body = format!(r#"{{"sessionId":"s","eventCount":{events},"node":"b"{since}}}"#);
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
                let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                stream.write_all(answer.as_bytes()).await.expect("it is read");
            }
        };
        let daemon = Daemon::new(Address::Local(dir.path().to_owned()), None, None);
        let asking = async {
            let once = daemon.count_events("s").await.expect_err("its node is lost");
            assert_eq!(once.to_string(), "node b, which has the session, cannot be reached");
            daemon.retry(true, || daemon.count_events("s")).await.expect("its node is back")
        };
        let (counted, ()) = tokio::join!(asking, answering);
        assert_eq!(counted, 9);
    }
}
