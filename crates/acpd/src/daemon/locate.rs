//! Which daemon a command talks to: the one that was named, else the one that serves the state directory.

use super::address::{Address, AddressError};
use super::error::DaemonError;
use super::request::{Daemon, bearer, token_in};
use crate::cli::{Connect, Which};
use crate::exit::Failure;
use crate::local_host::load_config;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the local daemon may take to say that it is there.
const THERE: Duration = Duration::from_secs(5);

/// The daemon at a location; an error when there is none.
pub(crate) async fn need_daemon(which: Which) -> Result<Daemon, Failure> {
    if let Some(daemon) = named(&which.connect)? {
        return Ok(daemon);
    }
    let config = load_config(which.config, which.state_dir)?;
    let state_dir = &config.storage.path;
    find_daemon(state_dir).await?.ok_or_else(|| {
        Failure::missing(format!(
            "no daemon serves {}; `acpd serve` starts one, and --connect URL names one elsewhere",
            state_dir.display()
        ))
    })
}

/// The daemon that `--connect` names, if it does.
pub(crate) fn named(connect: &Connect) -> Result<Option<Daemon>, Failure> {
    let Some(url) = &connect.connect else { return Ok(None) };
    let address =
        Address::parse(url).map_err(|error: AddressError| Failure::Usage(format!("--connect: {error}")))?;
    daemon_at(address, connect).map(Some)
}

/// A daemon at an address, with the token and certificates that were given.
fn daemon_at(address: Address, connect: &Connect) -> Result<Daemon, Failure> {
    let token = match &connect.token_file {
        Some(file) => Some((token_in(file).map_err(Failure::Usage)?, format!("in {}", file.display()))),
        // The local socket asks for none, and one that is meant for another daemon would only be refused.
        None if !matches!(address, Address::Tcp { .. }) => None,
        None => std::env::var_os("ACPD_TOKEN")
            .filter(|token| !token.is_empty())
            .map(|token| (token.to_string_lossy().into_owned(), "in ACPD_TOKEN".to_owned())),
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
    let ca = connect
        .ca
        .clone()
        .or_else(|| std::env::var_os("ACPD_CA").filter(|file| !file.is_empty()).map(PathBuf::from));
    Ok(Daemon::new(address, authorization, ca))
}

/// The daemon that serves a state directory through its socket, if one answers there.
///
/// A socket without a listener was left behind by a daemon that was killed. One that takes a connection and
/// does not answer is an error: the sessions are not hosted beside a daemon that may well live.
pub(crate) async fn find_daemon(state_dir: &Path) -> Result<Option<Daemon>, Failure> {
    let daemon = Daemon::new(Address::Local(state_dir.to_owned()), None, None);
    match daemon.get_within::<Value>("/v1/health", THERE).await {
        Ok(_) => Ok(Some(daemon)),
        Err(DaemonError::Absent { .. }) => Ok(None),
        // It is there, and says that it is not well; what is asked of it next will tell.
        Err(DaemonError::Refused { .. }) => Ok(Some(daemon)),
        // It was there a moment ago: so does this.
        Err(error) if error.was_there() => Ok(Some(daemon)),
        Err(error) => Err(error.into()),
    }
}
