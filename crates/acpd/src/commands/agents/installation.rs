//! One version of an agent: put together, and started once. For `add` and `update`.

use super::place::Place;
use super::trial::Trial;
use super::wish::Wish;
use crate::config;
use crate::exit::{Code, Failure};
use crate::installing::{
    Consent, InstallError, Installed, Programs, PythonTool, Wanted, install_binary, install_npm,
    install_python, newest_of_npm,
};
use crate::local_host::agent_specs;
use acpd_api::AgentCheck;
use acpd_catalog::{Chosen, Locked, Package, ProgramName, Published, Receipt, Scripts, Source, Version};
use acpd_host::AgentSpec;
use jiff::Timestamp;
use std::path::PathBuf;

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
            install_npm(programs, run, preferred, how.consent, staging.path()).await?
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
            let cmd = run.cmd.as_ref().map(ProgramName::as_str);
            let wanted = Wanted { package: &run.package, python, cmd, preferred, consent: how.consent };
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
    Works(Box<Trial>),
    /// It runs, and answers with an error of its own, such as for want of a login.
    Refuses(Box<Trial>),
}

impl Checked {
    pub(super) fn check(&self) -> Option<&AgentCheck> {
        match self {
            Self::Not => None,
            Self::Works(trial) | Self::Refuses(trial) => Some(&trial.check),
        }
    }
}

/// The specification by which an entry starts an installed agent.
pub(super) fn spec_of(place: &Place, there: &There<'_>, entry: config::Agent) -> AgentSpec {
    let name = &there.receipt.name;
    let mut config = place.config.clone();
    config.agents.insert(name.to_string(), entry);
    agent_specs(&config).remove(name.as_str()).expect("it was put there")
}

/// Starts it as its entry will have it.
pub(super) async fn check(
    programs: &Programs,
    place: &Place,
    there: &There<'_>,
    entry: config::Agent,
) -> Result<Checked, Failure> {
    let spec = spec_of(place, there, entry);
    let (supervisor, scope) = programs.means();
    let trial = Box::new(Trial::by(supervisor, scope, &spec).await?);
    if trial.check.ok {
        return Ok(Checked::Works(trial));
    }
    if trial.refused {
        return Ok(Checked::Refuses(trial));
    }
    let remedy = match there.receipt.scripts {
        _ if trial.node.is_some() => "put a newer Node.js first in PATH, and try again",
        Scripts::Skipped => "its install scripts were left out; --allow-scripts runs them",
        _ => "if it has to be set up before it starts, --no-check installs it without a start",
    };
    Err(Failure::Failed(format!("{}\nnothing was changed; {remedy}", trial.explain())))
}
