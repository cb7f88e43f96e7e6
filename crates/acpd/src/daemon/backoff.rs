//! How long to wait before the next try to reach a daemon.
//!
//! Pure. Doubles from [`FIRST`] to [`MOST`], and begins anew after a success. The spread comes in as a number, so that
//! the viewers of a daemon that was restarted do not all come back in the same moment.

use std::time::Duration;

/// The first wait: a daemon that restarts is back in less than a second.
const FIRST: Duration = Duration::from_millis(100);
/// The longest: still "at once" for a waiting person.
const MOST: Duration = Duration::from_secs(5);

/// Counts failures.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The wait after one more failure: between half of it and all of it, by `spread` of 255.
    pub(crate) fn failed(&mut self, spread: u8) -> Duration {
        let whole = FIRST.saturating_mul(1 << self.failures.min(16)).min(MOST);
        self.failures = self.failures.saturating_add(1);
        whole / 2 + (whole / 2) * u32::from(spread) / 255
    }

    /// The daemon has answered.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 6: `--follow` comes back with a bounded backoff
    #[test]
    fn waits_double_up_to_a_bound_and_begin_anew() {
        let mut backoff = Backoff::default();
        let waits: Vec<u128> = (0..9).map(|_| backoff.failed(255).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
        backoff.succeeded();
        assert_eq!(backoff.failed(0), FIRST / 2);
        let mut long = Backoff { failures: u32::MAX };
        assert_eq!(long.failed(255), MOST);
    }
}
