//! Tells what an agent replays of a session that it activates from what it has to say that is new (SE-7).
//!
//! Agents replay before their answer to `session/load`, as they should, or go on with it behind the answer. So what
//! comes is compared with what is recorded: text by role and as a stream, because chunks are cut anew and the order of
//! a thought and an answer may differ, and tool calls by their ids. White space does not count: agents trim.
//!
//! The rules, from the safest ground to the most doubtful:
//! - Before the answer all of the conversation is replay. What is not recognized there is a gap in what can be told.
//! - Between the answer and the first prompt of the run, what matches is replay, and the first that does not match ends
//!   it. A user's message that was never recorded is replay too once the replay has begun: there was no prompt, so the
//!   agent can only be telling what was (some tell the results of tools that way).
//! - Behind a prompt it begins with a user's message or a tool call of the history only (not with an echo of the prompt),
//!   goes on only from the farthest place that was reached, and text alone is no proof, because the new answer may begin
//!   like an old one: it waits for a user's message or a tool call of the history, or for the end
//!   of the history in a replay that went on behind the answer. If something new comes first, nothing was replay, unless
//!   what waits told a turn of such a replay to its end: then the replay ended there, before the history does. Without
//!   anything behind it, it may be an answer like an old one.
//!
//! A turn is entered by its user's message, unless the agent replays none.
//!
//! Pure and bounded: the history comes in piece by piece, as far as it is asked for, and only a window of it is held.
//! Not here: where it is read, and what becomes of the updates.

mod said;
mod search;
mod window;

pub(crate) use said::Said;

use acpd_record::Event;
use search::Search;
use window::{Item, WINDOW, Window, WindowPosition};

/// What an update is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Told before. So is what was perhaps.
    Replay,
    /// New. So is what was perhaps.
    News,
    /// New. What was perhaps was told before.
    AfterReplay,
    /// Not certain yet.
    Perhaps,
    /// More of the history has to be fed first.
    More,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The agent has not answered yet.
    Taking,
    /// It has, and was not prompted.
    Taken,
    Prompted,
    Over,
}

/// Follows a replay along the recorded history.
#[derive(Debug)]
pub(crate) struct Replay {
    stage: Stage,
    window: Window,
    /// Something was recognized.
    begun: bool,
    /// Something was recognized behind the agent's answer.
    late: bool,
    /// The agent replays what the user said.
    by_turns: bool,
    /// Something was not recognized: which turn the replay is in is not certain.
    strayed: bool,
    /// A prompt came before all of what precedes the answer was judged.
    prompted: bool,
    /// What is perhaps a replay goes to the end of a turn.
    whole_turn: bool,
}

impl Replay {
    pub(crate) fn new() -> Self {
        Self {
            stage: Stage::Taking,
            window: Window::default(),
            begun: false,
            late: false,
            by_turns: false,
            strayed: false,
            prompted: false,
            whole_turn: false,
        }
    }

    /// Whether all that comes from now on is news.
    pub(crate) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// It is over, whatever was left.
    pub(crate) fn end(&mut self) {
        *self = Self { stage: Stage::Over, ..Self::new() };
    }

    /// It is over with something new.
    pub(crate) fn end_with_news(&mut self) -> Verdict {
        let verdict = if self.whole_turn { Verdict::AfterReplay } else { Verdict::News };
        self.end();
        verdict
    }

    /// The agent has answered that it has the session.
    pub(crate) fn taken(&mut self) {
        if self.stage == Stage::Taking {
            self.stage = Stage::Taken;
            if self.prompted {
                self.prompted();
            }
        }
    }

    /// The agent is prompted.
    pub(crate) fn prompted(&mut self) {
        if self.stage == Stage::Taking {
            self.prompted = true;
        } else if self.stage != Stage::Over {
            self.stage = Stage::Prompted;
            self.strayed = false;
            self.window.forget(self.window.passed);
        }
    }

    /// The next event of the history.
    pub(crate) fn feed(&mut self, event: &Event<'_>) {
        self.window.feed(event);
    }

    /// There is no more of it.
    pub(crate) fn fed(&mut self) {
        self.window.complete = true;
    }

    /// What an update is. After [`Verdict::More`] it is asked again.
    pub(crate) fn judge(&mut self, said: &Said) -> Verdict {
        match said {
            _ if self.stage == Stage::Over => Verdict::News,
            Said::Beside => Verdict::News,
            Said::Text(_, text) if text.trim().is_empty() => match self.stage {
                Stage::Taking => Verdict::Replay,
                Stage::Taken if self.begun => Verdict::Replay,
                Stage::Prompted if self.begun => Verdict::Perhaps,
                _ => Verdict::News,
            },
            // A replay that begins behind a prompt begins with the user's words: ids of tool calls are counted anew by some
            // agents with each process.
            _ if self.stage == Stage::Prompted && !self.begun && !said.by_user() => {
                self.end();
                Verdict::News
            }
            // Whether this is the end of the history must be known at once.
            _ if self.stage == Stage::Prompted && !self.window.complete && self.window.bytes < WINDOW => {
                Verdict::More
            }
            _ => match self.search(said) {
                Search::Found(position) => self.go_on(said, position),
                Search::Beyond => Verdict::More,
                Search::Nowhere => self.stray(said),
            },
        }
    }

    /// It was found: the replay is there now.
    fn go_on(&mut self, said: &Said, WindowPosition { mut index, at }: WindowPosition) -> Verdict {
        let known_call = matches!(said, Said::Call(_)) && at.is_some();
        if !known_call {
            let entered = self.window.items.iter().take(index).rposition(|item| matches!(item, Item::Turn));
            // A tool call is known by its id, wherever it is told.
            if let Some(turn) = entered.filter(|_| !matches!(said, Said::Call(_))) {
                self.window.forget(turn + 1);
                index -= turn + 1;
            }
            if let Said::Text(role, _) = said {
                for before in (0..index).rev() {
                    if matches!(&self.window.items[before], Item::Text { role: told, .. } if told == role) {
                        self.window.take_out(before);
                        index -= 1;
                    }
                }
            }
            match at {
                Some(to) => {
                    if let Item::Text { at, .. } = &mut self.window.items[index] {
                        *at = to;
                    }
                }
                None => self.window.take_out(index),
            }
            if entered.is_none() || !matches!(said, Said::Call(_)) {
                self.window.passed = self.window.passed.max(index);
            }
        }
        let proof = said.is_proof();
        let turn_is_certain = self.by_turns && !self.strayed;
        self.begun = true;
        self.by_turns |= said.by_user();
        self.strayed = false;
        match self.stage {
            Stage::Taken => self.late = true,
            Stage::Prompted => {
                self.late |= proof;
                self.window.forget(self.window.passed);
                let certain = proof || (self.late && self.window.is_at_the_end());
                self.whole_turn =
                    !certain && self.late && turn_is_certain && self.window.is_at_the_end_of_the_turn();
                if !certain {
                    return Verdict::Perhaps;
                }
            }
            Stage::Taking | Stage::Over => {}
        }
        Verdict::Replay
    }

    /// It was not found.
    fn stray(&mut self, said: &Said) -> Verdict {
        match self.stage {
            Stage::Taking => {
                self.strayed = true;
                return Verdict::Replay;
            }
            Stage::Taken if said.by_user() && !self.window.is_at_the_end() => {
                if self.begun {
                    self.strayed = true;
                    return Verdict::Replay;
                }
                // A replay in which it could stand may still begin.
                return Verdict::News;
            }
            // So it may be here, but it may be the user's words that another client gave the agent just now.
            Stage::Prompted if said.by_user() && self.begun && !self.window.is_at_the_end() => {
                self.strayed = true;
                self.whole_turn = false;
                return Verdict::Perhaps;
            }
            // A plan is told as it is now, not as it came to be.
            Stage::Taken if matches!(said, Said::Whole { by_user: false, .. }) => return Verdict::News,
            Stage::Taken | Stage::Prompted | Stage::Over => {}
        }
        self.end_with_news()
    }
}

#[cfg(test)]
mod tests;
