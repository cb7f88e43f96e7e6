//! The programs that are compared: the example agent, and the same agent behind acpd.
//!
//! Both come from one release build. Their state is in directories beside the build, so that the log is on the disk that
//! is built on and nothing of the user's is touched. Not here: talking to them.

use super::progress;
use crate::run;
use acpd_testkit::{Daemon, Scratch};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

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
}

/// The binary.
pub(super) struct Programs {
    pub(super) acpd: PathBuf,
}

impl Programs {
    /// Builds the binary in `root`, or takes `given`.
    pub(super) fn prepare(given: Option<&Path>, root: &Path) -> Result<Self> {
        let acpd = given
            .map_or_else(|| build(root, "-p acpd --features nats", "acpd"), |path| Ok(path.to_owned()))?;
        let acpd = acpd.canonicalize().with_context(|| format!("cannot use {}", acpd.display()))?;
        Ok(Self { acpd })
    }

    /// A fresh directory for the state of a program. Drop it after the program has ended.
    pub(super) fn scratch(&self) -> Scratch {
        let beside = self.acpd.parent().unwrap_or(Path::new("."));
        let dir = tempfile::Builder::new().prefix("bench-").tempdir_in(beside);
        Scratch::in_directory(dir.expect("there is room beside the build"))
    }

    /// The command that speaks ACP on its stdin and stdout.
    pub(super) fn speaker(&self, side: Side, scratch: &Scratch) -> Command {
        if side == Side::Acpd {
            return self.embedded("stdio", scratch);
        }
        let mut command = scratch.command(&self.acpd);
        command.arg("example-agent");
        command
    }

    /// A command of acpd that hosts the example agent itself.
    pub(super) fn embedded(&self, subcommand: &str, scratch: &Scratch) -> Command {
        let mut command = scratch.command(&self.acpd);
        command.args([subcommand, "--embedded", "--agent", "example", "--state-dir"]).arg(scratch.state());
        command
    }

    /// Serves clients on a port of its choice.
    pub(super) fn serve(&self, scratch: &Scratch) -> Daemon {
        scratch.serve_by(scratch.command(&self.acpd), "127.0.0.1:0")
    }
}

/// `cargo build` of `what`, which makes `file` beside this program's own directory, wherever cargo builds.
pub(super) fn build(root: &Path, what: &str, file: &str) -> Result<PathBuf> {
    progress(format_args!("cargo build --release {what}"));
    let built = run::line(&format!("cargo build --release {what}"), root).status()?;
    ensure!(built.success(), "the release build failed");
    let here = std::env::current_exe()?;
    let target = here.ancestors().nth(2).context("this program is not where cargo builds")?;
    Ok(target.join("release").join(file))
}
