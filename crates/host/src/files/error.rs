//! Why a file was not read or written, and how that is said on the wire.

use crate::acp::error_code;
use acpd_wire::codes;
use serde_json::{Value, json};
use std::io;

/// Why a file was not read or written. `path` is as the agent wrote it: no message shows where a link leads, nor
/// whether there is anything outside the session's directories.
#[derive(Debug, thiserror::Error)]
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
    #[error("path: {path:?} is outside the session's directories")]
    Outside {
        /// What was asked for.
        path: String,
    },
    /// There is no such file.
    #[error("no such file: {path:?}")]
    NotFound {
        /// What was asked for.
        path: String,
    },
    /// It is a directory.
    #[error("path: {path:?} is a directory")]
    Directory {
        /// What was asked for.
        path: String,
    },
    /// Something on the way to it is no directory.
    #[error("path: a part of {path:?} is a file where a directory is needed")]
    NotDirectory {
        /// What was asked for.
        path: String,
    },
    /// A pipe, a socket, a device.
    #[error("path: {path:?} is not a regular file")]
    Special {
        /// What was asked for.
        path: String,
    },
    /// What was asked for is not UTF-8.
    #[error("path: {path:?} is not UTF-8 text")]
    NotText {
        /// What was asked for.
        path: String,
    },
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
    #[error("path: too many symbolic links on the way to {path:?}")]
    Links {
        /// What was asked for.
        path: String,
    },
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
    #[error("line: more than {limit} bytes of {path:?} precede that line; look for the place with a command")]
    TooFar {
        /// What was asked for.
        path: String,
        /// How much of a file is looked at before the first line, in bytes.
        limit: u64,
    },
    /// The machine gives acpd no thread to do it on.
    #[error("no thread can be had; try again, or raise the limit of processes")]
    NoThread {
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// acpd failed at it.
    #[error("acpd failed at this; its own log says how")]
    Lost,
}

impl FileError {
    /// Code, message and data of the JSON-RPC error. What another request of the agent could avoid is -32602, what only
    /// the machine can change is -32603.
    pub fn to_wire(&self) -> (i64, String, Value) {
        let internal = codes::INTERNAL_ERROR;
        let (code, reason, path) = match self {
            Self::InvalidParams { field, .. } => {
                return (codes::INVALID_PARAMS, self.to_string(), json!({"field": field}));
            }
            // Agents tell a missing file by this text where they do not look at the code.
            Self::NotFound { path } => {
                let message = format!("Resource not found: {path}");
                return (error_code::NOT_FOUND, message, json!({"path": path, "reason": "not_found"}));
            }
            Self::TooFar { path, limit } => {
                let data = json!({"field": "line", "path": path, "reason": "too_large", "limit": limit});
                return (codes::INVALID_PARAMS, self.to_string(), data);
            }
            Self::NoThread { source } => {
                return (internal, format!("{self}: {source}"), json!({"reason": "no_thread"}));
            }
            Self::Lost => return (internal, self.to_string(), json!({"reason": "lost"})),
            Self::TooLarge { path, limit, .. } => {
                let data = json!({"path": path, "reason": "too_large", "limit": limit});
                return (codes::INVALID_PARAMS, self.to_string(), data);
            }
            Self::Outside { path } => (codes::INVALID_PARAMS, "outside", path),
            Self::Directory { path } => (codes::INVALID_PARAMS, "directory", path),
            Self::NotDirectory { path } => (codes::INVALID_PARAMS, "not_directory", path),
            Self::Special { path } => (codes::INVALID_PARAMS, "special", path),
            Self::NotText { path } => (codes::INVALID_PARAMS, "not_text", path),
            Self::Links { path } => (codes::INVALID_PARAMS, "links", path),
            Self::Denied { path, .. } => (internal, "denied", path),
            Self::Failed { path, .. } => (internal, "failed", path),
        };
        let message = match std::error::Error::source(self) {
            Some(source) => format!("{self}: {source}"),
            None => self.to_string(),
        };
        (code, message, json!({"path": path, "reason": reason}))
    }

    /// An answer of the operating system about `path`.
    pub(super) fn of_io(path: &str, source: io::Error) -> Self {
        use io::ErrorKind as Kind;
        let path = path.to_owned();
        match source.kind() {
            // Not the system's own: the lookup was about to leave the root.
            Kind::PermissionDenied if source.raw_os_error().is_none() => Self::Outside { path },
            Kind::PermissionDenied | Kind::ReadOnlyFilesystem => Self::Denied { path, source },
            Kind::NotFound => Self::NotFound { path },
            Kind::NotADirectory => Self::NotDirectory { path },
            Kind::IsADirectory => Self::Directory { path },
            // Opened without waiting: only what is no regular file says so.
            Kind::WouldBlock => Self::Special { path },
            _ if source.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                Self::Links { path }
            }
            _ if source.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
                Self::Special { path }
            }
            _ => Self::Failed { path, source },
        }
    }
}
