//! How a program ended: the one report that its owner publishes.

use crate::containment::Containment;
use crate::ladder::Rung;
use crate::stderr::StderrExcerpt;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What the operating system said of the end of the program itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitStatus {
    /// It exited with this code.
    Code(i32),
    /// A signal killed it; the name is like `SIGKILL`, or `SIG34` for one without a name.
    Signal(String),
    /// The keeper was lost before it could say; the program was killed with it.
    Unknown,
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit status: {code}"),
            Self::Signal(name) => write!(f, "signal: {name}"),
            Self::Unknown => f.write_str("an unknown status (its keeper was lost)"),
        }
    }
}

impl ExitStatus {
    /// Names a signal by its number.
    pub(crate) fn from_signal(number: i32) -> Self {
        let name = signal_hook::low_level::signal_name(number);
        Self::Signal(name.map_or_else(|| format!("SIG{number}"), str::to_owned))
    }
}

/// The end of one program: reaped, with everything that it left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitReport {
    /// Process id that the program had.
    pub pid: u32,
    /// Its real exit code or signal.
    pub status: ExitStatus,
    /// How many descendants outlived the program and the grace, and were killed.
    pub leaked: u32,
    /// The rungs of the ladder that were used, in order; empty when it was not asked to stop.
    pub rungs: Vec<Rung>,
    /// How many processes the kernel killed for lack of memory while the program ran, in the memory control group that
    /// it was started in; 0 where that cannot be known.
    pub oom_kills: u32,
    /// Head and tail of its stderr.
    pub stderr: StderrExcerpt,
    /// How far the keeper could reach.
    pub containment: Containment,
}
