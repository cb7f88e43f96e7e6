//! The append-only truth of acpd: files of each session, one writer for each, many cursors, SQLite as an index.
//!
//! An event is `{seq, kind, at_ms, payload}`; the crate knows nothing of ACP and depends on none of our crates.
//! Sequence numbers count per session from 1 and have no holes. An event is visible to a [`Cursor`] only after it
//! was committed, so no reader ever sees something that a restart forgets.
//!
//! - [`EventLog`] opens the state directory, starts the threads and answers queries.
//! - [`Appender`] is the one writer of a live session; it writes a [`Batch`] to the session's files, or queues it for a thread that
//!   may wait for the disk.
//! - [`Partial`] is a session that is written in pieces and is not there before the last.
//! - [`Subscriber`]s have the events of some kinds noted until they were told of them.
//! - [`Cursor`] reads a session from any sequence number and then follows it, from memory or from the files.
//! - [`migration`] makes files of the database in which earlier versions kept all sessions.
//!
//! Several processes may share one directory. A session has an owner in at most one of them; the log of the others
//! can read it, but only its owner follows it live.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! use acpd_eventlog::{Batch, EventLog, NewSession, Options};
//!
//! let log = EventLog::open(dir.path(), Options::default())?;
//! let mut session = log
//!     .create(NewSession { id: "s-1".into(), owner: "host-1".into(), ..NewSession::default() })
//!     .await?;
//! let mut viewer = log.cursor("s-1", 0).await?;
//! let mut batch = Batch::new();
//! batch.push(1, 0, b"hello");
//! assert_eq!(session.append(batch).await?, 1..=1);
//! let block = viewer.next().await?.expect("the session is live");
//! assert_eq!(block.events().next().expect("one event").payload, b"hello");
//! drop(session);
//! assert!(viewer.next().await?.is_none());
//! log.close().await;
//! # Ok(()) }
//! ```

mod adoption;
mod appender;
mod batch;
mod block;
mod cache;
mod checkpoint;
mod cursor;
mod damage;
#[cfg(test)]
extern crate self as acpd_eventlog;
#[cfg(test)]
#[path = "../../testkit/src/database_locks.rs"]
mod database_locks;
mod disk;
mod disk_sync;
mod failure;
mod fault;
mod files;
mod flock;
mod format_marker;
mod inspection;
mod list_overlay;
mod live;
mod lock_wait;
mod log;
pub mod log_files;
mod metrics;
pub mod migration;
mod named;
mod notes;
#[cfg(test)]
#[path = "../../testkit/src/old_database.rs"]
mod old_database;
mod old_tables;
mod options;
mod outbox;
mod pack;
mod part;
mod partial;
#[cfg(test)]
mod power_loss;
mod presence;
mod query;
mod queue;
mod readers;
mod reclaiming;
pub mod redo;
mod regular_file;
mod renaming;
mod reserve;
mod room;
mod run;
mod schema;
mod search;
pub mod segment;
pub mod session_files;
mod sizes;
mod state_form;
mod store;
mod thread;
mod waiting;
mod words;
mod writer;

pub use appender::Appender;
pub use batch::{Batch, IndexUpdate, MAX_PAYLOAD_BYTES, PayloadWriter};
pub use block::{Block, Event, Events};
pub use cache::FormKind;
pub use checkpoint::Checkpoint;
pub use cursor::{Cursor, CursorError};
pub use failure::WriteError;
pub use fault::SqliteFault;
pub use inspection::{Examined, examine, format_of, has_log};
pub use live::Committed;
pub use log::{EventLog, NewSession};
pub use metrics::{describe_metrics, names as metric_names};
pub use options::{Durability, Options};
pub use outbox::{Note, Subscriber};
pub use part::LogPart;
pub use partial::Partial;
pub use presence::Presence;
pub use query::{ListQuery, QueryError, RowFilter, RowText, SessionRow};
pub use renaming::Renamed;
pub use reserve::{free_bytes, make_room_to_start};
pub use room::QueueRoom;
pub use schema::{DATABASES, Format, OpenError};
pub use search::{Hit, Place, SearchQuery, TurnText, Unindexed};
pub use sizes::{StoredSize, Unchanged};
pub use words::{Found, SearchText, SearchTextError, Words, plain, words};
