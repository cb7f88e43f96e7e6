//! Which daemon is named, and by what: a flag, else a variable, else the file.
//!
//! Pure. A token and certificates in the file are for the daemon that the file names: one that a flag or a variable names
//! is never sent the token of another.

use crate::cli::Connect;
use crate::config::Client;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// The variable that names a daemon.
pub(super) const CONNECT: &str = "ACPD_CONNECT";
/// The variable that has a token.
pub(super) const TOKEN: &str = "ACPD_TOKEN";
/// The variable that names certificates.
pub(super) const CA: &str = "ACPD_CA";

/// The variable that says how long a lost daemon is tried again.
pub(super) const RECONNECT: &str = "ACPD_CLIENT_RECONNECT";

/// What named a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Setting {
    /// `--connect`.
    Flag,
    /// `ACPD_CONNECT`.
    Variable,
    /// `connect` in `[client]`, of this file if there is one.
    Section(Option<PathBuf>),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("--connect"),
            Self::Variable => f.write_str(CONNECT),
            Self::Section(Some(path)) => write!(f, "connect in [client] of {}", path.display()),
            Self::Section(None) => f.write_str("ACPD_CLIENT_CONNECT"),
        }
    }
}

/// Where a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenPlace {
    /// In a file, and what names that.
    File(PathBuf, String),
    /// In `ACPD_TOKEN`.
    Variable(String),
}

/// A variable that says something.
pub(super) fn said(variable: Option<OsString>) -> Option<String> {
    variable.filter(|value| !value.is_empty()).map(|value| value.to_string_lossy().into_owned())
}

/// The daemon that is named without the file. A state directory on the command line is that of a daemon here, so the
/// variable does not count then.
pub(super) fn by_hand(flags: &Connect, here: bool, variable: Option<String>) -> Option<(String, Setting)> {
    match &flags.connect {
        Some(url) => Some((url.clone(), Setting::Flag)),
        None if here => None,
        None => variable.map(|url| (url, Setting::Variable)),
    }
}

/// The daemon that the file names, or without one the variable that stands for its key.
pub(super) fn by_file(client: &Client, here: bool, file: Option<&Path>) -> Option<(String, Setting)> {
    let url = client.connect.clone().filter(|_| !here)?;
    Some((url, Setting::Section(file.map(Path::to_owned))))
}

/// Where the token is. The local socket asks for none, so that one in the variable is meant for another daemon.
pub(super) fn token_place(
    flags: &Connect,
    variable: Option<String>,
    is_tcp: bool,
    client: Option<&Client>,
) -> Option<TokenPlace> {
    if let Some(file) = &flags.token_file {
        return Some(TokenPlace::File(file.clone(), "--token-file".to_owned()));
    }
    if let Some(token) = variable.filter(|_| is_tcp) {
        return Some(TokenPlace::Variable(token));
    }
    let file = client?.token_file.clone()?;
    Some(TokenPlace::File(file, "token_file in [client]".to_owned()))
}

/// The certificates to trust instead of the system's.
pub(super) fn certificates(
    flags: &Connect,
    variable: Option<String>,
    client: Option<&Client>,
) -> Option<PathBuf> {
    flags.ca.clone().or(variable.map(PathBuf::from)).or_else(|| client?.ca.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(connect: Option<&str>, token_file: Option<&str>, ca: Option<&str>) -> Connect {
        let path = |path: Option<&str>| path.map(PathBuf::from);
        Connect { connect: connect.map(str::to_owned), token_file: path(token_file), ca: path(ca) }
    }

    fn client() -> Client {
        Client {
            connect: Some("http://file:1".to_owned()),
            token_file: Some("/file.token".into()),
            ca: Some("/file.pem".into()),
            ..Client::default()
        }
    }

    // contract 7.2: connect by a flag, else ACPD_CONNECT, else [client]; a state directory on the command line is here
    #[test]
    fn a_flag_goes_over_a_variable_and_that_over_the_file() {
        let file = Path::new("/c.toml");
        for (flag, variable, here, expected) in [
            (Some("http://flag:1"), Some("http://var:1"), false, Some(("http://flag:1", "--connect"))),
            (Some("http://flag:1"), None, true, Some(("http://flag:1", "--connect"))),
            (None, Some("http://var:1"), false, Some(("http://var:1", "ACPD_CONNECT"))),
            (None, Some("http://var:1"), true, None),
            (None, None, false, Some(("http://file:1", "connect in [client] of /c.toml"))),
            (None, None, true, None),
        ] {
            let chosen = by_hand(&flags(flag, None, None), here, variable.map(str::to_owned))
                .or_else(|| by_file(&client(), here, Some(file)));
            let chosen = chosen.map(|(url, setting)| (url, setting.to_string()));
            let expected = expected.map(|(url, setting)| (url.to_owned(), setting.to_owned()));
            assert_eq!(chosen, expected, "{flag:?} {variable:?} {here}");
        }
    }

    // contract 7.2, SC-1: a token of the file goes to the daemon of the file only
    #[test]
    fn a_token_is_for_its_daemon() {
        let (variable, file) = (Some("secret".to_owned()), client());
        let of_file = |path: &str, by: &str| Some(TokenPlace::File(path.into(), by.to_owned()));
        for (flag, variable, is_tcp, client, expected) in [
            (Some("/flag"), variable.clone(), true, Some(&file), of_file("/flag", "--token-file")),
            (None, variable.clone(), true, Some(&file), Some(TokenPlace::Variable("secret".to_owned()))),
            (None, variable.clone(), false, None, None),
            (None, None, true, Some(&file), of_file("/file.token", "token_file in [client]")),
            (None, None, true, None, None),
        ] {
            assert_eq!(token_place(&flags(None, flag, None), variable, is_tcp, client), expected, "{flag:?}");
        }
        for (flag, variable, client, expected) in [
            (Some("/flag"), Some("/var"), Some(&file), Some("/flag")),
            (None, Some("/var"), Some(&file), Some("/var")),
            (None, None, Some(&file), Some("/file.pem")),
            (None, None, None, None),
        ] {
            let found = certificates(&flags(None, None, flag), variable.map(str::to_owned), client);
            assert_eq!(found, expected.map(PathBuf::from), "{flag:?} {variable:?}");
        }
    }
}
