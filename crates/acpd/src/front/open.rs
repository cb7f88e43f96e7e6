//! The client's requests that are not answered yet, and what becomes of each when the connection is lost.
//!
//! Pure.

use acpd_host::method;
use acpd_wire::OwnedId;
use bytes::Bytes;

/// What a request is to a front end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Initialize,
    /// It creates a session under a key.
    New,
    Fork,
    Load,
    Resume,
    Prompt,
    /// The client lets go of a session with it.
    Leave,
    /// It sets or tells what it would set or tell when done twice.
    Repeatable,
    Other,
}

impl Kind {
    pub(super) fn of(method: &str) -> Self {
        match method {
            method::INITIALIZE => Self::Initialize,
            method::SESSION_NEW => Self::New,
            method::SESSION_FORK => Self::Fork,
            method::SESSION_LOAD => Self::Load,
            method::SESSION_RESUME => Self::Resume,
            method::SESSION_PROMPT => Self::Prompt,
            method::SESSION_CLOSE
            | method::SESSION_STOP
            | method::SESSION_TERMINATE
            | method::SESSION_DELETE
            | method::SESSION_DETACH => Self::Leave,
            method::SET_MODE
            | method::SET_MODEL
            | method::SET_CONFIG_OPTION
            | method::SESSION_LIST
            | method::SESSION_STATUS => Self::Repeatable,
            _ => Self::Other,
        }
    }

    /// Whether it is sent again. What is not may have been done, and is not done twice.
    pub(super) fn is_sent_again(self) -> bool {
        !matches!(self, Self::Fork | Self::Other)
    }
}

/// An open request.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) id: OwnedId,
    pub(super) kind: Kind,
    pub(super) session: Option<String>,
    /// As the daemon was sent it.
    pub(super) line: Bytes,
    /// The client has withdrawn it.
    pub(super) is_withdrawn: bool,
    /// It was sent on an earlier link.
    pub(super) is_again: bool,
    /// How often it was answered that the node of its session was lost.
    pub(super) losses: u32,
}

/// What a client is told of a request that is not sent again.
pub(super) const NOT_AGAIN: &str =
    "the connection to the daemon was lost before the answer; it may have been done or not";

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.3: what is safe is asked again; a fork and what only the agent knows are not
    #[test]
    fn what_is_asked_again_is_known() {
        for (method, kind, again) in [
            ("initialize", Kind::Initialize, true),
            ("session/new", Kind::New, true),
            ("session/load", Kind::Load, true),
            ("session/resume", Kind::Resume, true),
            ("session/fork", Kind::Fork, false),
            ("session/prompt", Kind::Prompt, true),
            ("session/set_mode", Kind::Repeatable, true),
            ("session/set_model", Kind::Repeatable, true),
            ("session/set_config_option", Kind::Repeatable, true),
            ("session/list", Kind::Repeatable, true),
            ("session/status", Kind::Repeatable, true),
            ("session/close", Kind::Leave, true),
            ("session/stop", Kind::Leave, true),
            ("session/delete", Kind::Leave, true),
            ("_sandboxagent/session/terminate", Kind::Leave, true),
            ("_sandboxagent/session/detach", Kind::Leave, true),
            ("authenticate", Kind::Other, false),
            ("logout", Kind::Other, false),
            ("_x/y", Kind::Other, false),
        ] {
            assert_eq!((Kind::of(method), Kind::of(method).is_sent_again()), (kind, again), "{method}");
        }
    }
}
