//! ACP terminals (contract 2.3), and commands with a timeout.
//!
//! Theory of operation: [`Terminals::create`] starts a task that starts a command through the supervisor and owns
//! it from then on. The task alone reads the command's output, keeps its tail in bounded memory, answers questions
//! and decides, by a state machine without clock or IO, when the command has to stop. Handles ask; a wait for
//! the end watches a value, so there can be many. What the command writes also goes to a feed, a bounded channel in
//! which it is told piece by piece: a reader that cannot keep up misses pieces, never the end, and never slows the
//! command.
//!
//! Invariants: every wait is answered with what the operating system said; after a release nothing of the
//! command lives; no lock is held across a wait.
//! Boundary: knows commands and their output; no JSON-RPC, no sessions, only the keys of owners.

mod beginning;
mod decoder;
mod environment;
mod event;
mod feed;
mod handle;
mod kept;
mod life;
mod metrics;
mod report;
mod run;
mod settings;
mod spec;
mod table;
mod tail;
mod task;
mod terminals;
mod text_queue;

pub use event::TerminalEvent;
pub use feed::FeedPace;
pub use handle::{ResizeError, TerminalHandle, TerminalNotFound};
pub use kept::{Keeping, KeptTerminal, Note, Told};
pub use life::TerminalState;
pub use metrics::describe_metrics;
pub use report::{TerminalOutput, TerminalReport, TerminalSnapshot};
pub use run::RunOutcome;
pub use settings::TerminalSettings;
pub use spec::{TerminalId, TerminalSpec};
pub use terminals::{CreateError, Terminals};
