//! The archive: pieces of logs in one stream, a subject for each session.
//!
//! A position is the sequence of a piece in the stream. An append names the piece that it has to follow; one that is said again,
//! because its outcome was not known, is known again by what it says, not by its message id alone, which the server forgets after
//! a while and takes before it looks at what is expected. Not here: who may append; that is what the epochs are for.

use crate::key;
use crate::link::{Link, Stored, Which};
use acpd_fleet::{EngineError, Epoch, Piece, Position};
use acpd_record::SessionId;
use async_nats::header::{HeaderMap, HeaderValue, NATS_MESSAGE_ID};
use async_nats::jetstream::stream::PurgeResponse;
use serde::Serialize;

const EPOCH: &str = "Acpd-Epoch";
const FIRST: &str = "Acpd-First";
const LAST: &str = "Acpd-Last";
const PART: &str = "Acpd-Part";
const PARTS: &str = "Acpd-Parts";

/// The pieces of all sessions.
#[derive(Debug, Clone)]
pub(crate) struct Archive {
    link: Link,
    stream: String,
    root: String,
}

impl Archive {
    pub(crate) fn new(link: Link, prefix: &str) -> Self {
        let stream = format!("{}_LOG", prefix.to_ascii_uppercase());
        Self { link, stream, root: format!("{prefix}.log.") }
    }

    pub(crate) fn stream(&self) -> &str {
        &self.stream
    }

    /// What the subjects of sessions begin with.
    pub(crate) fn root(&self) -> &str {
        &self.root
    }

    fn subject(&self, session: &SessionId) -> String {
        format!("{}{}", self.root, key::encode(session.as_str()))
    }

    /// # Cancel safety
    /// It may have been appended.
    pub(crate) async fn append(
        &self,
        session: &SessionId,
        piece: &Piece,
        behind: Position,
    ) -> Result<Position, EngineError> {
        let (Epoch(epoch), first, last) = (piece.epoch, piece.first, piece.last);
        let (part, parts) = (u64::from(piece.part), u64::from(piece.parts));
        let mut headers = HeaderMap::new();
        // What opens an epoch begins at the same event as the piece behind it, so the epoch and both ends are in it.
        // So is how many parts there are: a run may be cut otherwise when it is written again.
        headers.insert(NATS_MESSAGE_ID, format!("{session}:{epoch}:{first}-{last}:{part}/{parts}"));
        for (name, value) in [(EPOCH, epoch), (FIRST, first), (LAST, last), (PART, part), (PARTS, parts)] {
            headers.insert(name, HeaderValue::from(value));
        }
        let body = piece.bytes.clone();
        match self.link.publish(self.subject(session), headers, body, behind.0).await {
            Ok(ack) if !ack.duplicate => Ok(Position(ack.sequence)),
            Err(failed) if !failed.is_conflict() => Err(failed.into()),
            // It is there already, or another one is.
            _ => match self.read(session, behind).await? {
                Some((found, position)) if found == *piece => Ok(position),
                _ => Err(EngineError::Conflict),
            },
        }
    }

    /// # Cancel safety
    /// It only reads.
    pub(crate) async fn read(
        &self,
        session: &SessionId,
        behind: Position,
    ) -> Result<Option<(Piece, Position)>, EngineError> {
        let subject = self.subject(session);
        let which = Which::Next { seq: behind.0.saturating_add(1), next_by_subj: &subject };
        self.link.message(&self.stream, &which).await?.map(piece).transpose()
    }

    /// # Cancel safety
    /// It only reads.
    pub(crate) async fn last(&self, session: &SessionId) -> Result<Option<(Piece, Position)>, EngineError> {
        let which = Which::Last { last_by_subj: &self.subject(session) };
        self.link.message(&self.stream, &which).await?.map(piece).transpose()
    }

    /// Removes all pieces of a session that are there now.
    ///
    /// # Cancel safety
    /// They may have been removed.
    pub(crate) async fn remove(&self, session: &SessionId) -> Result<(), EngineError> {
        #[derive(Serialize)]
        struct Purge<'a> {
            filter: &'a str,
            /// What it begins to keep at: a purge that comes late takes nothing that was appended since.
            seq: u64,
        }
        let subject = self.subject(session);
        let which = Which::Last { last_by_subj: &subject };
        let Some(last) = self.link.message(&self.stream, &which).await? else { return Ok(()) };
        let purge = Purge { filter: &subject, seq: last.sequence + 1 };
        let _removed: PurgeResponse = self.link.api(&format!("STREAM.PURGE.{}", self.stream), &purge).await?;
        Ok(())
    }
}

fn piece(stored: Stored) -> Result<(Piece, Position), EngineError> {
    let number = |name: &str| stored.headers.get(name).and_then(|value| value.as_str().parse::<u64>().ok());
    let piece = (|| {
        let (epoch, first, last) = (Epoch(number(EPOCH)?), number(FIRST)?, number(LAST)?);
        let [part, parts] = [PART, PARTS].map(|name| number(name).and_then(|number| number.try_into().ok()));
        Some(Piece { epoch, first, last, part: part?, parts: parts?, bytes: stored.payload.clone() })
    })();
    let unknown = || EngineError::Refused(format!("message {} of the archive is no piece", stored.sequence));
    Ok((piece.ok_or_else(unknown)?, Position(stored.sequence)))
}
