//! Answers a shell that asks which words may stand where its cursor is.
//!
//! Invariant: nothing is started, written or asked of a daemon, and a configuration that cannot be read only offers less. Not
//! here: the scripts by which shells ask (`cli/completions.rs`).

use crate::cli::{Cli, VARIABLE};
use crate::config::{Agent, Config, EXAMPLE_AGENT, Sources};
use acpd_catalog::KNOWN;
use clap::{Arg, Command, CommandFactory};
use clap_complete::env::{Bash, CompleteEnv, Fish, Shells, Zsh};
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use std::collections::BTreeMap;
use std::ffi::OsString;

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
    with_agents(Cli::command(), false)
}

/// Offers the names of agents where one is meant: for `--agent`, and behind the commands below `agents`.
fn with_agents(command: Command, is_below_agents: bool) -> Command {
    let is_agents = command.get_name() == "agents";
    let offers = if is_below_agents && command.get_name() == "add" { addable } else { agents };
    let means_agent =
        move |arg: &Arg| arg.get_long() == Some("agent") || is_below_agents && arg.get_id() == "name";
    let offered = move |arg: Arg| match means_agent(&arg) {
        true => arg.add(ArgValueCandidates::new(offers)),
        false => arg,
    };
    command.mut_args(offered).mut_subcommands(|below| with_agents(below, is_agents))
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
