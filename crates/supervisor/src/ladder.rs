//! The stop ladder: close stdin, wait, SIGTERM, wait, SIGKILL (contract 3.2), and the time of what the program leaves.
//!
//! A state machine without IO and without a clock: `now` comes in, steps come out. The keeper owns one per
//! program and performs the steps. It never goes back a rung, and no rung is used twice. When the program is dead, its
//! descendants have what is left of the grace that runs: a launcher often ends before what it has launched. The end of
//! an exit that nothing asked for is the end of its descendants, but for the moment that commands are allowed.

use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// How long each rung waits before the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graces {
    /// Between closing stdin and SIGTERM. Contract default: 3 s.
    pub stdin: Duration,
    /// Between SIGTERM and SIGKILL. Contract default: 5 s.
    pub term: Duration,
}

impl Default for Graces {
    fn default() -> Self {
        Self { stdin: Duration::from_secs(3), term: Duration::from_secs(5) }
    }
}

/// How long descendants may live that a program leaves when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leftovers {
    /// After an exit that was not asked for.
    pub after_exit: Duration,
    /// After a stop: what is left of the grace that runs, or no time at all.
    pub rest_of_grace: bool,
}

impl Default for Leftovers {
    fn default() -> Self {
        Self { after_exit: Duration::ZERO, rest_of_grace: true }
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
    /// The program is to end. A second request jumps to SIGKILL.
    Stop,
    /// The program is to end now.
    Kill,
    /// Time has passed.
    Tick,
    /// The program itself is dead.
    LeaderExited,
    /// None of its descendants lives.
    NothingLeft,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LadderStep {
    /// Climb this rung, for the program.
    Climb(Rung),
    /// The program is dead, and the time of its descendants is over: kill those that live.
    EndLeftovers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    StdinClosed {
        until: Instant,
    },
    Terminated {
        until: Instant,
    },
    Killed,
    /// The program is dead; its descendants may live until then.
    LeaderDead {
        until: Instant,
    },
    Done,
}

/// The ladder of one program.
#[derive(Clone, Debug)]
pub struct Ladder {
    graces: Graces,
    leftovers: Leftovers,
    state: State,
    used: Vec<Rung>,
}

impl Ladder {
    /// A ladder before its first rung.
    pub fn new(graces: Graces, leftovers: Leftovers) -> Self {
        Self { graces, leftovers, state: State::Running, used: Vec::new() }
    }

    /// Feeds one input and returns the step to perform now, if there is one.
    pub fn handle(&mut self, input: LadderInput, now: Instant) -> Option<LadderStep> {
        let rung = match (input, self.state) {
            (_, State::Done) => None,
            (LadderInput::LeaderExited, State::LeaderDead { .. }) => None,
            (LadderInput::LeaderExited, alive) => return self.leader_exited(alive, now),
            (LadderInput::NothingLeft | LadderInput::Stop | LadderInput::Kill, State::LeaderDead { .. }) => {
                return self.end_leftovers();
            }
            (LadderInput::Tick, State::LeaderDead { until }) if now >= until => return self.end_leftovers(),
            (LadderInput::NothingLeft, _) | (_, State::Killed) => None,
            (LadderInput::Stop, State::Running) => Some(Rung::StdinClosed),
            (LadderInput::Stop | LadderInput::Kill, _) => Some(Rung::Killed),
            (LadderInput::Tick, State::StdinClosed { until }) if now >= until => Some(Rung::Terminated),
            (LadderInput::Tick, State::Terminated { until }) if now >= until => Some(Rung::Killed),
            (LadderInput::Tick, _) => None,
        }?;
        self.used.push(rung);
        self.state = match rung {
            Rung::StdinClosed => State::StdinClosed { until: now + self.graces.stdin },
            Rung::Terminated => State::Terminated { until: now + self.graces.term },
            Rung::Killed => State::Killed,
        };
        Some(LadderStep::Climb(rung))
    }

    fn leader_exited(&mut self, state: State, now: Instant) -> Option<LadderStep> {
        let until = match state {
            State::Running => now + self.leftovers.after_exit,
            State::StdinClosed { until } | State::Terminated { until } if self.leftovers.rest_of_grace => {
                until
            }
            _ => now,
        };
        if now >= until {
            return self.end_leftovers();
        }
        self.state = State::LeaderDead { until };
        None
    }

    fn end_leftovers(&mut self) -> Option<LadderStep> {
        self.state = State::Done;
        Some(LadderStep::EndLeftovers)
    }

    /// When the next [`LadderInput::Tick`] is due, if time matters at all.
    pub fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::StdinClosed { until } | State::Terminated { until } | State::LeaderDead { until } => {
                Some(until)
            }
            State::Running | State::Killed | State::Done => None,
        }
    }

    /// The rungs used so far, in order.
    pub fn used(&self) -> &[Rung] {
        &self.used
    }
}

#[cfg(test)]
mod tests;
