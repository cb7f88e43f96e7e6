//! Why acpd closes a stream, as its reader is told.

use super::sse_event;
use acpd_record::SessionId;
use bytes::{BufMut, Bytes, BytesMut};

/// The last thing a reader learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// Another reader has taken over.
    Replaced,
    /// It took nothing for too long while something waited for it.
    Stalled,
    /// The client has ended the connection.
    Deleted,
    /// The session of the stream was removed.
    Removed,
    /// Nothing of the connection was read for too long.
    Expired,
    /// The client's token is not known any more.
    Revoked,
    /// acpd ends.
    Shutdown,
    /// The next image of acpd goes on.
    Handover,
    /// A defect of acpd.
    Internal,
}

impl Closing {
    /// By which it is told.
    pub(crate) const METHOD: &str = "_sandboxagent/closed";

    /// One word for programs.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Replaced => "replaced",
            Self::Stalled => "stalled",
            Self::Deleted | Self::Removed => "deleted",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
            Self::Shutdown => "shutdown",
            Self::Handover => "handover",
            Self::Internal => "internal",
        }
    }

    /// One sentence for people.
    pub(crate) fn detail(self) -> &'static str {
        match self {
            Self::Replaced => "another request has taken this stream over",
            Self::Stalled => "nothing was read for too long; come back with Last-Event-ID",
            Self::Deleted => "the client has ended the connection",
            Self::Removed => "the session was removed",
            Self::Expired => "no events of this connection were read for too long; initialize a new one",
            Self::Revoked => "the token is not known any more",
            Self::Shutdown => "server shutting down; reload sessions after restart",
            Self::Handover => "the server is replaced by its next version; reconnect and reload sessions",
            Self::Internal => "internal error in this connection; reconnect and reload sessions",
        }
    }

    /// After which time the reader may come back, in milliseconds, where that is known. One that comes earlier waits.
    pub(crate) fn retry_ms(self) -> Option<u32> {
        (self == Self::Handover).then_some(250)
    }

    /// The event without an id. Its data is a notification: clients that look at `data` only meet a message that
    /// they need not know.
    pub(crate) fn to_event(self) -> Bytes {
        let message = self.message("");
        let mut out = BytesMut::new();
        sse_event(&mut out, None, Some("closed"), |out| out.put_slice(message.as_bytes()));
        out.freeze()
    }

    /// The same for a client that has one stream for all of its sessions, as a line.
    pub(crate) fn to_line(self, session: &SessionId) -> Bytes {
        format!("{}\n", self.message(&format!(r#","sessionId":{}"#, session.as_json()))).into()
    }

    fn message(self, more: &str) -> String {
        let (reason, detail) = (self.reason(), self.detail());
        let more = match self.retry_ms() {
            Some(after) => format!(r#","retryMs":{after}{more}"#),
            None => more.to_owned(),
        };
        let params = format!(r#"{{"reason":"{reason}","detail":"{detail}"{more}}}"#);
        format!(r#"{{"jsonrpc":"2.0","method":"{}","params":{params}}}"#, Self::METHOD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.3: `handover` says when to come back, other reasons do not
    #[test]
    fn a_reader_is_told_when_to_come_back() {
        let told = |closing: Closing| String::from_utf8(closing.to_event().to_vec()).expect("text");
        assert!(told(Closing::Handover).contains(r#""reason":"handover""#));
        assert!(told(Closing::Handover).contains(r#","retryMs":250}}"#));
        assert!(told(Closing::Shutdown).contains(r#""reason":"shutdown""#));
        assert!(!told(Closing::Shutdown).contains("retryMs"));
    }
}
