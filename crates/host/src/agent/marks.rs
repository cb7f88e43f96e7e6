//! What an agent's keeper remembers for a host that takes the agent over, as keys and values.
//!
//! What the agent said of itself, what a client gave a session with secrets in it, how far the agent was told what a session's
//! events say, which request to the agent is that of the turn that runs, and which requests of the agent are being served.
//! Everything else is in the log.

use crate::continuity::KeptRun;
use acpd_record::{SessionId, TurnNumber};
use acpd_terminal::{KeptTerminal, TerminalId};
use acpd_wire::OwnedId;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The value of a request that was served: the agent has the answer.
pub(super) const ANSWERED: &str = "";
/// The value of a request that is too long to be kept: the agent's output has it.
pub(super) const READ_AGAIN: &str = "again";

const RUN: &str = "run/";
const SENT: &str = "sent/";
const TURN: &str = "turn/";
const SERVED: &str = "served/";
const ANSWERED_AT: &str = "answered/";
const TERMINAL: &str = "terminal/";

/// The key for what the agent answered to `initialize`.
pub(super) const INITIALIZED: &str = "initialize";

/// The key for what is known of the run of a session; `native` is the agent's session id as JSON text.
pub(super) fn run(native: &str) -> String {
    format!("{RUN}{native}")
}

/// The key for how far a session's agent was told; `native` is the agent's session id as JSON text.
pub(super) fn sent(native: &str) -> String {
    format!("{SENT}{native}")
}

/// The key for the turn that a session's agent was sent last.
pub(super) fn turn(native: &str) -> String {
    format!("{TURN}{native}")
}

/// The value for a turn and the id of the request that asks for it.
pub(super) fn turn_value(turn: TurnNumber, request: u64) -> String {
    format!("{} {request}", turn.0)
}

/// The key for a request of the agent that is being served.
pub(super) fn served(id: &OwnedId) -> String {
    format!("{SERVED}{}", id.as_raw())
}

/// The key for a request of the agent that was answered; the value is where its line ends.
pub(super) fn answer_mark(id: &OwnedId) -> String {
    format!("{ANSWERED_AT}{}", id.as_raw())
}

/// The key for a terminal of a session.
pub(super) fn terminal(id: &TerminalId) -> String {
    format!("{TERMINAL}{id}")
}

/// What is noted of a terminal.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct NotedTerminal<'a> {
    pub(crate) session: Cow<'a, str>,
    /// The agent's request for it, as JSON text.
    pub(crate) request: Cow<'a, str>,
    /// The last event of the session before anything that it said.
    pub(crate) after: u64,
    pub(crate) terminal: Cow<'a, KeptTerminal>,
}

/// What an agent's keeper remembers.
#[derive(Debug, Default)]
pub(crate) struct Marks(BTreeMap<String, String>);

/// The turn that an agent was sent last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SentTurn {
    pub(crate) turn: TurnNumber,
    /// The id of acpd's request.
    pub(crate) request: u64,
}

impl Marks {
    pub(crate) fn new(marks: BTreeMap<String, String>) -> Self {
        Self(marks)
    }

    /// What the agent answered to `initialize`.
    pub(super) fn initialized(&self) -> Option<&str> {
        self.0.get(INITIALIZED).map(String::as_str)
    }

    /// What is known of the run of a session.
    pub(crate) fn run(&self, native: &str) -> Option<KeptRun<'_>> {
        serde_json::from_str(self.0.get(&run(native))?).ok()
    }

    /// The last event that the agent of a session was told of.
    pub(crate) fn sent(&self, native: &str) -> u64 {
        self.0.get(&sent(native)).and_then(|seq| seq.parse().ok()).unwrap_or_default()
    }

    /// The turn that the agent of a session was sent last.
    pub(crate) fn turn(&self, native: &str) -> Option<SentTurn> {
        let (turn, request) = self.0.get(&turn(native))?.split_once(' ')?;
        Some(SentTurn { turn: TurnNumber(turn.parse().ok()?), request: request.parse().ok()? })
    }

    /// Whether acpd served a request of the agent, and its keeper knows of it.
    pub(crate) fn is_served(&self, id: &OwnedId) -> bool {
        self.0.contains_key(&served(id))
    }

    /// Whether the agent has the answer to it.
    pub(crate) fn was_answered(&self, id: &OwnedId) -> bool {
        self.0.get(&served(id)).is_some_and(|value| value == ANSWERED)
    }

    /// The requests that have their answers, each with the end of its line.
    pub(super) fn answered_requests(&self) -> Vec<(OwnedId, u64)> {
        let answered = self.0.iter().filter_map(|(key, end)| {
            Some((OwnedId::parse(key.strip_prefix(ANSWERED_AT)?)?, end.parse().ok()?))
        });
        answered.collect()
    }

    /// The requests that the host before had begun to serve.
    pub(crate) fn begun(&self) -> Vec<OwnedId> {
        self.served().map(|(id, _)| id).collect()
    }

    /// The terminals of a session.
    pub(crate) fn terminals(&self, session: &SessionId) -> Vec<NotedTerminal<'_>> {
        let noted = self.0.iter().filter(|(key, _)| key.starts_with(TERMINAL));
        let noted = noted.filter_map(|(_, value)| serde_json::from_str::<NotedTerminal<'_>>(value).ok());
        noted.filter(|noted| noted.session == session.as_str()).collect()
    }

    /// The requests that are being served, each with its line unless that is read again.
    pub(super) fn served(&self) -> impl Iterator<Item = (OwnedId, Option<&str>)> {
        let served = self.0.iter().filter(|(_, value)| *value != ANSWERED);
        served.filter_map(|(key, value)| {
            let id = OwnedId::parse(key.strip_prefix(SERVED)?)?;
            Some((id, Some(value.as_str()).filter(|value| *value != READ_AGAIN)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // ADR 22: what was kept is read as it was written
    #[test]
    fn marks_are_read_as_they_were_written() {
        let id = |json| OwnedId::parse(json).expect("an id");
        let (id, answered, long) = (id("\"a/ b\""), id("1"), id("2"));
        let native = "\"s 1\"";
        let marks = Marks::new(BTreeMap::from([
            (sent(native), "17".to_owned()),
            (turn(native), turn_value(TurnNumber(3), 1 << 32)),
            (served(&id), "{\"id\":\"a/ b\"}".to_owned()),
            (served(&answered), ANSWERED.to_owned()),
            (served(&long), READ_AGAIN.to_owned()),
            (answer_mark(&long), "400".to_owned()),
        ]));
        assert_eq!(marks.sent(native), 17);
        assert_eq!(marks.turn(native), Some(SentTurn { turn: TurnNumber(3), request: 1 << 32 }));
        assert_eq!((marks.sent("\"x\""), marks.turn("\"x\"")), (0, None));
        assert_eq!(marks.answered_requests(), [(long.clone(), 400)]);
        let served: Vec<_> = marks.served().collect();
        assert_eq!(served, [(id, Some("{\"id\":\"a/ b\"}")), (long, None)]);
    }
}
