//! `acpd token`: access to the daemon.
//!
//! A new token is printed once and never again: the configuration gets its hash. The file is only ever added to, so
//! that what people wrote there stays as it is.

use crate::cli;
use crate::config::{Config, Scope, Sees, Sources, word};
use crate::exit::Failure;
use acpd_gateway::hash_token;
use data_encoding::HEXLOWER;
use serde_json::json;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// Random bytes in a token: 256 bits cannot be guessed.
const RANDOM: usize = 32;

pub(crate) fn token(args: cli::Token) -> Result<(), Failure> {
    match args {
        cli::Token::New { name, scope, sees, json, config } => new(&name, scope, sees, json, config),
        cli::Token::List { json, config } => list(json, config),
    }
}

fn new(name: &str, scope: Scope, sees: Sees, json: bool, file: Option<PathBuf>) -> Result<(), Failure> {
    let sources = Sources::of_process(file, None);
    let path = sources.config_file().ok_or_else(|| {
        Failure::Usage(
            "there is no place for the configuration: set $HOME or name one with --config".to_owned(),
        )
    })?;
    // Through a link, so that the link stays.
    let file = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
    let cannot = |error| Failure::Failed(format!("cannot write {}: {error}", path.display()));
    let _alone = alone_in(&file).map_err(cannot)?;
    let known = if path.exists() { Some(read(&sources)?) } else { None };
    if known.is_some_and(|known| known.tokens.contains_key(name)) {
        return Err(Failure::Usage(format!(
            "there is a token {name} already; to make it anew, remove [tokens.{name}] from {} first",
            path.display()
        )));
    }
    let mut random = [0; RANDOM];
    getrandom::fill(&mut random)
        .map_err(|error| Failure::Failed(format!("the system has no random numbers: {error}")))?;
    let token = format!("acpd_{}", HEXLOWER.encode(&random));
    let entry = format!(
        "\n[tokens.{key}]\nhash = \"sha256:{hash}\"\nscope = \"{scope}\"\nsees = \"{sees}\"\n",
        // A dot would begin a table below.
        key = if name.contains('.') { format!("\"{name}\"") } else { name.to_owned() },
        hash = HEXLOWER.encode(&hash_token(&token)),
        scope = word(scope),
        sees = word(sees),
    );
    append(&file, &entry).map_err(cannot)?;
    let mut out = std::io::stdout();
    let told = if json {
        let told = json!({"name": name, "token": token, "scope": word(scope), "sees": word(sees), "config": path.to_string_lossy()});
        writeln!(out, "{told}")
    } else {
        let _closed = writeln!(
            anstream::stderr(),
            "token {name} ({}, sees {}) is in {}; this is the only time that it is shown.\n\
             A running daemon that reads this file knows it after SIGHUP{}.",
            word(scope),
            word(sees),
            path.display(),
            another_file(&path, Path::new(OF_THE_UNIT), name, scope)
        );
        writeln!(out, "{token}")
    };
    told.and_then(|()| out.flush()).map_err(Failure::from)
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

fn read(sources: &Sources) -> Result<Config, Failure> {
    Config::load(sources).map_err(|error| Failure::Usage(error.to_string()))
}

/// Adds to a file, all or nothing: a copy takes its place, with the same mode and owner.
fn append(path: &Path, entry: &str) -> std::io::Result<()> {
    let (mut text, known) = match std::fs::read_to_string(path) {
        Ok(text) => (text, Some(std::fs::metadata(path)?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => (String::new(), None),
        Err(error) => return Err(error),
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(if text.is_empty() { entry.trim_start() } else { entry });
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let copy = path.with_file_name(name);
    let written = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&copy).and_then(
        |mut file| {
            file.write_all(text.as_bytes())?;
            if let Some(known) = known {
                let own = file.metadata()?;
                if (own.uid(), own.gid()) != (known.uid(), known.gid()) {
                    fchown(&file, Some(known.uid()), Some(known.gid()))?;
                }
                file.set_permissions(Permissions::from_mode(known.mode() & 0o7777))?;
            }
            file.sync_all()
        },
    );
    written.and_then(|()| std::fs::rename(&copy, path)).inspect_err(|_| drop(std::fs::remove_file(&copy)))
}

/// One at a time changes the files of a directory, which is there when this returns. Let go of with what is returned.
fn alone_in(path: &Path) -> std::io::Result<std::fs::File> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir)?;
    let dir = std::fs::File::open(dir)?;
    rustix::fs::flock(&dir, rustix::fs::FlockOperation::LockExclusive)?;
    Ok(dir)
}

fn list(json: bool, file: Option<PathBuf>) -> Result<(), Failure> {
    let config = read(&Sources::of_process(file, None))?;
    let mut out = std::io::stdout();
    let told = if json {
        let tokens: Vec<_> = config
            .tokens
            .iter()
            .map(|(name, token)| json!({"name": name, "scope": word(token.scope), "sees": word(token.sees)}))
            .collect();
        writeln!(out, "{}", json!({"tokens": tokens}))
    } else if config.tokens.is_empty() {
        writeln!(out, "no tokens: the daemon listens on loopback and its Unix socket only")
    } else {
        let width = config.tokens.keys().map(String::len).max().unwrap_or_default();
        config.tokens.iter().try_for_each(|(name, token)| {
            // An admin sees all, whatever its entry says.
            let sees = if token.scope == Scope::Admin { Sees::All } else { token.sees };
            writeln!(out, "{name:width$}  {:7}  sees {}", word(token.scope), word(sees))
        })
    };
    told.and_then(|()| out.flush()).map_err(Failure::from)
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
