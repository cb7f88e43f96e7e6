//! The entry: arguments, start-up switches, and the loop that reads standard input.
//!
//! Invariant: the end of input ends the agent with code 0 at once, whatever runs, unless a directive forbade it.
//! Not the dispatch: a line goes to the agent as it is.

use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use crate::agent::Agent;
use crate::children;
use crate::command_line::{CommandLine, HELP, Options};
use crate::login;
use crate::store::Store;

/// Runs the example agent on standard input and output until its input ends.
///
/// `args` are the agent's own arguments, without the name of the program or of a subcommand; they must be the
/// last arguments of the process. The caller returns the exit code from `main`: turns may still be running, and
/// end with the process. A directive may end the process from within.
pub fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.collect();
    children::note_way_here(&args);
    match CommandLine::parse(&args) {
        Ok(CommandLine::Serve(options)) => serve(options),
        Ok(CommandLine::Help) => {
            std::io::stdout().write_all(HELP.as_bytes()).ok();
            ExitCode::SUCCESS
        }
        Ok(CommandLine::Sleeper) => children::sleep(),
        Ok(CommandLine::SleeperLauncher) => children::launch_sleeper(),
        Err(error) => {
            eprintln!("example agent: {error}; --help shows what there is");
            ExitCode::from(2)
        }
    }
}

fn serve(options: Options) -> ExitCode {
    if let Some(code) = options.exit_before_initialize {
        eprintln!("example agent: exit before initialize");
        return ExitCode::from(code);
    }
    if options.logs_in {
        return login::on_terminal(&options.login, state_dir(&options).as_deref());
    }
    let store = store(&options);
    let agent = Arc::new(Agent::new(options, store));
    if agent.options.banner {
        agent.output.raw(b"Welcome to the example agent\n(this banner is not JSON)\n");
    }
    read_lines(&agent);
    while agent.output.outlives_client() {
        std::thread::park();
    }
    ExitCode::SUCCESS
}

fn read_lines(agent: &Arc<Agent>) {
    let mut input = std::io::stdin().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        agent.receive(&line);
        line.clear();
    }
}

fn store(options: &Options) -> Store {
    if !options.keeps_state {
        return Store::in_memory();
    }
    match state_dir(options) {
        Some(directory) => Store::Directory(directory),
        None => {
            eprintln!("example agent: no home directory is known, so sessions are kept in memory only");
            Store::in_memory()
        }
    }
}

pub(crate) fn state_dir(options: &Options) -> Option<PathBuf> {
    options.state_dir.clone().or_else(default_state_dir)
}

fn default_state_dir() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("ACPD_EXAMPLE_STATE").or_else(|| {
        let home = || variable("HOME").map(|home| home.join(".local/state"));
        let state = variable("XDG_STATE_HOME").filter(|path| path.is_absolute()).or_else(home);
        state.map(|state| state.join("acpd-example"))
    })
}
