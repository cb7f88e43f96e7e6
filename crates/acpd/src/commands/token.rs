//! `acpd token`: access to the daemon.
//!
//! A new token is printed once and never again: the configuration gets its hash. Of the file only the entry is touched,
//! so that what people wrote there stays as it is.

mod list;

use crate::cli;
use crate::config::{Expiry, Scope, Sees, edit, limit_lines, word, written};
use crate::exit::Failure;
use crate::kept_config::{Daemonized, KeptConfig};
use crate::streams::{Reader, print_json, remark};
use acpd_api::Limits;
use acpd_gateway::hash_token;
use data_encoding::HEXLOWER;
use jiff::Timestamp;
use serde::Serialize;
use std::path::Path;

/// Random bytes in a token: 256 bits cannot be guessed.
const RANDOM: usize = 32;

/// What was done, for programs.
#[derive(Serialize)]
struct Told {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sees: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<Limits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    config: String,
    /// A daemon of this machine goes by it already.
    reloaded: bool,
}

pub(crate) async fn token(args: cli::Token) -> Result<(), Failure> {
    match args {
        cli::Token::New { name, scope, sees, expires, limits, place } => {
            new(&name, (scope, sees, limits), expires, place).await
        }
        cli::Token::Rotate { name, expires, place } => rotate(&name, expires, place).await,
        cli::Token::Revoke { name, place } => revoke(&name, place).await,
        cli::Token::List { place } => list::list(place).await,
    }
}

/// The entry of a token that has to be there.
fn entry<'a>(kept: &'a KeptConfig, name: &str) -> Result<&'a crate::config::Token, Failure> {
    let known = kept.config.as_ref().map(|config| &config.tokens);
    known.and_then(|tokens| tokens.get(name)).ok_or_else(|| {
        let names = known.into_iter().flatten().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        let names = if names.is_empty() { "none".to_owned() } else { names };
        Failure::Usage(format!("there is no token {name} in {}; known: {names}", kept.path.display()))
    })
}

/// A new token, and its hash as it stands in the file.
fn make() -> Result<(String, String), Failure> {
    let mut random = [0; RANDOM];
    getrandom::fill(&mut random)
        .map_err(|error| Failure::Failed(format!("the system has no random numbers: {error}")))?;
    let token = format!("acpd_{}", HEXLOWER.encode(&random));
    let hash = format!("sha256:{}", HEXLOWER.encode(&hash_token(&token)));
    Ok((token, hash))
}

fn until(expires: Expiry) -> Result<Option<Timestamp>, Failure> {
    expires.moment(Timestamp::now()).map_err(|wrong| Failure::Usage(format!("--expires: {wrong}")))
}

async fn new(
    name: &str,
    (scope, sees, limits): (Scope, Sees, cli::TokenLimits),
    expires: Expiry,
    place: cli::TokenPlace,
) -> Result<(), Failure> {
    let expires = until(expires)?;
    let limits = limits_of(limits, scope)?;
    let kept = KeptConfig::open(place.config, None)?;
    if kept.config.as_ref().is_some_and(|known| known.tokens.contains_key(name)) {
        return Err(Failure::Usage(format!(
            "there is a token {name} already in {}; `acpd token rotate {name}` makes it anew",
            kept.path.display()
        )));
    }
    let (token, hash) = make()?;
    // A dot would begin a table below.
    let key = if name.contains('.') { format!("\"{name}\"") } else { name.to_owned() };
    let line = expires.map(|at| format!("expires = \"{}\"\n", written(at))).unwrap_or_default();
    let entry = format!(
        "\n[tokens.{key}]\nhash = \"{hash}\"\nscope = \"{scope}\"\nsees = \"{sees}\"\n{line}{limits}",
        scope = word(scope),
        sees = word(sees),
        limits = limit_lines(&limits),
    );
    kept.put(&appended(kept.text.as_deref().unwrap_or_default(), &entry))?;
    let path = kept.path.clone();
    let hint = another_file(&path, Path::new(OF_THE_UNIT), name, scope);
    let daemon = kept.tell_daemon().await;
    let told = Told {
        name: name.to_owned(),
        token: Some(token),
        scope: Some(word(scope)),
        sees: Some(word(sees)),
        limits: Some(limits).filter(|limits| *limits != Limits::default()),
        expires: expires.map(written),
        config: path.to_string_lossy().into_owned(),
        reloaded: matches!(daemon, Daemonized::Reloaded),
    };
    let words = format!(
        "token {name} ({}, sees {}) is in {}; this is the only time that it is shown.\n{}{}",
        word(scope),
        word(sees),
        path.display(),
        daemon.words(&hint),
        blind(scope, sees)
    );
    show(&told, place.json, &words)
}

/// What to know of a token that can never see anything.
fn blind(scope: Scope, sees: Sees) -> &'static str {
    match (scope, sees) {
        (Scope::Observe, Sees::Own) => {
            "\nIt sees no session: its bearer can create none. `--sees all` makes one that sees those of others."
        }
        _ => "",
    }
}

/// What a new token is limited to.
fn limits_of(given: cli::TokenLimits, scope: Scope) -> Result<Limits, Failure> {
    let cli::TokenLimits { agents, roots, permission_modes, mcp } = given;
    let limits = Limits {
        agents: Some(agents).filter(|agents| !agents.is_empty()),
        roots: Some(roots).filter(|roots| !roots.is_empty()),
        permission_modes: Some(permission_modes).filter(|modes| !modes.is_empty()),
        mcp: mcp.limit(),
    };
    if scope != Scope::Control && limits != Limits::default() {
        return Err(Failure::Usage(format!(
            "--agent, --root, --permission-mode and --mcp limit what a token with --scope control may do, not one with {}",
            word(scope)
        )));
    }
    Ok(limits)
}

async fn rotate(name: &str, expires: Option<Expiry>, place: cli::TokenPlace) -> Result<(), Failure> {
    let kept = KeptConfig::open(place.config, None)?;
    let before = entry(&kept, name)?.expires;
    let now = Timestamp::now();
    let after = match expires {
        Some(expires) => until(expires)?,
        None if before.is_some_and(|at| at <= now) => {
            return Err(Failure::Usage(format!(
                "token {name} has expired, and so would the new one; give it a time of its own, such as --expires 90d"
            )));
        }
        None => before,
    };
    let (token, hash) = make()?;
    let (path_of, text) = (["tokens", name], kept.text.as_deref().unwrap_or_default());
    let text = kept.edited(edit::with(text, path_of, "hash", Some(&hash)))?;
    let text = match after == before {
        true => text,
        false => kept.edited(edit::with(&text, path_of, "expires", after.map(written).as_deref()))?,
    };
    kept.put(&text)?;
    let path = kept.path.clone();
    let daemon = kept.tell_daemon().await;
    let told = Told {
        name: name.to_owned(),
        token: Some(token),
        scope: None,
        sees: None,
        limits: None,
        expires: after.map(written),
        config: path.to_string_lossy().into_owned(),
        reloaded: matches!(daemon, Daemonized::Reloaded),
    };
    let words = format!(
        "token {name} in {} is a new one, and the old one is refused; this is the only time that it is shown.\n{}",
        path.display(),
        daemon.words("")
    );
    show(&told, place.json, &words)
}

async fn revoke(name: &str, place: cli::TokenPlace) -> Result<(), Failure> {
    let kept = KeptConfig::open(place.config, None)?;
    entry(&kept, name)?;
    let is_last = kept.config.as_ref().is_some_and(|config| config.tokens.len() == 1);
    let text = kept.text.as_deref().unwrap_or_default();
    let text = kept.edited(edit::without(text, ["tokens", name]))?;
    kept.put(&text)?;
    let path = kept.path.clone();
    let daemon = kept.tell_daemon().await;
    let told = Told {
        name: name.to_owned(),
        token: None,
        scope: None,
        sees: None,
        limits: None,
        expires: None,
        config: path.to_string_lossy().into_owned(),
        reloaded: matches!(daemon, Daemonized::Reloaded),
    };
    let last = if is_last {
        "\nIt was the last: requests over TCP are rejected until there is one again, or the daemon restarts."
    } else {
        ""
    };
    let words = format!("token {name} is not in {} any more.\n{}{last}", path.display(), daemon.words(""));
    show(&told, place.json, &words)
}

/// A token alone goes to stdout, and words about it to stderr.
fn show(told: &Told, json: bool, words: &str) -> Result<(), Failure> {
    let line = if json { Some(serde_json::to_string(told)?) } else { told.token.clone() };
    if !json {
        remark(words);
    }
    let Some(line) = line else { return Ok(()) };
    match print_json(&line)? {
        Reader::There => Ok(()),
        // The token is nowhere else.
        Reader::Gone => Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into()),
    }
}

/// The file that the systemd unit reads.
const OF_THE_UNIT: &str = "/etc/acpd/config.toml";

/// How the token gets into the unit's file, where there is one and this is another.
fn another_file(path: &Path, of_the_unit: &Path, name: &str, scope: Scope) -> String {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    // One in a directory that others may not look into is there, too.
    let is_absent = of_the_unit.metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    if is_absent || real(path) == real(of_the_unit) {
        return String::new();
    }
    format!(
        "; the systemd unit reads another: `ACPD_CONFIG={} acpd token new {name} --scope {}`",
        of_the_unit.display(),
        word(scope)
    )
}

/// A text with an entry behind it.
fn appended(text: &str, entry: &str) -> String {
    match text {
        "" => entry.trim_start().to_owned(),
        text if text.ends_with('\n') => format!("{text}{entry}"),
        text => format!("{text}\n{entry}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 1.7: a token for a file that the unit does not read is told with the line that makes one there
    #[test]
    fn another_file_than_the_units_is_told() {
        let dir = tempfile::tempdir().expect("a directory");
        let (own, unit) = (dir.path().join("own.toml"), dir.path().join("unit.toml"));
        let told = || another_file(&own, &unit, "ci", Scope::Control);
        assert_eq!(told(), "");
        std::fs::write(&unit, "").expect("a file");
        let line = format!("`ACPD_CONFIG={} acpd token new ci --scope control`", unit.display());
        assert!(told().ends_with(&line), "{}", told());
        assert_eq!(another_file(&unit, &unit, "ci", Scope::Control), "");
    }
}
