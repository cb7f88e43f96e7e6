//! The index of sessions, as queries: one session, a page of many, those of one host.
//!
//! Filters apply before paging, and each filter that selects well has an index. Blocks are not read here.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};

use crate::failure::WriteError;
use crate::fault::SqliteFault;
use crate::readers::ReadError;

/// What [`session_row`] reads.
pub(crate) const COLUMNS: &str =
    "id, agent, cwd, owner, created_ms, updated_ms, ended, last_seq, created_by, state, info, position";

const ROWS: &str = "FROM session LEFT JOIN info ON info.session = session.row";

/// A session in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Its id.
    pub id: String,
    /// Its agent's name.
    pub agent: String,
    /// Its working directory.
    pub cwd: String,
    /// The host that has it live, if one has.
    pub owner: Option<String>,
    /// Its owner, if it has one.
    pub created_by: Option<String>,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it last changed, in milliseconds since 1970. Of one session (not of a list) up to 50 ms old, while it is live.
    pub updated_ms: i64,
    /// Whether it has ended.
    pub ended: bool,
    /// Its last sequence number, which is also its number of events.
    pub last_seq: u64,
    /// The host's own word for what it is doing, opaque here; 0 since its owner changed, unless it was adopted.
    pub state: u8,
    /// Bytes of its agent's output that it has handled; 0 since its owner changed, unless it was adopted.
    pub position: u64,
    /// The host's own description, opaque here.
    pub info: Vec<u8>,
}

/// Which sessions, and which page of them. The latest change comes first, then the id in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Only those of this agent.
    pub agent: Option<String>,
    /// Only those in this directory.
    pub cwd: Option<String>,
    /// Only those of this creator.
    pub created_by: Option<String>,
    /// Only those that have ended, or only those that have not.
    pub ended: Option<bool>,
    /// Only those after this one, by `(updated_ms, id)`.
    pub after: Option<(i64, String)>,
    /// Only those of which this is true.
    pub matching: Option<RowFilter>,
    /// At most so many; `None` means all.
    pub limit: Option<u32>,
}

impl ListQuery {
    /// Whether [`list`] gives this row, but for the limit.
    pub(crate) fn selects(&self, row: &SessionRow) -> bool {
        let is_behind = |(updated_ms, id): &(i64, String)| {
            row.updated_ms < *updated_ms || row.updated_ms == *updated_ms && row.id > *id
        };
        self.agent.as_ref().is_none_or(|agent| *agent == row.agent)
            && self.cwd.as_ref().is_none_or(|cwd| *cwd == row.cwd)
            && self.created_by.as_ref().is_none_or(|creator| row.created_by.as_ref() == Some(creator))
            && self.ended.is_none_or(|ended| ended == row.ended)
            && self.after.as_ref().is_none_or(is_behind)
            && self.matching.as_ref().is_none_or(|filter| filter.accepts(row.text()))
    }

    /// How many rows there are at most.
    pub(crate) fn most(&self) -> usize {
        self.limit.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX))
    }
}

impl SessionRow {
    /// The order of a list.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        other.updated_ms.cmp(&self.updated_ms).then_with(|| self.id.cmp(&other.id))
    }

    fn text(&self) -> RowText<'_> {
        RowText { id: &self.id, agent: &self.agent, cwd: &self.cwd, info: &self.info }
    }
}

/// What a [`RowFilter`] looks at.
#[derive(Debug, Clone, Copy)]
pub struct RowText<'a> {
    /// The id.
    pub id: &'a str,
    /// The agent's name.
    pub agent: &'a str,
    /// The working directory.
    pub cwd: &'a str,
    /// The host's own description.
    pub info: &'a [u8],
}

/// A filter of the host's own. It sees each row before a copy of it is made.
#[derive(Clone)]
pub struct RowFilter(Arc<dyn Fn(RowText<'_>) -> bool + Send + Sync>);

impl RowFilter {
    /// `is_meant` runs on a thread that reads.
    pub fn new(is_meant: impl Fn(RowText<'_>) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_meant))
    }

    fn takes(&self, row: &Row<'_>) -> rusqlite::Result<bool> {
        let [id, agent, cwd] = [0, 1, 2].map(|at| row.get_ref(at).map(|text| text.as_str()));
        let info = row.get_ref(10)?.as_blob_or_null()?.unwrap_or_default();
        Ok(self.accepts(RowText { id: id??, agent: agent??, cwd: cwd??, info }))
    }

    /// Whether a session with this text is meant.
    pub(crate) fn accepts(&self, text: RowText<'_>) -> bool {
        (self.0)(text)
    }
}

impl fmt::Debug for RowFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowFilter").finish_non_exhaustive()
    }
}

impl PartialEq for RowFilter {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for RowFilter {}

/// Why the index could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The file could not be read.
    #[error("{}", source.of_reading())]
    Read {
        /// What SQLite said.
        #[source]
        source: Arc<SqliteFault>,
    },
    /// The log was shut down.
    #[error("the event log is closed")]
    Closed,
}

impl From<WriteError> for QueryError {
    /// What a look at the files of sessions ends with: nothing of them is written.
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::DiskFull { source }
            | WriteError::Busy { source }
            | WriteError::Damaged { source }
            | WriteError::Io { source } => Self::Read { source },
            _ => Self::Closed,
        }
    }
}

impl From<ReadError> for QueryError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Sqlite(source) => Self::Read { source },
            ReadError::Closed => Self::Closed,
        }
    }
}

pub(crate) fn list(connection: &Connection, query: ListQuery) -> rusqlite::Result<Vec<SessionRow>> {
    let limit = query.most();
    let mut conditions: Vec<&str> = Vec::new();
    let mut values: Vec<Value> = Vec::new();
    if let Some(agent) = query.agent {
        conditions.push("agent = ?");
        values.push(agent.into());
    }
    if let Some(cwd) = query.cwd {
        conditions.push("cwd = ?");
        values.push(cwd.into());
    }
    if let Some(created_by) = query.created_by {
        conditions.push("created_by = ?");
        values.push(created_by.into());
    }
    if let Some(ended) = query.ended {
        conditions.push("ended = ?");
        values.push(ended.into());
    }
    if let Some((updated_ms, id)) = query.after {
        conditions.push("updated_ms <= ? AND (updated_ms < ? OR id > ?)");
        values.extend([updated_ms.into(), updated_ms.into(), id.into()]);
    }
    let filter = if conditions.is_empty() { "true".to_owned() } else { conditions.join(" AND ") };
    // What a filter leaves out does not count.
    let most = query.limit.map_or(-1, i64::from);
    values.push(if query.matching.is_some() { -1 } else { most }.into());
    let mut select = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} {ROWS} WHERE {filter} ORDER BY updated_ms DESC, id LIMIT ?"
    ))?;
    let Some(matching) = query.matching else {
        return select.query_map(params_from_iter(values), session_row)?.collect();
    };
    let (mut rows, mut found) = (select.query(params_from_iter(values))?, Vec::new());
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        if matching.takes(row)? {
            found.push(session_row(row)?);
        }
    }
    Ok(found)
}

pub(crate) fn session_row(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    Ok(SessionRow {
        id: row.get(0)?,
        agent: row.get(1)?,
        cwd: row.get(2)?,
        owner: row.get(3)?,
        created_ms: row.get(4)?,
        updated_ms: row.get(5)?,
        ended: row.get(6)?,
        last_seq: row.get(7)?,
        created_by: row.get(8)?,
        state: row.get(9)?,
        info: row.get::<_, Option<Vec<u8>>>(10)?.unwrap_or_default(),
        position: row.get(11)?,
    })
}
