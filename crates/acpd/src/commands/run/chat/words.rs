//! What acpd itself does about a line that begins with a slash.
//!
//! Invariant: a command of the agent with the same name comes first; with two slashes, or a blank in front, a line is the
//! agent's, whatever its commands are.

use super::completing::LISTED;
use super::core::Happened;
use super::over::Over;
use super::room::Room;
use crate::clean::line;
use crate::exit::Failure;

/// One of acpd's own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// Leaves the session running.
    Detach,
    /// Says what can be typed.
    Help,
    /// Leaves, as Ctrl-D does.
    Leave,
}

impl Word {
    const ALL: [(&str, Self); 4] =
        [("detach", Self::Detach), ("help", Self::Help), ("quit", Self::Leave), ("exit", Self::Leave)];

    /// The words that are acpd's beside these commands of the agent.
    pub(super) fn beside(commands: &[String]) -> impl Iterator<Item = (&'static str, Self)> {
        Self::ALL.into_iter().filter(|(name, _)| commands.iter().all(|command| command != name))
    }

    /// The word that a line is, unless the agent has a command of that name.
    pub(super) fn of(line: &str, commands: &[String]) -> Option<Self> {
        let name = line.trim_end().strip_prefix('/')?;
        Self::beside(commands).find(|(own, _)| *own == name).map(|(_, word)| word)
    }

    /// A line as it is sent: one of acpd's words behind two slashes is a command of the agent, with one.
    pub(super) fn unescaped(line: String) -> String {
        match line.strip_prefix('/') {
            Some(rest) if Self::of(rest, &[]).is_some() => rest.to_owned(),
            _ => line,
        }
    }
}

impl Room<'_> {
    pub(super) async fn obey(&mut self, word: Word) -> Result<Option<Over>, Failure> {
        match word {
            Word::Leave => self.happened(Happened::EndOfInput).await,
            Word::Help => {
                for line in help(&self.teller.commands) {
                    self.talk.announce(&line)?;
                }
                Ok(None)
            }
            Word::Detach if self.talk.home.is_daemon() => Ok(Some(Over::Detached)),
            Word::Detach => {
                let why = "/detach: no daemon has this session, so it ends with the chat; `acpd serve` starts one for the next";
                self.talk.announce(why).map(|()| None)
            }
        }
    }
}

/// What can be typed, as far as it fits on a few rows.
fn help(commands: &[String]) -> Vec<String> {
    let own: Vec<String> = Word::beside(commands).map(|(name, _)| format!("/{name}")).collect();
    let agents: Vec<String> =
        commands.iter().take(LISTED).map(|name| line(&format!("/{name}"), 60)).collect();
    let mut lines = vec![
        "Enter sends, Alt-Enter begins a new line, Tab completes /commands and @files".to_owned(),
        "up and down bring lines back, Ctrl-R looks for one, Ctrl-C cancels, Ctrl-D leaves".to_owned(),
        format!("acpd's: {}", own.join(" ")),
    ];
    if !agents.is_empty() {
        let more = if commands.len() > LISTED { " ..." } else { "" };
        lines.push(format!("the agent's: {}{more}", agents.join(" ")));
    } else {
        lines.push("the agent has named no commands; //help is its own /help, if it has one".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.1: acpd's own words, and the agent's commands before them
    #[test]
    fn a_command_of_the_agent_comes_first() {
        let commands = ["help", "review"].map(str::to_owned);
        for (line, word) in [
            ("/detach", Some(Word::Detach)),
            ("/quit ", Some(Word::Leave)),
            (" /quit", None),
            ("//quit", None),
            ("/exit", Some(Word::Leave)),
            ("/help", None),
            ("/review", None),
            ("/detach now", None),
            ("quit", None),
        ] {
            assert_eq!(Word::of(line, &commands), word, "{line:?}");
        }
        assert_eq!(Word::of("/help", &[]), Some(Word::Help));
        let told = help(&commands);
        assert_eq!(told[2..], ["acpd's: /detach /quit /exit", "the agent's: /help /review"]);
    }

    // issue 28, R14: the agent's own /help can be reached, and everything else is sent as it was typed
    // quirk slash-in-command (agents that name commands with the slash): one slash is shown and completed, and a line is sent
    // as it was typed
    #[test]
    fn two_slashes_are_for_the_agent() {
        for (typed, sent) in [
            ("//help", "/help"),
            (" /help", " /help"),
            ("//review", "//review"),
            ("/review x", "/review x"),
            ("//", "//"),
        ] {
            assert_eq!(Word::of(typed, &[]), None, "{typed}");
            assert_eq!(Word::unescaped(typed.to_owned()), sent);
        }
    }
}
