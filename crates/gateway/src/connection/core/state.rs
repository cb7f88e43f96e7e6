//! How far a connection is, and what it has open.

use crate::capabilities::InitializeParams;
use acpd_record::SessionId;
use acpd_wire::OwnedId;
use std::sync::Arc;

/// The stages of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::connection) enum Stage {
    /// Nothing but `initialize` is served.
    Uninitialized,
    /// `initialize` is being served with these params. A second one is negotiated like the first (IN-2); if it fails, the
    /// connection stays `open`.
    Initializing { request: OwnedId, params: Arc<InitializeParams>, was_open: bool },
    /// Everything is served.
    Open,
    /// The client is gone: what was asked for is answered, and nothing more is taken.
    Finishing,
}

/// A request that is not answered yet.
#[derive(Debug)]
pub(super) struct OpenRequest {
    /// The session that its answer is about.
    pub(super) session: Option<SessionId>,
    /// It joins that session: what is asked of the session meanwhile waits for it.
    pub(super) joins: bool,
}

impl Stage {
    /// Whether what the client sends is read.
    pub(super) fn reads(&self) -> bool {
        matches!(self, Self::Uninitialized | Self::Open)
    }

    /// Whether the client has said what it is.
    pub(super) fn is_introduced(&self) -> bool {
        matches!(self, Self::Open | Self::Initializing { was_open: true, .. })
    }

    /// This request initializes the connection.
    pub(super) fn initialize(&mut self, request: OwnedId, params: Arc<InitializeParams>) {
        *self = Self::Initializing { request, params, was_open: self.is_introduced() };
    }

    pub(super) fn is_initialized_by(&self, id: &OwnedId) -> bool {
        matches!(self, Self::Initializing { request, .. } if request == id)
    }

    /// It is initialized, by these params.
    pub(super) fn initialized(&mut self) -> Option<Arc<InitializeParams>> {
        let Self::Initializing { params, .. } = self else { return None };
        let params = Arc::clone(params);
        *self = Self::Open;
        Some(params)
    }

    /// It is what it was before.
    pub(super) fn not_initialized(&mut self) {
        if let Self::Initializing { was_open, .. } = self {
            *self = if *was_open { Self::Open } else { Self::Uninitialized };
        }
    }
}
