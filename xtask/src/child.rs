//! Runs one command of a step: shows it, streams its output line by line, counts the tests in it.
//!
//! stdout and stderr of the command share one pipe, so that their order stays. Invariant: [`run`] returns soon
//! after the command has ended, also when something it left behind holds the pipe open; that is then a failure,
//! because here a process that outlives its test is a bug. Not here: which commands, and in what order.

use std::ffi::OsStr;
use std::fmt;
use std::io::{BufRead, BufReader, IsTerminal, PipeReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// Lines on their way from the pipe to our stdout; when it is full the command waits, as on any slow terminal.
const LINES: usize = 256;

/// How long the rest of the output may take after the command has ended.
const REST: Duration = Duration::from_secs(5);

/// A command to run, in the form in which it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandLine {
    program: String,
    args: Vec<String>,
    env: Vec<(&'static str, String)>,
    dir: PathBuf,
    /// Where programs are looked for before `PATH`.
    tools: Option<PathBuf>,
    /// Shown before the command when it does not run at the top of the repository.
    place: Option<String>,
}

impl CommandLine {
    /// `args` are separated by spaces.
    pub(crate) fn new(program: &str, args: &str, dir: &Path) -> Self {
        let place =
            dir.file_name().filter(|_| dir.parent().is_some_and(|parent| parent.ends_with("interop")));
        Self {
            program: program.to_owned(),
            args: args.split(' ').map(str::to_owned).collect(),
            env: Vec::new(),
            dir: dir.to_owned(),
            tools: None,
            place: place.map(|name| format!("interop/{}", name.to_string_lossy())),
        }
    }

    /// With one more argument, which may hold spaces.
    pub(crate) fn with_arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// With more arguments, separated by spaces.
    pub(crate) fn with_args(mut self, args: &str) -> Self {
        self.args.extend(args.split(' ').map(str::to_owned));
        self
    }

    /// With a directory in which programs are looked for first, by the command and by what it starts.
    pub(crate) fn with_tools(mut self, tools: Option<&Path>) -> Self {
        self.tools = tools.map(Path::to_owned);
        self
    }

    pub(crate) fn with_env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "in {place}: ")?;
        }
        for (name, value) in &self.env {
            write!(f, "{name}=\"{value}\" ")?;
        }
        write!(f, "{} {}", self.program, self.args.join(" "))
    }
}

/// Tests that `cargo test` and `node --test` reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Passed tests.
    pub(crate) passed: u64,
    /// Failed tests.
    pub(crate) failed: u64,
}

impl Counts {
    /// Adds a line like `test result: ok. 3 passed; 0 failed; ...`, or `# pass 3`; others change nothing.
    fn add_line(&mut self, line: &str) {
        if let Some((outcome, number)) = line.strip_prefix("# ").and_then(|line| line.trim().split_once(' '))
        {
            let count = number.parse().unwrap_or(0);
            match outcome {
                "pass" => self.passed += count,
                "fail" | "cancelled" => self.failed += count,
                _ => {}
            }
            return;
        }
        let Some((_, result)) = line.split_once("test result: ") else { return };
        let number = |word: &str| -> Option<u64> {
            let before = result.split_once(word)?.0.trim_end();
            before.rsplit([' ', ';', '.']).next()?.parse().ok()
        };
        self.passed += number("passed").unwrap_or(0);
        self.failed += number("failed;").unwrap_or(0);
    }
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// It could not be started.
    #[error("cannot start `{command}`")]
    Start {
        command: String,
        #[source]
        source: std::io::Error,
    },
    /// It ran and failed.
    #[error("`{command}` ended with {status}")]
    Failed { command: String, status: ExitStatus },
    /// It ended, and something it started did not.
    #[error("`{command}` ended, but a process that it left behind still holds its output open")]
    LeftBehind { command: String },
    /// Its output could not be shown.
    #[error("cannot show the output of `{command}`")]
    Show {
        command: String,
        #[source]
        source: std::io::Error,
    },
    /// `cargo test` without a single test is not a pass.
    #[error("no test ran")]
    NoTests,
    /// REST is not what it says of itself.
    #[error("REST failed")]
    Rest(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Findings were printed.
    #[error("the house rules are not kept, see the lines above")]
    Tidy,
}

enum Event {
    Line(Vec<u8>),
    EndOfOutput,
    Exited(std::io::Result<ExitStatus>),
}

/// Runs the command to its end and adds the tests it reports to `counts`.
pub(crate) fn run(line: &CommandLine, counts: &mut Counts, out: &mut impl Write) -> Result<(), RunError> {
    run_within(line, counts, out, REST)
}

fn run_within(
    line: &CommandLine,
    counts: &mut Counts,
    out: &mut impl Write,
    rest: Duration,
) -> Result<(), RunError> {
    let start_error = |source| RunError::Start { command: line.to_string(), source };
    let (child, output) = start(line).map_err(start_error)?;
    let (sender, events) = sync_channel(LINES);
    let for_lines = sender.clone();
    std::thread::spawn(move || send_lines(output, &for_lines));
    std::thread::spawn(move || send_exit(child, &sender));
    let status = follow(line, &events, counts, out, rest)?.map_err(start_error)?;
    if status.success() { Ok(()) } else { Err(RunError::Failed { command: line.to_string(), status }) }
}

fn start(line: &CommandLine) -> std::io::Result<(Child, PipeReader)> {
    let (output, input) = std::io::pipe()?;
    let mut command = command(&line.program);
    command.args(&line.args).envs(line.env.iter().map(|(name, value)| (name, value))).current_dir(&line.dir);
    look_first_in(&mut command, line.tools.as_deref());
    if std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    // No stdin: a test that reads it would wait for the person at the terminal.
    command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input);
    Ok((command.spawn()?, output))
}

/// Ends at the end of the pipe, or when nobody listens any more.
fn send_lines(output: PipeReader, events: &SyncSender<Event>) {
    let mut output = BufReader::new(output);
    loop {
        let mut line = Vec::new();
        let event = match output.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => Event::EndOfOutput,
            Ok(_) => Event::Line(line),
        };
        let last = matches!(event, Event::EndOfOutput);
        if events.send(event).is_err() || last {
            return;
        }
    }
}

fn send_exit(mut child: Child, events: &SyncSender<Event>) {
    // Nobody listens any more only when showing the output failed, which is then the reported error.
    let _unheard = events.send(Event::Exited(child.wait()));
}

fn follow(
    line: &CommandLine,
    events: &Receiver<Event>,
    counts: &mut Counts,
    out: &mut impl Write,
    rest: Duration,
) -> Result<std::io::Result<ExitStatus>, RunError> {
    let mut exited = None;
    let mut output_ended = false;
    loop {
        let event = match &exited {
            None => events.recv().map_err(|_gone| RecvTimeoutError::Disconnected),
            Some(_) => events.recv_timeout(rest),
        };
        match event {
            Ok(Event::Line(bytes)) => {
                counts.add_line(&String::from_utf8_lossy(&bytes));
                let shown = out.write_all(&bytes).and_then(|()| out.flush());
                shown.map_err(|source| RunError::Show { command: line.to_string(), source })?;
            }
            Ok(Event::EndOfOutput) => output_ended = true,
            Ok(Event::Exited(status)) => exited = Some(status),
            Err(_) => return Err(RunError::LeftBehind { command: line.to_string() }),
        }
        if output_ended && let Some(status) = exited.take() {
            return Ok(status);
        }
    }
}

/// What a program prints on stdout, trimmed, when it can be started and succeeds.
pub(crate) fn answer(program: &str, args: &[&str], dir: &Path) -> Option<String> {
    answer_of(program, args, dir, None)
}

/// As [`answer`], of a program that is looked for in `tools` first.
pub(crate) fn answer_of(program: &str, args: &[&str], dir: &Path, tools: Option<&Path>) -> Option<String> {
    let mut command = command(program);
    look_first_in(&mut command, tools);
    let output = command.args(args).current_dir(dir).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn look_first_in(command: &mut Command, tools: Option<&Path>) {
    let Some(tools) = tools else { return };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::iter::once(tools.to_owned()).chain(std::env::split_paths(&path));
    // A directory whose name cannot stand in PATH is none to look in.
    if let Ok(path) = std::env::join_paths(places) {
        command.env("PATH", path);
    }
}

/// A command of ours, not started yet.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    #[expect(clippy::disallowed_methods, reason = "build tools run here before the keeper is even built")]
    Command::new(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> CommandLine {
        let mut line = CommandLine::new("sh", "-c", Path::new("/"));
        line.args.push(script.to_owned());
        line
    }

    #[test]
    fn test_results_are_summed_and_streamed() {
        let script = "echo 'test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out'
            echo 'test result: FAILED. 4 passed; 2 failed; 0 ignored' >&2; echo 'running 7 tests, 9 passed'";
        let (mut counts, mut out) = (Counts::default(), Vec::new());
        run(&shell(script), &mut counts, &mut out).expect("the shell succeeds");
        assert_eq!(counts, Counts { passed: 7, failed: 2 });
        assert_eq!(String::from_utf8_lossy(&out).lines().count(), 3);
    }

    #[test]
    fn the_tests_of_node_count_too() {
        let mut counts = Counts::default();
        for line in [
            "TAP version 13",
            "# Subtest: # pass 9",
            "ok 1 - # pass 9",
            "# pass 20\n",
            "# fail 1",
            "# cancelled 2",
        ] {
            counts.add_line(line);
        }
        assert_eq!(counts, Counts { passed: 20, failed: 3 });
    }

    #[test]
    fn a_failing_command_is_an_error_with_its_status() {
        let error = run(&shell("exit 3"), &mut Counts::default(), &mut Vec::new()).expect_err("it fails");
        assert!(matches!(error, RunError::Failed { status, .. } if status.code() == Some(3)));
    }

    #[test]
    fn a_missing_program_is_an_error_that_names_the_command() {
        let line = CommandLine::new("no-such-program-here", "--all", Path::new("/"));
        let error = run(&line, &mut Counts::default(), &mut Vec::new()).expect_err("it cannot start");
        assert_eq!(error.to_string(), "cannot start `no-such-program-here --all`");
    }

    #[test]
    fn a_process_left_behind_with_the_output_open_is_an_error_and_no_hang() {
        let mut out = Vec::new();
        let line = shell("sleep 1000 & echo $!");
        let result = run_within(&line, &mut Counts::default(), &mut out, Duration::from_millis(50));
        let sleeper = String::from_utf8(out).expect("a pid");
        let kill = format!("kill {}", sleeper.trim());
        assert_eq!(answer("sh", &["-c", &kill], Path::new("/")), Some(String::new()));
        assert!(matches!(result, Err(RunError::LeftBehind { .. })));
    }

    #[test]
    fn a_tool_of_the_projects_own_goes_before_the_machines() {
        use std::os::unix::fs::PermissionsExt;
        let tools = tempfile::tempdir().expect("a temporary directory");
        let tool = tools.path().join("uname");
        std::fs::write(&tool, "#!/bin/sh\necho the other\n").expect("writable");
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).expect("ours");
        let root = Path::new("/");
        assert_eq!(answer_of("uname", &[], root, Some(tools.path())).as_deref(), Some("the other"));
        assert_ne!(answer_of("uname", &[], root, None).as_deref(), Some("the other"));
        let mut out = Vec::new();
        let line = shell("uname").with_tools(Some(tools.path()));
        run(&line, &mut Counts::default(), &mut out).expect("the shell succeeds");
        assert_eq!(String::from_utf8_lossy(&out), "the other\n");
    }

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let line = CommandLine::new("cargo", "doc --no-deps", Path::new("/x"))
            .with_env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(line.to_string(), "RUSTDOCFLAGS=\"-D warnings\" cargo doc --no-deps");
    }
}
