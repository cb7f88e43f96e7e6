//! From the arguments of the process to a command.

use crate::cli::{Cli, Command};
use crate::commands::serve::Left;
use crate::exit::Failure;
use crate::passed::Passed;
use crate::signals::{hold, release_all_but};
use crate::{commands, completing, exit, logging, runtime};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

/// The hidden subcommand that every program is started through.
pub(crate) const KEEPER: &str = "keeper";
/// The subcommand that plays the example agent.
pub(crate) const EXAMPLE_AGENT: &str = "example-agent";

/// Runs the process.
pub fn run_process() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    // Before anything is allocated or started: a keeper lives as long as its agent and should cost nothing.
    if args.len() == 2 && args[1] == KEEPER {
        // Those that its daemon holds are its own; where it cannot have them, the daemon has other ways to end it.
        let _held = release_all_but(&[]);
        return acpd_supervisor::keeper::run();
    }
    if args.get(1).is_some_and(|arg| arg == EXAMPLE_AGENT) {
        return acpd_example_agent::run(args.into_iter().skip(2));
    }
    match completing::answer(&args) {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => {}
        Err(error) => return exit::of_parsing(&error),
    }
    let cli = match Cli::parse_args(args) {
        Ok(cli) => cli,
        Err(error) => return exit::of_parsing(&error),
    };
    // So that everything that prints agrees.
    match cli.color {
        clap::ColorChoice::Auto => anstream::ColorChoice::Auto,
        clap::ColorChoice::Always => anstream::ColorChoice::Always,
        clap::ColorChoice::Never => anstream::ColorChoice::Never,
    }
    .write_global();
    // Before the first thread.
    let passed = match &cli.command {
        Command::Serve(serve) if !serve.check => Passed::take(),
        _ => Ok(Passed::default()),
    };
    if let Err(error) = prepare_signals(&cli) {
        return exit::exit_code(Err(error.into()));
    }
    let log = logging::start(&cli);
    let runtime = match runtime::start(matches!(cli.command, Command::Serve(_))) {
        Ok(runtime) => runtime,
        Err(error) => return exit::exit_code(Err(error.into())),
    };
    let outcome = runtime.block_on(async {
        match cli.command {
            Command::Run(run) => commands::run::run(*run).await,
            Command::Chat(chat) => commands::run::chat(*chat).await,
            Command::Attach(attach) => commands::run::attach(attach).await,
            Command::Stdio(stdio) => commands::stdio::stdio(stdio).await,
            Command::Serve(serve) => return commands::serve::serve(serve, passed).await,
            Command::Token(token) => commands::token::token(token).await,
            Command::Sessions(sessions) => commands::sessions::sessions(sessions).await,
            Command::Top(top) => commands::top::top(top).await,
            Command::Doctor(args) => commands::doctor::doctor(args).await,
            Command::Config(args) => commands::config::config(args),
            Command::Status(status) => commands::status::status(status).await,
            Command::Stop(stop) => commands::stop::stop(stop).await,
            Command::Open(args) => commands::open::open(args).await,
            Command::Handover(handover) => commands::handover::handover(handover).await,
            Command::Migrate(args) => commands::migrate::migrate(args).await,
            Command::Reload(reload) => commands::reload::reload(reload).await,
            Command::Nodes(args) => commands::nodes::nodes(args).await,
            Command::Agents(agents) => commands::agents::agents(agents).await,
            Command::Completions(args) => commands::completions::completions(&args),
            Command::ExampleAgent { .. } => unreachable!("it was taken off above"),
        }
        .map(|()| Left::default())
    });
    if outcome.as_ref().is_ok_and(|left| left.agents) {
        // What it would drop ends them.
        std::mem::forget(runtime);
    } else {
        // A thread may still be blocked in a read of stdin; it is not waited for.
        runtime.shutdown_background();
    }
    // Before the error that it ends with, if there is one.
    drop(log);
    exit::exit_code(outcome.and_then(go_on))
}

/// Becomes the next image of a daemon that hands over.
fn go_on(left: Left) -> Result<(), Failure> {
    if let Some(failure) = left.failure {
        return Err(failure);
    }
    let Some(successor) = left.successor else { return Ok(()) };
    let program = successor.program().display().to_string();
    let error = successor.exec();
    Err(Failure::Failed(format!("cannot go on as {program}: {error}; the daemon has ended")))
}

/// A file size limit (`ulimit -f`) is a full disk to the event log, which copes; by default the signal that comes
/// with it kills the process. What a daemon is asked for by signals waits until it listens.
fn prepare_signals(cli: &Cli) -> std::io::Result<()> {
    // A handler, because agents would inherit a signal that is ignored.
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default())?;
    match &cli.command {
        Command::Serve(serve) if !serve.check => hold(),
        _ => Ok(()),
    }
}
