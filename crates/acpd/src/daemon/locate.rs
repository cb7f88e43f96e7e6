//! Which daemon a command talks to: the one that was named, else the one that serves the state directory.

use super::chosen::{
    CA, CONNECT, RECONNECT, Setting, TOKEN, TokenPlace, by_file, by_hand, certificates, said, token_place,
};
use super::error::DaemonError;
use super::request::{Daemon, bearer, token_in};
use super::version::{Version, tell_difference};
use crate::address::{Address, AddressError};
use crate::cli::{Connect, Which};
use crate::config::{Client, Config, Wait};
use crate::exit::Failure;
use crate::local_host::load_config;
use crate::streams::remark;
use acpd_eventlog::migration;
use acpd_gateway::local_holder;
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// How long the local daemon may take to say that it is there.
const THERE: Duration = Duration::from_secs(5);

/// How long a command that cannot go on without a daemon waits for one that was started right before it: in
/// `acpd serve &` and the line below, both processes start at the same time.
const STARTED: Duration = Duration::from_secs(1);
/// The same for one that holds the lock of the state directory, and has not come to its socket.
const STARTING: Duration = Duration::from_secs(10);
/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// Where the daemon of a command is.
pub(crate) enum Chosen {
    /// It is named, so that this machine's configuration says nothing about it.
    Named(Daemon),
    /// It serves the state directory of this configuration, if there is one.
    Here(Box<Config>),
}

/// The daemon that flags, variables and the file choose.
pub(crate) async fn choose(which: &Which) -> Result<Chosen, Failure> {
    let here = which.state_dir.is_some();
    if let Some((url, setting)) = by_hand(&which.connect, here, said(std::env::var_os(CONNECT))) {
        let daemon = daemon_at(&url, setting, &which.connect, None)?.tried_for(reconnect_by_hand()?);
        tell_difference(&daemon).await;
        return Ok(Chosen::Named(daemon));
    }
    let config = load_config(which.config.clone(), which.state_dir.clone())?;
    if let Some((url, setting)) = by_file(&config.client, here, config.file.as_deref()) {
        let daemon = daemon_at(&url, setting, &which.connect, Some(&config.client))?;
        let daemon = daemon.tried_for(config.client.reconnect);
        tell_difference(&daemon).await;
        return Ok(Chosen::Named(daemon));
    }
    Ok(Chosen::Here(Box::new(config)))
}

/// How long a daemon is tried again that the file has no part in.
fn reconnect_by_hand() -> Result<Wait, Failure> {
    match said(std::env::var_os(RECONNECT)) {
        Some(text) => text.parse().map_err(|wrong| Failure::Usage(format!("{RECONNECT}: {wrong}"))),
        None => Ok(Client::default().reconnect),
    }
}

/// What was found where a daemon was looked for.
pub(crate) enum Looked {
    /// A daemon.
    Found(Daemon),
    /// A state directory that none serves.
    Unserved(Box<Config>),
}

/// The daemon that is chosen, if it is there.
pub(crate) async fn look_for(which: Which) -> Result<Looked, Failure> {
    let config = match choose(&which).await? {
        Chosen::Named(daemon) => return Ok(Looked::Found(daemon)),
        Chosen::Here(config) => config,
    };
    Ok(looked(find_daemon(&config.storage.path).await?, config))
}

/// The same, also one that is just starting.
async fn look_patiently(which: Which) -> Result<Looked, Failure> {
    let config = match choose(&which).await? {
        Chosen::Named(daemon) => return Ok(Looked::Found(daemon)),
        Chosen::Here(config) => config,
    };
    Ok(looked(await_daemon(&config.storage.path).await?, config))
}

fn looked(found: Option<Daemon>, config: Box<Config>) -> Looked {
    let found = found.map(|daemon| daemon.tried_for(config.client.reconnect));
    found.map_or_else(|| Looked::Unserved(config), Looked::Found)
}

/// The daemon that is chosen; an error when there is none.
pub(crate) async fn need_daemon(which: Which) -> Result<Daemon, Failure> {
    match look_patiently(which).await? {
        Looked::Found(daemon) => Ok(daemon),
        Looked::Unserved(config) => Err(no_daemon(&config.storage.path)),
    }
}

/// The same for a command that changes something there.
pub(crate) async fn need_daemon_to_change(which: Which) -> Result<Daemon, Failure> {
    match look_patiently(which).await? {
        Looked::Found(daemon) => Ok(daemon.for_a_change()),
        Looked::Unserved(config) => Err(no_daemon(&config.storage.path).within("nothing was done")),
    }
}

/// The daemon that serves a state directory, or does so in a moment.
pub(crate) async fn await_daemon(state_dir: &Path) -> Result<Option<Daemon>, Failure> {
    let begun = Instant::now();
    loop {
        if let Some(daemon) = find_daemon(state_dir).await? {
            return Ok(Some(daemon));
        }
        let patience = if local_holder(state_dir).is_some() { STARTING } else { STARTED };
        if begun.elapsed() >= patience {
            return Ok(None);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// There is none where one was looked for.
pub(crate) fn no_daemon(state_dir: &Path) -> Failure {
    Failure::missing(format!(
        "no daemon serves {}; `acpd serve` starts one, and --connect URL names one elsewhere",
        state_dir.display()
    ))
}

/// A daemon at a URL, with the token and certificates that were given; `client` where the file names it.
fn daemon_at(
    url: &str,
    setting: Setting,
    flags: &Connect,
    client: Option<&Client>,
) -> Result<Daemon, Failure> {
    let address =
        Address::parse(url).map_err(|error: AddressError| Failure::Usage(format!("{setting}: {error}")))?;
    let is_tcp = matches!(address, Address::Tcp { .. });
    let token = match token_place(flags, said(std::env::var_os(TOKEN)), is_tcp, client) {
        Some(TokenPlace::Variable(token)) => Some((token, format!("in {TOKEN}"))),
        Some(TokenPlace::File(file, named_by)) => {
            let place = format!("in {} ({named_by})", file.display());
            let token = token_in(&file)
                .map_err(|error| Failure::Usage(format!("cannot read the token {place}: {error}")))?;
            Some((token, place))
        }
        None => None,
    };
    let authorization = match token {
        None => None,
        Some((token, place)) => Some(bearer(&token).ok_or_else(|| {
            Failure::Usage(format!("what is {place} is no token: it is empty, or not one word of plain text"))
        })?),
    };
    let is_open = matches!(address, Address::Tcp { tls: false, .. }) && !address.is_here();
    if is_open && authorization.is_some() {
        tracing::warn!("the token goes to {address} unencrypted; https keeps it from others on the way");
    }
    let ca = certificates(flags, said(std::env::var_os(CA)), client);
    Ok(Daemon::new(address, authorization, ca).named_by(setting))
}

/// The daemon that serves a state directory through its socket, if one answers there. One that migrates the directory first is waited
/// for, however long that takes.
pub(crate) async fn find_daemon(state_dir: &Path) -> Result<Option<Daemon>, Failure> {
    let mut is_told = false;
    loop {
        // It may come to an end while it is asked, or begin.
        let was_migrating = is_migrating(state_dir);
        let found = ask_daemon(state_dir).await;
        if matches!(found, Ok(Some(_))) || !was_migrating && !is_migrating(state_dir) {
            return found;
        }
        if !std::mem::replace(&mut is_told, true) {
            remark("waiting for the daemon, which moves the sessions of an earlier acpd to files");
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Returns true if a daemon is there that has not come to its socket because it migrates the state directory.
fn is_migrating(state_dir: &Path) -> bool {
    migration::is_begun(state_dir) && local_holder(state_dir).is_some()
}

/// The daemon that answers now.
///
/// A socket without a listener was left behind by a daemon that was killed. One that takes a connection and
/// does not answer is an error: the sessions are not hosted beside a daemon that may well live.
async fn ask_daemon(state_dir: &Path) -> Result<Option<Daemon>, Failure> {
    let elsewhere = said(std::env::var_os(TOKEN)).and_then(|token| bearer(&token));
    let daemon =
        Daemon::new(Address::Local(state_dir.to_owned()), None, None).with_token_elsewhere(elsewhere);
    match daemon.get_within::<Version>("/v1/health", THERE).await {
        Ok(version) => {
            version.tell();
            Ok(Some(daemon))
        }
        Err(DaemonError::Absent { .. }) => Ok(None),
        // It is there, and says that it is not well; what is asked of it next will tell.
        Err(DaemonError::Refused { .. }) => Ok(Some(daemon)),
        // It was there a moment ago: so does this.
        Err(error) if error.was_there() => Ok(Some(daemon)),
        Err(error) => Err(error.into()),
    }
}
