//! `acpd serve --check`: whether a daemon could start here. Nothing is started and nothing written, so it works beside a
//! daemon that runs: also by another binary, which is to take its place.
//!
//! Not here: what is found only by trying, as a port that is taken.

use super::{check_exposure, hook_specs, pages};
use crate::checks::{Check, finding, fine, lines};
use crate::cli::Serve;
use crate::commands::doctor::facts;
use crate::commands::doctor::judge::{configuration, hindrances, mistake, unusable};
use crate::config::{Config, Sources};
use crate::exit::{Code, Failure};
use crate::fleet;
use crate::signals::held_signals;
use crate::streams::{print, print_json};
use acpd_eventlog::{Format, OpenError};
use acpd_gateway::tls_config;
use acpd_host::chain;
use acpd_supervisor::keeper_versions;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

/// What was found, for programs: a daemon asks the binary that is to take its place.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Checked {
    pub(super) ok: bool,
    pub(super) version: String,
    pub(super) keeper_protocols: Vec<u32>,
    /// The signals that it acts on though they came before it was there. An older one says nothing of them, and has no handlers then.
    #[serde(default)]
    pub(super) held_signals: Vec<String>,
    pub(super) checks: Vec<Check>,
}

pub(super) fn check(args: &Serve) -> Result<(), Failure> {
    let checks = look(args);
    let ok = checks.iter().all(|check| check.ok);
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let (keeper_protocols, held_signals) = (keeper_versions().collect(), held_signals());
    let checked = Checked { ok, version, keeper_protocols, held_signals, checks };
    match args.json {
        true => print_json(&serde_json::to_string(&checked)?)?,
        false => print(&told(&checked))?,
    };
    if ok { Ok(()) } else { Err(Failure::Told(Code::Failed)) }
}

fn look(args: &Serve) -> Vec<Check> {
    let sources = Sources::of_process(args.config.clone(), args.state_dir.clone());
    let mut config = match Config::check(&sources) {
        Ok(config) => config,
        // Where the log is stands in what cannot be read.
        Err(errors) => return errors.iter().map(|error| mistake(&chain(error))).collect(),
    };
    config.server.listen = args.listen.unwrap_or(config.server.listen);
    let mut checks = of_configuration(&config);
    checks.extend(of_state(&config.storage.path));
    checks.push(keepers(config.continuity.keep, keeper_versions()));
    checks
}

fn of_configuration(config: &Config) -> Vec<Check> {
    let tls = config.server.tls_cert.as_ref().zip(config.server.tls_key.as_ref());
    let tls = tls.and_then(|(cert, key)| tls_config(cert, key).err()).map(|error| {
        finding("tls", chain(&error), "mend tls_cert and tls_key in [server], or take both out")
    });
    let hooks = hook_specs(config).err().map(|why| finding("hooks", why, "mend it in [[hooks]]"));
    let scheme = if config.server.tls_cert.is_some() { "https" } else { "http" };
    let fleet = fleet::check(config, &format!("{scheme}://{}", config.server.listen)).err();
    let fleet = fleet.map(|why| finding("fleet", why, "mend [fleet], or leave it out"));
    let pages = pages().err().map(|why| finding("pages", why, "build them, or unset ACPD_WEB_DIR"));
    let exposed = check_exposure(config, config.server.listen).err();
    let first = configuration(config.file.as_deref(), exposed);
    [Some(first), tls, hooks, fleet, pages].into_iter().flatten().collect()
}

/// Where nothing can be written, the log is not looked at.
fn of_state(dir: &Path) -> Vec<Check> {
    let wrong = hindrances(dir, &facts::state(dir));
    if wrong.is_empty() { vec![log(acpd_eventlog::format_of(dir))] } else { wrong }
}

fn log(found: Result<Option<Format>, OpenError>) -> Check {
    const ABOUT: &str = "log";
    match found {
        Ok(None | Some(Format { found: 0, .. })) => fine(ABOUT, "made at the first use"),
        Ok(Some(Format { found, supported })) if found < supported => fine(
            ABOUT,
            format!(
                "its format is {found}, and is brought to {supported} at the start: older acpds cannot read it then"
            ),
        ),
        Ok(Some(Format { found, .. })) => {
            fine(ABOUT, format!("its format is {found}, the newest known here"))
        }
        Err(error) => unusable(ABOUT, &error),
    }
}

fn keepers(keep: Duration, protocols: RangeInclusive<u32>) -> Check {
    let says = if keep.is_zero() {
        "agents end with their daemon, as [continuity] keep says".to_owned()
    } else {
        let some: Vec<String> = protocols.map(|version| version.to_string()).collect();
        format!("agents are taken over by protocol {}", some.join(" or "))
    };
    fine("keepers", says)
}

fn told(checked: &Checked) -> String {
    let mut lines = lines(&checked.checks);
    let version = &checked.version;
    lines.push(match checked.ok {
        true => format!("acpd {version} can start here"),
        false => format!("acpd {version} does not start here"),
    });
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.1: the form of the log is accepted, or refused with what to do
    #[test]
    fn the_log_is_judged_by_its_form() {
        let format = |found| Ok(Some(Format { found, supported: 7 }));
        for (found, ok, says) in [
            (Ok(None), true, "made at the first use"),
            (format(0), true, "made at the first use"),
            (format(7), true, "its format is 7, the newest"),
            (format(6), true, "is brought to 7"),
            (Err(OpenError::Newer { path: "/s/acpd.db".into(), found: 8, supported: 7 }), false, "format 8"),
        ] {
            let check = log(found);
            assert!(check.ok == ok && check.says.contains(says), "{check:?}");
            assert_eq!(check.remedy.is_some(), !ok);
        }
    }

    // contract 7.1: what programs read is what was found
    #[test]
    fn what_was_found_is_read_again() {
        let keep = Duration::from_secs(1);
        let checks = vec![keepers(keep, 1..=2), finding("tls", "none", "make one")];
        let (version, keeper_protocols, held_signals) = ("1".to_owned(), vec![1, 2], held_signals());
        let checked = Checked { ok: false, version, keeper_protocols, held_signals, checks };
        assert_eq!(
            told(&checked),
            "ok  keepers: agents are taken over by protocol 1 or 2\n!!  tls: none\n    -> make one\nacpd 1 does not \
             start here"
        );
        let json = serde_json::to_string(&checked).expect("JSON");
        let read: Checked = serde_json::from_str(&json).expect("it is read");
        assert_eq!((read.checks, read.keeper_protocols), (checked.checks, vec![1, 2]));
        assert_eq!(read.held_signals, ["SIGHUP", "SIGINT", "SIGTERM", "SIGUSR2"]);
        let older = json.replace(r#""heldSignals":["SIGHUP","SIGINT","SIGTERM","SIGUSR2"],"#, "");
        let older: Checked = serde_json::from_str(&older).expect("it is read");
        assert!(older.held_signals.is_empty());
        assert!(keepers(Duration::ZERO, 1..=2).says.contains("end with their daemon"));
    }
}
