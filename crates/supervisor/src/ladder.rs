//! The stop ladder: close stdin, wait, SIGTERM, wait, SIGKILL (contract 3.2).
//!
//! A state machine without IO and without a clock: `now` comes in, rungs come out. The keeper owns one per
//! program and performs the rungs. It never goes back a rung, and no rung is used twice.

use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// How long each rung waits before the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graces {
    /// Between closing stdin and SIGTERM. Contract default: 1 s.
    pub stdin: Duration,
    /// Between SIGTERM and SIGKILL. Contract default: 5 s.
    pub term: Duration,
}

impl Default for Graces {
    fn default() -> Self {
        Self { stdin: Duration::from_secs(1), term: Duration::from_secs(5) }
    }
}

/// A step of the ladder that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// The program's stdin was closed.
    StdinClosed,
    /// SIGTERM (and SIGCONT, for a stopped program) went to the group.
    Terminated,
    /// SIGKILL went to the group.
    Killed,
}

impl Rung {
    /// The name used in records: `stdin_closed`, `terminated`, `killed`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StdinClosed => "stdin_closed",
            Self::Terminated => "terminated",
            Self::Killed => "killed",
        }
    }
}

/// What can happen to a ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LadderInput {
    /// Somebody wants the program to end. A second request jumps to SIGKILL.
    Stop,
    /// Somebody wants the program to end now.
    Kill,
    /// Time has passed.
    Tick,
    /// The program itself is dead.
    LeaderExited,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    StdinClosed { until: Instant },
    Terminated { until: Instant },
    Killed,
    Done,
}

/// The ladder of one program.
#[derive(Clone, Debug)]
pub struct Ladder {
    graces: Graces,
    state: State,
    used: Vec<Rung>,
}

impl Ladder {
    /// A ladder on which nobody stands yet.
    pub fn new(graces: Graces) -> Self {
        Self { graces, state: State::Running, used: Vec::new() }
    }

    /// Feeds one input and returns the rung to perform now, if there is one.
    pub fn handle(&mut self, input: LadderInput, now: Instant) -> Option<Rung> {
        let rung = match (input, self.state) {
            (_, State::Done) => None,
            (LadderInput::LeaderExited, _) => {
                self.state = State::Done;
                None
            }
            (_, State::Killed) => None,
            (LadderInput::Stop, State::Running) => Some(Rung::StdinClosed),
            (LadderInput::Stop | LadderInput::Kill, _) => Some(Rung::Killed),
            (LadderInput::Tick, State::StdinClosed { until }) if now >= until => Some(Rung::Terminated),
            (LadderInput::Tick, State::Terminated { until }) if now >= until => Some(Rung::Killed),
            (LadderInput::Tick, _) => None,
        };
        if let Some(rung) = rung {
            self.used.push(rung);
            self.state = match rung {
                Rung::StdinClosed => State::StdinClosed { until: now + self.graces.stdin },
                Rung::Terminated => State::Terminated { until: now + self.graces.term },
                Rung::Killed => State::Killed,
            };
        }
        rung
    }

    /// When the next [`LadderInput::Tick`] is due, if time matters at all.
    pub fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::StdinClosed { until } | State::Terminated { until } => Some(until),
            State::Running | State::Killed | State::Done => None,
        }
    }

    /// The rungs used so far, in order.
    pub fn used(&self) -> &[Rung] {
        &self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GRACES: Graces = Graces { stdin: Duration::from_secs(1), term: Duration::from_secs(5) };

    fn start() -> Instant {
        #[expect(clippy::disallowed_methods, reason = "a test needs some point in time to count from")]
        Instant::now()
    }

    /// Runs a script of (milliseconds, input) and gives what was done and when.
    fn script(steps: &[(u64, LadderInput)]) -> Vec<(u64, Rung)> {
        let zero = start();
        let mut ladder = Ladder::new(GRACES);
        let mut done = Vec::new();
        for (at, input) in steps {
            if let Some(rung) = ladder.handle(*input, zero + Duration::from_millis(*at)) {
                done.push((*at, rung));
            }
        }
        assert_eq!(done.iter().map(|(_, rung)| *rung).collect::<Vec<_>>(), ladder.used());
        done
    }

    // contract 3.2, SU-2
    #[test]
    fn each_rung_waits_for_its_grace() {
        use LadderInput::{Stop, Tick};
        assert_eq!(
            script(&[
                (0, Stop),
                (999, Tick),
                (1000, Tick),
                (1001, Tick),
                (5999, Tick),
                (6000, Tick),
                (9000, Tick)
            ]),
            [(0, Rung::StdinClosed), (1000, Rung::Terminated), (6000, Rung::Killed)],
        );
    }

    // contract 3.2: a second stop request jumps to SIGKILL
    #[test]
    fn a_second_stop_kills_at_once() {
        use LadderInput::{Stop, Tick};
        assert_eq!(
            script(&[(0, Stop), (10, Stop), (20, Stop)]),
            [(0, Rung::StdinClosed), (10, Rung::Killed)]
        );
        assert_eq!(
            script(&[(0, Stop), (1000, Tick), (1010, Stop)]),
            [(0, Rung::StdinClosed), (1000, Rung::Terminated), (1010, Rung::Killed)],
        );
    }

    #[test]
    fn kill_needs_no_earlier_rung() {
        assert_eq!(script(&[(0, LadderInput::Kill), (1, LadderInput::Kill)]), [(0, Rung::Killed)]);
    }

    // contract 3.2: a wait ends as soon as the leader is dead
    #[test]
    fn nothing_happens_after_the_leader_is_dead() {
        use LadderInput::{Kill, LeaderExited, Stop, Tick};
        assert_eq!(
            script(&[(0, Stop), (5, LeaderExited), (1000, Tick), (1001, Stop), (1002, Kill)]),
            [(0, Rung::StdinClosed)],
        );
        assert_eq!(script(&[(0, LeaderExited), (1, Stop)]), []);
    }

    proptest! {
        // Any order of inputs: rungs only go up, none twice, and a stopped program is killed in the end.
        #[test]
        fn rungs_only_go_up(inputs in proptest::collection::vec((0u64..3000, 0u8..4), 0..40)) {
            let mut now = start();
            let mut ladder = Ladder::new(GRACES);
            let (mut stopped, mut dead) = (false, false);
            for (wait, input) in inputs {
                now += Duration::from_millis(wait);
                let input = match input {
                    0 => LadderInput::Stop,
                    1 => LadderInput::Kill,
                    2 => LadderInput::LeaderExited,
                    _ => LadderInput::Tick,
                };
                stopped |= !dead && matches!(input, LadderInput::Stop | LadderInput::Kill);
                dead |= input == LadderInput::LeaderExited;
                ladder.handle(input, now);
            }
            prop_assert!(ladder.used().is_sorted_by(|a, b| a < b));
            while let Some(due) = ladder.deadline() {
                ladder.handle(LadderInput::Tick, due);
            }
            prop_assert_eq!(stopped && !dead, !dead && ladder.used().last() == Some(&Rung::Killed));
        }
    }
}
