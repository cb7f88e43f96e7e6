//! What a chat does about what the person types and what becomes of turns.
//!
//! Pure. Invariants: the person can always leave, and what is asked for twice happens; nothing that was written is lost
//! without a word. Not here: questions, which have the keys while they are asked.

/// Prompts of this chat that the host takes at once: the one that runs, and those that wait in line.
const MOST: usize = 17;

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Happened {
    /// The person entered this.
    Line(String),
    /// Ctrl-C, with nothing to discard.
    Interrupt,
    /// Ctrl-D at an empty line, or what stands for it.
    EndOfInput,
    /// SIGTERM, or the terminal of a host inside is gone.
    Terminated,
    /// A turn of the session began, of this chat or another client.
    Began { own: bool },
    /// It ended; it was this chat's own, so that an answer is to come.
    TurnEnded { own: bool },
    /// A prompt of this chat was answered.
    Answered,
    /// The session's run is over.
    Ended,
}

/// What is done about it, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    Prompt(String),
    /// It cannot be sent now: it is in the line again.
    PutBack(String),
    /// Cancels the running turn.
    Cancel,
    /// Takes back the prompts of this chat, the one that runs too.
    TakeBack,
    Say(String),
    /// In the middle of a turn, or not.
    Leave {
        interrupted: bool,
    },
}

/// What leaving does to the session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Leaving {
    /// It is closed.
    #[default]
    Closes,
    /// It is closed, and could be left to the daemon instead.
    ClosesInDaemon,
    /// It lives on: it was live before.
    LeavesAlone,
}

/// What there is to know.
#[derive(Debug, Default)]
pub(super) struct Core {
    /// Prompts of this chat without an answer.
    open: usize,
    /// Those of them whose turns are over.
    over: usize,
    /// A turn runs.
    running: bool,
    /// And it is this chat's.
    own: bool,
    /// And is being cancelled.
    cancelled: bool,
    /// The person was told how to leave.
    told: bool,
    /// And what leaving would undo.
    warned: bool,
    leaving: Leaving,
    ended: bool,
}

impl Core {
    pub(super) fn new(leaving: Leaving) -> Self {
        Self { leaving, ..Self::default() }
    }

    /// Whether anything is being worked on.
    pub(super) fn is_busy(&self) -> bool {
        self.running || self.to_come() > 0
    }

    /// Prompts of this chat whose turns are not over.
    fn to_come(&self) -> usize {
        self.open.saturating_sub(self.over)
    }

    /// Whether the prompt that was just sent has others before it.
    pub(super) fn is_queued(&self) -> bool {
        self.to_come() > 1 || self.running
    }

    /// Whether what is worked on is being cancelled.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    pub(super) fn step(&mut self, happened: Happened) -> Vec<Effect> {
        let told = match happened {
            Happened::Interrupt => self.told,
            Happened::Line(_) => std::mem::take(&mut self.told),
            _ => false,
        };
        let warned = match happened {
            Happened::EndOfInput => self.warned,
            Happened::Line(_) | Happened::Interrupt => std::mem::take(&mut self.warned),
            _ => false,
        };
        match happened {
            Happened::Line(text) if text.trim().is_empty() => Vec::new(),
            Happened::Line(text) => self.line(text),
            Happened::Interrupt if self.is_busy() && !self.cancelled => {
                self.cancelled = true;
                self.cancel()
            }
            Happened::Interrupt if self.is_busy() || told => {
                vec![Effect::Leave { interrupted: self.is_busy() }]
            }
            Happened::Interrupt => {
                self.told = true;
                vec![Effect::Say("Ctrl-D leaves, and so does Ctrl-C once more".to_owned())]
            }
            Happened::EndOfInput if !warned && self.is_busy() && self.leaving != Leaving::LeavesAlone => {
                self.warned = true;
                vec![Effect::Say(self.warning())]
            }
            Happened::EndOfInput | Happened::Terminated => {
                vec![Effect::Leave { interrupted: self.is_busy() }]
            }
            Happened::Began { own } => {
                (self.running, self.own) = (true, own);
                Vec::new()
            }
            Happened::TurnEnded { own } => {
                (self.running, self.cancelled) = (false, false);
                self.over += usize::from(own);
                self.leave_if_over()
            }
            Happened::Answered => {
                (self.open, self.over) = (self.open.saturating_sub(1), self.over.saturating_sub(1));
                self.cancelled &= self.is_busy();
                self.leave_if_over()
            }
            Happened::Ended => {
                self.ended = true;
                self.running = false;
                self.leave_if_over()
            }
        }
    }

    /// What is cancelled is the own turn. The turn of another client goes on while a prompt of this chat waits behind it.
    fn cancel(&self) -> Vec<Effect> {
        let (effect, what) = match (self.to_come(), self.running && !self.own) {
            (0, _) => (Effect::Cancel, "cancelling"),
            (_, false) => (Effect::TakeBack, "cancelling"),
            (_, true) => (Effect::TakeBack, "taking back what waits in line"),
        };
        vec![effect, Effect::Say(format!("{what}; Ctrl-C once more leaves at once"))]
    }

    /// What leaving would do now.
    fn warning(&self) -> String {
        let what = if self.running { "a turn runs" } else { "a prompt waits" };
        let instead = match self.leaving {
            Leaving::ClosesInDaemon => "; /detach leaves it running",
            Leaving::Closes | Leaving::LeavesAlone => "",
        };
        format!("{what}: Ctrl-D once more cancels it and closes the session{instead}")
    }

    fn line(&mut self, text: String) -> Vec<Effect> {
        if self.to_come() >= MOST {
            let full = format!("{} prompts wait already: this one is in the line again", MOST - 1);
            return vec![Effect::PutBack(text), Effect::Say(full)];
        }
        let before = self.to_come().max(usize::from(self.running));
        self.open += 1;
        let mut effects = vec![Effect::Prompt(text)];
        if before > 0 {
            let turns = match before {
                1 => "the turn before it is over".to_owned(),
                before => format!("the {before} turns before it are over"),
            };
            effects.push(Effect::Say(format!("queued: it is sent when {turns}")));
        }
        effects
    }

    /// A session that has ended is left when all that was asked of it is answered.
    fn leave_if_over(&self) -> Vec<Effect> {
        match self.ended && self.open == 0 {
            true => vec![Effect::Leave { interrupted: false }],
            false => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Effect::{Cancel, Leave, Prompt, PutBack, Say, TakeBack};
    use Happened::{Answered, EndOfInput, Ended, Interrupt, Terminated};

    const BEGAN: Happened = Happened::Began { own: true };
    const ANOTHER_BEGAN: Happened = Happened::Began { own: false };
    const TURN_ENDED: Happened = Happened::TurnEnded { own: true };
    const ANOTHERS: Happened = Happened::TurnEnded { own: false };

    fn line(text: &str) -> Happened {
        Happened::Line(text.to_owned())
    }

    /// A word for each effect.
    fn words(effects: &[Effect]) -> String {
        let word = |effect: &Effect| match effect {
            Prompt(text) => format!("prompt {text}"),
            PutBack(text) => format!("again {text}"),
            Cancel => "cancel".to_owned(),
            TakeBack => "back".to_owned(),
            Say(text) => text.split([':', ';', ' ']).next().unwrap_or_default().to_owned(),
            Leave { interrupted: true } => "leave!".to_owned(),
            Leave { interrupted: false } => "leave".to_owned(),
        };
        effects.iter().map(word).collect::<Vec<_>>().join(", ")
    }

    // contract 7.1: prompts, queue, Ctrl-C that cancels and then leaves, Ctrl-D that leaves
    #[test]
    fn what_happens_leads_to_effects() {
        for (happened, effects) in [
            (vec![line("a")], "prompt a"),
            (vec![line(" "), line("")], ""),
            // One after the other.
            (vec![line("a"), BEGAN, TURN_ENDED, Answered, line("b")], "prompt a; prompt b"),
            (vec![line("a"), BEGAN, TURN_ENDED, line("b"), Answered], "prompt a; prompt b"),
            (vec![line("a"), BEGAN, TURN_ENDED, EndOfInput], "prompt a; leave"),
            (vec![line("a"), line("b"), line("c")], "prompt a; prompt b, queued; prompt c, queued"),
            // Another client's turn runs.
            (vec![ANOTHER_BEGAN, line("a")], "prompt a, queued"),
            (vec![ANOTHER_BEGAN, ANOTHERS, line("a")], "prompt a"),
            // Ctrl-C: nothing runs, a turn runs, it is being cancelled.
            (vec![Interrupt, Interrupt], "Ctrl-D; leave"),
            (vec![Interrupt, line("a"), Interrupt], "Ctrl-D; prompt a; back, cancelling"),
            (vec![Interrupt, line(""), Interrupt], "Ctrl-D; Ctrl-D"),
            (vec![line("a"), Interrupt, Interrupt], "prompt a; back, cancelling; leave!"),
            (vec![ANOTHER_BEGAN, Interrupt, Interrupt], "cancel, cancelling; leave!"),
            // Another client's turn goes on while a prompt of this chat waits; what is asked for twice happens.
            (
                vec![ANOTHER_BEGAN, line("a"), Interrupt, Answered, Interrupt],
                "prompt a, queued; back, taking; leave!",
            ),
            (vec![line("a"), BEGAN, line("b"), Interrupt], "prompt a; prompt b, queued; back, cancelling"),
            // The next turn is cancelled anew.
            (
                vec![line("a"), Interrupt, TURN_ENDED, Answered, line("b"), Interrupt],
                "prompt a; back, cancelling; prompt b; back, cancelling",
            ),
            (vec![line("a"), Interrupt, Answered, Interrupt], "prompt a; back, cancelling; Ctrl-D"),
            (vec![EndOfInput], "leave"),
            // What would be lost is said first, and once more after another line.
            (vec![line("a"), EndOfInput, EndOfInput], "prompt a; a; leave!"),
            (vec![ANOTHER_BEGAN, EndOfInput, line("a"), EndOfInput], "a; prompt a, queued; a"),
            (vec![ANOTHER_BEGAN, EndOfInput, Interrupt, EndOfInput], "a; cancel, cancelling; a"),
            (vec![line("a"), EndOfInput, TURN_ENDED, EndOfInput], "prompt a; a; leave"),
            (vec![line("a"), Terminated], "prompt a; leave!"),
            // The session ends: in a turn, between turns, before the answer.
            (vec![Ended], "leave"),
            (vec![line("a"), BEGAN, Ended, Answered], "prompt a; leave"),
            (vec![line("a"), BEGAN, Answered, Ended], "prompt a; leave"),
        ] {
            let mut core = Core::default();
            let told = format!("{happened:?}");
            let steps: Vec<String> = happened.into_iter().map(|one| words(&core.step(one))).collect();
            let steps: Vec<String> = steps.into_iter().filter(|step| !step.is_empty()).collect();
            assert_eq!(steps.join("; "), effects, "{told}");
        }
    }

    // contract 7.1: a turn is not lost without a word, and it is said how to keep it where that is possible
    #[test]
    fn leaving_a_turn_says_what_it_does() {
        for (happened, leaving, said) in [
            (BEGAN, Leaving::Closes, "a turn runs: Ctrl-D once more cancels it and closes the session"),
            (
                BEGAN,
                Leaving::ClosesInDaemon,
                "a turn runs: Ctrl-D once more cancels it and closes the session; /detach leaves it running",
            ),
            (
                line("a"),
                Leaving::Closes,
                "a prompt waits: Ctrl-D once more cancels it and closes the session",
            ),
        ] {
            let mut core = Core::new(leaving);
            core.step(happened);
            assert_eq!(core.step(EndOfInput), [Say(said.to_owned())]);
            assert_eq!(core.step(EndOfInput), [Leave { interrupted: true }]);
        }
        let mut core = Core::new(Leaving::LeavesAlone);
        core.step(BEGAN);
        assert_eq!(core.step(EndOfInput), [Leave { interrupted: true }]);
    }

    // contract 7.1: as many prompts as the host takes; the next stays in the line
    #[test]
    fn a_full_queue_puts_the_line_back() {
        let mut core = Core::default();
        (0..MOST).for_each(|_| assert!(words(&core.step(line("a"))).starts_with("prompt a")));
        assert_eq!(words(&core.step(line("b"))), "again b, 16");
        core.step(Answered);
        assert_eq!(words(&core.step(line("b"))), "prompt b, queued");
    }
}
