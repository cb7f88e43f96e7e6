//! The sessions of acpd.
//!
//! A [`Host`] starts agents ([`Host::connect`]), creates sessions on them ([`Host::new_session`]) and ends both.
//! Each agent process has one task that speaks JSON-RPC with it; each session has one task that decides what
//! happens in it and is the only writer of its event log. Commands come in through handles; facts go to the log,
//! where every viewer reads them by sequence number.
//!
//! Invariant: a session ends exactly once per run, with a record that is durable before it is sent to any client.
//! Boundary: knows agents, sessions and turns; knows no transport, no client connection and no terminal.

mod acp;
mod activate;
mod agent;
mod agent_end;
mod anew;
mod archive;
mod attempts;
mod beforehand;
mod beginning;
mod chain;
mod check;
mod checkpoints;
mod clock;
mod continuity;
mod create;
mod creation;
mod ends;
mod error;
mod export;
mod files;
mod fleet_part;
mod fork;
mod history_summary;
mod host;
mod host_file;
mod ids;
mod import;
mod journal;
mod keyed_locks;
mod known_by;
mod line_diff;
mod listed;
mod listing;
mod metrics;
mod named;
mod permission;
mod prompting;
mod pruning;
mod rate_limit;
mod reach;
mod recording;
mod recovery;
mod refusal;
mod registry;
mod run;
mod search;
mod secrets;
mod services;
mod session;
mod sessions;
mod setting_aside;
mod setup;
mod spans;
mod spec;
mod spoken;
mod stderr_log;
mod store;
mod taking_over;
mod taking_up;
mod termination;
mod transcript;
mod unsearched;
mod viewers;
mod works;

pub use acp::{ErrorData, META, error_code, method};
pub use activate::Activated;
pub use agent::{
    AgentAnswer, AgentEnd, AgentFinder, AgentHandle, AgentInfo, AgentRef, AgentStartError, Agents,
    CallerRefused, CheckedAgent, PromptCapabilities, Sought, check_agent, health_of_none, start_apart,
};
pub use agent_end::InitializeFailure;
pub use archive::Archive;
pub use attempts::Attempt;
pub use beginning::{Beginning, Joined, Place};
pub use chain::chain;
pub use check::Unready;
pub use clock::{iso8601, now_ms};
pub use continuity::{Continuity, TakesOver};
pub use create::NewSession;
pub use creation::{Created, Creation, Held};
pub use ends::Found;
pub use error::{HostError, told_by_agent};
pub use export::{ExportForm, SessionExport};
pub use files::{FileError, FileRules, FileSlots, Files, FilesSpec};
pub use fleet_part::Beginnings;
pub use host::{Host, HostOptions};
pub use host_file::{HostFile, HostFileError, KEEPERS};
pub use ids::fresh_id;
pub use import::{ImportError, SessionImport};
pub use known_by::is_known_by;
pub use line_diff::{LineChange, line_changes};
pub use listed::{Matching, SessionBrief};
pub use listing::SessionSummary;
pub use metrics::{describe_metrics, names as metric_names};
pub use prompting::{may_come_again, prompt_content, prompt_params};
pub use pruning::Keep;
pub use refusal::{login_command, without_login_command};
pub use search::{Finding, Findings};
pub use services::Offered;
pub use session::{
    AnswerRefused, Attached, ClientRef, ClientRequest, EndOutcome, EndRequest, OpenQuestion, Prompted, Reply,
    ReplyTo, SessionHandle,
};
pub use setup::{Creator, TITLE_RULE};
pub use spec::{AgentSpec, Program, Timeouts};
pub use taking_up::{TakeUp, TakeUpError, TakenUp};
pub use viewers::{ViewerGuard, ViewerInfo};
pub use works::Works;

pub use acpd_record::{
    Cause, EventKind, Partition, PermissionMode, Reason, SessionId, ShownUsage, StderrInfo, TerminatedBy,
    TerminationInfo,
};
pub use acpd_supervisor::{Graces, Pending, SPANS, TaskScope, open_regular, queue, read_regular};
pub use acpd_terminal::TerminalSettings;
pub use spans::of_session as session_span;
