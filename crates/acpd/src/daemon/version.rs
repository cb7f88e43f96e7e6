//! The version of a daemon beside that of this program: a difference is told to a person, once.

use super::request::Daemon;
use crate::clean::line;
use crate::streams;
use serde::Deserialize;
use std::io::IsTerminal;
use std::time::Duration;

/// How long a command waits for the version of a daemon elsewhere: it is a remark, and what is asked next says what is
/// wrong.
const REMARK: Duration = Duration::from_secs(2);

/// What a daemon says of itself.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Version {
    pub(crate) version: String,
}

impl Version {
    /// Tells a difference, on a terminal.
    pub(super) fn tell(&self) {
        if let Some(remark) = difference(env!("CARGO_PKG_VERSION"), &self.version)
            && std::io::stderr().is_terminal()
        {
            streams::remark(&remark);
        }
    }
}

/// Tells a difference to a daemon that nothing was asked of yet, on a terminal.
pub(super) async fn tell_difference(daemon: &Daemon) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    // What is wrong with it is told by what is asked of it.
    if let Ok(version) = daemon.get_within::<Version>("/v1/health", REMARK).await {
        version.tell();
    }
}

/// What to say of two versions.
pub(crate) fn difference(own: &str, theirs: &str) -> Option<String> {
    if own == theirs || theirs.is_empty() {
        return None;
    }
    let theirs = line(theirs, 40);
    Some(format!(
        "the daemon is acpd {theirs}, this command is {own}; restart the daemon by the newer one when its sessions can end"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.1: versions of client and daemon are compared, and nothing of a daemon drives the terminal
    #[test]
    fn a_difference_is_told() {
        for (theirs, told) in
            [("1.2.3", None), ("", None), ("1.2.4", Some("acpd 1.2.4, this command is 1.2.3"))]
        {
            let remark = difference("1.2.3", theirs);
            assert_eq!(remark.is_some(), told.is_some(), "{theirs}");
            assert!(remark.unwrap_or_default().contains(told.unwrap_or_default()), "{theirs}");
        }
        assert!(!difference("1", "\u{1b}[2J").expect("they differ").contains('\u{1b}'));
    }
}
