//! From the POST of a request to its answer, next to sandbox-agent, whose clients acpd can be used by (docs/migration.md).
//!
//! Both have the example agent behind them and take turns in blocks. sandbox-agent answers the POST itself; acpd answers it with
//! 202, and the request on the stream of its connection. The program comes with `npm ci` in `interop/typescript`; without it
//! nothing is measured, and that is said. Invariant: its state and its agent's are in the scratch directory, and it is told to
//! call nobody.

use super::client::{Client, Peer, Wire, prompt};
use super::programs::Programs;
use super::progress;
use super::report::Figure;
use super::samples::{in_both_places, median, now, percentile};
use acpd_testkit::{Http, PATIENCE, Scratch, initialize, nats_place as place};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The version of `interop/typescript/package.json`.
const VERSION: &str = "0.4.2";
/// Where its packages have the program, one for each platform.
const PACKAGES: &str = "interop/typescript/node_modules/@sandbox-agent";
/// The share of its time that acpd may take.
const SHARE: f64 = 0.8;
/// Requests of each kind and side that count, after those that do not, in turns of a block.
const REQUESTS: usize = 4_000;
const WARM_UP: usize = 500;
const BLOCK: usize = 250;
/// What is asked, by what method.
const KINDS: [(&str, &str); 2] = [("a request", "_example/ping"), ("a prompt", "session/prompt")];

/// With a program that is named on the command line, or the one that npm has put there.
pub(super) fn measure(
    programs: &Programs,
    given: Option<&Path>,
    root: &Path,
) -> Result<(Vec<Figure>, String)> {
    let Some(program) = given.map(Path::to_owned).or_else(|| installed(root)) else {
        let missing =
            "sandbox-agent: not measured, as it is not there; `npm ci` in interop/typescript installs it";
        return Ok((Vec::new(), missing.to_owned()));
    };
    let program = program.canonicalize().with_context(|| format!("cannot use {}", program.display()))?;
    let figures = in_both_places(|place, limited| {
        progress(format_args!("sandbox-agent{place}: {REQUESTS} requests of each kind to each side"));
        measure_in(programs, &program, place, limited)
    });
    let remark = format!(
        "from POST to answer: medians of {REQUESTS} requests each, in turns of {BLOCK}; direct is sandbox-agent {VERSION} with \
         the same agent"
    );
    Ok((figures, remark))
}

fn measure_in(programs: &Programs, program: &Path, place: &str, limited: bool) -> Vec<Figure> {
    let scratches = [programs.scratch(), programs.scratch()];
    let server = Server::start(program, programs, &scratches[0]);
    let mut daemon = programs.serve(&scratches[1]);
    let mut other = server.client();
    let named = other.new_session();
    let (mut acpd, own) = Client::over_http(&daemon);
    let sessions = [named, own];
    let mut figures = Vec::new();
    for (what, method) in KINDS {
        let params = sessions.each_ref().map(|session| match method {
            "session/prompt" => prompt(session, "hi").to_string(),
            _ => json!({"sessionId": session}).to_string(),
        });
        let mut times = [Vec::new(), Vec::new()];
        for block in 0..(WARM_UP + REQUESTS) / BLOCK {
            let took = [timed(&mut other, method, &params[0]), timed(&mut acpd, method, &params[1])];
            other.wire.drain();
            for (all, took) in times.iter_mut().zip(took).filter(|_| block >= WARM_UP / BLOCK) {
                all.extend(took);
            }
        }
        let name = format!("POST of {what} to its answer{place}");
        let figure = Figure::new(&*name, "us", times.each_mut().map(|times| median(times)));
        figures.push(if limited { figure.at_most(SHARE) } else { figure });
        let slow = times.each_mut().map(|times| percentile(times, 99));
        figures.push(Figure::new(format!("{name}, p99"), "us", slow));
    }
    drop((other, acpd));
    daemon.stop();
    figures
}

/// The times of a block, whose last answer must be good.
fn timed<W: Wire>(client: &mut Client<W>, method: &str, params: &str) -> Vec<f64> {
    let took = (0..BLOCK).map(|_| client.timed(method, params)[1]).collect();
    let answer = client.wire.answer();
    assert!(answer.get("result").is_some(), "{method}: {answer}");
    took
}

/// The program among the packages that npm has installed: the one for this machine, the only one that it installs.
fn installed(root: &Path) -> Option<PathBuf> {
    let packages = fs::read_dir(root.join(PACKAGES)).ok()?.flatten();
    let programs = packages.filter(|package| is_of_a_platform(&package.file_name().to_string_lossy()));
    programs.map(|package| package.path().join("bin/sandbox-agent")).find(|program| program.is_file())
}

/// Packages beside these have what is the same for all.
fn is_of_a_platform(package: &str) -> bool {
    package.strip_prefix("cli-").is_some_and(|platform| platform.contains('-'))
}

/// A running sandbox-agent, which goes with this.
struct Server {
    address: SocketAddr,
    _process: Peer,
}

impl Server {
    /// Its agent "mock" is ours: it runs what is there under that name.
    fn start(program: &Path, programs: &Programs, scratch: &Scratch) -> Self {
        let data = scratch.path("data");
        let agents = data.join("sandbox-agent/bin/agent_processes");
        fs::create_dir_all(&agents).expect("a scratch directory has room");
        let agent = agents.join("mock-acp");
        fs::write(&agent, script(&programs.acpd)).expect("a scratch directory has room");
        fs::set_permissions(&agent, PermissionsExt::from_mode(0o755)).expect("it is ours");
        let address = place(1)[0];
        let mut command = scratch.command(program);
        command.env("XDG_DATA_HOME", &data).stderr(Stdio::null());
        command.args(["server", "--no-token", "--no-telemetry", "--host"]).arg(address.ip().to_string());
        command.arg("--port").arg(address.port().to_string());
        let server = Self { address, _process: Peer::start(command) };
        let begun = now();
        while TcpStream::connect(address).is_err() {
            assert!(begun.elapsed() < PATIENCE, "sandbox-agent does not listen");
            std::thread::yield_now();
        }
        server
    }

    /// A client with a connection, and with the stream of what is not asked for.
    fn client(&self) -> Client<OverPost> {
        let mut posts = Http::on(acpd_testkit::connect(self.address));
        let hello = posts.request("POST", &format!("{PATH}?agent=mock"), &HEADERS, &initialize().to_string());
        assert_eq!(hello.status, 200, "{}", String::from_utf8_lossy(&hello.body));
        let news =
            Http::on(acpd_testkit::connect(self.address)).events(PATH, &[]).expect("a stream of events");
        Client::new(OverPost { posts, news: news.socket(), answer: Vec::new() })
    }
}

/// Where a client of sandbox-agent has its connection, by a name that it chooses.
const PATH: &str = "/v1/acp/bench";
const HEADERS: [(&str, &str); 1] = [("Content-Type", "application/json")];

fn script(acpd: &Path) -> String {
    let quoted = acpd.display().to_string().replace('\'', r"'\''");
    format!("#!/bin/sh\nexec '{quoted}' example-agent\n")
}

/// One socket for requests, whose answers come back on it, and one for what else the agent says.
struct OverPost {
    posts: Http,
    news: TcpStream,
    answer: Vec<u8>,
}

impl OverPost {
    /// Reads what has come without being asked for, which is not measured.
    fn drain(&mut self) {
        self.news.set_nonblocking(true).expect("it is a socket");
        let mut space = vec![0; 64 * 1024];
        while self.news.read(&mut space).is_ok_and(|count| count > 0) {}
    }
}

impl Wire for OverPost {
    fn send(&mut self, message: &str) {
        let answer = self.posts.request("POST", PATH, &HEADERS, message);
        assert_eq!(answer.status, 200, "to {message}");
        self.answer = answer.body;
    }

    /// It has come with the POST.
    fn wait_for(&mut self, id: u64) {
        let mark = format!("\"id\":{id},");
        assert!(
            memchr::memmem::find(&self.answer, mark.as_bytes()).is_some(),
            "another answer than that to {id}"
        );
    }

    fn answer(&self) -> Value {
        serde_json::from_slice(&self.answer).expect("an answer is JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_that_of_the_platform() {
        for (package, expected) in
            [("cli", false), ("cli-shared", false), ("cli-linux-x64", true), ("cli-darwin-arm64", true)]
        {
            assert_eq!(is_of_a_platform(package), expected, "{package}");
        }
        let root = tempfile::tempdir().expect("a scratch directory");
        assert_eq!(installed(root.path()), None, "nothing is installed");
        for package in ["cli", "cli-linux-x64"] {
            let bin = root.path().join(PACKAGES).join(package).join("bin");
            fs::create_dir_all(&bin).expect("made");
            fs::write(bin.join("sandbox-agent"), package).expect("written");
        }
        let found = installed(root.path()).map(fs::read);
        assert_eq!(found.and_then(Result::ok), Some(b"cli-linux-x64".to_vec()));
    }

    #[test]
    fn the_agent_is_run_whatever_the_path_is() {
        assert_eq!(script(Path::new("/a b/it's")), "#!/bin/sh\nexec '/a b/it'\\''s' example-agent\n");
    }
}
