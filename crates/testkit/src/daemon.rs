//! A daemon: `acpd serve` on a port that the system picks, in the state directory of a scratch.
//!
//! Invariant: a test that stops it in good order sees exit code 0 and nothing left; one that fails leaves nothing either.

use crate::binary::acpd;
use crate::clock::until;
use crate::http::Http;
use crate::lines::{Lines, Next, text_of};
use crate::process::{Exit, exit_of, has_no_zombies, suspend};
use crate::run_mark::RunMark;
use crate::scratch::Scratch;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// A daemon that listens.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    address: SocketAddr,
    socket: PathBuf,
    stderr: Receiver<String>,
    mark: RunMark,
    ended: bool,
}

/// A connection to a daemon, for a test that knows only its address; otherwise [`Daemon::connect`].
///
/// # Panics
/// When it does not accept.
pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the daemon accepts");
    stream.set_nodelay(true).expect("it is a TCP socket");
    stream.set_read_timeout(Some(crate::PATIENCE)).expect("the time is not zero");
    stream.set_write_timeout(Some(crate::PATIENCE)).expect("the time is not zero");
    stream
}

impl Scratch {
    /// Starts a daemon on a free port of the loopback address. When it has ended, another one can listen there.
    pub fn serve(&self) -> Daemon {
        self.serve_on(&self.hold_port().to_string())
    }

    /// Starts a daemon that listens there, with the configuration and the state directory of this scratch.
    ///
    /// # Panics
    /// When it does not say where it listens.
    pub fn serve_on(&self, listen: &str) -> Daemon {
        self.serve_by(self.command(acpd()), listen)
    }

    /// Starts a daemon by a command that takes the arguments of `acpd`.
    ///
    /// # Panics
    /// When it does not say where it listens.
    pub fn serve_by(&self, mut command: Command, listen: &str) -> Daemon {
        command.arg("serve").args(["--listen", listen]).arg("--state-dir").arg(self.state());
        command.arg("--config").arg(self.config_file());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("acpd starts");
        let stderr = text_of(child.stderr.take().expect("it is piped"));
        let stdout = Lines::of(child.stdout.take().expect("it is piped"));
        let first = match stdout.next(crate::PATIENCE) {
            Next::Line { bytes, .. } => String::from_utf8_lossy(&bytes).into_owned(),
            other => {
                let _gone = child.kill();
                let _reaped = child.wait();
                panic!("acpd does not listen ({other:?}); stderr: {:?}", stderr.recv());
            }
        };
        let address = first.split("://").nth(1).and_then(|address| address.trim().parse().ok());
        let address = address.unwrap_or_else(|| panic!("this is no address: {first}"));
        let socket = self.state().join("acpd.sock");
        Daemon { child, address, socket, stderr, mark: self.mark().clone(), ended: false }
    }
}

impl Daemon {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same as `http://HOST:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.socket.clone()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A connection to it. Reads that wait for longer than a test does fail.
    ///
    /// # Panics
    /// When it does not accept.
    pub fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// When it is gone already.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("the daemon lives");
    }

    /// Waits until it is ready, and gives what it answers then: on a busy machine its log may be too slow to say so at once.
    ///
    /// # Panics
    /// When it never is.
    pub fn until_ready(&self) -> Value {
        let ask = || Http::on(self.connect()).request("GET", "/v1/ready", &[], "");
        until("it is ready", || Some(ask()).filter(|answer| answer.status == 200)).json()
    }

    /// Stops it by SIGSTOP, and waits until all of it stands still.
    ///
    /// # Panics
    /// When it is gone already.
    pub fn suspend(&self) {
        suspend(self.pid());
    }

    /// Kills it, as a crash would, and waits for its end.
    ///
    /// # Panics
    /// When it does not end.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        assert_eq!(self.wait(), Exit::Signal(9));
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end.
    pub fn wait(&mut self) -> Exit {
        let Some(exit) = exit_of(&mut self.child, crate::PATIENCE) else { self.give_up("it did not end") };
        self.ended = true;
        exit
    }

    /// Stops it in good order: exit code 0, nothing left. What it wrote to stderr.
    ///
    /// # Panics
    /// When it is otherwise.
    pub fn stop(&mut self) -> String {
        has_no_zombies(self.pid());
        self.signal(Signal::TERM);
        self.expect_good_end()
    }

    /// Expects an end in good order. What it wrote to stderr.
    ///
    /// # Panics
    /// When it is otherwise.
    pub fn expect_good_end(&mut self) -> String {
        let exit = self.wait();
        if let Err(living) = self.mark.only_left(&[]) {
            self.give_up(&format!("processes outlived it: {living:#?}"));
        }
        let stderr = self.stderr.recv_timeout(crate::PATIENCE).expect("the pipe ends with its writers");
        assert_eq!(exit, Exit::Code(0), "stderr: {stderr}");
        stderr
    }

    fn give_up(&mut self, why: &str) -> ! {
        self.mark.kill_all();
        let stderr = self.stderr.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
        panic!("{why}\nstderr: {stderr}");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
        if std::thread::panicking()
            && let Ok(stderr) = self.stderr.recv_timeout(Duration::from_secs(1))
        {
            eprintln!("stderr of the daemon: {stderr}");
        }
    }
}
