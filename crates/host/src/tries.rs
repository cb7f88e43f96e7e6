//! How often something may be tried again that keeps failing (SU-6).
//!
//! Pure: `now` comes in.

use std::time::Duration;
use tokio::time::Instant;

/// Tries in a window.
pub(crate) const TRIES: usize = 3;
/// How long a try counts.
pub(crate) const WINDOW: Duration = Duration::from_secs(60);

/// The tries of one thing in the last [`WINDOW`].
#[derive(Debug, Default)]
pub(crate) struct Tries(Vec<Instant>);

impl Tries {
    /// Counts a try; refuses the one too many, with the wait until the next.
    pub(crate) fn count(&mut self, now: Instant) -> Result<(), Duration> {
        self.may(now)?;
        self.0.retain(|at| now - *at < WINDOW);
        self.0.push(now);
        Ok(())
    }

    /// Whether a try would not be refused; else the wait until the next.
    pub(crate) fn may(&self, now: Instant) -> Result<(), Duration> {
        let counting = || self.0.iter().filter(|at| now - **at < WINDOW);
        match counting().next() {
            Some(first) if counting().count() >= TRIES => Err(WINDOW - (now - *first)),
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
        let mut tries = Tries::default();
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        assert!(tries.is_forgotten(at(0)));
        for seconds in [0, 10, 20] {
            assert_eq!(tries.count(at(seconds)), Ok(()));
        }
        assert_eq!(tries.count(at(30)), Err(Duration::from_secs(30)));
        assert_eq!(tries.count(at(60)), Ok(()));
        assert_eq!(tries.count(at(61)), Err(Duration::from_secs(9)));
        assert!(!tries.is_forgotten(at(119)) && tries.is_forgotten(at(120)));
    }
}
