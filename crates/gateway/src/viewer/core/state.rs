//! What a viewer is doing, and how far it is.

/// The states of a viewer. Each `read` is the last event that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::viewer) enum ViewerState {
    /// Shows the history of a session that is not live here.
    Replaying { read: u64 },
    /// Follows the run that began behind the event `run`. Its history may come first.
    Live { read: u64, run: u64 },
    /// Everything there is was read.
    Ending { read: u64, end: End },
    /// The client has left; `shown` is the last event that was written before. What is read from then on is not written:
    /// it only decides which answers may be.
    Detached { shown: u64, log: Log },
}

/// What is known of the end of what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::viewer) enum End {
    /// More may have happened: only a history was shown, or the log cannot be read.
    Open,
    /// The log has no end; the record of the run has.
    Awaited,
    /// The run is over, and its log was read as far as it goes.
    Final,
}

/// The log of a session that the client has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::viewer) enum Log {
    /// It is read on, for the answers that the client is owed.
    Open { read: u64 },
    /// It is not read any more.
    Closed,
    /// The run is over, and its log was read as far as it goes.
    Final { last: u64 },
}

impl Log {
    pub(super) fn ended(read: u64, end: End) -> Self {
        match end {
            End::Final => Self::Final { last: read },
            End::Open | End::Awaited => Self::Closed,
        }
    }
}

impl ViewerState {
    /// Reads behind `read`: what happens in a run, or a history.
    pub(super) fn reading(run: Option<u64>, read: u64) -> Self {
        match run {
            Some(run) => Self::Live { read, run },
            None => Self::Replaying { read },
        }
    }

    /// Whether the log is read.
    pub(super) fn reads(&self) -> bool {
        match self {
            Self::Replaying { .. } | Self::Live { .. } | Self::Detached { log: Log::Open { .. }, .. } => true,
            Self::Ending { .. } | Self::Detached { .. } => false,
        }
    }

    pub(super) fn is_detached(&self) -> bool {
        matches!(self, Self::Detached { .. })
    }

    /// Whether the record of the end was asked for.
    pub(super) fn awaits_end(&self) -> bool {
        matches!(self, Self::Ending { end: End::Awaited, .. })
    }

    /// An event was read; false when nothing is read.
    pub(super) fn advance(&mut self, seq: u64) -> bool {
        match self {
            Self::Replaying { read }
            | Self::Live { read, .. }
            | Self::Detached { log: Log::Open { read }, .. } => *read = seq,
            Self::Ending { .. } | Self::Detached { .. } => return false,
        }
        true
    }

    /// The event up to which answers may be written: all, once nothing is read.
    pub(super) fn reached(&self) -> u64 {
        match *self {
            Self::Replaying { read }
            | Self::Live { read, .. }
            | Self::Detached { log: Log::Open { read }, .. } => read,
            Self::Ending { .. } | Self::Detached { .. } => u64::MAX,
        }
    }

    /// The last event that the client was shown, or that was there when it came.
    pub(super) fn shown(&self) -> u64 {
        match *self {
            Self::Replaying { read } | Self::Live { read, .. } | Self::Ending { read, .. } => read,
            Self::Detached { shown, .. } => shown,
        }
    }

    /// The last event of a log to which nothing is added any more.
    pub(super) fn final_event(&self) -> Option<u64> {
        match *self {
            Self::Ending { read, end: End::Final } => Some(read),
            Self::Detached { log: Log::Final { last }, .. } => Some(last),
            _ => None,
        }
    }

    /// The same once the client has left.
    pub(super) fn left(&self) -> Self {
        match *self {
            Self::Replaying { read } | Self::Live { read, .. } => {
                Self::Detached { shown: read, log: Log::Open { read } }
            }
            Self::Ending { read, end } => Self::Detached { shown: read, log: Log::ended(read, end) },
            Self::Detached { .. } => *self,
        }
    }
}
