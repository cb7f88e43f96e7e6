//! The two programs that are compared: the example agent, and the same agent behind acpd. And the one that compares
//! terminals with what they run.
//!
//! The two come from one release build. Their state is in directories beside the build, so that the log is on the disk
//! that is built on and nothing of the user's is touched. Not here: talking to them.

use super::{child, progress};
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Why there is nothing to measure.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProgramsError {
    #[error("cannot run cargo")]
    Cargo {
        #[source]
        source: io::Error,
    },
    #[error("the release build failed")]
    Build,
    #[error("the build made no binary of this name: {name}")]
    Missing { name: String },
    #[error("cannot use {}", path.display())]
    Path {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// One of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The agent itself.
    Direct,
    /// The agent behind `acpd stdio`.
    Acpd,
}

impl Side {
    pub(super) const BOTH: [Self; 2] = [Self::Direct, Self::Acpd];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Acpd => "acpd",
        }
    }
}

/// The binary.
pub(super) struct Programs {
    acpd: PathBuf,
}

impl Programs {
    /// Builds the binary in `root`, or takes `given`.
    pub(super) fn prepare(given: Option<&Path>, root: &Path) -> Result<Self, ProgramsError> {
        let acpd = match given {
            Some(path) => path.to_owned(),
            None => build(root, "-p acpd", "acpd")?,
        };
        let acpd = acpd.canonicalize().map_err(|source| ProgramsError::Path { path: acpd, source })?;
        Ok(Self { acpd })
    }

    /// Builds the program that measures terminals, in `root`. Not together with acpd, whose own build would then have
    /// what only tests and examples need.
    pub(super) fn terminal_cost(&self, root: &Path) -> Result<PathBuf, ProgramsError> {
        build(root, "-p acpd-terminal --example cost", "cost")
    }

    /// The command that prints the samples of terminals whose keeper is acpd. `cost` is [`Self::terminal_cost`].
    pub(super) fn terminals(&self, cost: &Path, state: &TempDir) -> Command {
        let mut command = clean(cost, state);
        command.arg("--json").arg(&self.acpd).arg("keeper").stdin(Stdio::null());
        command
    }

    /// A fresh directory for the state of a program. Let go of it after the program has ended.
    pub(super) fn state_dir(&self) -> io::Result<TempDir> {
        let beside = self.acpd.parent().unwrap_or(Path::new("."));
        tempfile::Builder::new().prefix("bench-").tempdir_in(beside)
    }

    /// The command that speaks ACP on its stdin and stdout.
    pub(super) fn speaker(&self, side: Side, state: &TempDir) -> Command {
        let mut command = self.command(state);
        match side {
            Side::Direct => command.arg("example-agent"),
            Side::Acpd => {
                command.args(["stdio", "--embedded", "--agent", "example", "--state-dir"]).arg(state.path())
            }
        };
        command
    }

    /// The command that serves clients on a port of its choice.
    pub(super) fn daemon(&self, state: &TempDir) -> Command {
        let mut command = self.command(state);
        command.args(["serve", "--listen", "127.0.0.1:0", "--state-dir"]).arg(state.path());
        command.stdin(Stdio::null());
        command
    }

    /// The command that runs one prompt and ends.
    pub(super) fn run(&self, prompt: &str, state: &TempDir) -> Command {
        let mut command = self.command(state);
        command
            .args(["run", "--embedded", "--agent", "example", "--state-dir"])
            .arg(state.path())
            .arg(prompt);
        // Its stderr is a conversation with a person.
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn command(&self, state: &TempDir) -> Command {
        clean(&self.acpd, state)
    }
}

/// Without the user's configuration, and with pipes.
fn clean(program: &Path, state: &TempDir) -> Command {
    let mut command = child::command(program);
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"ACPD_") {
            command.env_remove(name);
        }
    }
    command.env("XDG_CONFIG_HOME", state.path()).env("XDG_STATE_HOME", state.path());
    command.current_dir(state.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// `cargo build` of `what`, and where it has put the binary of this name.
fn build(root: &Path, what: &str, name: &str) -> Result<PathBuf, ProgramsError> {
    progress(format_args!("cargo build --release {what}"));
    let mut cargo = child::command("cargo");
    cargo.args(["build", "--release", "--message-format", "json-render-diagnostics"]);
    cargo.args(what.split(' '));
    let output = cargo.current_dir(root).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|source| ProgramsError::Cargo { source })?;
    if !output.status.success() {
        return Err(ProgramsError::Build);
    }
    executable(&output.stdout, name).ok_or_else(|| ProgramsError::Missing { name: name.to_owned() })
}

/// The binary of this name in what cargo says of its artifacts.
fn executable(messages: &[u8], name: &str) -> Option<PathBuf> {
    let messages = messages.split(|byte| *byte == b'\n');
    let messages = messages.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let mut binaries = messages
        .filter(|message| message["target"]["name"] == name)
        .filter_map(|message| Some(PathBuf::from(message["executable"].as_str()?)));
    binaries.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    // issue 2, 8: it measures what was just built, wherever cargo builds
    #[test]
    fn the_binary_is_where_cargo_says() {
        let messages = br#"{"reason":"compiler-artifact","target":{"name":"acpd"},"executable":null}
not json
{"reason":"compiler-artifact","target":{"name":"other"},"executable":"/t/other"}
{"reason":"compiler-artifact","target":{"name":"acpd"},"executable":"/t/acpd"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(executable(messages, "acpd"), Some(PathBuf::from("/t/acpd")));
        assert_eq!(executable(messages, "third"), None);
    }
}
