//! The entry of an installed agent in the configuration. For `add` and `update`.
//!
//! Invariant: comments, and what a person has changed, stay.

use super::installation::{How, There};
use super::place::{Owner, Place, owner};
use super::wish::Wish;
use crate::config::{self, Variables, edit};
use crate::exit::Failure;
use crate::kept_config::KeptConfig;
use acpd_catalog::Receipt;
use std::collections::BTreeMap;
use std::path::Path;
use toml::{Table, Value};

/// The entry that an agent gets: the one that it has, with another program, or a new one.
pub(super) fn entry_of(
    before: Option<(&config::Agent, Option<&Receipt>)>,
    there: &There<'_>,
    wish: &Wish,
) -> Result<config::Agent, Failure> {
    let command = there.program.to_str().ok_or_else(|| {
        Failure::Usage(format!(
            "{} is not UTF-8; the configuration has no other paths",
            there.program.display()
        ))
    })?;
    let receipt = &there.receipt;
    let variables = |env: &BTreeMap<String, String>| Variables(env.clone());
    if let Some((entry, old)) = before {
        // What a person has changed stays.
        let mut entry = entry.clone();
        entry.command = command.to_owned();
        if old.is_none_or(|old| old.args == entry.args) {
            entry.args.clone_from(&receipt.args);
        }
        if old.is_none_or(|old| old.env == entry.env.0) {
            entry.env = variables(&receipt.env);
        }
        return Ok(entry);
    }
    let wanted = wish.known.map(|known| known.wanted);
    Ok(config::Agent {
        env: variables(&receipt.env),
        files: wanted.is_none_or(|wanted| wanted.files),
        stderr_log: wanted.is_some_and(|wanted| wanted.stderr_log),
        ..config::Agent::builtin(command.to_owned(), receipt.args.clone())
    })
}

fn list(args: &[String]) -> Value {
    Value::Array(args.iter().map(|arg| Value::String(arg.clone())).collect())
}

fn table(env: &Variables) -> Value {
    let pairs = env.0.iter().map(|(name, value)| (name.clone(), Value::String(value.clone())));
    Value::Table(pairs.collect::<Table>())
}

/// The text of the configuration with the entry.
pub(super) fn edited(
    text: &str,
    name: &str,
    whose: &Owner,
    before: Option<&config::Agent>,
    entry: &config::Agent,
) -> Result<String, config::EditError> {
    let path = ["agents", name];
    let command = Value::String(entry.command.clone());
    if let (Owner::Added(_), Some(before)) = (whose, before) {
        let mut text = edit::with_value(text, path, "command", Some(&command))?;
        if before.args != entry.args {
            text = edit::with_value(&text, path, "args", Some(&list(&entry.args)))?;
        }
        if before.env != entry.env {
            text = edit::with_value(&text, path, "env", Some(&table(&entry.env)))?;
        }
        return Ok(text);
    }
    let text = match whose {
        Owner::None => text.to_owned(),
        _ => edit::without(text, path)?,
    };
    let mut keys = vec![("command", command)];
    if !entry.args.is_empty() {
        keys.push(("args", list(&entry.args)));
    }
    if !entry.env.0.is_empty() {
        keys.push(("env", table(&entry.env)));
    }
    if !entry.files {
        keys.push(("files", Value::Boolean(false)));
    }
    if entry.stderr_log {
        keys.push(("stderr_log", Value::Boolean(true)));
    }
    edit::added(&text, path, &keys)
}

/// Whether an entry could be written, before anything is fetched for it.
pub(super) fn can_be_entered(place: &Place, name: &str, whose: &Owner) -> Result<(), Failure> {
    let text = match std::fs::read_to_string(place.config_file()) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.into()),
    };
    let before = place.config.agents.get(name);
    let entry = before.cloned().unwrap_or_else(|| config::Agent::builtin("x".to_owned(), Vec::new()));
    let edited = edited(&text, name, whose, before, &entry);
    edited.map(drop).map_err(|error| Failure::Usage(format!("{}: {error}", place.config_file().display())))
}

/// Writes the entry, and with that the version stays. The daemon is still to be told.
pub(super) fn enter(
    place: &Place,
    there: &mut There<'_>,
    entry: &config::Agent,
    how: How,
) -> Result<KeptConfig, Failure> {
    let name = there.receipt.name.clone();
    let kept = KeptConfig::open(place.file.clone(), place.state_dir.clone())?;
    // It may have changed meanwhile.
    let (whose, before) = match &kept.config {
        Some(config) => (owner(config, &place.agents(), &name), config.agents.get(name.as_str())),
        None => (Owner::None, None),
    };
    if whose == Owner::Person && !how.replaces {
        return Err(by_hand(&name, &kept.path));
    }
    let text = kept.text.as_deref().unwrap_or_default();
    let text = kept.edited(edited(text, name.as_str(), &whose, before, entry))?;
    kept.put_checked(&text)?;
    if let Some(published) = there.published.take() {
        published.confirm();
    }
    Ok(kept)
}

pub(super) fn by_hand(name: &acpd_catalog::AgentName, file: &Path) -> Failure {
    Failure::Usage(format!(
        "[agents.{name}] in {} was written by hand; --replace puts the new entry in its place, and nothing of it stays",
        file.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpd_catalog::Version;

    // issue 14: comments and everything else of the file stay; what a person changed in an entry stays over updates
    #[test]
    fn an_entry_is_written_into_its_place() {
        let agent = |command: &str, args: &[&str]| {
            let args = args.iter().map(|arg| (*arg).to_owned()).collect();
            config::Agent::builtin(command.to_owned(), args)
        };
        let added = || Owner::Added(Version::try_from("1.0".to_owned()).expect("a version"));
        let settings = config::Agent { files: false, stderr_log: true, ..agent("/n", &["a"]) };
        let old =
            "# top\n[agents.x] # mine\nspare = 1\ncommand = \"/o\" # old\nargs = [\"a\"] # b\n\n[files]\n";
        for (text, whose, before, entry, after) in [
            (
                "# top\n",
                Owner::None,
                None,
                settings,
                "# top\n\n[agents.x]\ncommand = \"/n\"\nargs = [\"a\"]\nfiles = false\nstderr_log = true\n",
            ),
            (
                old,
                added(),
                Some(agent("/o", &["a"])),
                agent("/n", &["a"]),
                "# top\n[agents.x] # mine\nspare = 1\ncommand = \"/n\" # old\nargs = [\"a\"] # b\n\n[files]\n",
            ),
            (
                old,
                added(),
                Some(agent("/o", &["a"])),
                agent("/n", &["c", "d"]),
                "# top\n[agents.x] # mine\nspare = 1\ncommand = \"/n\" # old\nargs = [\"c\", \"d\"] # b\n\n[files]\n",
            ),
            (
                old,
                Owner::Person,
                Some(agent("/o", &["a"])),
                agent("/n", &[]),
                "# top\n\n[files]\n\n[agents.x]\ncommand = \"/n\"\n",
            ),
        ] {
            assert_eq!(edited(text, "x", &whose, before.as_ref(), &entry).as_deref(), Ok(after));
        }
        let inline = "agents = { x = { command = \"/o\" } }";
        assert!(edited(inline, "x", &Owner::Person, Some(&agent("/o", &[])), &agent("/n", &[])).is_err());
    }
}
