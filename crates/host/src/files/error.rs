//! Why a file was not read or written, and how that is said on the wire.

use crate::acp::{ErrorData, error_code};
use crate::chain::chain;
use acpd_wire::codes;
use std::io;

/// Why a file was not read or written. `path` is as the agent wrote it: no message shows where a link leads, nor
/// whether there is anything outside the session's directories.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum FileError {
    /// The request does not say what it must.
    #[error("{field}: {problem}")]
    InvalidParams {
        /// The field.
        field: &'static str,
        /// What is wrong with it, and what to give instead.
        problem: String,
    },
    /// It is not in the session's directories, whether it exists or not.
    #[error("path: {0:?} is outside the session's directories")]
    Outside(String),
    /// It is a file of acpd's log under another name, or in its state directory.
    #[error(
        "path: {0:?} is one of acpd's own files; acpd opens none of them for an agent, \
         because that would release the locks of its log"
    )]
    AcpdOwn(String),
    /// There is no such file.
    #[error("no such file: {0:?}")]
    NotFound(String),
    /// It is a directory.
    #[error("path: {0:?} is a directory")]
    Directory(String),
    /// Something on the way to it is no directory.
    #[error("path: a part of {0:?} is a file where a directory is needed")]
    NotDirectory(String),
    /// A pipe, a socket, a device.
    #[error("path: {0:?} is not a regular file")]
    Special(String),
    /// What was asked for is not UTF-8.
    #[error("path: {0:?} is not UTF-8 text")]
    NotText(String),
    /// More than one request may read or write.
    #[error("{path:?}: more than {limit} bytes; {instead}")]
    TooLarge {
        /// What was asked for.
        path: String,
        /// The bound, in bytes.
        limit: u64,
        /// What to do.
        instead: &'static str,
    },
    /// Symbolic links that lead to each other, or too many of them.
    #[error("path: too many symbolic links on the way to {0:?}")]
    Links(String),
    /// The user that acpd runs as may not.
    #[error("no permission: {path:?}")]
    Denied {
        /// What was asked for.
        path: String,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// The operating system could not.
    #[error("failed: {path:?}")]
    Failed {
        /// What was asked for.
        path: String,
        /// What it said.
        #[source]
        source: io::Error,
    },
    /// The first line that was asked for stands too far behind in the file.
    #[strum(serialize = "too_large")]
    #[error("line: more than {limit} bytes of {path:?} precede that line; look for the place with a command")]
    TooFar {
        /// What was asked for.
        path: String,
        /// How much of a file is looked at before the first line, in bytes.
        limit: u64,
    },
    /// The machine gives acpd no thread to do it on.
    #[error("no thread can be had; try again, or raise the limit of processes")]
    NoThread(#[source] io::Error),
    /// acpd failed at it.
    #[error("acpd failed at this; its own log says how")]
    Lost,
}

impl FileError {
    /// Code, message and data of the JSON-RPC error. What another request of the agent could avoid is -32602, what only
    /// the machine can change is -32603.
    pub fn to_wire(&self) -> (i64, String, ErrorData<'_>) {
        let mut data = ErrorData { path: self.path(), reason: Some(self.into()), ..ErrorData::default() };
        let code = match self {
            Self::InvalidParams { field, .. } => {
                data = ErrorData { field: Some(field), ..ErrorData::default() };
                codes::INVALID_PARAMS
            }
            // Agents tell a missing file by this text where they do not look at the code.
            Self::NotFound(path) => {
                return (error_code::NOT_FOUND, format!("Resource not found: {path}"), data);
            }
            Self::TooLarge { limit, .. } => {
                data.limit = Some(*limit);
                codes::INVALID_PARAMS
            }
            Self::TooFar { limit, .. } => {
                (data.field, data.limit) = (Some("line"), Some(*limit));
                codes::INVALID_PARAMS
            }
            Self::Denied { .. } | Self::Failed { .. } | Self::NoThread(_) | Self::Lost => {
                codes::INTERNAL_ERROR
            }
            _ => codes::INVALID_PARAMS,
        };
        (code, chain(self), data)
    }

    fn path(&self) -> Option<&str> {
        match self {
            Self::InvalidParams { .. } | Self::NoThread(_) | Self::Lost => None,
            Self::Outside(path)
            | Self::AcpdOwn(path)
            | Self::NotFound(path)
            | Self::Directory(path)
            | Self::NotDirectory(path)
            | Self::Special(path)
            | Self::NotText(path)
            | Self::Links(path)
            | Self::TooLarge { path, .. }
            | Self::TooFar { path, .. }
            | Self::Denied { path, .. }
            | Self::Failed { path, .. } => Some(path),
        }
    }

    /// An answer of the operating system about `path`.
    pub(super) fn of_io(path: &str, source: io::Error) -> Self {
        use io::ErrorKind as Kind;
        use rustix::io::Errno;
        let path = path.to_owned();
        match (source.kind(), Errno::from_io_error(&source)) {
            // Not the system's own: the lookup was about to leave the root.
            (Kind::PermissionDenied, None) => Self::Outside(path),
            (Kind::PermissionDenied | Kind::ReadOnlyFilesystem, _) => Self::Denied { path, source },
            (Kind::NotFound, _) => Self::NotFound(path),
            (Kind::NotADirectory, _) => Self::NotDirectory(path),
            (Kind::IsADirectory, _) => Self::Directory(path),
            // Opened without waiting: only what is no regular file says so.
            (Kind::WouldBlock, _) | (_, Some(Errno::NXIO)) => Self::Special(path),
            (_, Some(Errno::LOOP)) => Self::Links(path),
            _ => Self::Failed { path, source },
        }
    }
}
