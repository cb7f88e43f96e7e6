//! The place where a page is run: directories of its own, an environment of its own, stand-ins for agents.
//!
//! Invariant: nothing of a page outlives it. Its processes are known by a variable that they all inherit. Not here: what is
//! run there.

use crate::run;
use acpd_testkit::held_port;
use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The programs of agents that pages name: each is the example agent, whatever its arguments.
const AGENTS: [&str; 24] = [
    "amp-acp",
    "auggie",
    "claude",
    "claude-agent-acp",
    "claude-code-acp",
    "cline",
    "codex",
    "codex-acp",
    "copilot",
    "crush",
    "cursor-agent",
    "droid",
    "gemini",
    "goose",
    "hermes",
    "junie",
    "kimi",
    "kiro-cli",
    "opencode",
    "openhands",
    "qwen",
    "vibe-acp",
    "npx",
    "uvx",
];
const AGENT: &str = "exec acpd example-agent";
/// What a desktop has.
const DESKTOP: [&str; 2] = ["notify-send", "xdg-open"];
const NOTHING: &str = "exit 0";
/// Writes programs, of which each is a name and what it does. A program that is started meanwhile by another page would inherit the
/// open files of this process, and what is open for writing cannot be run.
const WRITE: &str =
    r#"cd "$1"; shift; while (($#)); do printf '#!/bin/sh\n%s\n' "$2" >"$1"; chmod 755 "$1"; shift 2; done"#;

/// All processes of a page have it.
const MARK: &str = "ACPD_BOOK";
const GIT: &str = "[user]\nname = Example\nemail = example@localhost\n[init]\ndefaultBranch = main\n";
/// A project with a change that is not committed.
const PROJECT: &str =
    "git init --quiet && printf '# Example\\n' >README.md && printf 'print(\"hello\")\\n' >main.py
    git add . && git commit --quiet -m Begin && printf 'print(\"bye\")\\n' >>main.py";

/// What a page finds.
pub(super) struct Sandbox {
    place: TempDir,
    pub(super) port: u16,
    /// Only the page's daemon takes the port.
    _held: OwnedFd,
    path: OsString,
}

impl Sandbox {
    /// One in which `acpd` is this program; other programs are looked for in `path`.
    pub(super) fn new(acpd: &Path, path: &OsStr) -> Result<Self> {
        let place = tempfile::Builder::new().prefix("book").tempdir()?;
        let (held, address) = held_port();
        let bin = place.path().join("bin");
        let all = std::iter::once(bin.clone()).chain(std::env::split_paths(path));
        let sandbox = Self { port: address.port(), _held: held, path: std::env::join_paths(all)?, place };
        for dir in ["bin", "blocks", "home/project", "run", "tmp"] {
            fs::create_dir_all(sandbox.place.path().join(dir))?;
        }
        fs::set_permissions(sandbox.place.path().join("run"), fs::Permissions::from_mode(0o700))?;
        symlink(acpd, bin.join("acpd")).context("acpd")?;
        let scripts = AGENTS.map(|name| (name, AGENT)).into_iter().chain(DESKTOP.map(|name| (name, NOTHING)));
        let mut write = sandbox.command("bash");
        write.args(["-euc", WRITE, "bash"]).arg(&bin);
        write.args(scripts.flat_map(|(name, script)| [name, script]));
        ensure!(run::answer(write).is_some(), "the programs are not written");
        fs::write(sandbox.home().join(".gitconfig"), GIT)?;
        let mut project = sandbox.command("bash");
        project.args(["-euc", PROJECT]);
        ensure!(run::answer(project).is_some(), "git made no repository");
        Ok(sandbox)
    }

    pub(super) fn home(&self) -> PathBuf {
        self.place.path().join("home")
    }

    /// Where the runner puts what belongs to blocks.
    pub(super) fn blocks(&self) -> PathBuf {
        self.place.path().join("blocks")
    }

    /// A file that a page names.
    pub(super) fn file(&self, path: &str) -> PathBuf {
        match path.strip_prefix("~/") {
            Some(rest) => self.home().join(rest),
            None => self.home().join("project").join(path),
        }
    }

    /// A program in the project's directory, with nothing of this process's environment.
    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = run::command(program);
        let place = self.place.path();
        command.current_dir(self.home().join("project")).env_clear();
        command
            .env("HOME", self.home())
            .env("TMPDIR", place.join("tmp"))
            .env("XDG_RUNTIME_DIR", place.join("run"));
        command.env("PATH", &self.path).env("LANG", "C.UTF-8").env("TERM", "dumb").env(MARK, place);
        command.env("ACPD_SERVER_LISTEN", format!("127.0.0.1:{}", self.port));
        command
    }

    /// Kills what the page left, until nothing is left.
    fn end(&self) {
        let mark: Vec<u8> = [MARK.as_bytes(), b"=", self.place.path().as_os_str().as_bytes(), b"\0"].concat();
        loop {
            let marked: Vec<Pid> = processes().filter(|pid| has(*pid, &mark)).collect();
            if marked.is_empty() {
                return;
            }
            for process in marked.into_iter().filter_map(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) {
                // It is gone already, or it will be.
                if pidfd_send_signal(&process, Signal::KILL).is_ok() {
                    let seconds = Timespec { tv_sec: 5, tv_nsec: 0 };
                    let mut ended = [PollFd::new(&process, PollFlags::IN)];
                    if poll(&mut ended, Some(&seconds)).is_err() {
                        return;
                    }
                }
            }
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.end();
    }
}

fn processes() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

/// Whether the process was started with this variable.
fn has(pid: Pid, variable: &[u8]) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    memchr::memmem::find(&environment, variable).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_place_of_its_own_and_leaves_nothing() {
        let path = std::env::var_os("PATH").expect("there is one");
        let sandbox = Sandbox::new(Path::new("/bin/true"), &path).expect("a sandbox");
        let place = sandbox.place.path().to_owned();
        let mut bash = sandbox.command("bash");
        bash.args([
            "-c",
            // Its environment is seen once it is the program that it will be.
            "(setsid sleep 1000 >/dev/null 2>&1 & echo $!
            until grep -qz sleep /proc/$!/comm && grep -qz ACPD_BOOK= /proc/$!/environ; do :; done)
            acpd; git status --short; echo $HOME",
        ]);
        let printed = run::answer(bash).expect("bash");
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!(
            lines[1..],
            ["M main.py".to_owned(), sandbox.home().display().to_string()]
                .map(|line| line.replace("M main", " M main"))
        );
        let pid: i32 = lines[0].parse().expect("a process");
        let is_there = || Path::new(&format!("/proc/{pid}/exe")).exists();
        assert!(is_there());
        drop(sandbox);
        assert!(!is_there() && !place.exists());
    }
}
