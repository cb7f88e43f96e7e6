//! What is found of agents on this machine: their programs, versions and logins, for `acpd agents list` and a daemon's clients.

use super::entry;
use super::versions::Versions;
use crate::absent::{install, path, why_absent};
use crate::agent_specs::agent_spec;
use crate::config::Config;
use crate::nearest::nearest;
use acpd_api::{AgentFacts, AgentOrigin, NotInstalled};
use acpd_catalog::{
    AgentName, AgentsDir, KNOWN, Known, Owner, Package, find, known, logged_in, owner, to_run,
};
use acpd_gateway::{AgentSight, Seen};
use acpd_host::{AgentFinder, AgentSpec, Pending, Sought, TaskScope};
use acpd_supervisor::Supervisor;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The known agents of a host: finds those that it has no entry for, and says what is found of all.
#[derive(Debug)]
pub(crate) struct KnownAgents {
    /// What the host goes by.
    config: RwLock<Arc<Config>>,
    supervisor: Supervisor,
    scope: TaskScope,
    versions: Arc<Versions>,
}

/// A program whose version is asked for.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) name: String,
    pub(crate) file: PathBuf,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) version_args: &'static [&'static str],
}

impl KnownAgents {
    pub(crate) fn new(config: &Config, supervisor: Supervisor, scope: TaskScope) -> Arc<Self> {
        let config = RwLock::new(Arc::new(config.clone()));
        Arc::new(Self { config, supervisor, scope, versions: Arc::default() })
    }

    /// The host goes by another configuration from now on.
    pub(crate) fn set(&self, config: &Config) {
        *self.config.write() = Arc::new(config.clone());
    }

    async fn seen(&self, agents: &[Arc<AgentSpec>]) -> Seen {
        let config = Arc::clone(&self.config.read());
        let mut asked = Vec::new();
        let mut seen = Seen::default();
        for spec in agents {
            let origin = config.agents.get(&spec.name).map_or(AgentOrigin::Found, |agent| agent.origin);
            let (facts, unsaid) = facts(spec, origin, &config.storage.path);
            asked.extend(unsaid);
            seen.agents.insert(spec.name.clone(), facts);
        }
        for (name, version) in self.versions.ask(&self.supervisor, &self.scope, asked).await {
            if let Some(facts) = seen.agents.get_mut(&name) {
                facts.version = Some(version);
            }
        }
        seen.not_installed = not_installed(&seen.agents);
        seen
    }
}

impl AgentSight for KnownAgents {
    fn look(&self, agents: Vec<Arc<AgentSpec>>) -> Pending<'_, Seen> {
        Box::pin(async move { self.seen(&agents).await })
    }
}

impl AgentFinder for KnownAgents {
    fn find(&self, name: &str, entries: &[String]) -> Sought {
        let Some(known) = known(name) else {
            let names = entries.iter().map(String::as_str).chain(KNOWN.iter().map(|known| known.name));
            return Sought::Unknown { meant: nearest(name, names).map(str::to_owned) };
        };
        if known.name != name {
            return Sought::Unknown { meant: Some(known.name.to_owned()) };
        }
        match find(known, &path()) {
            Ok(found) => {
                let spec = agent_spec(&self.config.read(), name, &entry(known, &found));
                tracing::info!(agent = name, program = %found.file.display(), "found an agent that has no entry");
                Sought::Found(Box::new(spec))
            }
            Err(_) => Sought::NotInstalled { why: why_absent(name).unwrap_or_default() },
        }
    }
}

/// The known agents that sessions cannot have.
fn not_installed(agents: &BTreeMap<String, AgentFacts>) -> Vec<NotInstalled> {
    let others = KNOWN.iter().filter(|known| !agents.contains_key(known.name));
    let told = others.map(|known| NotInstalled {
        name: known.name.to_owned(),
        title: known.title.to_owned(),
        install: install(known.name),
    });
    told.collect()
}

/// What is found of an agent, and its program where only that can say its version.
fn facts(spec: &AgentSpec, origin: AgentOrigin, state_dir: &Path) -> (AgentFacts, Option<Installed>) {
    let variable = |name: &str| variable(spec, name);
    let (command, args) = (&spec.program.command, &spec.program.args);
    let command = command.to_string_lossy();
    let file = to_run(&command, &variable("PATH").unwrap_or_default());
    let program = Path::new(command.as_ref()).file_name().and_then(OsStr::to_str).unwrap_or_default();
    let (known, owner) = what(&spec.name, program, file.as_deref());
    let said = |file: &PathBuf| match origin {
        AgentOrigin::Builtin => Some(env!("CARGO_PKG_VERSION").to_owned()),
        AgentOrigin::Configured | AgentOrigin::Found => {
            let name = AgentName::try_from(spec.name.clone()).ok();
            let added = name.and_then(|name| AgentsDir::of(state_dir).version_of(&name, file));
            added.map(|version| version.to_string()).or_else(|| owner.map(|owner| owner.version))
        }
    };
    let version = file.as_ref().and_then(said);
    // Of a program that is called otherwise nothing is known that is safe to ask it.
    let asks = known.filter(|known| known.program == program && !known.version_args.is_empty());
    let unsaid = asks.filter(|_| version.is_none()).zip(file.clone()).map(|(known, file)| Installed {
        name: spec.name.clone(),
        file,
        env: spec.program.env.clone(),
        version_args: known.version_args,
    });
    let facts = AgentFacts {
        title: known.map(|known| known.title.to_owned()),
        origin,
        command: command.into_owned(),
        args: args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect(),
        installed: file.is_some(),
        program: file.map(|file| file.to_string_lossy().into_owned()),
        version,
        logged_in: known.and_then(|known| logged_in(&known.login, &variable)),
    };
    (facts, unsaid)
}

/// A variable of the agent's environment.
pub(crate) fn variable(spec: &AgentSpec, name: &str) -> Option<OsString> {
    let own = spec.program.env.iter().find(|(own, _)| own == name);
    own.map(|(_, value)| value.clone()).or_else(|| std::env::var_os(name))
}

/// The known agent that an entry is, if it is one.
pub(crate) fn known_agent(spec: &AgentSpec) -> Option<&'static Known> {
    let command = spec.program.command.to_string_lossy();
    let file = to_run(&command, &variable(spec, "PATH").unwrap_or_default());
    let program = Path::new(command.as_ref()).file_name().and_then(OsStr::to_str).unwrap_or_default();
    what(&spec.name, program, file.as_deref()).0
}

/// The known agent that an entry is, as far as names tell; no file is looked at.
pub(crate) fn known_by_name(spec: &AgentSpec) -> Option<&'static Known> {
    let program = Path::new(&spec.program.command).file_name().and_then(OsStr::to_str).unwrap_or_default();
    what(&spec.name, program, None).0
}

/// The known agent that an entry is: by its program, or else by its name; and the package of the program.
fn what(name: &str, program: &str, file: Option<&Path>) -> (Option<&'static Known>, Option<Owner>) {
    let candidates: Vec<&'static Known> = KNOWN.iter().filter(|known| known.program == program).collect();
    let packages: Vec<Package> = candidates.iter().map(|known| known.package).collect();
    let owner = file.and_then(|file| owner(file, program, &packages));
    let of_package = owner
        .as_ref()
        .and_then(|owner| candidates.iter().copied().find(|known| known.package.name() == owner.name));
    let of_name = || KNOWN.iter().find(|known| known.name == name);
    (of_package.or_else(|| candidates.first().copied()).or_else(of_name), owner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpd_host::Program;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn spec(name: &str, command: &Path, env: &[(&str, &OsStr)]) -> AgentSpec {
        let env = env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect();
        let (command, args) = (command.into(), vec!["--acp".into()]);
        AgentSpec::new(name.to_owned(), Program { command, args, env })
    }

    fn program(dir: &Path, name: &str) -> PathBuf {
        let file = dir.join(name);
        fs::write(&file, "#!/bin/sh\n").expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("its mode");
        file
    }

    // issue 14: an entry of any name is known by its program; what cannot be told is absent, and only a known program is asked
    #[test]
    fn an_entry_is_known_by_its_program() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = dir.path().as_os_str();
        let file = program(dir.path(), "gemini");
        let (own, state) = (&[("HOME", home), ("GEMINI_API_KEY", OsStr::new("x"))], Path::new("/state"));
        let (seen, asked) = facts(&spec("mine", &file, own), AgentOrigin::Configured, state);
        assert_eq!(
            (seen.title.as_deref(), seen.installed, seen.logged_in),
            (Some("Gemini CLI"), true, Some(true))
        );
        assert_eq!(seen.program.as_deref(), file.to_str());
        assert_eq!(asked.map(|asked| (asked.name, asked.file)), Some(("mine".to_owned(), file)));
        let other = program(dir.path(), "wrapper");
        let (seen, asked) = facts(&spec("gemini", &other, &[("HOME", home)]), AgentOrigin::Configured, state);
        assert_eq!((seen.title.as_deref(), seen.version), (Some("Gemini CLI"), None));
        assert!(asked.is_none(), "what a wrapper does with an argument is not known");
        let absent = dir.path().join("absent");
        let (seen, asked) = facts(&spec("mine", &absent, &[]), AgentOrigin::Configured, state);
        assert!(!seen.installed && seen.program.is_none() && seen.logged_in.is_none() && asked.is_none());
    }

    // issue 14: what acpd has installed has the version of its directory, and is not started for it
    #[test]
    fn what_was_installed_is_not_asked() {
        let dir = tempfile::tempdir().expect("a directory");
        let bin = dir.path().join("agents/gemini/0.61.0/bin");
        fs::create_dir_all(&bin).expect("a directory");
        let file = program(&bin, "gemini");
        let (seen, asked) = facts(&spec("gemini", &file, &[]), AgentOrigin::Configured, dir.path());
        assert_eq!((seen.version.as_deref(), asked.is_none()), (Some("0.61.0"), true));
    }

    // issue 14: known agents that are not installed are told apart, with the command that installs each
    #[test]
    fn the_others_are_told_apart() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = program(dir.path(), "gemini");
        let (seen, _) = facts(&spec("gemini", &file, &[]), AgentOrigin::Found, dir.path());
        let others = not_installed(&BTreeMap::from([("gemini".to_owned(), seen)]));
        assert_eq!(others.len(), KNOWN.len() - 1);
        assert!(others.iter().all(|other| other.name != "gemini"));
        assert!(
            others.iter().any(|other| other.install == "acpd agents add codex" && other.title == "Codex")
        );
    }
}
