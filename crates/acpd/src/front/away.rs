//! How long a daemon is waited for, how often it is tried, and when that is said.
//!
//! Pure: the time comes in.

use crate::daemon::retry::{BACKOFF, LONGEST};
use backon::{BackoffBuilder, ExponentialBackoff};
use std::time::Duration;
use tokio::time::Instant;

/// A restart takes less; what takes longer is said.
const UNSAID: Duration = Duration::from_secs(2);

/// A daemon that was lost.
#[derive(Debug)]
pub(super) struct Away {
    since: Instant,
    /// It is given up then.
    pub(super) until: Instant,
    backoff: ExponentialBackoff,
    is_said: bool,
    /// The reason for which it was lost.
    pub(super) lost: String,
    /// The reason of the last attempt that failed; at first the same.
    pub(super) why: String,
}

impl Away {
    pub(super) fn new(now: Instant, keep: Duration, why: String) -> Self {
        Self {
            since: now,
            until: now + keep,
            backoff: BACKOFF.build(),
            is_said: false,
            lost: why.clone(),
            why,
        }
    }

    /// When it is tried again. One that is about to come back says when.
    pub(super) fn next_try(&mut self, now: Instant, retry: Option<Duration>) -> Instant {
        let wait = retry.or_else(|| self.backoff.next()).unwrap_or(LONGEST);
        (now + wait).min(self.until)
    }

    /// When it is to be said that it is away; None when it was.
    pub(super) fn says_at(&self) -> Option<Instant> {
        (!self.is_said).then_some(self.since + UNSAID)
    }

    /// It is said now.
    pub(super) fn says(&mut self) {
        self.is_said = true;
    }

    /// Whether it was said.
    pub(super) fn is_said(&self) -> bool {
        self.is_said
    }

    /// Whether it is given up.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.3: from 100 ms to 2 s, as the daemon says if it does, and no longer than it is waited for
    #[test]
    fn waits_grow_up_to_a_bound() {
        let now = Instant::now();
        let mut away = Away::new(now, Duration::from_secs(600), "cut".to_owned());
        assert_eq!(away.next_try(now, Some(Duration::from_millis(700))), now + Duration::from_millis(700));
        let waits: Vec<u128> = (0..40).map(|_| (away.next_try(now, None) - now).as_millis()).collect();
        for (at, most) in [(0, 100), (1, 200), (2, 400), (5, 2_000), (39, 2_000)] {
            assert!((most / 2..=most).contains(&waits[at]), "{waits:?}");
        }
        let late = now + Duration::from_secs(600);
        assert_eq!(away.next_try(late - Duration::from_millis(1), None), late);
        assert!(away.is_over(late) && !away.is_over(now));
    }

    // contract 7.3: a loss of less than 2 s is not said
    #[test]
    fn a_long_loss_is_said_once() {
        let now = Instant::now();
        let mut away = Away::new(now, Duration::from_secs(600), "cut".to_owned());
        assert_eq!(away.says_at(), Some(now + Duration::from_secs(2)));
        away.says();
        assert!(away.says_at().is_none() && away.is_said());
    }
}
