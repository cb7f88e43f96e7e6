//! Where the sessions of `acpd run` and `acpd stdio` are hosted: by a daemon, or in this process.

use crate::cli::Places;
use crate::config::Config;
use crate::daemon::{Daemon, find_daemon, named};
use crate::embedded::load_config;
use crate::exit::Failure;
use acpd_wire::DEFAULT_LINE_LIMIT;

/// Where sessions are hosted.
pub(crate) enum Hosting {
    /// By a daemon; lines of a client have this limit, in bytes.
    Daemon(Box<Daemon>, usize),
    /// In this process.
    Here(Box<Config>),
}

impl Hosting {
    /// By the daemon that is named, else by the one that serves the state directory, else here. The configuration is
    /// this machine's, so it is not read for a daemon that is named.
    pub(crate) async fn find(places: Places) -> Result<Self, Failure> {
        if let Some(daemon) = named(&places.connect)? {
            return Ok(Self::Daemon(Box::new(daemon), DEFAULT_LINE_LIMIT));
        }
        let config = load_config(places.config, places.state_dir)?;
        if !places.embedded
            && let Some(daemon) = find_daemon(&config.storage.path).await?
        {
            return Ok(Self::Daemon(Box::new(daemon), config.limits.line_bytes));
        }
        Ok(Self::Here(Box::new(config)))
    }
}
