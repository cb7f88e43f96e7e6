//! Why acpd closes a WebSocket, as a close code and a sentence.

use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// The first cause counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The client has ended it, or is gone.
    Left,
    /// The first message was not `initialize`.
    NotInitialized,
    /// A message over the limit.
    TooLarge,
    /// Text that is not UTF-8.
    NotText,
    /// Frames that break the protocol.
    Violation,
    /// It took nothing for too long.
    Stalled,
    /// Nothing was heard of it for too long.
    Silent,
    /// The client's token is not known any more.
    Revoked,
    /// The daemon ends.
    Shutdown,
    /// Its next image goes on.
    Handover,
    /// A defect of acpd.
    Internal,
}

impl Ending {
    /// What an error of reading comes to.
    pub(super) fn of(error: &Error) -> Self {
        match error {
            Error::Capacity(_) => Self::TooLarge,
            Error::Utf8(_) => Self::NotText,
            Error::Protocol(
                tokio_tungstenite::tungstenite::error::ProtocolError::ResetWithoutClosingHandshake,
            ) => Self::Left,
            Error::Protocol(_) => Self::Violation,
            _ => Self::Left,
        }
    }

    pub(super) fn frame(self) -> CloseFrame {
        let (code, reason) = match self {
            Self::Left => (CloseCode::Normal, ""),
            Self::NotInitialized => (CloseCode::Protocol, "the first message must be initialize"),
            Self::TooLarge => (CloseCode::Size, "the message is too large"),
            Self::NotText => (CloseCode::Invalid, "a text frame must be UTF-8"),
            Self::Violation => (CloseCode::Protocol, "the frames break the WebSocket protocol"),
            Self::Stalled => {
                (CloseCode::Policy, "stalled: nothing was read for too long; load the session again")
            }
            Self::Silent => (CloseCode::Policy, "silent: no pong came for too long"),
            Self::Revoked => (CloseCode::Policy, "revoked: the token is not known any more"),
            Self::Shutdown => {
                (CloseCode::Away, "shutdown: server shutting down; reload sessions after restart")
            }
            Self::Handover => (
                CloseCode::Restart,
                "handover: the server is replaced by its next version; reconnect (retryMs 250), reload sessions",
            ),
            Self::Internal => {
                (CloseCode::Error, "internal error in this connection; reconnect and reload sessions")
            }
        };
        CloseFrame { code, reason: reason.into() }
    }
}
