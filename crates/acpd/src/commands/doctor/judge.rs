//! Whether what was found is well, and what to do where it is not. Pure.

mod fleet;
mod place;

use crate::absent::install;
use crate::checks::{Check, finding, fine};
use crate::clean::line;
use crate::commands::shown;
use crate::daemon::Nodes;
use crate::view::byte_count;
use acpd_api::AgentCheck;
use acpd_eventlog::{Examined, LogPart, OpenError};
use acpd_host::chain;
use acpd_supervisor::Containment;
pub(super) use fleet::fleet;
pub(crate) use place::hindrances;
pub(super) use place::{Below, Place, State, is_own, is_private, state};
use std::path::{Path, PathBuf};

/// Files that a daemon with some sessions has open; the usual hard limit is far above.
const FEW_FILES: u64 = 4096;

fn path(path: &Path) -> String {
    shown(&path.to_string_lossy())
}

/// A configuration that can be read; `exposed` is why a daemon would not start with it.
pub(crate) fn configuration(file: Option<&Path>, exposed: Option<String>) -> Check {
    match (exposed, file) {
        (Some(why), _) => finding(
            "configuration",
            why,
            "acpd token new NAME --scope control, or listen = \"127.0.0.1:2273\"",
        ),
        (None, Some(file)) => fine("configuration", path(file)),
        (None, None) => fine("configuration", "no file, so the defaults; acpd config init writes one"),
    }
}

pub(crate) fn mistake(error: &str) -> Check {
    // Below the first line is an excerpt.
    let error = error.lines().next().unwrap_or_default();
    finding("configuration", error, "mend it; acpd config check shows where")
}

pub(super) fn expired(token: &str) -> Check {
    let remedy = format!("acpd token rotate {token} --expires 90d, or acpd token revoke {token}");
    finding("configuration", format!("token {token} has expired"), remedy)
}

pub(super) fn no_agents() -> Check {
    fine("agents", "none but the built-in example; acpd agents add NAME installs a known one")
}

/// The agent of clients that name none is a known one, and not there.
pub(super) fn no_default(name: &str, why: &str) -> Check {
    let says = format!("default_agent = \"{name}\" in [server], and it is not installed: {}", line(why, 300));
    finding("agents", says, format!("{}, or another default_agent", install(name)))
}

/// The program of an agent.
#[derive(Debug, PartialEq)]
pub(super) enum Program {
    Found(PathBuf),
    /// It is there, and this user cannot run it.
    NotExecutable(PathBuf),
    Missing,
}

pub(super) fn agent(name: &str, command: &str, found: &Program) -> Check {
    match found {
        Program::Found(file) => fine("agents", format!("{name} is {}", path(file))),
        Program::NotExecutable(file) => finding(
            "agents",
            format!("{name}: {} cannot be run by this user", path(file)),
            format!("chmod +x {}, or another command in [agents.{name}]", path(file)),
        ),
        Program::Missing if command.contains('/') => finding(
            "agents",
            format!("{name}: there is no {}", shown(command)),
            format!("install it, or mend command in [agents.{name}]"),
        ),
        Program::Missing => finding(
            "agents",
            format!("{name}: {} is in no directory of PATH", shown(command)),
            format!("install it, or write its whole path as command in [agents.{name}]"),
        ),
    }
}

/// What came of a start.
pub(super) fn started(name: &str, check: &AgentCheck, node: Option<&str>) -> Check {
    if let Some(node) = node {
        return outdated_node(name, node);
    }
    if check.ok {
        let took = check.start_ms.unwrap_or_default();
        return fine("agents", format!("{name} started in {took} ms and was stopped"));
    }
    let error = check.error.as_deref().unwrap_or("it does not start");
    finding(
        "agents",
        format!("{name}: {}", line(error, 300)),
        format!("acpd agents check {name} shows what it wrote"),
    )
}

/// A Node.js that is older than the package of an agent wants it.
pub(super) fn outdated_node(name: &str, node: &str) -> Check {
    finding(
        "agents",
        format!("{name}: {node}"),
        format!("install a newer Node.js, first in PATH, or name one in env of [agents.{name}]"),
    )
}

/// The files that a daemon may have open; None without a limit.
pub(super) fn limits(open_files: Option<u64>) -> Check {
    match open_files {
        None => fine("limits", "any number of files may be open at once"),
        Some(files) if files >= FEW_FILES => fine("limits", format!("{files} files may be open at once")),
        Some(files) => finding(
            "limits",
            format!("{files} files may be open at once, and each session and client takes some"),
            "raise the hard limit: LimitNOFILE=65536 in the unit, or nofile in /etc/security/limits.conf",
        ),
    }
}

pub(super) fn containment(found: Containment) -> Check {
    match found {
        Containment::Subreaper => fine("processes", "nothing that an agent starts outlives that agent"),
        Containment::ProcessGroup => finding(
            "processes",
            "what leaves the process group of an agent outlives it here",
            "run acpd on Linux with /proc mounted, where agents leave such processes behind",
        ),
    }
}

/// The log, and what lies beside it.
pub(super) fn log(examined: Result<Option<Examined>, OpenError>) -> Vec<Check> {
    const ABOUT: &str = "log";
    let found = match examined {
        Ok(Some(found)) => found,
        Ok(None) => return vec![fine(ABOUT, "made at the first use")],
        Err(OpenError::Unmigrated { path: file }) => {
            let says = format!(
                "sessions are in {}, of an earlier acpd: the next start moves them to files",
                path(&file)
            );
            return vec![fine(ABOUT, says)];
        }
        Err(error) => return vec![unusable(ABOUT, &error)],
    };
    let damaged = found.damaged.iter().map(|(directory, error)| {
        finding(
            ABOUT,
            format!("{}: {}", path(directory), chain(error)),
            "restore that directory from a backup; the events before the damage can be read as they are",
        )
    });
    let beside = [&found.index, &found.notes].into_iter().flatten().map(|error| unusable(ABOUT, error));
    let mut checks: Vec<Check> = damaged.chain(beside).collect();
    if checks.is_empty() {
        let sessions = match found.sessions {
            1 => "1 session".to_owned(),
            many => format!("{many} sessions"),
        };
        let bytes = byte_count(found.bytes);
        checks.push(fine(ABOUT, format!("a quick check finds it whole: {sessions} in files, {bytes}")));
    }
    checks
}

/// A log that cannot be used.
pub(crate) fn unusable(about: &'static str, error: &OpenError) -> Check {
    let remedy = match error {
        OpenError::Damaged { path: file, detail } => {
            let part = LogPart::of_file(file);
            let says = format!("{} is damaged ({detail}){}", path(file), part.extent_of_damage());
            return finding(about, says, part.remedy());
        }
        OpenError::Orphaned { path: part, database } => {
            let says = format!("{} is a part of {}, which is missing", path(part), path(database));
            return finding(
                about,
                says,
                "put the database back, or move its part away to start with an empty log",
            );
        }
        OpenError::Newer { .. } => "run the newer acpd, or another state directory",
        OpenError::Foreign { .. } => "use another state directory",
        _ => "look at its permissions and the room on its disk",
    };
    finding(about, chain(error), remedy)
}

/// A systemd unit.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) file: PathBuf,
    /// What it starts.
    pub(super) program: Option<String>,
    /// The same where it is not there.
    pub(super) missing_program: Option<String>,
    /// The configuration that it names and that is not there.
    pub(super) missing_config: Option<String>,
    pub(super) kill_mode: Option<String>,
}

pub(super) fn unit(unit: &Unit) -> Vec<Check> {
    const ABOUT: &str = "unit";
    let file = path(&unit.file);
    let mut checks = Vec::new();
    if unit.program.is_none() {
        checks.push(finding(ABOUT, format!("{file} starts nothing"), "ExecStart=/usr/local/bin/acpd serve"));
    }
    checks.extend(unit.missing_program.iter().map(|program| {
        let says = format!("{file} starts {}, which is not there", shown(program));
        finding(ABOUT, says, "install acpd there, or mend ExecStart=; then systemctl daemon-reload")
    }));
    checks.extend(unit.missing_config.iter().map(|config| {
        let says = format!("{file} names {} in ACPD_CONFIG, which is not there", shown(config));
        finding(ABOUT, says, format!("acpd config init --config {}", shown(config)))
    }));
    // The default.
    if unit.kill_mode.as_deref().is_none_or(|mode| mode == "control-group") {
        let says =
            format!("{file} stops agents at the same time as the daemon, which is to stop them in order");
        checks.push(finding(ABOUT, says, "KillMode=mixed in [Service]; then systemctl daemon-reload"));
    }
    if checks.is_empty() {
        checks.push(fine(ABOUT, file));
    }
    checks
}

/// The last value of a key of a unit.
pub(super) fn unit_value(text: &str, key: &str) -> Option<String> {
    let mut values =
        text.lines().filter_map(|line| line.trim().strip_prefix(key)?.trim_start().strip_prefix('='));
    values.next_back().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// The last value of a variable that a unit sets.
pub(super) fn unit_variable(text: &str, name: &str) -> Option<String> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("Environment="));
    let words = lines.flat_map(str::split_whitespace).map(|word| word.trim_matches(['"', '\'']));
    words.filter_map(|word| word.strip_prefix(name)?.strip_prefix('=')).next_back().map(str::to_owned)
}

/// A daemon.
#[derive(Debug)]
pub(super) enum DaemonFacts {
    /// None serves this directory; what waits for one, if something does.
    None(String, Option<String>),
    /// A process serves this directory, and its socket is gone.
    WithoutSocket(String, u32),
    /// Which one is meant cannot be told.
    Unknown(String),
    /// It does not answer.
    Unreachable(String),
    /// It is there, and this caller may not ask it anything.
    Closed(String, String),
    There {
        at: String,
        version: String,
        unwell: Option<String>,
        /// Its configuration, where that has changed since it was read.
        stale: Option<String>,
        /// Its fleet, if it is in one.
        fleet: Option<Nodes>,
    },
}

/// `own` is the version of this program.
pub(super) fn daemon(facts: &DaemonFacts, own: &str) -> Check {
    const ABOUT: &str = "daemon";
    match facts {
        DaemonFacts::None(dir, Some(waiting)) => finding(
            ABOUT,
            format!("none serves {}, and {waiting}", shown(dir)),
            "acpd serve takes over what waits; acpd sessions terminate ID ends one",
        ),
        DaemonFacts::None(dir, None) => {
            fine(ABOUT, format!("none serves {}; acpd serve starts one", shown(dir)))
        }
        DaemonFacts::WithoutSocket(dir, pid) => finding(
            ABOUT,
            format!("the one with pid {pid} serves {}, and its socket there is gone", shown(dir)),
            format!("kill {pid}, which ends it in order, then acpd serve"),
        ),
        DaemonFacts::Closed(at, error) => finding(
            ABOUT,
            format!("{at}: {error}"),
            "a token that it knows, in ACPD_TOKEN or with --token-file; on its machine acpd token new NAME --scope control \
             makes one",
        ),
        DaemonFacts::Unknown(error) => {
            let error = error.lines().next().unwrap_or_default();
            finding(ABOUT, error, "mend that, or name the daemon with --connect")
        }
        DaemonFacts::Unreachable(error) => {
            finding(ABOUT, error.as_str(), "start it, or mend what is said there; its log may say more")
        }
        DaemonFacts::There { unwell: Some(unwell), at, .. } => finding(
            ABOUT,
            format!("the one at {at} is {unwell}"),
            "see \"When something is wrong\" in docs/operations.md; its log says more",
        ),
        DaemonFacts::There { at, version, .. } if version != own && !version.is_empty() => finding(
            ABOUT,
            format!("the one at {at} is acpd {version}, this is {own}"),
            "restart it by the newer one when its sessions can end",
        ),
        DaemonFacts::There { stale: Some(file), .. } => {
            finding(ABOUT, format!("{file} has changed since the daemon read it"), "acpd reload")
        }
        DaemonFacts::There { at, version, .. } => fine(ABOUT, format!("acpd {version} at {at}")),
    }
}

#[cfg(test)]
mod tests;
