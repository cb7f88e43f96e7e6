//! A hand-over: whether the binary that is on disk now may take the place of this daemon.
//!
//! It is asked with the arguments and the environment of this daemon. Not here: what becomes of sessions and clients
//! meanwhile, and becoming it.

use super::answer::answer_of;
use super::check::Checked;
use crate::clean::line;
use crate::image::Image;
use crate::local_host::LocalHost;
use acpd_api::HandingOver;
use acpd_gateway::Asked;
use acpd_host::chain;
use acpd_supervisor::{ExitReport, ProgramSpec, StartError, Supervisor, keeper_versions};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long it may take to answer.
const ANSWER: Duration = Duration::from_secs(30);

/// Why the daemon goes on.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error("it cannot be started")]
    Start(#[from] StartError),
    #[error(
        "the daemon has to be restarted in another directory: its working directory, {}, cannot be used",
        path.display()
    )]
    Directory {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("it did not answer within {} s", ANSWER.as_secs())]
    Slow,
    #[error("what it answers to `serve --check` cannot be read: {0}")]
    Unreadable(String),
}

/// The image that takes the place of this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NextImage {
    pub(super) version: String,
    /// The signals that it acts on though they come before it does.
    pub(super) held_signals: Vec<String>,
}

/// Asks the program of this image whether it can go on here, on these addresses and with the agents that are left to it: what it
/// is, or why not.
pub(super) async fn ask(
    local: &LocalHost,
    image: &Image,
    addresses: &[SocketAddr],
) -> Result<NextImage, String> {
    let asked = tokio::time::timeout(ANSWER, run(local.supervisor(), image, addresses)).await;
    let checked = asked.unwrap_or(Err(AskError::Slow)).map_err(|error| {
        format!("{} cannot be asked whether it can start: {}", image.program.display(), chain(&error))
    })?;
    let own: Vec<u32> = keeper_versions().filter(|_| local.host.leaves_agents()).collect();
    judge(&checked, &own)?;
    Ok(NextImage { version: line(&checked.version, 40), held_signals: checked.held_signals })
}

async fn run(supervisor: &Supervisor, image: &Image, addresses: &[SocketAddr]) -> Result<Checked, AskError> {
    let directory = std::env::current_dir().map_err(|source| {
        // Where it was, if its name is gone.
        let path = std::fs::read_link("/proc/self/cwd").unwrap_or_default();
        AskError::Directory { path, source }
    })?;
    let mut spec = ProgramSpec::new(&image.program, directory);
    spec.args = image.args.clone();
    // The last `--listen` counts: where this daemon listens in fact.
    let listen = exposed(addresses).to_string();
    spec.args.extend(["--check", "--json", "--listen", &listen].map(Into::into));
    spec.env = std::env::vars_os().collect();
    let (answer, report) = answer_of(supervisor, spec).await?;
    serde_json::from_slice(&answer).map_err(|error| AskError::Unreadable(why(&report, &error)))
}

/// Tells others who ask for a hand-over that one is under way: to this version. To all else there is no answer any more.
pub(super) async fn answer_all(mut requests: mpsc::Receiver<Asked>, version: String) {
    while let Some(asked) = requests.recv().await {
        if let Asked::HandOver(answer) = asked {
            let _unread = answer.send(Ok(HandingOver { version: version.clone() }));
        }
    }
}

/// The address that more can reach than this machine, if there is one.
fn exposed(addresses: &[SocketAddr]) -> SocketAddr {
    let beyond = addresses.iter().find(|address| !address.ip().to_canonical().is_loopback());
    *beyond.unwrap_or(&addresses[0])
}

/// What it says of itself, where that is no answer.
fn why(report: &ExitReport, error: &serde_json::Error) -> String {
    let stderr = report.stderr.tail.as_ref().unwrap_or(&report.stderr.head);
    let said = stderr.lines().find(|said| !said.trim().is_empty());
    let said = said.map_or_else(|| error.to_string(), |said| line(said, 300));
    format!("{}, {said}", report.status)
}

fn judge(checked: &Checked, own: &[u32]) -> Result<(), String> {
    let version = line(&checked.version, 40);
    if !checked.ok {
        let wrong = checked.checks.iter().filter(|check| !check.ok).map(|check| {
            let remedy = check.remedy.as_ref().map(|remedy| format!(" ({remedy})")).unwrap_or_default();
            line(&format!("{}: {}{remedy}", check.about, check.says), 500)
        });
        let wrong: Vec<String> = wrong.collect();
        return Err(format!("acpd {version} would not start: {}", wrong.join("; ")));
    }
    let shares = own.iter().any(|own| checked.keeper_protocols.contains(own));
    if !own.is_empty() && !shares {
        return Err(format!(
            "acpd {version} cannot take over the agents that run here: it speaks another protocol with their keepers; a \
             restart ends them"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{finding, fine};

    // contract 7.1: a binary takes over when it could start, and when it knows how the agents here are kept
    #[test]
    fn a_binary_is_judged_by_what_it_says() {
        let checked = |ok, keeper_protocols: &[u32], checks| Checked {
            ok,
            version: "2\u{1b}".to_owned(),
            keeper_protocols: keeper_protocols.to_vec(),
            held_signals: vec![],
            checks,
        };
        let refusing = || vec![fine("log", "x"), finding("configuration", "c.toml:3:1: unknown", "mend it")];
        for (of_it, own, why) in [
            (checked(true, &[], vec![]), &[][..], None),
            (checked(true, &[2, 3], vec![]), &[1, 2], None),
            (checked(true, &[2, 3], vec![]), &[1], Some("acpd 2␛ cannot take over the agents")),
            (checked(true, &[], vec![]), &[1], Some("another protocol")),
            (
                checked(false, &[1], refusing()),
                &[1],
                Some("would not start: configuration: c.toml:3:1: unknown (mend it)"),
            ),
        ] {
            match (judge(&of_it, own), why) {
                (Ok(()), None) => {}
                (Err(told), Some(why)) => assert!(told.contains(why), "{told}"),
                (judged, why) => panic!("{judged:?} {why:?}"),
            }
        }
    }

    // contract 1.7: it is asked with the address that others can reach
    #[test]
    fn the_address_that_others_reach_counts() {
        let address = |text: &str| text.parse().expect("an address");
        let (here, beyond) = (address("127.0.0.1:1"), address("0.0.0.0:2"));
        assert_eq!(exposed(&[here]), here);
        assert_eq!(exposed(&[here, beyond]), beyond);
    }
}
