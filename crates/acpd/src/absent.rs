//! Known agents that are not installed: what is missing, and the one command that installs it.
//!
//! Not here: what is known of agents, and looking for their programs (`acpd_catalog`).

use acpd_catalog::{Absent, Known, find, known};
use std::ffi::OsString;

/// Where programs are looked for.
pub(crate) fn path() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

/// Why there is no agent of that name, where it is a known one: what is missing, and what installs it.
pub(crate) fn why_absent(name: &str) -> Option<String> {
    let known = known(name).filter(|known| known.name == name)?;
    Some(absent(known, find(known, &path()).err().unwrap_or(Absent::NoProgram)))
}

fn absent(known: &Known, absent: Absent) -> String {
    let (program, install) = (known.program, install(known.name));
    match absent {
        Absent::NoProgram => {
            format!("its program {program} is in no directory of PATH; `{install}` installs it")
        }
        Absent::Program(other) => {
            format!("the {program} in PATH is that of the agent {}; `{install}` installs it", other.name)
        }
    }
}

/// The command that installs a known agent.
pub(crate) fn install(name: &str) -> String {
    format!("acpd agents add {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> &'static Known {
        known(name).expect("it is known")
    }

    // issue 14: one that is not installed is told with the one command that installs it
    #[test]
    fn what_is_missing_is_told_with_its_remedy() {
        assert_eq!(
            absent(of("gemini"), Absent::NoProgram),
            "its program gemini is in no directory of PATH; `acpd agents add gemini` installs it"
        );
        assert_eq!(
            absent(of("codex-zed"), Absent::Program(of("codex"))),
            "the codex-acp in PATH is that of the agent codex; `acpd agents add codex-zed` installs it"
        );
        // Another name of an agent is no name of an entry.
        assert_eq!(why_absent("qwen-code"), None);
        assert_eq!(why_absent("example"), None);
    }
}
