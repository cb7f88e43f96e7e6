//! From flags, environment and file to a checked [`Config`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

use super::error::at;
use super::explain::{explain, instead, is_secret, path_at, value_span};
use super::overlay::Overlay;
use super::{Config, ConfigError, EXAMPLE_AGENT, OnStop, Server, hooks, word};
use crate::nearest::nearest;
use acpd_catalog::KNOWN;

/// Where a configuration comes from. Nothing else is read, so a test can play any environment.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// `--config FILE`.
    pub file: Option<PathBuf>,
    /// `--state-dir DIR`; goes over `[storage] path` and its variable.
    pub state_dir: Option<PathBuf>,
    /// The environment variables.
    pub environment: BTreeMap<OsString, OsString>,
}

impl Sources {
    /// The flags of this process and its environment.
    pub fn of_process(file: Option<PathBuf>, state_dir: Option<PathBuf>) -> Self {
        Sources { file, state_dir, environment: std::env::vars_os().collect() }
    }

    fn variable(&self, name: &str) -> Option<&OsString> {
        self.environment.get(name.as_ref() as &std::ffi::OsStr).filter(|value| !value.is_empty())
    }

    fn home(&self) -> Option<PathBuf> {
        self.variable("HOME").map(PathBuf::from)
    }

    /// A base directory of the XDG specification, which says to ignore relative ones.
    fn base_directory(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let given = self.variable(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        Some(given.or_else(|| Some(self.home()?.join(below_home)))?.join("acpd"))
    }

    /// The file to read, and what names it if it must exist.
    fn place(&self) -> Option<(PathBuf, Option<&'static str>)> {
        if let Some(file) = &self.file {
            return Some((file.clone(), Some("--config")));
        }
        if let Some(file) = self.variable("ACPD_CONFIG") {
            return Some((file.into(), Some("$ACPD_CONFIG")));
        }
        Some((self.base_directory("XDG_CONFIG_HOME", ".config")?.join("config.toml"), None))
    }

    /// The daemon that `ACPD_CONNECT` names, whatever the file does.
    pub(crate) fn connect(&self) -> Option<String> {
        self.variable("ACPD_CONNECT").map(|url| url.to_string_lossy().into_owned())
    }

    /// The file that is read, if it is there.
    pub fn config_file(&self) -> Option<PathBuf> {
        self.place().map(|(path, _)| path)
    }

    pub(super) fn read(&self) -> Result<Option<(PathBuf, Vec<u8>)>, ConfigError> {
        let Some((path, named_by)) = self.place() else { return Ok(None) };
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some((path, bytes))),
            Err(source) if source.kind() == io::ErrorKind::NotFound && named_by.is_none() => Ok(None),
            Err(source) => Err(ConfigError::Read { path, named_by, source }),
        }
    }
}

impl Config {
    /// Reads the file if there is one, lays the variables and flags over it, and checks everything.
    ///
    /// The file is the first of `--config`, `$ACPD_CONFIG`, `$XDG_CONFIG_HOME/acpd/config.toml` and
    /// `~/.config/acpd/config.toml`; only the last two may be missing.
    pub fn load(sources: &Sources) -> Result<Config, ConfigError> {
        let (file, bytes) = sources.read()?.unzip();
        Self::of(file, bytes, sources)
    }

    /// What [`load`](Self::load) would read if the file had this content.
    pub(crate) fn load_as(file: &Path, text: &str, sources: &Sources) -> Result<Config, ConfigError> {
        Self::of(Some(file.to_owned()), Some(text.as_bytes().to_vec()), sources)
    }

    fn of(file: Option<PathBuf>, bytes: Option<Vec<u8>>, sources: &Sources) -> Result<Config, ConfigError> {
        let shown = file.clone().unwrap_or_default();
        let bytes = bytes.unwrap_or_default();
        let text = str::from_utf8(&bytes).map_err(|error| {
            let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let end = valid.len();
            at(&shown, &valid, end..end, "not UTF-8 from here on; TOML is UTF-8".to_owned(), false)
        })?;
        let mut config = read(text, &shown, sources)?;
        config.storage.path = state_directory(&config.storage.path, file.as_deref(), sources)?;
        let directory = file.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        let (server, client) = (&mut config.server, &mut config.client);
        let given = [&mut server.tls_cert, &mut server.tls_key, &mut client.token_file, &mut client.ca];
        for given in given.into_iter().flatten().chain(config.fleet.files()) {
            let in_home = given.strip_prefix("~").ok().and_then(|below| Some(sources.home()?.join(below)));
            *given = in_home.unwrap_or_else(|| directory.join(&given));
        }
        for (name, agent) in &mut config.agents {
            if let Some(below_home) = agent.command.strip_prefix("~/") {
                agent.command = in_home(below_home, name, sources)?;
            }
        }
        for (name, token) in &mut config.tokens {
            for root in token.roots.iter_mut().flatten() {
                if let Some(below_home) = root.strip_prefix('~') {
                    *root = root_in_home(below_home.trim_start_matches('/'), name, sources)?;
                }
            }
        }
        config.file = file;
        Ok(config)
    }
}

/// A root of a token in the home directory, or that directory.
fn root_in_home(below_home: &str, token: &str, sources: &Sources) -> Result<String, ConfigError> {
    let no_home = || ConfigError::NoHomeForRoot { token: token.to_owned() };
    let home = sources.home().filter(|home| home.is_absolute()).ok_or_else(no_home)?;
    home.join(below_home).into_os_string().into_string().map_err(|_| no_home())
}

/// A command below the home directory.
fn in_home(below_home: &str, agent: &str, sources: &Sources) -> Result<String, ConfigError> {
    let home = sources.home().ok_or_else(|| ConfigError::NoHome { agent: agent.to_owned() })?;
    let path = home.join(below_home).into_os_string();
    path.into_string().map_err(|_| ConfigError::NoHome { agent: agent.to_owned() })
}

fn read(text: &str, file: &Path, sources: &Sources) -> Result<Config, ConfigError> {
    let mut table = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or(text.len()..text.len());
        at(file, text, span, error.message().to_owned(), false)
    })?;
    let overlay = Overlay::apply(table.get_mut(), text.len(), &sources.environment)?;
    let reading = Reading { text, file, overlay: &overlay };
    read_table(&table, &reading).map_err(|wrong| match wrong {
        Wrong::Unreadable { error, .. } => error,
        Wrong::Contradictions(mut errors) => errors.swap_remove(0),
    })
}

/// What a table was parsed from.
pub(super) struct Reading<'a> {
    pub(super) text: &'a str,
    pub(super) file: &'a Path,
    pub(super) overlay: &'a Overlay,
}

/// What is wrong with a table.
pub(super) enum Wrong {
    /// Something cannot be read.
    Unreadable {
        span: Range<usize>,
        /// The key that is not there, where that is the mistake.
        missing: Option<String>,
        error: ConfigError,
    },
    /// All can be read and does not go together; at least one.
    Contradictions(Vec<ConfigError>),
}

/// Reads a table and checks everything in it.
pub(super) fn read_table(table: &Spanned<DeTable<'_>>, reading: &Reading<'_>) -> Result<Config, Wrong> {
    let config = Config::deserialize(Deserializer::from(table.clone())).map_err(|error| {
        let span = error.span().unwrap_or_default();
        let missing = error.message().strip_prefix("missing field ");
        let missing = missing.map(|key| key.trim_matches('`').to_owned());
        let error = reading.fail(&span, table.get_ref(), &|path| explain(error.message(), path));
        Wrong::Unreadable { span, missing, error }
    })?;
    let wrong: Vec<ConfigError> = contradictions(&config)
        .into_iter()
        .map(|(path, message)| {
            let span = value_span(table.get_ref(), &path).unwrap_or_default();
            reading.fail(&span, table.get_ref(), &|_| message.clone())
        })
        .collect();
    if wrong.is_empty() { Ok(config) } else { Err(Wrong::Contradictions(wrong)) }
}

impl Reading<'_> {
    fn fail(
        &self,
        span: &Range<usize>,
        table: &DeTable<'_>,
        message: &dyn Fn(&[String]) -> String,
    ) -> ConfigError {
        match self.overlay.variable(span) {
            Some((variable, path)) => {
                ConfigError::Variable { variable: variable.to_owned(), message: message(&path) }
            }
            None => {
                let path = path_at(table, span.start).unwrap_or_default();
                at(self.file, self.text, span.clone(), message(&path), is_secret(&path))
            }
        }
    }
}

/// Values that do not go together: for each the path of one of them, and what to do.
fn contradictions(config: &Config) -> Vec<(Vec<&str>, String)> {
    let unknown = unknown_default(config);
    let half = half_of_tls(&config.server);
    let for_no_daemon = config.client.without_daemon().map(|key| {
        let message =
            format!("\"{key}\" in [client] needs \"connect\" beside it: it is for that daemon alone");
        (vec!["client", key], message)
    });
    let spare = config.agents.iter().filter(|(_, agent)| agent.share_process && agent.spare > 0);
    let spare = spare.map(|(name, _)| {
        let message = format!(
            "\"spare\" in [agents.{name}]: there is nothing to spare with share_process = true: one process serves \
             all sessions; leave out one of the two"
        );
        (vec!["agents", name.as_str(), "spare"], message)
    });
    let twice = hooks::twice(&config.hooks).then(|| {
        let message =
            "two of [[hooks]] lead to the same place; write all that it is told into the \"on\" of one";
        (vec!["hooks"], message.to_owned())
    });
    let limits = limits_of_other_scopes(config);
    let for_nothing = config.server.on_stop == OnStop::Keep && config.continuity.keep.is_zero();
    let for_nothing = for_nothing.then(|| {
        let message = "\"on_stop\" in [server] can be \"keep\" only where agents wait for the next daemon: set \"keep\" in \
                       [continuity], such as \"10m\"";
        (vec!["server", "on_stop"], message.to_owned())
    });
    let fleet = config.fleet.contradiction().map(|(key, message)| (vec!["fleet", key], message.to_owned()));
    let is_failover = !config.fleet.partition.is_local();
    let no_failover = is_failover.then(|| config.no_failover()).flatten();
    let no_failover = no_failover.map(|why| (vec!["fleet", "partition"], why));
    let limits = limits.chain(for_nothing).chain(fleet).chain(no_failover);
    unknown.into_iter().chain(half).chain(for_no_daemon).chain(twice).chain(limits).chain(spare).collect()
}

fn unknown_default(config: &Config) -> Option<(Vec<&str>, String)> {
    let chosen = &config.server.default_agent;
    if config.has_agent(chosen) {
        return None;
    }
    let known: Vec<&str> = config.agents.keys().map(String::as_str).chain([EXAMPLE_AGENT]).collect();
    let also = KNOWN.iter().map(|known| known.name).collect::<Vec<_>>();
    // Those that are known by themselves are not listed, only meant.
    let instead = match nearest(chosen, known.iter().copied().chain(also)) {
        Some(meant) => instead(chosen, &[meant]),
        None => instead(chosen, &known),
    };
    let message = format!("no agent is called \"{chosen}\": there is no [agents.{chosen}]{instead}");
    Some((vec!["server", "default_agent"], message))
}

fn half_of_tls(server: &Server) -> Option<(Vec<&str>, String)> {
    let [there, missing] = match (&server.tls_cert, &server.tls_key) {
        (Some(_), None) => ["tls_cert", "tls_key"],
        (None, Some(_)) => ["tls_key", "tls_cert"],
        _ => return None,
    };
    let message = format!("\"{there}\" in [server] needs \"{missing}\" beside it; TLS takes both");
    Some((vec!["server", there], message))
}

/// Limits of tokens whose scope is not the one that limits are for.
fn limits_of_other_scopes(config: &Config) -> impl Iterator<Item = (Vec<&str>, String)> {
    config.tokens.iter().filter_map(|(name, token)| {
        let key = token.limit_of_another_scope()?;
        let message = format!(
            "\"{key}\" in [tokens.{name}] limits what a token with the scope control may do; the scope of this one is {}",
            word(token.scope)
        );
        Some((vec!["tokens", name.as_str(), key], message))
    })
}

/// The state directory, absolute: the flag, the variable, the file's key, the default.
fn state_directory(given: &Path, file: Option<&Path>, sources: &Sources) -> Result<PathBuf, ConfigError> {
    let path = if let Some(flag) = &sources.state_dir {
        flag.clone()
    } else if given.as_os_str().is_empty() {
        sources.base_directory("XDG_STATE_HOME", ".local/state").ok_or(ConfigError::NoStateDirectory)?
    } else if let Ok(below_home) = given.strip_prefix("~") {
        sources.home().ok_or(ConfigError::NoStateDirectory)?.join(below_home)
    } else if sources.variable("ACPD_STORAGE_PATH").is_some() {
        given.to_owned()
    } else {
        file.and_then(Path::parent).unwrap_or(Path::new("")).join(given)
    };
    std::path::absolute(&path).map_err(|source| ConfigError::StateDirectory { path, source })
}
