//! What stands in a session's log.
//!
//! Updates and notifications are stored as the agent sent them, with the session's own id in place of the
//! agent's; all other events are JSON objects of ours, whose `message` member is the raw ACP message where there
//! is one (contract 1.6). Numbers are stored, so they never change their meaning.

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString, strum::FromRepr, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[repr(u16)]
pub enum EventKind {
    /// The session was created: its agent, its directory and the client's parameters.
    Created = 1,
    /// An agent process took the session up: process id, what the agent says of itself, and of the session's state.
    RunStarted = 2,
    /// A turn began: who prompted, and the prompt.
    Prompt = 3,
    /// A `session/update`, raw.
    Update = 4,
    /// Another notification of the agent, raw.
    Notification = 5,
    /// A turn ended: its stop reason, or the error that answered the prompt.
    TurnEnded = 6,
    /// A cancel of the turn was requested.
    CancelRequested = 7,
    /// The agent asked its client for something, and what it was answered.
    AgentRequest = 8,
    /// The run ended: the termination record.
    Ended = 9,
    /// The user's own message, repeated by the agent; the prompt itself is an event already (PR-3).
    Echo = 10,
    /// The agent was given a transcript of the history with the prompt before, because it could not take the session up
    /// by itself: how much of the history that was.
    Transcript = 11,
    /// The agent asks for permission: `request` is its number, `message` the raw request. `unasked` when no client
    /// is asked.
    PermissionRequested = 12,
    /// The answer to a permission request, and its source in `by`: a client, a mode, or a cause.
    PermissionResolved = 13,
    /// The agent asks the user for something; as a permission request, with `only` the connection that is asked.
    ElicitationRequested = 14,
    /// The answer to an elicitation.
    ElicitationResolved = 15,
    /// What the user was asked to do at a URL is done; raw, for the connection `only`.
    ElicitationCompleted = 16,
    /// A terminal of the session wrote something, or its command ended.
    Terminal = 17,
    /// A file request of the agent was forwarded to the connection `only`.
    FileForwarded = 18,
    /// A forwarded file request was answered, or is served by acpd after all.
    FileResolved = 19,
    /// What the agent said of the session's state in the answer to a request and not in an update: the mode that
    /// client `by` has set, for example. Its members are those of a snapshot.
    StateChanged = 20,
    /// Nothing came from the agent for long, in a turn in which it was waited for; or it goes on after that.
    Stalled = 21,
    /// Another host goes on with the agent process of the run, after the one before it was gone for a while.
    Reattached = 22,
}

impl EventKind {
    /// The number in the log.
    pub fn number(self) -> u16 {
        self as u16
    }

    /// The name that clients see.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The kind of a name; None for one that a later acpd knows.
    pub fn from_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// The kind of a number; None for one that a later acpd wrote.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::from_repr(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 1.6: numbers are stored and names are shown, so neither ever changes
    #[test]
    fn numbers_and_names_are_as_they_were() {
        const NAMES: [&str; 22] = [
            "created",
            "run_started",
            "prompt",
            "update",
            "notification",
            "turn_ended",
            "cancel_requested",
            "agent_request",
            "ended",
            "echo",
            "transcript",
            "permission_requested",
            "permission_resolved",
            "elicitation_requested",
            "elicitation_resolved",
            "elicitation_completed",
            "terminal",
            "file_forwarded",
            "file_resolved",
            "state_changed",
            "stalled",
            "reattached",
        ];
        let kinds: Vec<EventKind> = (1..).map_while(EventKind::from_number).collect();
        assert_eq!(kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>(), NAMES);
        assert!((1..).zip(&kinds).all(|(number, kind)| kind.number() == number));
        assert_eq!(EventKind::from_number(0), None);
        assert!(kinds.iter().all(|kind| EventKind::from_name(kind.name()) == Some(*kind)));
        assert_eq!(EventKind::from_name("later"), None);
    }
}
