//! `cargo xtask bench`: what acpd costs, next to the same agent or command without it.
//!
//! Both sides run on this machine at the same time of day, by turns, and are judged by their ratio or difference, so
//! the figures hold on a slow or busy machine too. Invariant: whatever happens, nothing that was started here
//! outlives the command. Not here: the cost of single parts; those are measured by their own crates' examples, one of
//! which, that of terminals, is run here as well.

mod archive;
mod client;
mod fleet;
mod kept;
mod kept_roundtrips;
mod network;
mod pipes;
mod power;
mod programs;
mod report;
mod samples;
mod sandbox_agent;
mod scan;
mod stored;
mod takeover;
mod terminals;
mod words;

use anstyle::Style;
use anyhow::Result;
use clap::{Args, ValueEnum};
use programs::Programs;
use report::Report;
use std::path::{Path, PathBuf};

/// What the command line says.
#[derive(Args)]
pub(crate) struct Options {
    /// Measure these only
    #[arg(long, value_delimiter = ',', value_name = "WHAT,...")]
    only: Vec<Subject>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Only print: a missed limit is no failure
    #[arg(long)]
    no_limits: bool,
    /// Measure this binary instead of building one
    #[arg(long, value_name = "FILE")]
    acpd: Option<PathBuf>,
    /// Compare with this sandbox-agent instead of the one in interop/typescript
    #[arg(long, value_name = "FILE")]
    sandbox_agent: Option<PathBuf>,
    /// Messages of one throughput measurement
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    messages: u64,
    /// Throughput measurements of each side
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Sessions that are taken over, say words, or are on each node; 1000 is what is promised for
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(10..))]
    sessions: u64,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Subject {
    /// Messages a second from an agent to a client, through host and log
    Throughput,
    /// From a request to its answer
    Roundtrip,
    /// From nothing to an answer, and to the end of a whole run
    Start,
    /// A command in a terminal, and a kill
    Terminals,
    /// Messages a second from an agent to viewers of a daemon
    Viewers,
    /// Requests to a daemon
    Network,
    /// What an idle session costs a daemon
    Memory,
    /// From nothing to a daemon that listens
    Daemon,
    /// The same start with 10,000 sessions, and lists of them with a daemon and without
    Stored,
    /// The same messages a second with agents that outlive the daemon
    Kept,
    /// The same requests, and prompts, with agents that outlive the daemon
    KeptRoundtrip,
    /// From a killed daemon to the next one that has its agents
    Takeover,
    /// Many sessions that each say a word every 20 ms, with agents that outlive the daemon
    Words,
    /// Commits that survive the loss of power, next to those that survive the death of processes
    Power,
    /// Reading a line: where its members stand, and of what kind it is
    Scan,
    /// Requests over HTTP next to sandbox-agent; not measured if it is not there
    SandboxAgent,
    /// Messages a second beside the archive of a fleet; needs a server of NATS
    Archive,
    /// Nodes of a fleet: requests by another node, lists; needs a server of NATS
    Fleet,
}

const QUIET: Style = Style::new().dimmed();

/// Runs the command; true when every limit is kept, or limits do not count. What a side does wrong panics; what was
/// started goes with it.
pub(crate) fn run(options: &Options, root: &Path) -> Result<bool> {
    let programs = Programs::prepare(options.acpd.as_deref(), root)?;
    let (messages, rounds) = (options.messages, options.rounds);
    let is_wanted = |subject: &&Subject| options.only.is_empty() || options.only.contains(subject);
    let measured = Subject::value_variants().iter().filter(is_wanted).map(|subject| {
        Ok(match subject {
            Subject::Throughput => pipes::throughput(&programs, messages, rounds),
            Subject::Roundtrip => pipes::roundtrips(&programs),
            Subject::Start => pipes::starts(&programs),
            Subject::Terminals => terminals::measure(&programs, root)?,
            Subject::Viewers => network::viewers(&programs, messages, rounds),
            Subject::Network => network::roundtrips(&programs),
            Subject::Memory => network::memory(&programs),
            Subject::Daemon => pipes::daemon(&programs),
            Subject::Stored => stored::measure(&programs)?,
            Subject::Kept => kept::throughput(&programs, messages, rounds),
            Subject::KeptRoundtrip => kept_roundtrips::measure(&programs),
            Subject::Takeover => takeover::measure(&programs, options.sessions),
            Subject::Words => words::measure(&programs, options.sessions),
            Subject::Power => power::measure(&programs, root)?,
            Subject::Scan => scan::measure(&programs, root)?,
            Subject::SandboxAgent => {
                sandbox_agent::measure(&programs, options.sandbox_agent.as_deref(), root)?
            }
            Subject::Archive => archive::measure(&programs, messages),
            Subject::Fleet => fleet::measure(&programs, options.sessions),
        })
    });
    let report = Report::new(measured.collect::<Result<_>>()?);
    if options.json {
        anstream::println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        anstream::println!("\n{}", report.table());
    }
    Ok(options.no_limits || report.ok)
}

/// Says on stderr what goes on.
fn progress(what: impl std::fmt::Display) {
    anstream::eprintln!("{QUIET}{what}{QUIET:#}");
}
