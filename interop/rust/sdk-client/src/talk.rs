//! From a peer to a finished conversation: start, run the script, end, look for what is left.
//!
//! Invariants: bounded in time, whatever the peer does; on every way out the peer's process group is gone, because
//! the SDK sees to that. What it cannot see to, processes outside that group, is what the look afterwards is for.

use std::error::Error as _;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    SelectedPermissionOutcome, SessionNotification,
};
use agent_client_protocol::{
    AcpAgent, Client, ConnectTo, Error, on_receive_notification, on_receive_request,
};
use tokio::sync::mpsc;

use crate::conversation::{Conversation, Heard, QUEUE, SessionEnded};
use crate::peer::Peer;
use crate::processes::Process;
use crate::trial::Trial;

/// A conversation takes a second or two. This is for a machine that is busy with other builds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why a talk failed.
#[derive(thiserror::Error)]
pub enum TalkError {
    /// acpd is not built here, because it belongs to another workspace.
    #[error("no program at {}; run `cargo build` at the root of the repository first, or set ACPD_BIN", .0.display())]
    NotBuilt(PathBuf),
    /// The trial's directory or the table of processes.
    #[error("cannot prepare or look")]
    System(#[from] std::io::Error),
    /// acpd said something else than where it listens.
    #[error("no daemon: {0}")]
    NoDaemon(String),
    /// The daemon did not end well.
    #[error("the daemon ended with {0}")]
    Daemon(std::process::ExitStatus),
    /// The script failed, or the peer did not end well.
    #[error("the conversation failed")]
    Conversation(#[from] Error),
    /// The peer or the script hangs.
    #[error("not through after {} s", PATIENCE.as_secs())]
    TooSlow,
    /// No process with a mark of acpd was seen, so that a look for leftovers proves nothing.
    #[error("saw no process that acpd supervises")]
    NothingSeen,
    /// Processes outlived the peer.
    #[error("left behind: {0:?}")]
    LeftBehind(Vec<Process>),
}

/// What a test that returns the error shows: the message and its causes.
impl fmt::Debug for TalkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        let mut cause = self.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

/// Runs `script` with a fresh `peer`, which is a process of its own and keeps its state in a directory of its own.
///
/// Everything that is said goes to stderr, where a failing test shows it.
pub async fn talk<R>(
    peer: &Peer,
    script: impl AsyncFnOnce(&mut Conversation<'_>) -> Result<R, Error>,
) -> Result<R, TalkError> {
    let mut trial = Trial::prepare(peer)?;
    let launch = trial.launch(peer);
    if !launch.command().exists() {
        return Err(TalkError::NotBuilt(launch.command().to_owned()));
    }
    let agent = AcpAgent::new(launch).with_debug(|line, direction| eprintln!("{direction:?}: {line}"));
    let outcome = converse(agent, &mut trial, script).await?;

    if matches!(peer, Peer::Hosted { .. }) && !trial.has_seen_supervised() {
        return Err(TalkError::NothingSeen);
    }
    let left = trial.look()?;
    if left.is_empty() { Ok(outcome) } else { Err(TalkError::LeftBehind(left)) }
}

/// Runs `script` over a transport, to its end.
pub(crate) async fn converse<R>(
    transport: impl ConnectTo<Client> + 'static,
    trial: &mut Trial,
    script: impl AsyncFnOnce(&mut Conversation<'_>) -> Result<R, Error>,
) -> Result<R, TalkError> {
    let (says, hears) = mpsc::channel(QUEUE);
    let (ends, asks) = (says.clone(), says.clone());
    let conversation = Client
        .v1()
        .name("sdk-client")
        .on_receive_notification(
            async move |update: SessionNotification, _| {
                says.send(Heard::Update(Box::new(update))).await.map_err(Error::into_internal_error)
            },
            on_receive_notification!(),
        )
        .on_receive_notification(
            async move |ended: SessionEnded, _| {
                ends.send(Heard::Ended(Box::new(ended))).await.map_err(Error::into_internal_error)
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _| {
                let outcome = rejected(&request);
                asks.send(Heard::Asked(Box::new(request))).await.map_err(Error::into_internal_error)?;
                responder.respond(RequestPermissionResponse::new(outcome))
            },
            on_receive_request!(),
        )
        .connect_with(transport, async |agent| script(&mut Conversation::new(agent, hears, trial)).await);
    Ok(tokio::time::timeout(PATIENCE, conversation).await.map_err(|_elapsed| TalkError::TooSlow)??)
}

/// The agent's own way to be refused.
fn rejected(request: &RequestPermissionRequest) -> RequestPermissionOutcome {
    let option = request.options.iter().find(|option| option.kind == PermissionOptionKind::RejectOnce);
    option.map_or(RequestPermissionOutcome::Cancelled, |option| {
        RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
    })
}
