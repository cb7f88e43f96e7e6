//! `acpd serve`, and conversations with it over the SDK's own HTTP and WebSocket transport.
//!
//! Invariants: it has one token, so that every client presents one; it is gone when it was stopped or let go of, and
//! [`Daemon::stop`] looks for what it left behind. The SDK's client is used as it comes but for the header of the token.

use std::process::Stdio;

use agent_client_protocol_http::HttpClient;
use http::{HeaderMap, HeaderValue, header};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::Error;
use crate::conversation::Conversation;
use crate::peer::{GRACES, Peer, acpd};
use crate::talk::{TalkError, converse};
use crate::trial::Trial;

const FIRST_WORDS: &str = "listening on http://";

/// How to reach a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// POST and event streams.
    Http,
    /// One socket.
    WebSocket,
}

impl Transport {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::Http, Self::WebSocket];
}

/// A daemon that runs.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    address: String,
    token: HeaderValue,
    trial: Trial,
    /// Held, so that the daemon's stdout stays open.
    _stdout: Lines<BufReader<ChildStdout>>,
}

impl Daemon {
    /// Starts one on a free port, with a state directory of its own.
    pub async fn start() -> Result<Self, TalkError> {
        let trial = Trial::with_config(Some(GRACES))?;
        if !acpd().exists() {
            return Err(TalkError::NotBuilt(acpd()));
        }
        let made = command(&trial).args(["token", "new", "interop", "--scope", "control"]).output().await?;
        let token = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        let token = HeaderValue::try_from(format!("Bearer {token}"));
        let token = token.map_err(|_| TalkError::NoDaemon("its token is no header".to_owned()))?;
        let mut serve = command(&trial);
        serve.args(["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = serve.spawn()?;
        let mut stdout = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let said = stdout.next_line().await?.unwrap_or_default();
        let Some(address) = said.strip_prefix(FIRST_WORDS).map(str::to_owned) else {
            return Err(TalkError::NoDaemon(said));
        };
        Ok(Self { child, address, token, trial, _stdout: stdout })
    }

    /// Runs `script` as a client of its own.
    pub async fn talk<R>(
        &self,
        transport: Transport,
        script: impl AsyncFnOnce(&mut Conversation<'_>) -> Result<R, Error>,
    ) -> Result<R, TalkError> {
        let scheme = match transport {
            Transport::Http => "http",
            Transport::WebSocket => "ws",
        };
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, self.token.clone())]);
        let client = HttpClient::builder(format!("{scheme}://{}", self.address))
            .configure_http(|http| http.default_headers(headers).no_proxy())
            .build()
            .map_err(Error::into_internal_error)?;
        converse(client, &mut self.trial.clone(), script).await
    }

    /// Stops it as a service manager does. It must end well and leave no process.
    pub async fn stop(mut self) -> Result<(), TalkError> {
        if let Some(pid) = self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())) {
            kill_process(pid, Signal::TERM).map_err(std::io::Error::from)?;
        }
        let status = self.child.wait().await?;
        if !status.success() {
            return Err(TalkError::Daemon(status));
        }
        let left = self.trial.look()?;
        if left.is_empty() { Ok(()) } else { Err(TalkError::LeftBehind(left)) }
    }
}

fn command(trial: &Trial) -> Command {
    let mut command = Command::new(acpd());
    let at = |name: &str| trial.directory().join(name);
    let (mark, value) = trial.mark();
    command.env(mark, value).env("ACPD_CONFIG", at(Peer::CONFIG_FILE));
    command.env("ACPD_STORAGE_PATH", at("state")).env("ACPD_EXAMPLE_STATE", at("example-agent"));
    command.stdin(Stdio::null());
    command
}
