//! Whether install scripts run: only after a yes, and with what they are in view.

use super::InstallError;
use super::told::Told;
use crate::clean::line;
use crate::streams::remark_open;
use acpd_catalog::{InstallScript, Scripts};
use std::io::{self, IsTerminal};

/// What was said about scripts when the command was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    /// Nothing: it is asked on a terminal.
    Ask,
    /// `--allow-scripts`
    Allow,
    /// `--no-scripts`
    Skip,
}

/// Whether the scripts run.
pub(super) async fn decide(
    consent: Consent,
    scripts: &[InstallScript],
    told: &Told,
) -> Result<Scripts, InstallError> {
    if scripts.is_empty() {
        return Ok(Scripts::None);
    }
    let list: String = scripts
        .iter()
        .map(|InstallScript { package, script, line: text }| {
            format!("\n  {} {}: {}", line(package, 200), line(script, 20), line(text, 300))
        })
        .collect();
    match consent {
        Consent::Skip => Ok(Scripts::Skipped),
        Consent::Allow => {
            told.line(&format!("running install scripts:{list}"));
            Ok(Scripts::Run)
        }
        Consent::Ask if io::stdin().is_terminal() && io::stderr().is_terminal() => {
            told.line(&format!(
                "These packages have install scripts, which run now, as you, if you say yes:{list}"
            ));
            match yes("Run them?").await? {
                true => Ok(Scripts::Run),
                false => Err(InstallError::Refused(
                    "the install scripts were not allowed, so nothing was changed; --no-scripts installs it without them"
                        .to_owned(),
                )),
            }
        }
        Consent::Ask => Err(InstallError::Unallowed(format!(
            "it has install scripts, which nothing has allowed, so nothing was changed; --allow-scripts runs them, and \
             --no-scripts leaves them out:{list}"
        ))),
    }
}

/// Asks on the terminal; anything but a yes is a no.
pub(crate) async fn yes(question: &str) -> io::Result<bool> {
    remark_open(&format!("{question} [y/N] "));
    // A thread that still reads is not waited for when the process ends.
    let read = tokio::task::spawn_blocking(|| {
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).map(|_| answer)
    });
    let answer = read.await.map_err(io::Error::other)??;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
