//! Going on in place of a host that is gone.

use super::{Now, SessionCore};
use crate::acp::method;
use crate::agent::Ticket;
use crate::services::ServiceError;
use crate::session::effects::{Act, Effects};
use crate::session::owed::{Inherited, Owed, OwedMessage};
use acpd_record::TurnNumber;
use std::time::{Duration, Instant};

/// How long a connection has to come back to its questions when a host takes over.
const ORPHANS: Duration = Duration::from_secs(5);

/// What a host that takes over goes on with.
#[derive(Debug, Default)]
pub(crate) struct Continuation {
    /// How far the agent was heard: where its last line ends that was taken up. Restart: what the index says.
    pub(super) position: u64,
    /// When questions that were put to one connection go another way, if that has not come back. Restart: soon.
    pub(super) orphans_at: Option<Instant>,
}

impl SessionCore {
    /// Whether its process can outlive this host.
    pub(crate) fn is_kept(&self) -> bool {
        self.facts.is_kept
    }

    /// How far the agent was heard.
    pub(crate) fn position(&self) -> u64 {
        self.volatile.continuation.position
    }

    /// The agent was heard up to `position`, by this host or the one before.
    pub(crate) fn heard(&mut self, position: u64) {
        self.volatile.continuation.position = self.volatile.continuation.position.max(position);
    }

    /// What the host before had decided and not sent is sent.
    pub(crate) fn go_on(&mut self, inherited: Inherited, now: Now) -> Effects {
        let Inherited { debts, recorded, begun, waiting, terminals } = inherited;
        let mut out = Effects::new(now.ms);
        for Owed { seq, what } in debts {
            out.stand_behind_event(seq);
            match what {
                OwedMessage::Prompt { turn, content } => self.send_again(turn, &content, &mut out),
                OwedMessage::Cancel => {
                    let (method, params) = (method::SESSION_CANCEL.to_owned(), Some(self.native_params()));
                    out.act(Act::Notify { method, params });
                }
                OwedMessage::Answer { id, result } => Self::answer_agent(&id, &result, &mut out),
                OwedMessage::Refusal { id, code, message } => {
                    Self::fail_agent(&id, &ServiceError::new(code, message), &mut out);
                }
                OwedMessage::File { id, message } => self.serve_instead(&id, &message, &mut out),
            }
        }
        self.wait_again(waiting, &mut out);
        self.update_index(&mut out);
        self.volatile.serving.go_on(recorded, begun, terminals);
        self.volatile.continuation.orphans_at = Some(now.at + ORPHANS);
        out
    }

    /// Sends the prompt of a turn that the host before had begun. What stood beside its content is lost.
    fn send_again(&mut self, turn: TurnNumber, content: &[u8], out: &mut Effects) {
        let native = self.facts.native.as_json();
        let params = [b"{\"sessionId\":", native.as_bytes(), b",\"prompt\":", content, b"}"].concat();
        let (method, params) = (method::SESSION_PROMPT.to_owned(), Some(params.into()));
        out.act(Act::Request { ticket: Ticket::Turn(turn), method, params, repeatable: false });
    }
}
