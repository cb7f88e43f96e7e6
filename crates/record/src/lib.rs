//! The words of a session, and what a session is: a fold over its events.
//!
//! [`Event`] has a variant and a payload for each kind of event, [`SessionMeta`] is what the index knows of a session,
//! [`TerminationInfo`] how a run ended. [`Projection`] is computed from the events alone, so that every reader of a log
//! comes to the same state as the host that wrote it.
//!
//! Invariant: the raw bytes of a stored message are never changed; an event of a later version is kept as it is.
//! Boundary: no IO, no clock, no runtime. What an event leads to is decided in the host.

mod checkpoint;
mod event;
mod export;
mod first_prompt;
mod ids;
mod json;
mod keys;
mod kind;
mod last_turn;
mod legality;
mod message;
mod meta;
mod partition;
mod payload;
mod permission_mode;
mod projection;
mod questions;
mod reach;
mod readdress;
#[cfg(feature = "schema")]
pub mod schema;
mod shape;
mod snapshot;
mod state;
mod tally;
mod termination;
mod title;
mod usage;

pub use event::{Event, Unreadable};
pub use export::{ExportHead, ExportedEvent, NotJson, WrongLine};
pub use ids::{ConnectionId, NativeSessionId, QuestionNumber, RunNumber, SessionId, TurnNumber};
pub use json::{Json, lenient};
pub use keys::{KeyedEnd, KeyedTurn, RequestKey};
pub use kind::EventKind;
pub use last_turn::LastTurn;
pub use legality::Illegal;
pub use message::{RawMessage, is_history, is_state, update_kind, update_of, update_value};
pub use meta::{BriefEnd, BriefMeta, EndInProgress, KeeperAddress, SessionMeta, SetAside};
pub use partition::Partition;
pub use payload::{
    AgentRequest, AnsweredBy, CancelRequested, Created, ElicitationCompleted, ExitStatus, FinalOutput,
    Prompt, Question, Reattached, Resolution, RunStarted, Stalled, StateChanged, TerminalEnded, TerminalNews,
    TerminalOutput, TranscriptFacts, TurnEnded,
};
pub use permission_mode::PermissionMode;
pub use projection::{Position, Projection, RunningTurn};
pub use questions::{OpenQuestion, Topic};
pub use reach::{Containment, Continuity};
pub use readdress::under_id;
pub use shape::{ShapeError, read_shape};
pub use snapshot::{Glance, LifecycleState, META, Snapshot, chosen_title, warning};
pub use state::AgentState;
pub use tally::Tally;
pub use termination::{Cause, EndedParams, Reason, StderrInfo, TerminatedBy, TerminationInfo};
pub use title::{LONGEST_TITLE, is_title};
pub use usage::{ShownUsage, Usage};
