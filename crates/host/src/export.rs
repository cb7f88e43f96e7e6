//! Exporting a session: its log as lines, or what was said in it as Markdown (contract 7.3), a piece at a time.
//!
//! Reads and writes nothing else, so a session may be live meanwhile: what is exported is what was committed when it began.
//! Invariant: memory is bounded by a block of the log, whatever the length of the session; an export that breaks off says so.
//! The agent's own id of the session and the permission mode are not in it: they are of use on this machine only. Not here: the
//! form of a line.

mod markdown;

use crate::ends::Found;
use crate::error::HostError;
use crate::host::Host;
use crate::store::SessionStore;
use acpd_eventlog::{Block, Cursor, SessionRow};
use acpd_record::{Event, ExportHead, ExportedEvent, SessionId, SessionMeta, under_id};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use markdown::Markdown;

/// The form of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ExportForm {
    /// A line of JSON for each event, which can be imported.
    #[default]
    Jsonl,
    /// What was said, for people.
    Markdown {
        /// Whether it has what tool calls changed, and what they and terminals wrote.
        details: bool,
    },
}

impl ExportForm {
    /// The same with details; None where it has none.
    pub fn with_details(self) -> Option<Self> {
        match self {
            Self::Jsonl => None,
            Self::Markdown { .. } => Some(Self::Markdown { details: true }),
        }
    }
}

/// A session on its way out.
pub struct SessionExport {
    id: SessionId,
    /// The id that it had, and that older events name.
    former: Option<SessionId>,
    /// Its first line, until that was taken.
    head: Option<ExportHead>,
    blocks: Blocks,
    /// The last event that belongs to it.
    until: u64,
    markdown: Option<Box<Markdown>>,
}

/// Where its events are.
enum Blocks {
    Log(Cursor),
    /// Somewhere else, with the last event that was read.
    Given(BoxStream<'static, Result<Block, HostError>>, u64),
}

impl Host {
    /// Begins an export of a session, up to its last committed event. `found` is what was found of it just now.
    ///
    /// # Errors
    /// When there is none of that id, or the log cannot be read.
    pub async fn export(
        &self,
        id: &SessionId,
        found: Found,
        form: ExportForm,
    ) -> Result<SessionExport, HostError> {
        let row = match found.row {
            Some(row) => row,
            None => self.shared.store.row(id).await?,
        };
        SessionExport::begin(&self.shared.store, id, &row, form).await
    }
}

fn head(id: &SessionId, row: &SessionRow, meta: SessionMeta) -> ExportHead {
    ExportHead {
        session_id: id.clone(),
        agent: row.agent.clone(),
        cwd: row.cwd.clone(),
        created_ms: row.created_ms,
        title: meta.title,
        forked_from: meta.forked_from,
        // The end that an import added is not in what was imported.
        events: meta.added_end.filter(|end| *end == row.last_seq).map_or(row.last_seq, |end| end - 1),
    }
}

impl SessionExport {
    pub(crate) async fn begin(
        store: &SessionStore,
        id: &SessionId,
        row: &SessionRow,
        form: ExportForm,
    ) -> Result<Self, HostError> {
        let blocks = Blocks::Log(store.log.cursor(id.as_str(), 0).await?);
        let mut meta = SessionMeta::read(&row.info);
        let former = meta.set_aside.take().map(|session| session.id);
        let export = Self::new(head(id, row, meta), row.last_seq, blocks, form);
        Ok(Self { former, ..export })
    }

    /// An export of a session whose events are not in a log here, but come as blocks, in order and from the first on.
    pub fn of_blocks(
        head: ExportHead,
        blocks: BoxStream<'static, Result<Block, HostError>>,
        form: ExportForm,
    ) -> Self {
        let last = head.events;
        Self::new(head, last, Blocks::Given(blocks, 0), form)
    }

    fn new(head: ExportHead, last: u64, blocks: Blocks, form: ExportForm) -> Self {
        let (until, markdown) = match form {
            ExportForm::Jsonl => (head.events, None),
            ExportForm::Markdown { details } => (last, Some(Box::new(Markdown::new(details)))),
        };
        Self { id: head.session_id.clone(), former: None, head: Some(head), blocks, until, markdown }
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// When the log cannot be read, or the session was deleted meanwhile: what came so far is no export then.
    pub async fn next_piece(&mut self) -> Result<Option<Bytes>, HostError> {
        if let Some(head) = self.head.take() {
            let mut out = Vec::new();
            match &mut self.markdown {
                Some(markdown) => out.extend_from_slice(markdown.begin(head).as_bytes()),
                None => head.write(&mut out),
            }
            return Ok(Some(out.into()));
        }
        if self.blocks.position() >= self.until {
            return Ok(self.markdown.take().map(|markdown| markdown.finish().into()));
        }
        let gone = || HostError::UnknownSession { id: self.id.to_string() };
        let block = self.blocks.next().await?.ok_or_else(gone)?;
        match &mut self.markdown {
            Some(markdown) => Ok(Some(told(markdown, &block, self.until).into())),
            None => {
                let former = self.former.as_ref().map(|former| (former, &self.id));
                lines(&block, self.until, former).map(Some)
            }
        }
    }
}

impl Blocks {
    fn position(&self) -> u64 {
        match self {
            Self::Log(cursor) => cursor.position(),
            Self::Given(_, position) => *position,
        }
    }

    async fn next(&mut self) -> Result<Option<Block>, HostError> {
        match self {
            Self::Log(cursor) => Ok(cursor.next().await?),
            Self::Given(blocks, position) => {
                let block = blocks.next().await.transpose()?;
                *position = block.as_ref().map_or(*position, Block::last);
                Ok(block)
            }
        }
    }
}

impl std::fmt::Debug for SessionExport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionExport").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The events of a block up to `until`, a line each. Those of a session that had another id are under the one that it has.
fn lines(block: &Block, until: u64, former: Option<(&SessionId, &SessionId)>) -> Result<Bytes, HostError> {
    let mut out = Vec::with_capacity(block.bytes() + block.bytes() / 4);
    for event in block.events().take_while(|event| event.seq <= until) {
        let line = ExportedEvent {
            seq: event.seq,
            at_ms: event.at_ms,
            kind: event.kind,
            payload: match former {
                Some((former, id)) => under_id(event.payload, former, id),
                None => event.payload.into(),
            },
        };
        line.write(&mut out).map_err(|error| HostError::History { detail: error.to_string() })?;
    }
    Ok(out.into())
}

/// What the events of a block up to `until` say.
fn told(markdown: &mut Markdown, block: &Block, until: u64) -> String {
    let mut out = String::new();
    for stored in block.events().take_while(|event| event.seq <= until) {
        // What is not readable here says nothing here.
        if let Ok(event) = Event::read(stored.kind, stored.payload) {
            markdown.see(&event, &mut out);
        }
    }
    out
}

#[cfg(test)]
mod tests;
