//! What acpd itself does about a line that begins with a slash.
//!
//! Invariant: a command of the agent with the same name comes first.

use super::over::Over;
use super::room::Room;
use crate::exit::Failure;

/// One of acpd's own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// Leaves the session running.
    Detach,
}

impl Word {
    const ALL: [(&str, Self); 1] = [("detach", Self::Detach)];

    /// The word that a line is, unless the agent has a command of that name.
    pub(super) fn of(line: &str, commands: &[String]) -> Option<Self> {
        let name = line.trim().strip_prefix('/')?;
        let (_, word) = Self::ALL.into_iter().find(|(own, _)| *own == name)?;
        commands.iter().all(|command| command != name).then_some(word)
    }
}

impl Room<'_> {
    pub(super) async fn obey(&mut self, word: Word) -> Result<Option<Over>, Failure> {
        match word {
            Word::Detach if self.talk.home.is_daemon() => Ok(Some(Over::Detached)),
            Word::Detach => {
                let why = "/detach: no daemon has this session, so it ends with the chat; `acpd serve` starts one for the next";
                self.talk.announce(why).map(|()| None)
            }
        }
    }
}
