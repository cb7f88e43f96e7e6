//! What stands in a session's log.
//!
//! Updates and notifications are stored as the agent sent them, with the session's own id in place of the
//! agent's; all other events are JSON objects of ours, whose `message` member is the raw ACP message where there
//! is one (contract 1.6). Numbers are stored, so they never change their meaning.

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The session was created: its agent, its directory and the client's parameters.
    Created,
    /// An agent process took the session up: process id, what the agent says of itself, and of the session's state.
    RunStarted,
    /// A turn began: who prompted, and the prompt.
    Prompt,
    /// A `session/update`, raw.
    Update,
    /// Another notification of the agent, raw.
    Notification,
    /// A turn ended: its stop reason, or the error that answered the prompt.
    TurnEnded,
    /// A cancel of the turn was requested.
    CancelRequested,
    /// The agent asked its client for something, and what it was answered.
    AgentRequest,
    /// The run ended: the termination record.
    Ended,
    /// The user's own message, repeated by the agent; the prompt itself is an event already (PR-3).
    Echo,
    /// The agent was given a transcript of the history with the prompt before, because it could not take the session up
    /// by itself: how much of the history that was.
    Transcript,
    /// The agent asks for permission: `request` is its number, `message` the raw request. `unasked` when no client
    /// is asked.
    PermissionRequested,
    /// The answer to a permission request, and its source in `by`: a client, a mode, or a cause.
    PermissionResolved,
    /// The agent asks the user for something; as a permission request, with `only` the connection that is asked.
    ElicitationRequested,
    /// The answer to an elicitation.
    ElicitationResolved,
    /// What the user was asked to do at a URL is done; raw, for the connection `only`.
    ElicitationCompleted,
    /// A terminal of the session wrote something, or its command ended.
    Terminal,
    /// A file request of the agent was forwarded to the connection `only`.
    FileForwarded,
    /// A forwarded file request was answered, or is served by acpd after all.
    FileResolved,
    /// What the agent said of the session's state in the answer to a request and not in an update: the mode that
    /// client `by` has set, for example. Its members are those of a snapshot.
    StateChanged,
}

const NUMBERS: [(EventKind, u16, &str); 20] = [
    (EventKind::Created, 1, "created"),
    (EventKind::RunStarted, 2, "run_started"),
    (EventKind::Prompt, 3, "prompt"),
    (EventKind::Update, 4, "update"),
    (EventKind::Notification, 5, "notification"),
    (EventKind::TurnEnded, 6, "turn_ended"),
    (EventKind::CancelRequested, 7, "cancel_requested"),
    (EventKind::AgentRequest, 8, "agent_request"),
    (EventKind::Ended, 9, "ended"),
    (EventKind::Echo, 10, "echo"),
    (EventKind::Transcript, 11, "transcript"),
    (EventKind::PermissionRequested, 12, "permission_requested"),
    (EventKind::PermissionResolved, 13, "permission_resolved"),
    (EventKind::ElicitationRequested, 14, "elicitation_requested"),
    (EventKind::ElicitationResolved, 15, "elicitation_resolved"),
    (EventKind::ElicitationCompleted, 16, "elicitation_completed"),
    (EventKind::Terminal, 17, "terminal"),
    (EventKind::FileForwarded, 18, "file_forwarded"),
    (EventKind::FileResolved, 19, "file_resolved"),
    (EventKind::StateChanged, 20, "state_changed"),
];

impl EventKind {
    fn entry(self) -> (Self, u16, &'static str) {
        *NUMBERS.iter().find(|entry| entry.0 == self).expect("the table has every kind")
    }

    /// The number in the log.
    pub fn number(self) -> u16 {
        self.entry().1
    }

    /// The name that clients see.
    pub fn name(self) -> &'static str {
        self.entry().2
    }

    /// The kind of a number; None for one that a later acpd wrote.
    pub fn from_number(number: u16) -> Option<Self> {
        NUMBERS.iter().find(|entry| entry.1 == number).map(|entry| entry.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_number_and_name() {
        for (kind, number, name) in NUMBERS {
            assert_eq!(
                (kind.number(), kind.name(), EventKind::from_number(number)),
                (number, name, Some(kind))
            );
        }
        assert_eq!(EventKind::from_number(0), None);
    }
}
