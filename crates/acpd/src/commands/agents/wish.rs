//! What is to be installed: from the known agents, or from a registry.

use crate::clean::line;
use crate::exit::Failure;
use crate::installing::{InstallError, Programs, PythonTool, fetch_text, has_npm};
use crate::nearest::unlisted;
use crate::streams::remark;
use acpd_catalog::{
    AgentName, Chosen, Ecosystem, Entry, HttpsUrl, KNOWN, Kind, Known, Package, PackageRun, PackageSpec,
    Platform, RegistryError, Tools, Unknown, Version, choose, find_entry, known,
};
use acpd_host::chain;
use std::collections::BTreeMap;

/// An agent to install.
pub(super) struct Wish {
    pub(super) name: AgentName,
    pub(super) known: Option<&'static Known>,
    /// Its file or address; None for a known agent.
    pub(super) registry: Option<String>,
    pub(super) chosen: Chosen,
    /// Of an archive.
    pub(super) version: Option<Version>,
    pub(super) args: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
}

/// A registry, as it was named.
pub(super) enum Registry {
    At(HttpsUrl),
    File(std::path::PathBuf),
}

impl Registry {
    pub(super) fn read(text: &str) -> Result<Self, Failure> {
        if text.contains("://") {
            let url = HttpsUrl::try_from(text.to_owned());
            return url.map(Self::At).map_err(|wrong| Failure::Usage(format!("--registry: {wrong}")));
        }
        let path =
            std::path::absolute(text).map_err(|error| Failure::Usage(format!("--registry: {error}")))?;
        Ok(Self::File(path))
    }

    /// As a receipt has it.
    pub(super) fn text(&self) -> String {
        match self {
            Self::At(url) => url.to_string(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// The entry of an agent, by its id, or by another name of the same known agent.
    pub(super) async fn entry(&self, name: &AgentName, programs: &Programs) -> Result<Entry, Failure> {
        let place = line(&self.text(), 300);
        let text = match self {
            Self::At(url) => {
                let fetched = fetch_text(url, &programs.told).await;
                programs.told.still();
                fetched.map_err(|source| InstallError::Fetch { what: place.clone(), source })?
            }
            Self::File(path) => {
                let read = std::fs::read_to_string(path);
                read.map_err(|error| Failure::Usage(format!("--registry {place}: {error}")))?
            }
        };
        let also = known(name.as_str()).into_iter().flat_map(|known| {
            let others = std::iter::once(&known.name).chain(known.also);
            others.filter_map(|other| AgentName::try_from((*other).to_owned()).ok())
        });
        let mut last = None;
        for id in std::iter::once(name.clone()).chain(also) {
            match find_entry(&text, &id) {
                Ok(entry) => return Ok(entry),
                // The first says it by the name that was typed.
                Err(unknown @ RegistryError::Unknown { .. }) => drop(last.get_or_insert(unknown)),
                Err(error) => return Err(Failure::Failed(format!("{place}: {}", line(&chain(&error), 600)))),
            }
        }
        let ids = match last {
            Some(RegistryError::Unknown { ids }) => ids,
            _ => Vec::new(),
        };
        let none = format!("there is no agent {name} in {place}");
        let shown = ids.iter().map(|id| line(id, 64)).collect::<Vec<_>>();
        Err(Failure::missing(unlisted(&none, name.as_str(), ids.iter().map(String::as_str), shown)))
    }
}

/// What is wanted of a known agent.
pub(super) fn of_known(
    name: &AgentName,
    version: Option<&Version>,
    kind: Option<Kind>,
) -> Result<Wish, Failure> {
    let Some(known) = known(name.as_str()) else {
        let names = KNOWN.iter().map(|known| known.name);
        let none = format!("acpd knows no agent {name}, and --registry names no other place to look");
        let told = unlisted(&none, name.as_str(), names.clone(), names.map(str::to_owned));
        return Err(Failure::missing(told.replacen("it has ", "it knows ", 1)));
    };
    let (ecosystem, text) = match known.package {
        Package::Npm(package) => (Ecosystem::Npm, package.to_owned()),
        Package::Pypi { name, extras: [], .. } => (Ecosystem::PyPi, name.to_owned()),
        Package::Pypi { name, extras, .. } => (Ecosystem::PyPi, format!("{name}[{}]", extras.join(","))),
    };
    let package = PackageSpec::read(ecosystem, &text).expect("the table names packages plainly");
    let run = PackageRun {
        package: at(package, version),
        cmd: None,
        args: Vec::new(),
        env: BTreeMap::new(),
        unknown: Unknown::default(),
    };
    let (is, chosen) = match ecosystem {
        Ecosystem::Npm => (Kind::Npx, Chosen::Npx(run)),
        Ecosystem::PyPi => (Kind::Uvx, Chosen::Uvx(run)),
    };
    if let Some(kind) = kind.filter(|kind| *kind != is) {
        return Err(Failure::Usage(format!(
            "--kind {kind}: acpd knows {name} as {is}; --registry may have it otherwise"
        )));
    }
    Ok(Wish {
        name: AgentName::try_from(known.name.to_owned()).expect("the table has names"),
        known: Some(known),
        registry: None,
        chosen,
        version: None,
        args: known.args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: variables_of(known),
    })
}

fn variables_of(known: &Known) -> BTreeMap<String, String> {
    known.env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn at(package: PackageSpec, version: Option<&Version>) -> PackageSpec {
    match version {
        Some(version) => package.at(version.clone()),
        None => package,
    }
}

/// What is wanted of an entry of a registry.
pub(super) fn of_entry(
    name: &AgentName,
    registry: &Registry,
    entry: &Entry,
    version: Option<&Version>,
    kind: Option<Kind>,
) -> Result<Wish, Failure> {
    let tools = Tools { npm: has_npm(), python: PythonTool::here().is_some() };
    let place = line(&registry.text(), 300);
    let chosen = choose(entry, &Platform::here(), kind, tools);
    let mut chosen = chosen.map_err(|error| Failure::Failed(format!("{name} in {place}: {error}")))?;
    // What the registry says is installed, not what is newest.
    let wanted = version.unwrap_or(&entry.version);
    let unknown = match &chosen {
        Chosen::Binary(target) => &target.unknown,
        Chosen::Npx(run) | Chosen::Uvx(run) => &run.unknown,
    };
    if !unknown.names().is_empty() {
        let (names, kind) = (line(&unknown.names().join(", "), 300), chosen.kind());
        remark(&format!("{name} in {place}: left out, as acpd does not know it: {names} of {kind}"));
    }
    let (args, env) = match &mut chosen {
        Chosen::Binary(target) => {
            if *wanted != entry.version {
                return Err(Failure::Usage(format!(
                    "--version {wanted}: {place} has {name} {} and no other version as an archive",
                    entry.version
                )));
            }
            (&target.args, &target.env)
        }
        Chosen::Npx(run) | Chosen::Uvx(run) => {
            if version.is_some() || run.package.version().is_none() {
                run.package = run.package.at(wanted.clone());
            }
            (&run.args, &run.env)
        }
    };
    let args = args.iter().map(|arg| arg.as_str().to_owned()).collect();
    let known = known(name.as_str()).or_else(|| known(entry.id.as_str()));
    let mut variables = known.map(variables_of).unwrap_or_default();
    variables.extend(env.iter().map(|(name, value)| (name.as_str().to_owned(), value.as_str().to_owned())));
    let version = matches!(chosen, Chosen::Binary(_)).then(|| entry.version.clone());
    Ok(Wish {
        name: name.clone(),
        known,
        registry: Some(registry.text()),
        chosen,
        version,
        args,
        env: variables,
    })
}

impl Wish {
    pub(super) fn kind(&self) -> Kind {
        self.chosen.kind()
    }
}
