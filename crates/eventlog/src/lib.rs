//! The append-only truth of acpd: one writer, many cursors, SQLite inside.
//!
//! An event is `{seq, kind, at_ms, payload}`; the crate knows nothing of ACP and depends on none of our crates.
//! Sequence numbers count per session from 1 and have no holes. An event is visible to a [`Cursor`] only after it
//! was committed, so no reader ever sees something that a restart forgets.
//!
//! - [`EventLog`] opens the file, starts the writer thread and answers queries.
//! - [`Appender`] is the one writer of a live session; it queues a [`Batch`] and the writer thread commits
//!   whatever is queued in one transaction.
//! - [`Partial`] is a session that is written in pieces and is not there before the last.
//! - [`Subscriber`]s have the events of some kinds noted, in the same commit, until they were told of them.
//! - [`Cursor`] reads a session from any sequence number and then follows it, from memory or from the file.
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
mod disk;
mod failure;
mod fault;
mod inspection;
mod live;
mod lock_wait;
mod log;
pub mod log_files;
mod metrics;
mod outbox;
mod pack;
mod part;
mod partial;
mod presence;
mod query;
mod queue;
mod readers;
mod reclaiming;
mod regular_file;
mod renaming;
mod reserve;
mod room;
mod run;
mod schema;
mod search;
mod sizes;
mod store;
mod thread;
mod times;
mod waiting;
mod words;
mod writer;

pub use appender::Appender;
pub use batch::{Batch, IndexUpdate, MAX_PAYLOAD_BYTES, PayloadWriter};
pub use block::{Block, Event, Events};
pub use checkpoint::Checkpoint;
pub use cursor::{Cursor, CursorError};
pub use failure::WriteError;
pub use fault::SqliteFault;
pub use inspection::{examine, format_of};
pub use live::Committed;
pub use lock_wait::ForeignLock;
pub use log::{Durability, EventLog, NewSession, Options};
pub use metrics::{describe_metrics, names as metric_names};
pub use outbox::{Note, Subscriber};
pub use partial::Partial;
pub use presence::Presence;
pub use query::{ListQuery, QueryError, RowFilter, RowText, SessionRow};
pub use renaming::Renamed;
pub use reserve::make_room_to_start;
pub use room::QueueRoom;
pub use schema::{Format, OpenError};
pub use search::{Hit, Place, SearchQuery, TurnText, Unindexed};
pub use sizes::{StoredSize, Unchanged};
pub use words::{Found, SearchText, SearchTextError, Words, plain, words};
