//! One version of an agent: put together, started once, and entered into the configuration. For `add` and `update`.

use super::place::{Owner, Place, Swept, owner};
use super::wish::Wish;
use super::{describe, explain, with_progress};
use crate::config::{self, Variables, edit};
use crate::exit::{Code, Failure};
use crate::installing::{
    Consent, InstallError, Installed, Programs, PythonTool, Wanted, install_binary, install_npm,
    install_python, newest_of_npm,
};
use crate::kept_config::{Daemonized, KeptConfig};
use crate::local_host::agent_specs;
use acpd_catalog::{Chosen, Locked, Package, Published, Receipt, Scripts, Source, Version};
use acpd_host::{AgentCheck, error_code};
use jiff::Timestamp;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// How it is installed.
#[derive(Debug, Clone, Copy)]
pub(super) struct How {
    pub(super) consent: Consent,
    /// The most bytes of an archive.
    pub(super) most: u64,
    /// It is started before it gets its entry.
    pub(super) checks: bool,
    /// What is there already is installed anew, and an entry of a person's is replaced.
    pub(super) replaces: bool,
}

/// A version that is there.
pub(super) struct There<'a> {
    pub(super) receipt: Receipt,
    pub(super) program: PathBuf,
    /// None where it was there before.
    pub(super) published: Option<Published<'a>>,
}

/// Installs what is wished for, unless it is there from the same source.
pub(super) async fn install<'a>(
    programs: &Programs,
    place: &Place,
    locked: &'a Locked,
    wish: &Wish,
    how: How,
) -> Result<There<'a>, Failure> {
    let (agents, name) = (locked.agents(), &wish.name);
    let staging = locked.staging()?;
    let mut chosen = wish.chosen.clone();
    // The version is known before anything is installed, where that is cheap.
    let mut version = wish.version.clone();
    if let Chosen::Npx(run) = &mut chosen {
        let newest = newest_of_npm(programs, &run.package, staging.path()).await?;
        run.package = run.package.at(newest.clone());
        version = Some(newest);
    }
    let package = match &chosen {
        Chosen::Binary(_) => None,
        Chosen::Npx(run) | Chosen::Uvx(run) => Some(run.package.newest().to_string()),
    };
    let archive = match &chosen {
        Chosen::Binary(target) => Some(target.archive.to_string()),
        _ => None,
    };
    let is_same = |receipt: &Receipt| {
        let has_hash = match &chosen {
            Chosen::Binary(target) => target.sha256.as_ref().is_none_or(|hash| *hash == receipt.sha256),
            _ => true,
        };
        has_hash
            && receipt.kind == wish.kind()
            && (&receipt.source.package, &receipt.source.archive) == (&package, &archive)
    };
    let there = |version: &Version| Receipt::read(&agents.version(name, version));
    if let Some(receipt) = version.as_ref().and_then(there).filter(|_| !how.replaces) {
        return already(receipt, is_same, agents.version(name, version.as_ref().expect("it has one")));
    }
    let installed = match &chosen {
        Chosen::Binary(target) => {
            let version = wish.version.clone().expect("an entry has a version");
            install_binary(programs, target, version, how.most, staging.path()).await?
        }
        Chosen::Npx(run) => {
            let preferred = wish.known.map(|known| known.program);
            install_npm(programs, &run.package, preferred, how.consent, staging.path()).await?
        }
        Chosen::Uvx(run) => {
            let tool = PythonTool::here();
            let tool = tool.ok_or_else(|| {
                InstallError::Refused("neither uv nor python3 is installed, or in PATH".to_owned())
            })?;
            let python = match wish.known.map(|known| known.package) {
                Some(Package::Pypi { python, .. }) => python,
                _ => "",
            };
            let preferred = wish.known.map(|known| known.program);
            let wanted = Wanted { package: &run.package, python, preferred, consent: how.consent };
            let to = |version: &Version| agents.version(name, version);
            install_python(programs, &tool, wanted, staging.path(), to).await?
        }
    };
    if let Some(receipt) = there(&installed.version).filter(|_| !how.replaces) {
        return already(receipt, is_same, agents.version(name, &installed.version));
    }
    let Installed { version, program, sha256, sha256_from, scripts, tool } = installed;
    if there(&version).is_some() {
        refuse_while_live(place, wish, &version).await?;
    }
    let receipt = Receipt {
        name: name.clone(),
        version,
        kind: wish.kind(),
        source: Source { registry: wish.registry.clone(), package, tool: tool.map(str::to_owned), archive },
        sha256,
        sha256_from,
        scripts,
        program,
        args: wish.args.clone(),
        env: wish.env.clone(),
        installed_at: Timestamp::now().to_string(),
    };
    match std::fs::remove_dir_all(staging.path().join("tmp")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => receipt.write(staging.path())?,
    }
    if programs.is_interrupted() {
        return Err(Failure::Of(Code::Interrupted, "interrupted".to_owned()));
    }
    let published = locked.publish(staging, name, &receipt.version)?;
    let program = published.place().join(&receipt.program);
    Ok(There { receipt, program, published: Some(published) })
}

async fn refuse_while_live(place: &Place, wish: &Wish, version: &Version) -> Result<(), Failure> {
    let live = place.live_sessions(&wish.name).await?;
    match live.is_empty() {
        true => Ok(()),
        false => Err(Failure::Failed(format!(
            "{} {version} cannot be installed anew while sessions run on it: {}",
            wish.name,
            live.join(", ")
        ))),
    }
}

/// What is there is taken as it is, if it is the same.
fn already<'a>(
    receipt: Receipt,
    is_same: impl Fn(&Receipt) -> bool,
    dir: PathBuf,
) -> Result<There<'a>, Failure> {
    if !is_same(&receipt) {
        return Err(Failure::Usage(format!(
            "{} {} is installed already, from another source; --replace installs it anew",
            receipt.name, receipt.version
        )));
    }
    let program = dir.join(&receipt.program);
    Ok(There { receipt, program, published: None })
}

/// What a start of it has shown.
pub(super) enum Checked {
    Not,
    Works(Box<AgentCheck>),
    /// It runs, and answers with an error of its own, such as for want of a login.
    Refuses(Box<AgentCheck>),
}

impl Checked {
    pub(super) fn check(&self) -> Option<&AgentCheck> {
        match self {
            Self::Not => None,
            Self::Works(check) | Self::Refuses(check) => Some(check),
        }
    }
}

/// Starts it as its entry will have it.
pub(super) async fn check(
    programs: &Programs,
    place: &Place,
    there: &There<'_>,
    entry: config::Agent,
) -> Result<Checked, Failure> {
    let name = &there.receipt.name;
    let mut config = place.config.clone();
    config.agents.insert(name.to_string(), entry);
    let spec = agent_specs(&config).remove(name.as_str()).expect("it was put there");
    let (supervisor, scope) = programs.means();
    let cwd = std::env::current_dir()?;
    let checked = acpd_host::check_agent(supervisor, scope, &spec, &cwd);
    let checked = Box::new(with_progress(name.as_str(), checked).await);
    if checked.ok {
        return Ok(Checked::Works(checked));
    }
    if checked.refused {
        return Ok(Checked::Refuses(checked));
    }
    let error = checked.error.as_deref().unwrap_or_default();
    let why = explain(name.as_str(), error, &json!(checked.termination_info));
    let remedy = match there.receipt.scripts {
        Scripts::Skipped => "its install scripts were left out; --allow-scripts runs them",
        _ => "if it has to be set up before it starts, --no-check installs it without a start",
    };
    Err(Failure::Failed(format!("{why}\nnothing was changed; {remedy}")))
}

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

/// The text of the configuration with the entry. None where it is there as it should be.
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

/// What came of it, for programs.
pub(super) fn told(
    there: &Receipt,
    program: &Path,
    was_there: bool,
    checked: &Checked,
    daemon: &Daemonized,
    swept: &Swept,
    file: &Path,
) -> serde_json::Value {
    json!({
        "name": there.name,
        "version": there.version,
        "kind": there.kind,
        "source": there.source,
        "sha256": there.sha256,
        "sha256From": there.sha256_from,
        "scripts": there.scripts,
        "program": program.to_string_lossy(),
        "args": there.args,
        "wasThere": was_there,
        "config": file.to_string_lossy(),
        "reloaded": matches!(daemon, Daemonized::Reloaded),
        "removed": swept.removed,
        "kept": swept.kept,
        "check": checked.check(),
    })
}

/// The same in words.
pub(super) fn words(
    there: &Receipt,
    program: &Path,
    was_there: bool,
    checked: &Checked,
    daemon: &Daemonized,
    swept: &Swept,
    file: &Path,
) -> String {
    let from = there.source.package.as_ref().or(there.source.archive.as_ref());
    let mut lines = vec![format!(
        "{} {} ({}, {}) {} {}",
        there.name,
        there.version,
        there.kind,
        from.map_or_else(String::new, |from| crate::clean::line(from, 200)),
        if was_there { "was installed already:" } else { "is installed:" },
        program.display()
    )];
    if let Checked::Works(check) = checked {
        lines.push(describe(check));
    }
    lines.push(format!("[agents.{}] is in {}. {}", there.name, file.display(), daemon.words("")));
    lines.extend(swept.words(&there.name));
    lines.join("\n")
}

/// The failure that an agent ends with that runs and refuses.
pub(super) fn refusal(name: &str, check: &AgentCheck) -> Failure {
    let error = check.error.as_deref().unwrap_or_default();
    let wants_login = error.contains(&error_code::AUTH_REQUIRED.to_string());
    let code = if wants_login { Code::Login } else { Code::Failed };
    let why = explain(name, error, &json!(check.termination_info));
    Failure::Of(
        code,
        format!("{why}\nit is installed and has its entry; `acpd agents check {name}` tries again"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
