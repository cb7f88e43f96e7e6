//! Answers a shell that asks which words may stand where its cursor is.
//!
//! Invariant: nothing is started or written, and a configuration that cannot be read, or a daemon that does not answer soon, only
//! offers less. Not here: the scripts by which shells ask (`cli/completions.rs`).

use crate::clean::line;
use crate::cli::{Cli, VARIABLE, Which};
use crate::config::{Agent, Config, EXAMPLE_AGENT, Sources};
use crate::daemon::{Looked, Session, SessionFilter, look_for};
use crate::exit::Failure;
use crate::view::short_ends;
use acpd_catalog::KNOWN;
use clap::{Arg, Command, CommandFactory};
use clap_complete::env::{Bash, CompleteEnv, Fish, Shells, Zsh};
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

/// How long a daemon may take to name its sessions: a person waits for a key.
const PATIENCE: Duration = Duration::from_millis(500);
/// As many sessions are offered, the latest.
const SESSIONS: usize = 200;

/// Answers, when a shell asks; false when none does.
///
/// # Errors
/// A shell that is not known, and a standard output that takes nothing.
pub(crate) fn answer(args: &[OsString]) -> Result<bool, clap::Error> {
    let here = std::env::current_dir().ok();
    let shells = Shells(&[&Bash, &Zsh, &Fish]);
    let asked = CompleteEnv::with_factory(definition).var(VARIABLE).completer("acpd").shells(shells);
    asked.try_complete(args.iter().cloned(), here.as_deref())
}

/// The command line, with the values that only this machine knows.
fn definition() -> Command {
    with_names(Cli::command(), false)
}

/// Offers the names of agents and the ids of sessions where one is meant: agents for `--agent`, and behind the commands below
/// `agents`.
fn with_names(command: Command, is_below_agents: bool) -> Command {
    let is_agents = command.get_name() == "agents";
    let offers = if is_below_agents && command.get_name() == "add" { addable } else { agents };
    let means_agent =
        move |arg: &Arg| arg.get_long() == Some("agent") || is_below_agents && arg.get_id() == "name";
    let means_session = |arg: &Arg| matches!(arg.get_id().as_str(), "id" | "ids" | "session");
    let offered = move |arg: Arg| match (means_agent(&arg), means_session(&arg)) {
        (true, _) => arg.add(ArgValueCandidates::new(offers)),
        (_, true) => arg.add(ArgValueCandidates::new(sessions)),
        _ => arg,
    };
    command.mut_args(offered).mut_subcommands(|below| with_names(below, is_agents))
}

fn configured() -> BTreeMap<String, Agent> {
    Config::load(&Sources::of_process(None, None)).map(|config| config.agents).unwrap_or_default()
}

/// The names of the configured agents.
fn agents() -> Vec<CompletionCandidate> {
    let configured = configured();
    let example = Some(EXAMPLE_AGENT.to_owned()).filter(|example| !configured.contains_key(example));
    configured.into_keys().chain(example).map(CompletionCandidate::new).collect()
}

/// The names of the known agents that have no entry yet.
fn addable() -> Vec<CompletionCandidate> {
    let configured = configured();
    let others = KNOWN.iter().map(|known| known.name).filter(|name| !configured.contains_key(*name));
    others.map(CompletionCandidate::new).collect()
}

/// The sessions of the daemon, if one runs, by ends of their ids that no others have.
fn sessions() -> Vec<CompletionCandidate> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let hosted = runtime.ok().and_then(|runtime| {
        let hosted = async { tokio::time::timeout(PATIENCE, hosted()).await };
        runtime.block_on(hosted).ok()?.ok()
    });
    let hosted = hosted.unwrap_or_default();
    let ids: Vec<&str> = hosted.iter().map(|session| session.session_id.as_str()).collect();
    let candidate = |(id, session): (String, &Session)| {
        let about = session.title.as_ref().or(session.first_prompt.as_ref());
        let about =
            about.map_or_else(|| session.agent.clone(), |about| format!("{}: {about}", session.agent));
        CompletionCandidate::new(id).help(Some(line(&about, 60).into()))
    };
    short_ends(&ids).into_iter().zip(&hosted).map(candidate).collect()
}

async fn hosted() -> Result<Vec<Session>, Failure> {
    match look_for(Which::default()).await? {
        Looked::Found(daemon) => Ok(daemon.sessions(&SessionFilter::default(), SESSIONS).await?.0),
        Looked::Unserved(_) => Ok(Vec::new()),
    }
}
