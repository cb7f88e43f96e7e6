//! The configuration's file as commands change it: an entry at a time, and the daemon that goes by it is told.
//!
//! Of the file only the entry is touched, so that what people wrote there stays as it is. Not here: which entries there are.

use crate::commands::reload::read_anew;
use crate::config::{Config, EditError, Sources};
use crate::config_file::ConfigFile;
use crate::daemon::{Daemon, find_daemon};
use crate::daemon_config::DaemonConfig;
use crate::exit::Failure;
use acpd_host::chain;
use std::path::{Path, PathBuf};

/// The file, while nothing else changes it, and what is in it.
pub(crate) struct KeptConfig {
    pub(crate) sources: Sources,
    /// As it is named.
    pub(crate) path: PathBuf,
    file: ConfigFile,
    pub(crate) text: Option<String>,
    /// None where there is no file.
    pub(crate) config: Option<Config>,
}

impl KeptConfig {
    /// Waits for other writers. The directory of the file is there then.
    pub(crate) fn open(file: Option<PathBuf>, state_dir: Option<PathBuf>) -> Result<Self, Failure> {
        let sources = Sources::of_process(file, state_dir);
        let path = place(&sources)?;
        let file = ConfigFile::lock(&path).map_err(|error| cannot_write(&path, &error))?;
        let config = if path.exists() { Some(read(&sources)?) } else { None };
        let text = file.text().map_err(|error| cannot_write(&path, &error))?;
        Ok(Self { sources, path, file, text, config })
    }

    pub(crate) fn put(&self, text: &str) -> Result<(), Failure> {
        self.file.replace(text).map_err(|error| cannot_write(&self.path, &error))
    }

    /// The same, once it is known that it can be read.
    pub(crate) fn put_checked(&self, text: &str) -> Result<(), Failure> {
        let read = Config::load_as(&self.path, text, &self.sources);
        read.map_err(|error| Failure::Usage(error.to_string()))?;
        self.put(text)
    }

    pub(crate) fn edited(&self, edited: Result<String, EditError>) -> Result<String, Failure> {
        edited.map_err(|error| Failure::Failed(format!("{}: {error}", self.path.display())))
    }

    /// Has the daemon of this machine know it, if there is one that goes by this file, or by none and finds this one.
    pub(crate) async fn tell_daemon(self) -> Daemonized {
        let config = read(&self.sources);
        drop(self.file);
        let Ok(config) = config else { return Daemonized::Elsewhere };
        let daemon = daemon_by(&config, |own, file| own.goes_by(file) || own.has_none()).await;
        let Some(daemon) = daemon else { return Daemonized::Elsewhere };
        match read_anew(&daemon).await {
            // It notes what it has read before it answers.
            Ok(_) if local_daemon(&config).await.is_some() => Daemonized::Reloaded,
            Ok(_) => Daemonized::Elsewhere,
            Err(error) => Daemonized::Refused(chain(&error)),
        }
    }
}

/// Whether a daemon knows of a change.
pub(crate) enum Daemonized {
    Reloaded,
    /// There is none here that goes by the file.
    Elsewhere,
    Refused(String),
}

impl Daemonized {
    /// What there is to do, as a sentence.
    pub(crate) fn words(&self, hint: &str) -> String {
        match self {
            Self::Reloaded => "The running daemon knows it.".to_owned(),
            Self::Elsewhere => {
                format!("A running daemon that reads this file knows it after `acpd reload`{hint}.")
            }
            Self::Refused(why) => {
                format!("The running daemon could not be told: {why}; `acpd reload` tries again.")
            }
        }
    }
}

/// The daemon of the state directory, if it goes by the file of this configuration.
pub(crate) async fn local_daemon(config: &Config) -> Option<Daemon> {
    daemon_by(config, DaemonConfig::goes_by).await
}

async fn daemon_by(config: &Config, is_meant: impl Fn(&DaemonConfig, &Path) -> bool) -> Option<Daemon> {
    let state_dir = &config.storage.path;
    let file = config.file.as_deref()?;
    let own = DaemonConfig::of(state_dir)?;
    if !is_meant(&own, file) {
        return None;
    }
    find_daemon(state_dir).await.ok().flatten()
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Failed(format!("cannot write {}: {error}", path.display()))
}

pub(crate) fn read(sources: &Sources) -> Result<Config, Failure> {
    Config::load(sources).map_err(|error| Failure::Usage(error.to_string()))
}

/// Where the file is, or would be.
pub(crate) fn place(sources: &Sources) -> Result<PathBuf, Failure> {
    sources.config_file().ok_or_else(|| {
        Failure::Usage(
            "there is no place for the configuration: set $HOME or name one with --config".to_owned(),
        )
    })
}

/// The configuration, also where the file that is named is still to be made.
pub(crate) fn read_or_begin(sources: &Sources) -> Result<Config, Failure> {
    let path = place(sources)?;
    match path.exists() {
        true => read(sources),
        false => Config::load_as(&path, "", sources).map_err(|error| Failure::Usage(error.to_string())),
    }
}
