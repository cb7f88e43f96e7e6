//! The agents that acpd knows by name: those that are installed are as if they were configured.
//!
//! Owned by the composition, which asks when a configuration is loaded, and when an agent is wanted that has no entry: what is
//! installed later is found then, without a word to a daemon. An entry of the file wins. Not here: what is known of them
//! (`acpd_catalog`).

mod sight;
mod versions;

pub(crate) use sight::{Installed, KnownAgents, known_agent, known_by_name, variable};
pub(crate) use versions::version_said_by;

use crate::absent::path;
use crate::config::{Agent, Config};
use acpd_catalog::{Found, KNOWN, Known, find};

/// Adds the known agents that are installed and have no entry.
pub(crate) fn add_installed(config: &mut Config) {
    let path = path();
    for known in KNOWN.iter().filter(|known| !config.agents.contains_key(known.name)).collect::<Vec<_>>() {
        if let Ok(entry) = find(known, &path).map(|found| entry(known, &found)) {
            config.agents.insert(known.name.to_owned(), entry);
        }
    }
}

/// The entry that a known agent would have.
fn entry(known: &Known, found: &Found) -> Agent {
    // By its name, as it would be written, unless another program has that.
    let by_path = Some(&found.file).filter(|_| !found.is_first).and_then(|file| file.to_str());
    let command = by_path.unwrap_or(known.program).to_owned();
    Agent::found(command, known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpd_catalog::known;
    use std::path::PathBuf;

    fn of(name: &str) -> &'static Known {
        known(name).expect("it is known")
    }

    // issue 14: an agent that is found is as if it had the entry that its user would write
    #[test]
    fn what_is_found_becomes_an_entry() {
        let found = |is_first| Found { file: PathBuf::from("/opt/bin/x"), is_first, owner: None };
        let gemini = entry(of("gemini"), &found(true));
        assert_eq!(
            (gemini.command.as_str(), gemini.args, gemini.files),
            ("gemini", vec!["--acp".to_owned()], false)
        );
        let hermes = entry(of("hermes"), &found(false));
        assert_eq!((hermes.command.as_str(), hermes.files, hermes.stderr_log), ("/opt/bin/x", true, true));
        let opencode = entry(of("opencode"), &found(true));
        assert_eq!(opencode.env.0.get("OPENCODE_DISABLE_AUTOUPDATE").map(String::as_str), Some("1"));
    }
}
