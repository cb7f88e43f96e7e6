//! One task owns one process tree, through a keeper.
//!
//! Theory of operation: [`Supervisor::start`] starts a *keeper* (the same binary in a hidden subcommand) and
//! hands it the program's three pipe ends. The keeper starts the program, adopts everything the program leaves
//! behind, runs the stop ladder when it is asked to or when it loses us, and reports how the program ended. In
//! this process a task owns the other end: it drains stderr, passes stop requests on and publishes one
//! [`ExitReport`]. Bytes of stdin and stdout flow directly between the caller and the program.
//!
//! A program can be started as *kept* ([`ProgramSpec::kept`]). Then its keeper has our ends of the streams too: bytes for stdin
//! go through it in frames ([`Framing`]), stderr is its own to read, and stdout is read here without taking anything out of the
//! pipe, which the keeper does once it is told. After [`ProcessHandle::keep`] the program outlives this process for a time,
//! and [`Supervisor::attach`] takes it over in another, with everything of stdout that was not
//! [committed](Stdout::committed).
//!
//! Invariant: after an [`ExitReport`] no descendant of the program lives, as far as [`Containment`] reaches. Of a kept
//! program every byte of stdout is in the pipe, retained by its keeper, or committed.
//! Boundary: knows pipes, signals and processes; no lines of stdout, no JSON-RPC, no ACP.

mod attach;
mod containment;
mod continuity;
mod environment;
mod framing;
#[cfg(target_os = "linux")]
mod inherited;
pub mod keeper;
mod keeper_process;
mod keeper_socket;
mod kept_process;
mod ladder;
mod lineage;
mod link;
mod lost;
mod metrics;
mod outcome;
mod pipes;
mod process;
mod procfs;
pub mod queue;
mod regular_file;
mod report;
mod scope;
mod scratch;
mod spec;
mod standing;
mod start;
mod starting;
mod stderr;
mod streams;
mod sweep;
mod tap;
mod teed;
mod unattached;

pub use attach::{Adopting, AttachError, Attached, keeper_versions};
pub use containment::Containment;
pub use continuity::Continuity;
pub use environment::program_environment;
pub use framing::Framing;
#[cfg(target_os = "linux")]
pub use inherited::reap_inherited;
pub use ladder::{Graces, Ladder, LadderInput, LadderStep, Leftovers, Rung};
pub use lineage::Lineage;
pub use metrics::describe_metrics;
pub use outcome::{Outcome, Teller, outcome};
pub use pipes::{Stdin, Stdout};
pub use process::{KeepFor, Process, ProcessHandle};
pub use regular_file::{open_regular, read_regular};
pub use report::{ExitReport, ExitStatus};
pub use scope::{Pending, SPANS, TaskScope, panic_message, sleep_until};
pub use spec::{KeeperCommand, ProgramSpec};
pub use standing::{EndLeft, detached_since, end_left, ends_left, forget_killed, wait_for_keepers};
pub use start::{StartError, Supervisor};
pub use stderr::{StderrExcerpt, StderrRecorder};
pub use streams::{Streams, WindowSize};
pub use sweep::{MARK, ProcessMark, Sweep, sweep, wait_until_gone};
pub use tap::StderrLine;
