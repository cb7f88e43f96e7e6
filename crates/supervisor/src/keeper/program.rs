//! The program of a keeper, from its start to the end of the last process that it left.
//!
//! Performs what its ladder decides. Not here: who asks for it, and the streams.

use super::children::Children;
use super::memory::OomKills;
use super::now;
use crate::ladder::{Graces, Ladder, LadderInput, LadderStep, Leftovers, Rung};
use crate::report::ExitStatus;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions};
use std::io;
use std::time::{Duration, Instant};

/// While leftovers are being killed, how often they are looked for again even without a SIGCHLD: a descendant
/// may reach us (its parent being killed) just after a look.
const REAP_ROUND: Duration = Duration::from_millis(20);

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// The program lives, or what it left has time.
    Runs,
    /// What it left is being killed.
    Ends,
    /// No child is left.
    Over,
}

pub(super) struct Program {
    leader: Pid,
    leader_is_dead: bool,
    life: Life,
    status: Option<ExitStatus>,
    ladder: Ladder,
    children: Children,
    memory: OomKills,
    /// Since the start, as the leader's end was seen: what is killed later did not end it.
    oom_kills: u32,
}

/// How it ended.
pub(super) struct End {
    pub(super) status: ExitStatus,
    pub(super) leaked: u32,
    pub(super) rungs: Vec<Rung>,
    pub(super) oom_kills: u32,
}

impl Program {
    pub(super) fn new(leader: Pid, graces: Graces, leftovers: Leftovers) -> Self {
        Self {
            leader,
            leader_is_dead: false,
            life: Life::Runs,
            status: None,
            ladder: Ladder::new(graces, leftovers),
            children: Children::default(),
            memory: OomKills::watch(),
            oom_kills: 0,
        }
    }

    pub(super) fn life(&self) -> Life {
        self.life
    }

    /// Whether it runs, and was not asked to end.
    pub(super) fn is_quiet(&self) -> bool {
        self.life == Life::Runs && !self.leader_is_dead && self.ladder.used().is_empty()
    }

    /// The rungs used so far.
    pub(super) fn rungs(&self) -> &[Rung] {
        self.ladder.used()
    }

    /// When it is to be looked at again, whatever happens.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.life {
            Life::Runs => self.ladder.deadline(),
            Life::Ends => Some(now() + REAP_ROUND),
            Life::Over => None,
        }
    }

    pub(super) fn climb(&mut self, input: LadderInput) {
        match self.ladder.handle(input, now()) {
            Some(LadderStep::Climb(Rung::Terminated)) => {
                let _gone = rustix::process::kill_process_group(self.leader, Signal::TERM);
                // A stopped program cannot act on SIGTERM.
                let _gone = rustix::process::kill_process_group(self.leader, Signal::CONT);
            }
            Some(LadderStep::Climb(Rung::Killed)) => {
                let _gone = rustix::process::kill_process_group(self.leader, Signal::KILL);
            }
            Some(LadderStep::EndLeftovers) => {
                self.children.see_leftovers(self.leader);
                let _gone = rustix::process::kill_process_group(self.leader, Signal::KILL);
                self.life = Life::Ends;
            }
            // That is for those who hold the other end: the daemon, or the keeper of a kept program.
            Some(LadderStep::Climb(Rung::StdinClosed)) | None => {}
        }
    }

    /// Whether it has died since the last look. What was asked before that is to be obeyed first, as what ended it; then
    /// the ladder is to be told.
    ///
    /// As long as it is a zombie, its process group id cannot be reused, so the group can be killed without hitting another
    /// process: it is not reaped while anything is left.
    pub(super) fn has_just_died(&mut self) -> io::Result<bool> {
        let peek = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        if self.leader_is_dead || rustix::process::waitid(WaitId::Pid(self.leader), peek)?.is_none() {
            return Ok(false);
        }
        self.leader_is_dead = true;
        self.oom_kills = self.memory.since();
        Ok(true)
    }

    /// Reaps what died, and at last kills what is left. The program may die at any moment, also between the look at it and
    /// the reaping of others.
    pub(super) fn reap(&mut self) -> io::Result<()> {
        if self.life == Life::Runs {
            self.children.reap_others(self.leader);
            if self.leader_is_dead && !self.children.live_beside(self.leader) {
                self.climb(LadderInput::NothingLeft);
            }
        }
        if self.life == Life::Ends {
            if self.reap_all()? {
                self.children.kill_all();
            } else {
                self.life = Life::Over;
            }
        }
        Ok(())
    }

    /// Reaps every dead child; false when no child is left at all.
    fn reap_all(&mut self) -> io::Result<bool> {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if pid == self.leader {
                        let code = status.exit_status().map(ExitStatus::Code);
                        self.status =
                            code.or_else(|| status.terminating_signal().map(ExitStatus::from_signal));
                    }
                    self.children.reaped(pid);
                }
                Ok(None) => return Ok(true),
                Err(rustix::io::Errno::CHILD) => return Ok(false),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// What there is to tell of its end.
    pub(super) fn end(&self) -> End {
        End {
            status: self.status.clone().unwrap_or(ExitStatus::Unknown),
            leaked: self.children.leaked(),
            rungs: self.ladder.used().to_vec(),
            oom_kills: self.oom_kills,
        }
    }
}
