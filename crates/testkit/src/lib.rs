//! The harness of the end-to-end tests and of `cargo xtask bench`: the real binary as a client, an operator and the
//! operating system see it.
//!
//! What is known of acpd comes over its pipes and sockets, from its files and from `/proc`. With the feature `schema`
//! every message is checked against the official ACP schema, with `logs` every log that a test leaves is checked by the
//! crates `eventlog` and `record`; else nothing of acpd is linked in. Invariant: nothing that is
//! started here outlives its scratch. What fails here panics and says what it saw. Not here: the tests themselves.

mod binary;
mod client;
mod clock;
mod daemon;
mod database_locks;
#[cfg(feature = "schema")]
mod event_schema;
mod gate;
mod http;
mod lateness;
#[cfg(feature = "logs")]
mod legality;
mod lines;
mod log_form;
mod message;
mod metrics;
mod nats_server;
mod network;
mod network_link;
mod noise;
#[cfg(feature = "logs")]
mod old_database;
#[cfg(feature = "schema")]
mod oracle;
mod process;
mod pseudo_terminal;
mod record;
#[cfg(feature = "logs")]
mod round_trip;
mod run_mark;
mod scratch;
mod shell_agent;
mod signals;
mod started;
mod volume;
mod websocket;

pub use binary::acpd;
pub use client::{Asked, Client, PATIENCE};
pub use clock::{Deadline, Stopwatch, cut_off, unix_ms, until};
pub use daemon::{Daemon, connect};
pub use database_locks::lasting_locks;
#[cfg(feature = "schema")]
pub use event_schema::{check_event, hook_body, run_lines};
pub use gate::{Arrival, Gate};
pub use http::{Answer, Event, Events, Http};
pub use lateness::Lateness;
#[cfg(feature = "logs")]
pub use legality::judge_log;
#[cfg(feature = "logs")]
pub use log_form::make_database_log;
pub use log_form::{LogForm, files_below, files_of_session, log_content, log_database};
pub use log_form::{session_bytes, session_files};
pub use message::{Message, initialize, request};
pub use metrics::{until_counted, until_stalled};
pub use nats_server::{NatsServer, place as nats_place};
pub use network_link::{Carries, NetworkLink};
pub use noise::noise;
#[cfg(feature = "schema")]
pub use oracle::{check_from_agent, check_from_client};
pub use process::{Exit, ReadTimeout, anonymous_memory, exit_of, families, limit_files, open_files};
pub use process::{peak_memory, processor_time, running, suspend, thread_names, zombie_children};
pub use pseudo_terminal::{OnTerminal, PseudoTerminal};
pub use record::{containment_here, timeless};
pub use run_mark::{Marked, RunMark, end_left_behind};
pub use scratch::{GRACES, Scratch, held_port};
pub use shell_agent::{shell_agent, taking_shell_agent};
pub use started::Started;
pub use volume::Volume;
pub use websocket::{Frame, Opcode, WebSocket};
