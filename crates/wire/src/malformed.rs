//! What a line is when it is no message, and whether the peer is owed an answer.
//!
//! Invariant: a broken notification and a broken response are never answered, everything else but a blank line is.
//! Not here: the policy. A host logs noise of an agent and answers a client; both decide on these facts.

use thiserror::Error;

use crate::codes;
use crate::id::RawId;

/// A line that is no message.
#[derive(Debug, Error)]
pub enum Malformed<'a> {
    /// Nothing but white space.
    #[error("blank line")]
    Blank,
    /// Not UTF-8; [`repair_utf8`](crate::repair_utf8) makes it readable.
    #[error("invalid UTF-8 after {valid_up_to} bytes")]
    NotUtf8 {
        /// Bytes before the first invalid sequence.
        valid_up_to: usize,
    },
    /// Not one JSON value: noise, a cut message, or two values on a line.
    #[error("not JSON at column {column}")]
    NotJson {
        /// Where reading failed, in bytes from 1, as the parser counts them (in a frame of several rows: in its row).
        column: usize,
        /// It begins like an object, so it is more likely a damaged message than a banner or a log line.
        looks_like_message: bool,
        /// What was wrong there.
        source: serde_json::Error,
    },
    /// An array. JSON-RPC batches are not part of ACP; no element is looked at.
    #[error("a batch is not supported")]
    Batch,
    /// JSON, but neither request nor notification nor response.
    #[error("not a JSON-RPC message: {reason}")]
    NotAnEnvelope {
        /// Which rule it breaks.
        reason: &'static str,
        /// Its id, when it has a legal one.
        id: Option<RawId<'a>>,
        /// False for a broken notification, and for a broken response (then `id` names the request that it fails).
        answerable: bool,
    },
}

impl<'a> Malformed<'a> {
    /// The error code to answer with; `None` when nothing may be answered.
    pub fn code(&self) -> Option<i64> {
        match self {
            Self::Blank | Self::NotAnEnvelope { answerable: false, .. } => None,
            Self::NotUtf8 { .. } | Self::NotJson { .. } => Some(codes::PARSE_ERROR),
            Self::Batch | Self::NotAnEnvelope { .. } => Some(codes::INVALID_REQUEST),
        }
    }

    /// The id to answer with, where [`code`](Self::code) says that there is an answer.
    pub fn answer_id(&self) -> RawId<'a> {
        match self {
            Self::NotAnEnvelope { id: Some(id), .. } => *id,
            _ => RawId::NULL,
        }
    }
}
