//! Where the sessions of `acpd run` and `acpd stdio` are hosted: by a daemon, or in this process.

use crate::cli::{HostLocation, Which};
use crate::commands::shown;
use crate::config::Config;
use crate::daemon::{Chosen, Daemon, Setting, await_daemon, choose, find_daemon};
use crate::daemon_config::{DaemonConfig, ELSEWHERE};
use crate::exit::Failure;
use crate::local_host::load_config;
use crate::streams::remark;
use acpd_wire::DEFAULT_LINE_LIMIT;
use std::path::{Path, PathBuf};

/// Where sessions are hosted.
pub(crate) enum Hosting {
    /// By a daemon.
    Daemon(Box<Hosted>),
    /// In this process.
    Here(Box<Config>),
}

/// A daemon that hosts them.
pub(crate) struct Hosted {
    pub(crate) daemon: Daemon,
    /// The longest line of a client, in bytes.
    pub(crate) line_limit: usize,
    /// Whose agents they are, and how the daemon comes to know others.
    pub(crate) configuration: String,
}

impl Hosting {
    /// By the daemon that is chosen, else by the one that serves the state directory, else here. One that was named in
    /// vain is said so.
    /// `needs_daemon`: the command cannot be served here, so that it waits for a daemon that is just starting.
    pub(crate) async fn find(location: HostLocation, needs_daemon: bool) -> Result<Self, Failure> {
        let HostLocation { config, state_dir, embedded, connect } = location;
        if embedded {
            return Ok(Self::Here(Box::new(load_config(config, state_dir)?)));
        }
        let which = Which { connect, config, state_dir };
        let config = match choose(&which).await? {
            Chosen::Named(daemon) => {
                warn_of_unused(&daemon, which.config.as_deref());
                let (line_limit, configuration) = (DEFAULT_LINE_LIMIT, ELSEWHERE.to_owned());
                return Ok(Self::Daemon(Box::new(Hosted { daemon, line_limit, configuration })));
            }
            Chosen::Here(config) => config,
        };
        let found = match needs_daemon {
            true => await_daemon(&config.storage.path).await?,
            false => find_daemon(&config.storage.path).await?,
        };
        let Some(daemon) = found else {
            return Ok(Self::Here(config));
        };
        let (own, given) = (DaemonConfig::of(&config.storage.path), which.config.as_deref());
        let configuration = own.as_ref().map_or_else(|| ELSEWHERE.to_owned(), |own| own.words(given));
        if given.is_some() && own.is_some_and(|own| own.is_another(given)) {
            warn(&configuration);
        }
        let daemon = daemon.tried_for(config.client.reconnect);
        Ok(Self::Daemon(Box::new(Hosted { daemon, line_limit: config.limits.line_bytes, configuration })))
    }
}

/// The flags that say which daemon it is.
pub(crate) fn reach(location: &HostLocation) -> String {
    let place = |flag: &str, path: &Option<PathBuf>| {
        path.as_ref().map(|path| format!(" {flag} {}", shown(&path.to_string_lossy()))).unwrap_or_default()
    };
    match &location.connect.connect {
        Some(url) => {
            let url = format!(" --connect {}", shown(url));
            url + &place("--token-file", &location.connect.token_file) + &place("--ca", &location.connect.ca)
        }
        None => place("--config", &location.config) + &place("--state-dir", &location.state_dir),
    }
}

/// A configuration that was named beside a daemon elsewhere is not read, unless it is what names the daemon.
pub(crate) fn warn_of_unused(daemon: &Daemon, given: Option<&Path>) {
    if let Some(given) = given
        && !matches!(daemon.setting(), Some(Setting::Section(_)))
    {
        warn(&format!("{} is not read: {ELSEWHERE}", shown(&given.to_string_lossy())));
    }
}

fn warn(text: &str) {
    let style = anstyle::AnsiColor::Yellow.on_default().bold();
    remark(&format!("{style}warning{style:#}: {text}"));
}
