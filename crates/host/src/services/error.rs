//! Why a service did not do what an agent asked, in the words of the wire.

use crate::acp::{ErrorData, error_code};
use crate::chain::chain;
use crate::files::FileError;
use acpd_terminal::{CreateError, ResizeError, TerminalNotFound};
use acpd_wire::codes;

/// A JSON-RPC error for the agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServiceError {
    pub(crate) code: i64,
    pub(crate) message: String,
    /// As JSON.
    pub(crate) data: Option<String>,
    /// What people are to know of it.
    pub(crate) notice: Option<Notice>,
}

/// A remark of acpd's own for those who watch a session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Notice {
    pub(crate) title: String,
    pub(crate) description: String,
}

impl ServiceError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, notice: None }
    }

    fn with(mut self, data: &ErrorData<'_>) -> Self {
        self.data = serde_json::to_string(data).ok();
        self
    }

    /// A field of the params is wrong.
    pub(super) fn invalid(field: &str, problem: &str) -> Self {
        let data = ErrorData { field: Some(field), ..ErrorData::default() };
        Self::new(codes::INVALID_PARAMS, format!("{field}: {problem}")).with(&data)
    }

    /// The host before had begun to start a command.
    pub(crate) fn interrupted() -> Self {
        Self::new(
            codes::INTERNAL_ERROR,
            "acpd was restarted while the command was being started, and has ended it",
        )
    }

    /// The agent took its request back.
    pub(crate) fn withdrawn() -> Self {
        Self::new(codes::REQUEST_CANCELLED, "request cancelled")
    }
}

impl From<FileError> for ServiceError {
    fn from(error: FileError) -> Self {
        let (code, message, data) = error.to_wire();
        Self::new(code, message).with(&data)
    }
}

impl From<TerminalNotFound> for ServiceError {
    fn from(error: TerminalNotFound) -> Self {
        let data = ErrorData { terminal_id: Some(error.terminal.as_str()), ..ErrorData::default() };
        Self::new(error_code::NOT_FOUND, "terminal not found").with(&data)
    }
}

impl From<CreateError> for ServiceError {
    fn from(error: CreateError) -> Self {
        Self::new(codes::INTERNAL_ERROR, chain(&error))
    }
}

impl From<ResizeError> for ServiceError {
    fn from(error: ResizeError) -> Self {
        match error {
            ResizeError::NotFound(not_found) => not_found.into(),
            ResizeError::NoWindow => Self::new(codes::INVALID_PARAMS, error.to_string()),
            ResizeError::Refused(_) => Self::new(codes::INTERNAL_ERROR, chain(&error)),
        }
    }
}
