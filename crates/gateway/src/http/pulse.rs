//! Whether this process itself stood still: stopped by a signal, frozen with its control group, or with its machine.
//!
//! The monotonic clock goes on meanwhile, and every wait for a client is over at once when the process runs again, though
//! the client had no chance. So a beat is kept, and a wait that a gap in it falls into begins anew. Owned by the front
//! door; not for waits on anything but clients.

use parking_lot::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// How often the clock is looked at.
const BEAT: Duration = Duration::from_secs(1);
/// Without a look at the clock for this long the process has not run, or so little that no client was served.
const GAP: Duration = Duration::from_secs(3);

/// When this process was seen to run.
#[derive(Debug)]
pub(super) struct Pulse(Mutex<Seen>);

#[derive(Clone, Copy, Debug)]
struct Seen {
    /// The last look at the clock.
    beat: Instant,
    /// The end of the last gap between two of them.
    resumed: Instant,
}

impl Seen {
    fn at(self, now: Instant) -> Self {
        let stood_still = now.saturating_duration_since(self.beat) > GAP;
        Self { beat: self.beat.max(now), resumed: if stood_still { now } else { self.resumed } }
    }
}

impl Pulse {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self(Mutex::new(Seen { beat: now, resumed: now }))
    }

    /// Keeps the beat. Never ends.
    pub(super) async fn keep(&self) {
        loop {
            self.resumed();
            tokio::time::sleep(BEAT).await;
        }
    }

    /// When this process last began to run: what happened before says nothing about a client.
    pub(super) fn resumed(&self) -> Instant {
        // The first look behind a gap finds it, be it the beat's or that of a wait that seems to be over.
        let mut seen = self.0.lock();
        *seen = seen.at(Instant::now());
        seen.resumed
    }

    /// Until when a client may take that has had `patience` since then.
    pub(super) fn until(&self, since: Instant, patience: Duration) -> Instant {
        since.max(self.resumed()) + patience
    }

    /// Waits until a client has had so long.
    ///
    /// # Cancel safety
    /// The same call again goes on with the same wait.
    pub(super) async fn run_out(&self, since: Instant, patience: Duration) {
        loop {
            let until = self.until(since, patience);
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // WS-3, UP-2: what is a gap, and what is a late beat only
    #[test]
    fn a_long_time_without_a_beat_is_a_gap() {
        let begun = Instant::now();
        let at = |millis| begun + Duration::from_millis(millis);
        let seen = |beat, resumed| Seen { beat: at(beat), resumed: at(resumed) };
        for (before, now, expected) in [
            (seen(0, 0), 1_000, 0),
            (seen(0, 0), 3_000, 0),
            (seen(0, 0), 3_001, 3_001),
            (seen(5_000, 0), 6_000, 0),
            (seen(5_000, 5_000), 65_000, 65_000),
            (seen(65_000, 65_000), 66_000, 65_000),
            // Two looks at once may come in the other order.
            (seen(65_000, 65_000), 64_999, 65_000),
        ] {
            let after = before.at(at(now));
            assert_eq!(after.resumed, at(expected), "{before:?} {now}");
            assert_eq!(after.beat, before.beat.max(at(now)), "{before:?} {now}");
        }
    }

    // UP-2: a wait that this process slept through begins anew; one that it did not is as long as it was
    #[tokio::test(start_paused = true)]
    async fn a_wait_that_was_slept_through_begins_anew() {
        let pulse = std::sync::Arc::new(Pulse::new());
        let beat = std::sync::Arc::clone(&pulse);
        acpd_host::TaskScope::default().spawn("pulse", async move { beat.keep().await });
        let begun = Instant::now();
        pulse.run_out(begun, Duration::from_secs(10)).await;
        assert_eq!(begun.elapsed().as_secs(), 10);
        let begun = Instant::now();
        let wait = pulse.run_out(begun, Duration::from_secs(10));
        tokio::pin!(wait);
        assert!(futures_util::poll!(&mut wait).is_pending());
        tokio::time::advance(Duration::from_secs(60)).await;
        wait.await;
        assert_eq!(begun.elapsed().as_secs(), 70);
    }
}
