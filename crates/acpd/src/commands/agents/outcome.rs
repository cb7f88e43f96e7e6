//! What came of an installation, in words and for programs. For `add` and `update`.

use super::installation::Checked;
use super::place::Swept;
use super::trial::Trial;
use crate::exit::{Code, Failure};
use crate::kept_config::Daemonized;
use acpd_catalog::Receipt;
use acpd_host::error_code;
use serde_json::{Value, json};
use std::path::Path;

/// What came of an installation.
pub(super) struct Outcome<'a> {
    pub(super) receipt: &'a Receipt,
    pub(super) program: &'a Path,
    /// The one that had the entry before.
    pub(super) before: Option<&'a Receipt>,
    pub(super) was_there: bool,
    pub(super) checked: &'a Checked,
    pub(super) daemon: Daemonized,
    pub(super) swept: Swept,
    /// The configuration.
    pub(super) file: &'a Path,
}

impl Outcome<'_> {
    /// For programs.
    pub(super) fn object(&self) -> Value {
        let Self { receipt, program, was_there, checked, daemon, swept, file, .. } = self;
        json!({
            "name": receipt.name,
            "version": receipt.version,
            "kind": receipt.kind,
            "source": receipt.source,
            "sha256": receipt.sha256,
            "sha256From": receipt.sha256_from,
            "scripts": receipt.scripts,
            "program": program.to_string_lossy(),
            "args": receipt.args,
            "wasThere": was_there,
            "config": file.to_string_lossy(),
            "reloaded": matches!(daemon, Daemonized::Reloaded),
            "removed": swept.removed,
            "kept": swept.kept,
            "check": checked.check(),
        })
    }

    /// In words.
    pub(super) fn words(&self) -> String {
        let Self { receipt, program, before, was_there, checked, daemon, swept, file } = self;
        let from = receipt.source.package.as_ref().or(receipt.source.archive.as_ref());
        let mut lines = vec![format!(
            "{} {} ({}, {}) {} {}",
            receipt.name,
            receipt.version,
            receipt.kind,
            from.map_or_else(String::new, |from| crate::clean::line(from, 200)),
            if *was_there { "was installed already:" } else { "is installed:" },
            program.display()
        )];
        if let Some(before) = before.filter(|before| before.version != receipt.version) {
            lines.push(format!("it takes the place of {}", before.version));
        }
        if let Checked::Works(trial) = checked {
            lines.push(trial.describe());
        }
        lines.push(format!("[agents.{}] is in {}. {}", receipt.name, file.display(), daemon.words("")));
        lines.extend(swept.words(&receipt.name));
        if matches!(checked, Checked::Works(..)) {
            let name = &receipt.name;
            lines.push(format!(
                "next: `acpd run --agent {name} hello`, or `acpd agents login {name}` where it wants a login"
            ));
        }
        lines.join("\n")
    }
}

/// The failure that an agent ends with that runs and refuses.
pub(super) fn refusal(name: &str, trial: &Trial) -> Failure {
    let error = trial.check.error.as_deref().unwrap_or_default();
    let wants_login = error.contains(&error_code::AUTH_REQUIRED.to_string());
    let code = if wants_login { Code::Login } else { Code::Failed };
    let why = trial.explain();
    Failure::Of(
        code,
        format!("{why}\nit is installed and has its entry; `acpd agents check {name}` tries again"),
    )
}
