//! One test's world: a state directory, a working directory, a configuration, and a mark on every process.
//!
//! Invariant: when it is dropped, no process of it lives and its logs are legal; a test that left another world fails.

use crate::binary::acpd;
use crate::client::Client;
use crate::process::{Exit, exit_of};
use crate::run_mark::{RunMark, scratch_prefix};
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with};
use serde_json::json;
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;
use tempfile::TempDir;

/// What the stop ladder takes at most with the graces of a scratch configuration.
pub const GRACES: Duration = Duration::from_millis(400);

/// The directories, configuration and mark of one test.
#[derive(Debug)]
pub struct Scratch {
    dir: TempDir,
    mark: RunMark,
    timeouts: Vec<(String, String)>,
    keep: Option<String>,
    rest: String,
    /// Sockets on the ports of its daemons.
    ports: Mutex<Vec<OwnedFd>>,
    /// Why its logs are not judged.
    exempt: OnceLock<&'static str>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Scratch {
    /// A world with short graces: 100 ms from stdin to SIGTERM, 300 ms from there to SIGKILL.
    pub fn new() -> Self {
        Self::with_default_graces().timeout("stdin_grace", "100ms").timeout("term_grace", "300ms")
    }

    /// A world with the graces that users have.
    ///
    /// # Panics
    /// When no directory can be made.
    pub fn with_default_graces() -> Self {
        let prefix = scratch_prefix(std::process::id());
        Self::in_directory(tempfile::Builder::new().prefix(&prefix).tempdir().expect("a scratch directory"))
    }

    /// The same in a directory that is there, which goes with it.
    ///
    /// # Panics
    /// When it cannot be used.
    pub fn in_directory(dir: TempDir) -> Self {
        std::fs::create_dir(dir.path().join("work")).expect("a directory in it");
        let mark = RunMark::new(dir.path());
        let (timeouts, rest) = (Vec::new(), String::new());
        let keep = std::env::var("ACPD_TEST_KEEP").ok();
        Self { dir, mark, timeouts, keep, rest, ports: Mutex::default(), exempt: OnceLock::new() }
    }

    /// Sets a key of `[timeouts]`.
    #[must_use]
    pub fn timeout(mut self, key: &str, value: &str) -> Self {
        self.timeouts.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Agents outlive their daemon for so long; else for as long as `ACPD_TEST_KEEP` says, or as acpd has it by itself.
    #[must_use]
    pub fn keep(mut self, keep: &str) -> Self {
        self.keep = Some(keep.to_owned());
        self
    }

    /// Adds other sections.
    #[must_use]
    pub fn config(mut self, toml: &str) -> Self {
        self.rest.push_str(toml);
        self.rest.push('\n');
        self
    }

    /// Without what was added to the configuration so far.
    #[must_use]
    pub fn bare(mut self) -> Self {
        self.rest.clear();
        self
    }

    /// Adds an agent.
    #[must_use]
    pub fn agent(self, name: &str, command: impl AsRef<Path>, args: &[String]) -> Self {
        // JSON's strings and arrays are TOML's, as far as these go.
        let (command, args) = (json!(command.as_ref()), json!(args));
        self.config(&format!("[agents.{name}]\ncommand = {command}\nargs = {args}"))
    }

    /// Adds the example agent under another name and with arguments of its own.
    #[must_use]
    pub fn example(self, name: &str, args: &[&str]) -> Self {
        let args: Vec<String> =
            std::iter::once("example-agent").chain(args.iter().copied()).map(str::to_owned).collect();
        self.agent(name, acpd(), &args)
    }

    /// Adds an agent in shell.
    #[must_use]
    pub fn shell(self, name: &str, args: &[String]) -> Self {
        self.agent(name, "sh", args)
    }

    /// Its logs are not judged at its end, because the test damages one on purpose.
    pub fn exempt_logs(&self, reason: &'static str) {
        // The first reason stands.
        let _was_exempt = self.exempt.set(reason);
    }

    /// Where sessions work.
    pub fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// Where acpd keeps its state.
    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// A path in the scratch directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The mark on every process of this test.
    pub fn mark(&self) -> &RunMark {
        &self.mark
    }

    /// Writes the configuration and names its file.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn config_file(&self) -> PathBuf {
        let mut toml = String::from("[timeouts]\n");
        for (key, value) in &self.timeouts {
            writeln!(toml, "{key} = \"{value}\"").expect("a string takes text");
        }
        if let Some(keep) = &self.keep {
            writeln!(toml, "[continuity]\nkeep = \"{keep}\"").expect("a string takes text");
        }
        toml.push_str(&self.rest);
        let path = self.path("config.toml");
        std::fs::write(&path, toml).expect("the configuration is written");
        path
    }

    /// A program with this test's mark and homes and without the caller's `ACPD_*` variables.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        crate::signals::restore();
        #[expect(
            clippy::disallowed_methods,
            reason = "the harness starts acpd as an editor would, with no keeper"
        )]
        let mut command = Command::new(program.as_ref());
        let (name, value) = self.mark.variable();
        command.env(name, value).env("HOME", self.dir.path()).env("NO_COLOR", "1");
        for (own, _) in std::env::vars_os().filter(|(own, _)| own.as_encoded_bytes().starts_with(b"ACPD_")) {
            command.env_remove(own);
        }
        for xdg in ["XDG_STATE_HOME", "XDG_CONFIG_HOME"] {
            command.env_remove(xdg);
        }
        command.current_dir(self.work());
        command
    }

    /// Writes a script that can be run. Another process writes it: a program that starts meanwhile in this one would inherit the
    /// open file, and what is open for writing cannot be run.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write_program(&self, file: &Path, script: &str) {
        let mut command = self.command("sh");
        command.args(["-c", "cat >\"$1\" && chmod 755 \"$1\"", "sh"]).arg(file).stdin(Stdio::piped());
        let mut child = command.spawn().expect("sh starts");
        let mut input = child.stdin.take().expect("it is piped");
        std::io::Write::write_all(&mut input, script.as_bytes()).expect("it is read");
        drop(input);
        assert!(child.wait().expect("it is our child").success(), "{} is written", file.display());
    }

    /// Copies acpd to where nothing runs yet; by another process, as [`Self::write_program`] does it.
    ///
    /// # Panics
    /// When there is no room.
    pub fn copy_acpd(&self, file: &Path) {
        let copied = self.command("cp").arg(acpd()).arg(file).status();
        assert!(copied.expect("cp is there").success(), "{} is written", file.display());
    }

    /// Whether a program can be run by its name here.
    pub fn finds(&self, program: &str) -> bool {
        let mut command = self.command(program);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    /// A client of `acpd stdio` for an agent.
    pub fn stdio(&self, agent: &str) -> Client {
        let mut command = self.command(acpd());
        command.arg("stdio").arg("--agent").arg(agent);
        command.arg("--state-dir").arg(self.state()).arg("--config").arg(self.config_file());
        self.client(command)
    }

    /// A client of a program that speaks ACP on its pipes.
    pub fn client(&self, command: Command) -> Client {
        Client::start(command, self)
    }

    /// An initialized client of `acpd stdio` with one session.
    pub fn session(&self, agent: &str) -> (Client, String) {
        let mut client = self.stdio(agent);
        client.initialize();
        let session = client.new_session();
        (client, session)
    }

    /// A free port of the loopback address, as long as this scratch is there, as [`held_port`] gives it.
    ///
    /// # Panics
    /// When there is none.
    pub fn hold_port(&self) -> SocketAddr {
        let (socket, address) = held_port();
        self.ports.lock().expect("nobody panics there").push(socket);
        address
    }

    /// Runs `acpd` to its end, without input: how it ended, stdout and stderr.
    ///
    /// # Panics
    /// When it does not end.
    pub fn run(&self, args: &[&str]) -> (Exit, String, String) {
        let mut command = self.command(acpd());
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("acpd starts");
        let stdout = crate::lines::text_of(child.stdout.take().expect("it is piped"));
        let stderr = crate::lines::text_of(child.stderr.take().expect("it is piped"));
        let Some(exit) = exit_of(&mut child, crate::PATIENCE) else {
            self.mark.kill_all();
            panic!("`acpd {}` did not end; stderr: {:?}", args.join(" "), stderr.recv());
        };
        let text = |pipe: std::sync::mpsc::Receiver<String>| {
            pipe.recv_timeout(crate::PATIENCE).expect("its pipes end with it")
        };
        (exit, text(stdout), text(stderr))
    }
}

/// A free port of the loopback address, as long as the socket is there: the system gives it to nobody who takes any port, also while
/// nothing listens there. Who names it can listen.
///
/// # Panics
/// When there is none.
pub fn held_port() -> (OwnedFd, SocketAddr) {
    let cloexec = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, cloexec, None).expect("a socket");
    set_socket_reuseaddr(&socket, true).expect("it is a socket");
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let address = getsockname(&socket).expect("it is bound").try_into().expect("an address of the internet");
    (socket, address)
}

#[cfg(feature = "logs")]
impl Scratch {
    /// Every log in it is legal.
    fn judge_logs(&self) {
        if let Some(reason) = self.exempt.get() {
            eprintln!("the logs of this test are not judged: {reason}");
            return;
        }
        for state in crate::legality::state_directories(self.dir.path()) {
            if let Err(illegal) = crate::legality::judge_log(&state) {
                panic!("the test left a log that is not legal: {illegal}");
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.mark.kill_all();
            return;
        }
        if let Err(living) = self.mark.only_left(&[]) {
            self.mark.kill_all();
            panic!("processes outlived the test: {living:#?}");
        }
        #[cfg(feature = "logs")]
        self.judge_logs();
    }
}
