//! The version of an installed agent by what its program says of itself.
//!
//! Only a known program is started for it, with arguments that are known to do nothing else, and within a bound. What one said is
//! kept as long as its file is the same.

use super::sight::Installed;
use acpd_host::TaskScope;
use acpd_supervisor::{Process, ProcessHandle, ProgramSpec, Supervisor, program_environment};
use bytes::BytesMut;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How long a program may take to say its version. Some begin a whole runtime for it.
const PATIENCE: Duration = Duration::from_secs(5);
/// What is read of what it says. More is no version.
const SAID_BYTES: usize = 4096;
/// The longest version.
const LONGEST: usize = 64;

/// What programs said, by their files as they were.
#[derive(Debug, Default)]
pub(super) struct Versions(Mutex<BTreeMap<Identity, Option<String>>>);

type Identity = (PathBuf, Option<SystemTime>, u64);

impl Versions {
    /// Asks the programs of these agents, all at once; an answer for each.
    pub(super) async fn ask(
        self: &Arc<Self>,
        supervisor: &Supervisor,
        scope: &TaskScope,
        agents: Vec<Installed>,
    ) -> BTreeMap<String, String> {
        let asked = agents.into_iter().map(|agent| {
            let (versions, supervisor) = (Arc::clone(self), supervisor.clone());
            scope.spawn("version", async move {
                let said = versions.of(&supervisor, &agent).await;
                said.map(|version| (agent.name, version))
            })
        });
        let mut versions = BTreeMap::new();
        for asked in asked.collect::<Vec<_>>() {
            versions.extend(asked.await.ok().flatten().flatten());
        }
        versions
    }

    async fn of(&self, supervisor: &Supervisor, agent: &Installed) -> Option<String> {
        let identity = identity(&agent.file)?;
        let known = self.0.lock().get(&identity).cloned();
        if let Some(said) = known {
            return said;
        }
        let said = version_said_by(supervisor, agent).await;
        self.0.lock().insert(identity, said.clone());
        said
    }
}

fn identity(file: &Path) -> Option<Identity> {
    let real = std::fs::canonicalize(file).ok()?;
    let found = real.metadata().ok()?;
    Some((real, found.modified().ok(), found.len()))
}

/// The version that a program says of itself.
pub(crate) async fn version_said_by(supervisor: &Supervisor, program: &Installed) -> Option<String> {
    version_in(&said_by(supervisor, program).await?)
}

/// What the program writes to stdout until it ends.
async fn said_by(supervisor: &Supervisor, agent: &Installed) -> Option<String> {
    let mut spec = ProgramSpec::new(&agent.file, std::env::temp_dir());
    spec.args = agent.version_args.iter().map(OsString::from).collect();
    spec.env = program_environment(std::env::vars_os(), &agent.env);
    let Process { stdin, mut stdout, handle } = supervisor.start(spec).await.ok()?;
    // One that takes itself for an agent ends here.
    drop(stdin);
    let _killed = KillOnDrop(handle.clone());
    let mut said = BytesMut::with_capacity(SAID_BYTES);
    let read = async {
        while said.len() < SAID_BYTES && stdout.read_buf(&mut said).await.is_ok_and(|read| read > 0) {}
        drop(stdout);
    };
    tokio::time::timeout(PATIENCE, read).await.ok()?;
    Some(String::from_utf8_lossy(&said).into_owned())
}

/// It has no time left when it is not waited for any more.
struct KillOnDrop(ProcessHandle);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// The first word that looks like a version.
fn version_in(said: &str) -> Option<String> {
    let words = said.split(|c: char| c.is_whitespace() || "(),:".contains(c));
    let words = words.map(|word| word.trim_start_matches(['v', 'V']).trim_end_matches('.'));
    let is_version = |word: &&str| {
        word.len() <= LONGEST
            && word.starts_with(|c: char| c.is_ascii_digit())
            && word.contains('.')
            && word.chars().all(|c| c.is_ascii_alphanumeric() || ".+-_".contains(c))
    };
    words.into_iter().find(is_version).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    // issue 14: what programs say of their version, and what is none
    #[test]
    fn a_version_is_found_in_what_is_said() {
        for (said, version) in [
            ("1.18.33\n", Some("1.18.33")),
            ("codex-acp 2.6.0", Some("2.6.0")),
            ("GitHub Copilot CLI v1.0.102.\nRun it", Some("1.0.102")),
            ("kimi, version 2.1.0-rc.1+x", Some("2.1.0-rc.1+x")),
            ("{\"jsonrpc\":\"2.0\"}", None),
            ("error: unknown argument", None),
            ("2 files", None),
            ("1.2\u{1b}[2J", None),
            ("", None),
        ] {
            assert_eq!(version_in(said).as_deref(), version, "{said:?}");
        }
    }
}
