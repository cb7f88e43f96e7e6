//! Which event may follow which.

use crate::event::Event;
use crate::ids::{QuestionNumber, TurnNumber};
use crate::payload::Stalled;
use crate::projection::{Phase, Projection};
use crate::termination::Cause;

/// An event that cannot follow those before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages have the words")]
pub enum Illegal {
    #[error("event {seq} does not follow event {last}")]
    Gap { seq: u64, last: u64 },
    #[error("the first event is not that of the creation, or it is not the first")]
    Creation,
    #[error("it belongs to a run, and none is live")]
    NoRun,
    #[error("a run began while another was live")]
    TwoRuns,
    #[error("turn {turn} began after turn {last}")]
    Turn { turn: TurnNumber, last: TurnNumber },
    #[error("turn {last} has not ended")]
    TwoTurns { last: TurnNumber },
    #[error("turn {turn} is not running")]
    NoTurn { turn: TurnNumber },
    #[error("no turn is running")]
    NoTurnToCancel,
    #[error("turn {turn} has stalled already, or goes on without having stalled")]
    Stall { turn: TurnNumber },
    #[error("question {request} is not event {seq}")]
    Question { request: QuestionNumber, seq: u64 },
    #[error("question {request} is not open")]
    NotOpen { request: QuestionNumber },
}

impl Projection {
    /// Whether event `seq` may follow what was seen.
    ///
    /// # Errors
    /// When it may not, with why.
    pub fn check(&self, seq: u64, event: &Event<'_>) -> Result<(), Illegal> {
        let last = self.last_seq;
        if last != 0 && seq != last + 1 {
            return Err(Illegal::Gap { seq, last });
        }
        match event {
            Event::Created(_) if self.phase == Phase::Empty => return Ok(()),
            Event::Created(_) => return Err(Illegal::Creation),
            _ if self.phase == Phase::Empty => return Err(Illegal::Creation),
            Event::Other { .. } => return Ok(()),
            Event::RunStarted(_) if self.phase == Phase::Live => return Err(Illegal::TwoRuns),
            Event::RunStarted(_) => return Ok(()),
            // The end for good of a run that was lost.
            Event::Ended(end) if self.can_be_made_final && self.phase == Phase::Ended => {
                let is_final = end.cause == Some(Cause::ClientTerminate);
                return is_final.then_some(()).ok_or(Illegal::NoRun);
            }
            _ if self.phase != Phase::Live => return Err(Illegal::NoRun),
            _ => {}
        }
        match event {
            Event::Prompt(prompt) => self.check_prompt(prompt.turn),
            Event::TurnEnded(ended) => self.check_turn(ended.turn),
            Event::Stalled(stalled) => self.check_stall(stalled),
            Event::Transcript(facts) => self.check_turn(facts.turn.unwrap_or_default()),
            Event::CancelRequested(_) if self.running_turn().is_none() => Err(Illegal::NoTurnToCancel),
            event => match (event.question(), event.resolution().map(|resolution| resolution.request)) {
                (Some((_, question)), _) if question.request.0 != seq => {
                    Err(Illegal::Question { request: question.request, seq })
                }
                (_, Some(request)) if !self.questions.is_unresolved(request) => {
                    Err(Illegal::NotOpen { request })
                }
                _ => Ok(()),
            },
        }
    }

    fn check_prompt(&self, turn: TurnNumber) -> Result<(), Illegal> {
        let last = self.turns;
        match self.running_turn() {
            // Earlier versions left the turn of the source open that was running at the fork.
            Some(_) if !self.is_fork => Err(Illegal::TwoTurns { last }),
            _ if turn != last.next() => Err(Illegal::Turn { turn, last }),
            _ => Ok(()),
        }
    }

    fn check_stall(&self, stalled: &Stalled) -> Result<(), Illegal> {
        let turn = stalled.turn;
        self.check_turn(turn)?;
        match self.running_turn() {
            Some(running) if running.stalled() != stalled.goes_on => Err(Illegal::Stall { turn }),
            _ => Ok(()),
        }
    }

    fn check_turn(&self, turn: TurnNumber) -> Result<(), Illegal> {
        match self.running_turn() {
            Some(running) if running.number == turn => Ok(()),
            _ => Err(Illegal::NoTurn { turn }),
        }
    }
}
