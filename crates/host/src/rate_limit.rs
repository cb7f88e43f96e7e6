//! The limit on attempts at something that keeps failing (SU-6).
//!
//! Pure: `now` comes in.

use std::time::Duration;
use tokio::time::Instant;

/// Attempts in a window.
pub(crate) const ATTEMPTS: usize = 3;
/// How long an attempt counts.
pub(crate) const WINDOW: Duration = Duration::from_secs(60);

/// The attempts at one thing in the last [`WINDOW`].
#[derive(Debug, Default)]
pub(crate) struct RateLimit(Vec<Instant>);

impl RateLimit {
    /// Counts an attempt; refuses the one too many, with the wait until the next.
    pub(crate) fn count(&mut self, now: Instant) -> Result<(), Duration> {
        self.may(now)?;
        self.0.retain(|at| now - *at < WINDOW);
        self.0.push(now);
        Ok(())
    }

    /// Whether an attempt would not be refused; else the wait until the next.
    pub(crate) fn may(&self, now: Instant) -> Result<(), Duration> {
        let counting = || self.0.iter().filter(|at| now - **at < WINDOW);
        match counting().next() {
            Some(first) if counting().count() >= ATTEMPTS => Err(WINDOW - (now - *first)),
            _ => Ok(()),
        }
    }

    /// Whether all of them are so long ago that they do not count.
    pub(crate) fn is_forgotten(&self, now: Instant) -> bool {
        self.0.last().is_none_or(|last| now - *last >= WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // SU-6: a crash loop is bounded
    #[test]
    fn the_fourth_try_in_a_minute_is_refused() {
        let mut limit = RateLimit::default();
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        assert!(limit.is_forgotten(at(0)));
        for seconds in [0, 10, 20] {
            assert_eq!(limit.count(at(seconds)), Ok(()));
        }
        assert_eq!(limit.count(at(30)), Err(Duration::from_secs(30)));
        assert_eq!(limit.count(at(60)), Ok(()));
        assert_eq!(limit.count(at(61)), Err(Duration::from_secs(9)));
        assert!(!limit.is_forgotten(at(119)) && limit.is_forgotten(at(120)));
    }
}
