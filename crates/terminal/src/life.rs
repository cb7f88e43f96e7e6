//! The life of a terminal: running, then ended in one of four ways (contract 2.3).
//!
//! A state machine without IO and without a clock. The terminal's task feeds it and does what it says. The first
//! reason to stop wins; a command that ended by itself before the stop reached it has finished, whatever was asked.

use std::time::Instant;

/// The states of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalState {
    /// The command runs; it may be stopping.
    Running,
    /// The command ended by itself.
    Finished,
    /// It was killed on request.
    Killed,
    /// It was killed because its time was over.
    TimedOut,
    /// It was released while it ran, and killed by that.
    Released,
}

impl TerminalState {
    /// As it is told to others.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Killed => "killed",
            Self::TimedOut => "timed_out",
            Self::Released => "released",
        }
    }
}

/// What can happen to a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LifeInput {
    /// The command is to end. Changes nothing after the first time, or after the end.
    Kill,
    /// The terminal is not needed any more.
    Release,
    /// Time has passed.
    Tick,
    /// The command is gone and its output read.
    Ended {
        /// A rung of the stop ladder was used on it.
        stopped: bool,
    },
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LifeOutput {
    /// Begin to stop the command.
    Stop,
    /// Answer all waits with how it ended.
    Report(TerminalState),
}

/// An input that this state cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{input:?} cannot happen to a terminal that is {state:?}")]
pub(crate) struct IllegalInput {
    input: LifeInput,
    state: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// A stop was asked for; this is what the end is to be called.
    Stopping(TerminalState),
    Ended,
}

/// The life of one terminal.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    phase: Phase,
    deadline: Option<Instant>,
    released: bool,
}

impl Life {
    /// A command that was just started, and may run until `deadline`.
    pub(crate) fn new(deadline: Option<Instant>) -> Self {
        Self { phase: Phase::Running, deadline, released: false }
    }

    pub(crate) fn handle(
        &mut self,
        input: LifeInput,
        now: Instant,
    ) -> Result<Option<LifeOutput>, IllegalInput> {
        let illegal = IllegalInput { input, state: self.phase };
        let stop = match (input, self.phase) {
            (LifeInput::Release, _) if self.released => return Err(illegal),
            (LifeInput::Ended { .. }, Phase::Ended) => return Err(illegal),
            (LifeInput::Ended { stopped }, phase) => {
                self.phase = Phase::Ended;
                let end = match phase {
                    _ if !stopped => TerminalState::Finished,
                    Phase::Stopping(end) => end,
                    // By the host before this one, or because its keeper was lost.
                    Phase::Running | Phase::Ended => TerminalState::Killed,
                };
                return Ok(Some(LifeOutput::Report(end)));
            }
            (LifeInput::Kill, Phase::Running) => Some(TerminalState::Killed),
            (LifeInput::Release, Phase::Running) => Some(TerminalState::Released),
            (LifeInput::Tick, Phase::Running) if self.deadline.is_some_and(|due| now >= due) => {
                Some(TerminalState::TimedOut)
            }
            (LifeInput::Kill | LifeInput::Release | LifeInput::Tick, _) => None,
        };
        self.released |= input == LifeInput::Release;
        Ok(stop.map(|end| {
            self.phase = Phase::Stopping(end);
            LifeOutput::Stop
        }))
    }

    /// When the next [`LifeInput::Tick`] is due, if time matters at all.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline.filter(|_| self.phase == Phase::Running)
    }

    pub(crate) fn is_released(&self) -> bool {
        self.released
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.phase == Phase::Ended
    }
}

#[cfg(test)]
mod tests {
    use super::LifeInput::{Ended, Kill, Release, Tick};
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    const STOPPED: LifeInput = Ended { stopped: true };
    const BY_ITSELF: LifeInput = Ended { stopped: false };

    fn start() -> Instant {
        #[expect(clippy::disallowed_methods, reason = "a test needs some point in time to count from")]
        Instant::now()
    }

    /// Runs a script of (seconds, input) on a command that may run for ten seconds; gives how it ended, and when
    /// it was stopped.
    fn script(steps: &[(u64, LifeInput)]) -> (Option<TerminalState>, Vec<u64>) {
        let zero = start();
        let mut life = Life::new(Some(zero + Duration::from_secs(10)));
        let (mut end, mut stops) = (None, Vec::new());
        for (at, input) in steps {
            match life.handle(*input, zero + Duration::from_secs(*at)).expect("a legal script") {
                Some(LifeOutput::Stop) => stops.push(*at),
                Some(LifeOutput::Report(state)) => end = Some(state),
                None => {}
            }
        }
        (end, stops)
    }

    // contract 2.3: the states, and one reason for each
    #[test]
    fn each_end_has_its_reason() {
        use TerminalState::{Finished, Killed, Released, TimedOut};
        assert_eq!(script(&[(1, BY_ITSELF)]), (Some(Finished), vec![]));
        assert_eq!(script(&[(1, Kill), (2, STOPPED)]), (Some(Killed), vec![1]));
        assert_eq!(script(&[(9, Tick), (10, Tick), (11, STOPPED)]), (Some(TimedOut), vec![10]));
        assert_eq!(script(&[(1, Release), (2, STOPPED)]), (Some(Released), vec![1]));
    }

    // contract 2.3: a stop whose reason went with the host before
    #[test]
    fn a_stop_without_a_reason_is_a_kill() {
        assert_eq!(script(&[(1, STOPPED)]), (Some(TerminalState::Killed), vec![]));
    }

    // contract 2.3: the first reason wins, and the command is stopped once
    #[test]
    fn the_first_reason_wins() {
        use TerminalState::{Killed, Released, TimedOut};
        assert_eq!(script(&[(1, Kill), (2, Kill), (10, Tick), (11, STOPPED)]), (Some(Killed), vec![1]));
        assert_eq!(
            script(&[(10, Tick), (11, Kill), (12, Release), (13, STOPPED)]),
            (Some(TimedOut), vec![10])
        );
        assert_eq!(script(&[(1, Release), (2, Kill), (10, Tick), (11, STOPPED)]), (Some(Released), vec![1]));
    }

    // contract 2.3: never an invented end
    #[test]
    fn an_exit_that_overtakes_the_stop_is_an_exit() {
        for stop in [Kill, Release] {
            assert_eq!(script(&[(1, stop), (1, BY_ITSELF)]), (Some(TerminalState::Finished), vec![1]));
        }
    }

    // contract 2.3, TE-7: on an exited command, kill changes nothing
    #[test]
    fn nothing_happens_after_the_end() {
        let after = [(1, BY_ITSELF), (2, Kill), (10, Tick), (11, Release)];
        assert_eq!(script(&after), (Some(TerminalState::Finished), vec![]));
    }

    #[test]
    fn what_cannot_happen_is_refused() {
        let mut life = Life::new(None);
        assert_eq!(life.handle(Release, start()), Ok(Some(LifeOutput::Stop)));
        assert!(life.handle(Release, start()).is_err());
        assert!(life.handle(STOPPED, start()).is_ok());
        let error = life.handle(STOPPED, start()).expect_err("it has ended");
        assert_eq!(error.to_string(), "Ended { stopped: true } cannot happen to a terminal that is Ended");
    }

    proptest! {
        // Any order: at most one stop, never after the end, exactly one report; a stopped one is never Finished.
        #[test]
        fn one_stop_and_one_report(inputs in proptest::collection::vec((0u64..5, 0u8..5), 0..30)) {
            let mut now = start();
            let mut life = Life::new(Some(now + Duration::from_secs(20)));
            let (mut stops, mut reports) = (0, Vec::new());
            for (wait, input) in inputs {
                now += Duration::from_secs(wait);
                let input = [Kill, Release, Tick, STOPPED, BY_ITSELF][usize::from(input)];
                match life.handle(input, now) {
                    Ok(Some(LifeOutput::Stop)) => {
                        prop_assert!(reports.is_empty());
                        stops += 1;
                    }
                    Ok(Some(LifeOutput::Report(state))) => {
                        prop_assert_ne!(state, TerminalState::Running);
                        prop_assert_eq!(state == TerminalState::Finished, input == BY_ITSELF);
                        reports.push(state);
                    }
                    Ok(None) => {}
                    Err(_) => prop_assert!(life.has_ended() || life.is_released()),
                }
            }
            prop_assert!(stops <= 1 && reports.len() <= 1);
            prop_assert_eq!(life.has_ended(), reports.len() == 1);
            prop_assert!(life.deadline().is_none() || (stops == 0 && reports.is_empty()));
        }
    }
}
