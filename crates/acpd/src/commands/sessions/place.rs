//! Where sessions are looked at: in a daemon, or in a state directory that none serves.

use crate::cli::Which;
use crate::daemon::{Daemon, Download, Looked, Session, look_for};
use crate::exit::Failure;
use crate::stored::Stored;
use acpd_host::{ExportForm, SessionExport};
use bytes::Bytes;

pub(super) enum Place {
    Daemon(Daemon),
    Stored(Stored),
}

impl Place {
    pub(super) async fn find(which: Which) -> Result<Self, Failure> {
        Ok(match look_for(which).await? {
            Looked::Found(daemon) => Self::Daemon(daemon),
            Looked::Unserved(config) => Self::Stored(Stored::open(&config).await?),
        })
    }

    /// One session, by its id or by an end or beginning of it that no other one has.
    pub(super) async fn session(&self, id: &str) -> Result<Session, Failure> {
        match self {
            Self::Daemon(daemon) => Ok(daemon.session(id).await?),
            Self::Stored(stored) => stored.session(id).await,
        }
    }

    /// A session as a file, by its whole id.
    pub(super) async fn export(&self, id: &str, form: ExportForm) -> Result<Pieces, Failure> {
        Ok(match self {
            Self::Daemon(daemon) => Pieces::Daemon(daemon.export(id, form).await?),
            Self::Stored(stored) => Pieces::Stored(stored.export(id, form).await?),
        })
    }

    /// Closes what was opened.
    pub(super) async fn close(self) {
        if let Self::Stored(stored) = self {
            stored.close().await;
        }
    }
}

/// A file on its way.
pub(super) enum Pieces {
    Daemon(Download),
    Stored(SessionExport),
}

impl Pieces {
    /// The next piece; None behind the last. One that breaks off is an error.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        match self {
            Self::Daemon(download) => Ok(download.next_piece().await?),
            Self::Stored(export) => Ok(export.next_piece().await?),
        }
    }
}
