//! The built `acpd serve`, started for a check: a free port, a scratch directory, and a small client for it.
//!
//! Invariant: the daemon is gone when it was let go of, whatever happened before. It is found beside this program, where
//! cargo puts both. Not here: what is checked.

use crate::child;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// How long the daemon may take for an answer or for the next line of a stream. For a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it may take to stop: its ladder, and what comes after.
const STOP: Duration = Duration::from_secs(30);

const FIRST_WORDS: &str = "listening on http://";

/// Why there is no daemon, or no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DaemonError {
    #[error("cannot use a scratch directory")]
    Scratch(#[source] io::Error),
    #[error("cannot start {}; cargo build --workspace --bins makes it", path.display())]
    Start {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`acpd {what}` failed: {stderr}")]
    Failed { what: String, stderr: String },
    #[error("the daemon did not say where it listens, but `{said}`: {stderr}")]
    Silent { said: String, stderr: String },
    #[error("{what}: no answer")]
    Ask {
        what: String,
        #[source]
        source: io::Error,
    },
    #[error("{what}: answered {status}: {body}")]
    Refused { what: String, status: u16, body: String },
    #[error("the daemon did not stop within {} s", STOP.as_secs())]
    Stays,
    #[error("the daemon ended with {status}: {stderr}")]
    Ended { status: ExitStatus, stderr: String },
}

/// A daemon that runs.
pub(crate) struct Daemon {
    child: Child,
    address: SocketAddr,
    token: String,
    scratch: TempDir,
    /// Held, so that the daemon's stdout stays open.
    _stdout: BufReader<ChildStdout>,
}

/// What was answered.
pub(crate) struct Answer {
    head: Vec<String>,
    body: BufReader<TcpStream>,
}

impl Daemon {
    /// Starts one that knows a single token, of scope `admin`.
    pub(crate) fn start() -> Result<Self, DaemonError> {
        // Not below the target directory: the path of a Unix socket must be short.
        let scratch = tempfile::Builder::new().prefix("acpd-").tempdir().map_err(DaemonError::Scratch)?;
        let acpd = beside_this_program();
        let failed = |source| DaemonError::Start { path: acpd.clone(), source };
        let made = command(&acpd, scratch.path())
            .args(["token", "new", "admin", "--scope", "admin"])
            .output()
            .map_err(failed)?;
        if !made.status.success() {
            let stderr = String::from_utf8_lossy(&made.stderr).trim().to_owned();
            return Err(DaemonError::Failed { what: "token new".to_owned(), stderr });
        }
        let token = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        let log = std::fs::File::create(scratch.path().join(LOG)).map_err(DaemonError::Scratch)?;
        let mut child = command(&acpd, scratch.path())
            .args(["serve", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(failed)?;
        let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut said = String::new();
        let read = stdout.read_line(&mut said);
        let address = read.ok().and_then(|_| said.trim().strip_prefix(FIRST_WORDS)?.parse().ok());
        let Some(address) = address else {
            end(&mut child);
            let stderr = logged(&scratch);
            return Err(DaemonError::Silent { said: said.trim().to_owned(), stderr });
        };
        Ok(Self { child, address, token, scratch, _stdout: stdout })
    }

    /// Where it listens, without a path.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The token that it knows.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// A directory of this daemon alone, gone with it.
    pub(crate) fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// One request. HTTP/1.0, so that the body is all that follows the head.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Answer, DaemonError> {
        let mut head = format!("{method} {path} HTTP/1.0\r\nHost: {}\r\n", self.address);
        head += &format!("Authorization: Bearer {}\r\nContent-Length: {}\r\n", self.token, body.len());
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        let failed = |source| DaemonError::Ask { what: format!("{method} {path}"), source };
        let mut socket = TcpStream::connect(self.address).map_err(failed)?;
        socket.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        socket.write_all(format!("{head}\r\n{body}").as_bytes()).map_err(failed)?;
        let mut body = BufReader::new(socket);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            let read = body.read_line(&mut line).map_err(failed)?;
            if read == 0 || line.trim().is_empty() {
                break;
            }
            lines.push(line.trim().to_owned());
        }
        let status = lines.first().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let status = status.ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
        let answer = Answer { head: lines, body };
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let body = answer.text().unwrap_or_default();
        Err(DaemonError::Refused { what: format!("{method} {path}"), status, body })
    }

    /// Asks it to stop as a service manager does; it must end well.
    pub(crate) fn stop(mut self) -> Result<(), DaemonError> {
        let pid = Pid::from_child(&self.child);
        // Ended already, most likely; its status says so.
        let _gone = kill_process(pid, Signal::TERM);
        if !ends_within(pid, STOP) {
            return Err(DaemonError::Stays);
        }
        let status =
            self.child.wait().map_err(|source| DaemonError::Ask { what: "wait".to_owned(), source })?;
        if status.success() {
            return Ok(());
        }
        Err(DaemonError::Ended { status, stderr: logged(&self.scratch) })
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

impl Answer {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.iter().filter_map(|line| line.split_once(':'));
        fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// The whole body.
    pub(crate) fn text(mut self) -> io::Result<String> {
        let mut text = String::new();
        self.body.read_to_string(&mut text)?;
        Ok(text)
    }

    /// The next line of a stream, without its end; None at the end of the stream.
    pub(crate) fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = String::new();
        let read = self.body.read_line(&mut line)?;
        Ok((read > 0).then(|| line.trim_end().to_owned()))
    }
}

/// Ends it at once; its keepers see to what it had started.
fn end(child: &mut Child) {
    // It has ended already, or it is told now: both are fine.
    let _ended = child.kill();
    let _reaped = child.wait();
}

const LOG: &str = "stderr.log";

fn logged(scratch: &TempDir) -> String {
    std::fs::read_to_string(scratch.path().join(LOG)).unwrap_or_default().trim().to_owned()
}

fn beside_this_program() -> PathBuf {
    let here = std::env::current_exe().unwrap_or_default();
    here.with_file_name("acpd")
}

/// acpd with nothing of the user's.
fn command(acpd: &Path, scratch: &Path) -> Command {
    let mut command = child::command(acpd);
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"ACPD_") {
            command.env_remove(name);
        }
    }
    command.env("ACPD_CONFIG", scratch.join("config.toml")).env("ACPD_STORAGE_PATH", scratch.join("state"));
    command.env("ACPD_EXAMPLE_STATE", scratch.join("example")).env("HOME", scratch);
    command.current_dir(scratch).stdin(Stdio::null());
    command
}

/// Waits for the end of a child, without reaping it.
fn ends_within(pid: Pid, within: Duration) -> bool {
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let wait = Timespec { tv_sec: i64::try_from(within.as_secs()).unwrap_or(i64::MAX), tv_nsec: 0 };
    poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&wait)).is_ok_and(|ready| ready > 0)
}
