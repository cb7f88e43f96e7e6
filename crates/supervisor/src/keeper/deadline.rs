//! The time by which a program ends, unless its daemon says before that it is there.
//!
//! A state machine without IO and without a clock. Invariant: the program is dead by that time and its graces, also where this process
//! was held up and notices the time late: another node counts on it. Not here: what the ladder does with it.

use crate::ladder::{Graces, LadderInput};
use std::time::{Duration, Instant};

/// What a daemon has said of when its program ends.
#[derive(Debug)]
pub(super) struct Deadline {
    graces: Duration,
    state: State,
}

#[derive(Debug)]
enum State {
    /// It need not end.
    Unset,
    /// It begins to end then.
    EndsAt(Instant),
    /// It has begun to, and is killed then.
    DiesAt(Instant),
}

impl Deadline {
    /// None so far, for a program with these graces.
    pub(super) fn new(graces: Graces) -> Self {
        Self { graces: graces.stdin.saturating_add(graces.term), state: State::Unset }
    }

    /// The program begins to end at `at`, or need not; what has begun stays begun.
    pub(super) fn set(&mut self, at: Option<Instant>) {
        if !matches!(self.state, State::DiesAt(_)) {
            self.state = at.map_or(State::Unset, State::EndsAt);
        }
    }

    /// Returns what is to be asked of the ladder now; to be called until it returns none.
    pub(super) fn tick(&mut self, now: Instant) -> Option<LadderInput> {
        match self.state {
            State::EndsAt(at) if now >= at => {
                // Counted from the time that was said: where this is late, the program does not get its graces whole.
                self.state = at.checked_add(self.graces).map_or(State::Unset, State::DiesAt);
                Some(LadderInput::Stop)
            }
            State::DiesAt(at) if now >= at => {
                self.state = State::Unset;
                Some(LadderInput::Kill)
            }
            State::Unset | State::EndsAt(_) | State::DiesAt(_) => None,
        }
    }

    /// When the next [`tick`](Self::tick) is due.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.state {
            State::Unset => None,
            State::EndsAt(at) | State::DiesAt(at) => Some(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACES: Graces = Graces { stdin: Duration::from_millis(100), term: Duration::from_millis(300) };

    /// What is asked of the ladder at each of these times, in milliseconds, of a program that ends at 1000.
    fn asked(times: &[u64]) -> Vec<(u64, LadderInput)> {
        #[expect(clippy::disallowed_methods, reason = "a test needs some point in time to count from")]
        let zero = Instant::now();
        let at = |millis| zero + Duration::from_millis(millis);
        let mut deadline = Deadline::new(GRACES);
        deadline.set(Some(at(1000)));
        let ticks = times.iter().flat_map(|&time| {
            let inputs = std::iter::from_fn(|| deadline.tick(at(time))).map(|input| (time, input));
            inputs.collect::<Vec<_>>()
        });
        ticks.collect()
    }

    // design fleet, partition: a program is dead by the time that was said and its graces, however late its keeper notices that time
    #[test]
    fn a_late_keeper_makes_up_for_it() {
        use LadderInput::{Kill, Stop};
        for (times, inputs) in [
            (&[999, 1000, 1399, 1400, 9000][..], &[(1000, Stop), (1400, Kill)][..]),
            (&[1250, 1400], &[(1250, Stop), (1400, Kill)]),
            (&[5000, 6000], &[(5000, Stop), (5000, Kill)]),
        ] {
            assert_eq!(asked(times), inputs, "{times:?}");
        }
    }

    // design fleet, partition: a time that is said again takes the place of the one before, but not of an end that has begun
    #[test]
    fn a_time_is_said_again() {
        #[expect(clippy::disallowed_methods, reason = "a test needs some point in time to count from")]
        let zero = Instant::now();
        let mut deadline = Deadline::new(GRACES);
        assert_eq!((deadline.due(), deadline.tick(zero)), (None, None));
        let later = zero + Duration::from_secs(60);
        deadline.set(Some(zero));
        deadline.set(Some(later));
        assert_eq!((deadline.due(), deadline.tick(zero)), (Some(later), None));
        deadline.set(None);
        assert_eq!((deadline.due(), deadline.tick(later)), (None, None));
        deadline.set(Some(zero));
        assert_eq!(deadline.tick(zero), Some(LadderInput::Stop));
        deadline.set(Some(later));
        assert_eq!(deadline.due(), Some(zero + GRACES.stdin + GRACES.term));
    }
}
