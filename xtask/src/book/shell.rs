//! The one shell in which the blocks of a page run: started, given blocks, and asked how they ended.
//!
//! Invariant: a block that takes too long is given up, and the shell with it. Not here: what a block should have done.

use super::sandbox::Sandbox;
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

const DRIVER: &str = include_str!("shell.sh");
/// How often it is looked at what a block on a terminal shows; for so long nothing may come before a key is pressed.
const LOOK: Duration = Duration::from_millis(150);
const QUIET: u32 = 4;
/// How long a block may take.
pub(super) const LONGEST: Duration = Duration::from_secs(300);

/// How a block ended.
#[derive(Debug)]
pub(super) struct Outcome {
    /// None when it took too long.
    pub(super) status: Option<i32>,
    pub(super) output: String,
    /// The line of the block that was run last, from 1.
    pub(super) line: usize,
}

pub(super) struct Shell {
    child: Child,
    orders: ChildStdin,
    statuses: Receiver<i32>,
    blocks: PathBuf,
    count: usize,
}

impl Shell {
    pub(super) fn start(sandbox: &Sandbox) -> Result<Self> {
        let blocks = sandbox.blocks();
        let driver = blocks.join("driver");
        fs::write(&driver, DRIVER)?;
        let mut bash = sandbox.command("bash");
        bash.arg("--norc").arg(driver).arg(blocks.join("log")).arg(blocks.join("at"));
        let mut child = bash.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("bash")?;
        let (orders, answers) =
            (child.stdin.take().context("a pipe")?, child.stdout.take().context("a pipe")?);
        let (sender, statuses) = sync_channel(1);
        std::thread::spawn(move || {
            for line in BufReader::new(answers).lines().map_while(Result::ok) {
                let Ok(status) = line.parse() else { return };
                if sender.send(status).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, orders, statuses, blocks, count: 0 })
    }

    /// Runs a block. One that is meant to fail leaves nothing in the shell, as one on a terminal.
    pub(super) fn run(&mut self, script: &str, fails: bool, keys: Option<&str>) -> Result<Outcome> {
        self.count += 1;
        let file = self.blocks.join(self.count.to_string());
        fs::write(&file, script)?;
        fs::write(self.blocks.join("at"), "")?;
        let out = file.with_extension("out");
        fs::write(&out, "")?;
        let mut typing = keys.map(|keys| Typing::new(&file, keys)).transpose()?;
        let mode = match (&typing, fails) {
            (Some(_), _) => "typed",
            (None, true) => "apart",
            (None, false) => "here",
        };
        // A shell that is gone says so below.
        let _gone = writeln!(self.orders, "{mode} {}", file.display());
        let mut waited = Duration::ZERO;
        let status = loop {
            match self.statuses.recv_timeout(LOOK) {
                Ok(status) => break Some(status),
                Err(RecvTimeoutError::Disconnected) => break Some(self.child.wait()?.code().unwrap_or(-1)),
                Err(RecvTimeoutError::Timeout) => waited += LOOK,
            }
            if waited >= LONGEST {
                break None;
            }
            if let Some(typing) = &mut typing {
                typing.look(&out)?;
            }
        };
        let at = fs::read_to_string(self.blocks.join("at")).unwrap_or_default();
        let output = String::from_utf8_lossy(&fs::read(&out)?).into_owned();
        Ok(Outcome { status, output, line: at.parse().unwrap_or(1) })
    }

    /// What the page's daemons said on stderr.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.blocks.join("log")).unwrap_or_default()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // What it started ends with the page.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// Keys for a terminal, each pressed when nothing has come for a while, the last until the block ends.
struct Typing {
    keys: File,
    /// The next is last.
    rest: Vec<String>,
    shown: u64,
    quiet: u32,
}

impl Typing {
    fn new(block: &Path, keys: &str) -> Result<Self> {
        let file = block.with_extension("keys");
        rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, 0o600.into(), 0)?;
        // For both, so that it opens before there is a reader.
        let keys_file = File::options().read(true).write(true).open(file)?;
        let mut rest: Vec<String> = strokes(keys);
        rest.reverse();
        Ok(Self { keys: keys_file, rest, shown: 0, quiet: 0 })
    }

    fn look(&mut self, out: &Path) -> Result<()> {
        let shown = fs::metadata(out)?.len();
        let moved = shown != std::mem::replace(&mut self.shown, shown);
        self.quiet = if moved || shown == 0 { 0 } else { self.quiet + 1 };
        if self.quiet >= QUIET
            && let Some(stroke) = self.rest.last()
        {
            self.keys.write_all(stroke.as_bytes())?;
            // The last is pressed again: what comes before a program has its terminal as it is to be is lost.
            if self.rest.len() > 1 {
                self.rest.pop();
            }
            self.quiet = 0;
        }
        Ok(())
    }
}

/// What is pressed at once: words, with the key behind them.
fn strokes(keys: &str) -> Vec<String> {
    keys.split_inclusive(|key: char| key.is_control()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_shell(test: impl FnOnce(&mut Shell)) {
        let path = std::env::var_os("PATH").expect("there is one");
        let sandbox = Sandbox::new(Path::new("/bin/true"), &path).expect("a sandbox");
        test(&mut Shell::start(&sandbox).expect("a shell"));
    }

    #[test]
    fn blocks_share_a_shell_and_each_is_told_apart() {
        with_shell(|shell| {
            let mut of = |script: &str, fails| {
                let outcome = shell.run(script, fails, None).expect("it runs");
                (outcome.status, outcome.output)
            };
            assert_eq!(of("a=1; cd /; echo b >&2; echo c", false), (Some(0), "b\nc\n".to_owned()));
            assert_eq!(of("echo $a $PWD", false), (Some(0), "1 /\n".to_owned()));
            assert_eq!(of("a=2\nfalse\necho c", true), (Some(1), String::new()));
            assert_eq!(of("echo $a; exit 4", true), (Some(4), "1\n".to_owned()));
            assert_eq!(of("true | cat\nread || echo end", false), (Some(0), "end\n".to_owned()));
        });
    }

    #[test]
    fn a_block_ends_at_the_first_command_that_fails_and_its_line_is_known() {
        for (script, line) in
            [("a=1\n\nfalse\necho c", 3), ("true\nfalse | cat", 2), ("true\necho $unset", 2)]
        {
            with_shell(|shell| {
                let outcome = shell.run(script, false, None).expect("it runs");
                assert_eq!((outcome.status, outcome.line), (Some(1), line), "{script}: {}", outcome.output);
            });
        }
    }

    #[test]
    fn keys_are_pressed_on_a_terminal() {
        assert_eq!(strokes("hello\r\x04x"), ["hello\r", "\x04", "x"]);
        with_shell(|shell| {
            let script = "test -t 0 && echo ready; read -r line; echo got $line; read -r line || echo end";
            let outcome = shell.run(script, false, Some("words\r\x04")).expect("it runs");
            assert_eq!(outcome.status, Some(0));
            assert!(
                outcome.output.contains("got words") && outcome.output.contains("end"),
                "{}",
                outcome.output
            );
        });
    }
}
