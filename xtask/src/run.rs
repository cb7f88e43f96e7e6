//! Runs one command: streams its output line by line and counts the tests in it.
//!
//! stdout and stderr of the command share one pipe, so that their order stays. Invariant: [`run`] returns soon
//! after the command has ended, also when something it left behind holds the pipe open; that is then a failure,
//! because here a process that outlives its test is a bug. What does not end is killed, and what ran then is shown; so is what
//! a test program has left behind, by its marks. Not here: which commands, and in what order.

use acpd_testkit::{end_left_behind, running};
use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, IsTerminal};
use std::ops::AddAssign;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the rest of the output may take after the command has ended.
const REST: Duration = Duration::from_secs(60);

/// How long a command may take: several times what the longest takes.
const LIMIT: Duration = Duration::from_mins(15);

/// Tests that `cargo test`, `node --test`, vitest, pytest and Playwright reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl Counts {
    /// Adds a line like `test result: ok. 3 passed; 0 failed; ...`, or `# pass 3`; others change nothing.
    fn add_line(&mut self, line: &str) {
        let line = line.find("test result: ").map_or(line, |at| &line[at..]);
        let words: Vec<&str> = line.split([' ', ';', ',']).filter(|word| !word.is_empty()).collect();
        let (passed, failed) = match *words {
            ["#", "pass", count] => (count, "0"),
            ["#", "fail" | "cancelled", count] => ("0", count),
            ["test", "result:", _, passed, "passed", failed, "failed", ..] => (passed, failed),
            // vitest, pytest, Playwright.
            ["Tests", failed, "failed", "|", passed, "passed", ..]
            | [failed, "failed", passed, "passed", .., "in", _] => (passed, failed),
            ["Tests", passed, "passed", ..] | [passed, "passed", .., "in", _] => (passed, "0"),
            [passed, "passed", time] if time.starts_with('(') => (passed, "0"),
            [failed, "failed"] => ("0", failed),
            _ => return,
        };
        self.passed += passed.parse().unwrap_or(0);
        self.failed += failed.parse().unwrap_or(0);
    }
}

/// Runs the command to its good end and adds the tests it reports to `counts`.
pub(crate) fn run(command: Command, counts: &mut Counts) -> Result<()> {
    run_within(command, counts, Limits::default(), |line| anstream::println!("{line}"))
}

/// How long things may take.
struct Limits {
    /// The command, if anything limits it.
    command: Option<Duration>,
    /// The rest of its output, after its end.
    rest: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { command: Some(LIMIT), rest: REST }
    }
}

/// The same within a limit of its own; what it prints is shown in one piece at its end, below `head`.
pub(crate) fn run_apart(
    command: Command,
    limit: Option<Duration>,
    head: &str,
    counts: &mut Counts,
) -> Result<()> {
    let printed = Arc::new(Mutex::new(head.to_owned() + "\n"));
    let kept = Arc::clone(&printed);
    let add = move |line: &str| {
        let mut printed = kept.lock().unwrap_or_else(PoisonError::into_inner);
        printed.extend([line, "\n"]);
    };
    let ended = run_within(command, counts, Limits { command: limit, ..Limits::default() }, add);
    anstream::print!("{}", printed.lock().unwrap_or_else(PoisonError::into_inner));
    ended
}

fn run_within(
    mut command: Command,
    counts: &mut Counts,
    limits: Limits,
    mut show: impl FnMut(&str) + Send + 'static,
) -> Result<()> {
    let shown = command_line(&command);
    let (output, input) = std::io::pipe()?;
    if std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    // No stdin: a test that reads it would wait for the person at the terminal.
    command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input);
    let mut child = command.spawn().with_context(|| format!("cannot start {shown}"))?;
    // It holds the pipe open.
    drop(command);
    let (sender, counted) = sync_channel(1);
    let mut all = *counts;
    std::thread::spawn(move || {
        // Tests that say so of themselves are the ones that have no end, when the command has none.
        let mut slow = String::new();
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            all.add_line(&line);
            if line.contains(" has been running for over ") {
                slow.extend([&line, "\n"]);
            }
            show(&line);
        }
        sender.send((all, slow))
    });
    let watch = limits.command.map(|limit| Watch::over(&child, limit)).transpose()?;
    let status = child.wait()?;
    let left = end_left_behind(child.id());
    let running = watch.and_then(Watch::running_at_limit);
    let left_behind =
        || format!("{shown} ended, but a process that it left behind still holds its output open");
    let all = counted.recv_timeout(limits.rest);
    if let (Some(running), Some(limit)) = (running, limits.command) {
        let (all, slow) = all.unwrap_or((*counts, String::new()));
        *counts = all;
        let seconds = limit.as_secs();
        bail!("{shown} did not end in {seconds} s, and was killed while there ran:\n{slow}{running}");
    }
    *counts = all.with_context(left_behind)?.0;
    let left: Vec<String> = left.iter().map(|one| format!("\n{} {}", one.pid, one.command)).collect();
    let left = if left.is_empty() {
        String::new()
    } else {
        format!("; it left these, which were killed:{}", left.concat())
    };
    ensure!(status.success() && left.is_empty(), "{shown} ended with {status}{left}");
    Ok(())
}

/// Kills a process that does not end within its limit.
struct Watch {
    ended: SyncSender<()>,
    watching: JoinHandle<Option<String>>,
}

impl Watch {
    fn over(child: &Child, limit: Duration) -> Result<Self> {
        let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
        let (ended, has_ended) = sync_channel(0);
        let watching = std::thread::spawn(move || {
            if has_ended.recv_timeout(limit) != Err(RecvTimeoutError::Timeout) {
                return None;
            }
            let running = running().join("\n");
            // It may have ended at this moment.
            pidfd_send_signal(&process, Signal::KILL).ok().map(|()| running)
        });
        Ok(Self { ended, watching })
    }

    /// The processes there were when the limit was over, if it was before the end.
    fn running_at_limit(self) -> Option<String> {
        drop(self.ended);
        self.watching.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Prints a command, and runs it.
pub(crate) fn print_and_run(command: Command) -> Result<()> {
    anstream::println!("{}", command_line(&command));
    run(command, &mut Counts::default())
}

/// What a command prints on stdout, trimmed, when it can be started and succeeds.
pub(crate) fn answer(mut command: Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A command whose words are separated by spaces, in a directory.
pub(crate) fn line(words: &str, dir: &Path) -> Command {
    let mut words = words.split(' ');
    let mut command = command(words.next().unwrap_or_default());
    command.args(words).current_dir(dir);
    command
}

/// A command as a person would type it: with what it changes of the environment, but not what it leaves out.
pub(crate) fn command_line(command: &Command) -> String {
    let dir = command.get_current_dir().map(|dir| format!("cd {dir:?} && "));
    let set = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={:?} ", name.to_string_lossy(), value?)));
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| format!("{word:?}")).collect();
    format!("{}{}{}", dir.unwrap_or_default(), set.collect::<String>(), words.join(" "))
}

/// A command of ours, not started yet. Without what cargo tells this program of its own package: build scripts look at that, and
/// all that stands on them would be built anew whenever somebody builds by turns with this program and without.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    #[expect(clippy::disallowed_methods, reason = "build tools run here before the keeper is even built")]
    let mut command = Command::new(program);
    let told = std::env::vars_os().map(|(name, _)| name).filter(|name| {
        let name = name.to_string_lossy();
        name == "OUT_DIR"
            || ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"].iter().any(|head| name.starts_with(head))
    });
    for name in told {
        command.env_remove(name);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = line("sh -c", Path::new("/"));
        command.arg(script);
        command
    }

    #[test]
    fn what_cargo_tells_of_this_package_is_not_passed_on() {
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "tests are told, as programs are");
        let passed_on = answer(command("env")).expect("it prints variables");
        assert!(passed_on.contains("PATH=") && !passed_on.contains("CARGO_MANIFEST_DIR="), "{passed_on}");
    }

    #[test]
    fn tests_are_counted_from_both_streams_and_both_runners() {
        let script = "echo 'test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out'
            echo 'test result: FAILED. 4 passed; 2 failed; 0 ignored' >&2; echo 'running 7 tests, 9 passed'
            echo '# Subtest: # pass 9'; echo 'ok 1 - # pass 9'; echo '# pass 20'; echo '# cancelled 2'
            echo ' Test Files  9 passed (9)'; echo '      Tests  100 passed (100)'
            echo '      Tests  1 failed | 200 passed (201)'
            echo '  1 failed'; echo '  1000 passed (1.2m)'; echo '2000 passed, 1 skipped in 12.34s'; echo '1 failed, 1 passed in 2s'";
        let mut counts = Counts::default();
        run(shell(script), &mut counts).expect("the shell succeeds");
        assert_eq!(counts, Counts { passed: 27 + 100 + 200 + 1000 + 2000 + 1, failed: 4 + 1 + 1 + 1 });
    }

    #[test]
    fn a_bad_end_and_a_missing_program_are_errors_that_name_the_command() {
        let error = |command| format!("{:#}", run(command, &mut Counts::default()).expect_err("it fails"));
        assert_eq!(error(shell("exit 3")), r#"cd "/" && "sh" "-c" "exit 3" ended with exit status: 3"#);
        let mut missing = line("no-such-program-here --all", Path::new("/"));
        missing.env("RUSTDOCFLAGS", "-D x").env("PATH", "/");
        let start =
            "cannot start cd \"/\" && PATH=\"/\" RUSTDOCFLAGS=\"-D x\" \"no-such-program-here\" \"--all\": ";
        assert!(error(missing).starts_with(start));
    }

    #[test]
    fn a_process_left_behind_with_the_output_open_is_an_error_and_no_hang() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut command = shell("sleep 1000 & echo $! >sleeper");
        command.current_dir(dir.path());
        let limits = Limits { rest: Duration::from_millis(50), ..Limits::default() };
        let result = run_within(command, &mut Counts::default(), limits, |_| ());
        let mut kill = shell("kill $(cat sleeper)");
        kill.current_dir(dir.path());
        assert!(answer(kill).is_some());
        assert!(result.expect_err("it is left").to_string().contains("left behind"));
    }

    #[test]
    fn what_a_test_program_leaves_behind_is_killed_and_shown() {
        // The mark is seen once the program has been executed: a process has its new name before its environment.
        let script = "E2E_RUN=$$.0 sh -c 'exec sleep 1000' </dev/null >/dev/null 2>&1 &
            while ! grep -qz sleep /proc/$!/comm || ! grep -qz E2E_RUN=$$ /proc/$!/environ 2>/dev/null; do :; done";
        let error = run(shell(script), &mut Counts::default()).expect_err("something is left");
        let error = error.to_string();
        assert!(error.contains("exit status: 0; it left these, which were killed:\n"), "{error}");
        assert!(error.contains("sleep 1000"), "{error}");
        let left = error.lines().last().and_then(|line| line.split(' ').next()).expect("a process id");
        // Gone, or not yet reaped by whoever got it.
        let command_line = std::fs::read(Path::new("/proc").join(left).join("cmdline"));
        assert_eq!(command_line.unwrap_or_default(), b"", "it has ended");
    }

    #[test]
    fn a_command_that_does_not_end_is_killed_and_counted_until_then() {
        let script = "echo 'test result: ok. 3 passed; 0 failed'
            echo 'test a::b has been running for over 60 seconds'; exec sleep 1000";
        let mut last = None;
        // On a busy machine it may not have said anything by the first limit.
        for limit in [500, 5000, 30_000].map(Duration::from_millis) {
            let limits = Limits { command: Some(limit), ..Limits::default() };
            let mut counts = Counts::default();
            let error = run_within(shell(script), &mut counts, limits, |_| ()).expect_err("it does not end");
            let error = error.to_string();
            assert!(error.contains(&format!("did not end in {} s", limit.as_secs())), "{error}");
            let named = ["sleep 1000", "\ntest a::b has been running"];
            if counts.passed == 3 && named.iter().all(|named| error.contains(*named)) {
                return;
            }
            last = Some((counts, error));
        }
        panic!("{last:?}");
    }
}
