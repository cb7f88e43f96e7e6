//! `[client]`: the daemon that commands talk to. Not here: what a daemon itself goes by.

use super::amounts::Wait;
use super::values::{file, text};
use crate::address::Address;
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// `[client]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Client {
    /// The URL of the daemon that commands talk to, as with `--connect`. Default: the daemon that serves the state
    /// directory.
    #[serde(deserialize_with = "daemon")]
    pub connect: Option<String>,
    /// A file with the token for the daemon of `connect`. `~/` is the home directory, and a relative path begins at the
    /// file's directory. Default none.
    #[serde(deserialize_with = "file")]
    #[cfg_attr(test, schemars(with = "Option<super::described::Place>"))]
    pub token_file: Option<PathBuf>,
    /// A PEM file with the certificates to trust for the daemon of `connect`. Default those of the system.
    #[serde(deserialize_with = "file")]
    #[cfg_attr(test, schemars(with = "Option<super::described::Place>"))]
    pub ca: Option<PathBuf>,
    /// How long `stdio`, `run`, `chat` and `attach` try a daemon again that they have lost, before they end: a duration, or
    /// `never` for no end. `0s`: they end at once. Default 10 minutes.
    pub reconnect: Wait,
}

impl Default for Client {
    fn default() -> Self {
        let reconnect = Wait::After(Duration::from_secs(600));
        Self { connect: None, token_file: None, ca: None, reconnect }
    }
}

impl Client {
    /// The first key that has no daemon to be for: a token for one is not sent to another.
    pub(super) fn without_daemon(&self) -> Option<&'static str> {
        match (&self.connect, &self.token_file, &self.ca) {
            (Some(_), _, _) | (None, None, None) => None,
            (None, Some(_), _) => Some("token_file"),
            (None, None, Some(_)) => Some("ca"),
        }
    }
}

/// The text is not repeated: it may hold a password.
fn daemon<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    text(from, "the URL of a daemon", |text| {
        Address::parse(text).map(|_| Some(text.to_owned())).map_err(|error| error.to_string())
    })
}
