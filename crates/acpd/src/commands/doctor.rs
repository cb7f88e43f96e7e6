//! `acpd doctor`: what is wrong here, and what to do about it.
//!
//! What is there is looked at by `facts.rs`, and judged by `judge.rs`, which does no IO. Nothing is changed.

pub(crate) mod facts;
pub(crate) mod judge;

use crate::absent::why_absent;
use crate::address::Address;
use crate::checks::{self, Check};
use crate::clean::line;
use crate::cli::Doctor;
use crate::commands::agents::{Trial, unmet_node_of};
use crate::commands::serve::check_exposure;
use crate::config::{Config, Sources};
use crate::daemon::{Chosen, Daemon, DaemonError, choose, find_daemon};
use crate::daemon_config::DaemonConfig;
use crate::exit::{Code, Failure};
use crate::known_agents::add_installed;
use crate::local_host::agent_specs;
use crate::stored::waiting_in;
use crate::streams::{print, print_json};
use acpd_eventlog::Format;
use acpd_gateway::local_holder;
use acpd_host::chain;
use http::StatusCode;
use jiff::Timestamp;
use judge::DaemonFacts;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What a daemon says of itself.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Health {
    status: String,
    reason: Option<String>,
    version: String,
}

/// What was found, for programs.
#[derive(Serialize)]
struct Told {
    ok: bool,
    version: &'static str,
    checks: Vec<Check>,
}

pub(crate) async fn doctor(args: Doctor) -> Result<(), Failure> {
    let sources = Sources::of_process(args.which.config.clone(), args.which.state_dir.clone());
    let mut checks = Vec::new();
    match Config::check(&sources) {
        Ok(mut config) => {
            add_installed(&mut config);
            checks.extend(of_configuration(&config));
            checks.extend(of_agents(&config, args.start).await?);
            checks.extend(of_state(&config));
        }
        Err(errors) => checks.extend(errors.iter().map(|error| judge::mistake(&chain(error)))),
    }
    checks.push(judge::limits(facts::open_files()));
    checks.push(judge::containment(facts::containment()));
    checks.extend(facts::units().iter().flat_map(judge::unit));
    let found = find(&args).await;
    let daemon = judge::daemon(&found, env!("CARGO_PKG_VERSION"));
    // Without a configuration it cannot be told where a daemon is: that is told once.
    if checks.iter().all(|check| check.ok || check.says != daemon.says) {
        checks.push(daemon);
    }
    checks.extend(judge::fleet(&found, Timestamp::now()));
    let ok = checks.iter().all(|check| check.ok);
    let told = Told { ok, version: env!("CARGO_PKG_VERSION"), checks };
    match args.json {
        true => print_json(&serde_json::to_string(&told)?)?,
        false => print(&lines(&told).join("\n"))?,
    };
    if ok { Ok(()) } else { Err(Failure::Told(Code::Failed)) }
}

fn of_configuration(config: &Config) -> Vec<Check> {
    let exposed = check_exposure(config, config.server.listen).err();
    let mut checks = vec![judge::configuration(config.file.as_deref(), exposed)];
    let now = Timestamp::now();
    let expired = config.tokens.iter().filter(|(_, token)| token.expires.is_some_and(|at| at <= now));
    checks.extend(expired.map(|(name, _)| judge::expired(name)));
    checks
}

async fn of_agents(config: &Config, starts: bool) -> Result<Vec<Check>, Failure> {
    let mut checks = Vec::new();
    if config.agents.is_empty() {
        checks.push(judge::no_agents());
    }
    let default = &config.server.default_agent;
    checks.extend(
        why_absent(default)
            .filter(|_| !config.agents.contains_key(default))
            .map(|why| judge::no_default(default, &why)),
    );
    let specs = agent_specs(config);
    for (name, agent) in &config.agents {
        let path = agent.env.0.get("PATH").map(Into::into).or_else(|| std::env::var_os("PATH"));
        let found = facts::program(&agent.command, path.as_deref());
        let can_start = matches!(found, judge::Program::Found(_));
        let check = judge::agent(name, &agent.command, &found);
        checks.push(match specs.get(name).filter(|_| can_start) {
            Some(spec) if starts => {
                let trial = Trial::of(spec).await?;
                judge::started(name, &trial.check, trial.node.as_deref())
            }
            Some(spec) => unmet_node_of(spec).await?.map_or(check, |node| judge::outdated_node(name, &node)),
            None => check,
        });
    }
    Ok(checks)
}

fn of_state(config: &Config) -> Vec<Check> {
    let dir = &config.storage.path;
    let state = facts::state(dir);
    let mut checks = judge::state(dir, &state);
    // Files that this look would make for another user would lock that one out.
    if judge::is_own(&state) {
        checks.extend(judge::log(acpd_eventlog::examine(dir)));
    }
    checks
}

async fn find(args: &Doctor) -> DaemonFacts {
    let here = match choose(&args.which).await {
        Ok(Chosen::Named(daemon)) => return look(&daemon).await,
        Ok(Chosen::Here(config)) => config.storage.path.clone(),
        Err(failure) => return DaemonFacts::Unknown(failure.to_string()),
    };
    match find_daemon(&here).await {
        Ok(Some(daemon)) => look(&daemon).await,
        Ok(None) => {
            let dir = here.display().to_string();
            match local_holder(&here) {
                Some(pid) => DaemonFacts::WithoutSocket(dir, pid),
                None => DaemonFacts::None(dir, waiting(&here).await),
            }
        }
        Err(failure) => DaemonFacts::Unreachable(failure.to_string()),
    }
}

/// What waits for a daemon, in words, as far as a look at it changes nothing.
async fn waiting(dir: &Path) -> Option<String> {
    let is_current = |dir| matches!(acpd_eventlog::format_of(dir), Ok(Some(Format { found, supported })) if found == supported);
    if !judge::is_private(&facts::state(dir)) || !is_current(dir) {
        return None;
    }
    waiting_in(dir).await.ok()?.told(Timestamp::now())
}

async fn look(daemon: &Daemon) -> DaemonFacts {
    let health = match daemon.get::<Health>("/v1/health").await {
        Ok(health) => health,
        Err(error) => return DaemonFacts::Unreachable(chain(&error)),
    };
    // Its health needs no token, all else may.
    if let Err(DaemonError::Refused { problem }) = daemon.get::<IgnoredAny>("/v1/whoami").await
        && [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&problem.status)
    {
        return DaemonFacts::Closed(daemon.address().to_string(), problem.to_string());
    }
    let config = match daemon.address() {
        Address::Local(dir) => DaemonConfig::of(dir),
        _ => None,
    };
    DaemonFacts::There {
        at: daemon.address().to_string(),
        version: line(&health.version, 40),
        unwell: (health.status != "ok").then(|| {
            let reason = health.reason.map(|reason| format!(": {}", line(&reason, 300)));
            format!("{}{}", line(&health.status, 20), reason.unwrap_or_default())
        }),
        stale: config.and_then(|config| config.stale()),
        // What is in none, or does not tell this caller, has nothing to judge.
        fleet: daemon.nodes().await.ok(),
    }
}

/// A line for each check, and one for each remedy.
fn lines(told: &Told) -> Vec<String> {
    let mut lines = checks::lines(&told.checks);
    let wrong = told.checks.iter().filter(|check| !check.ok).count();
    lines.push(match wrong {
        0 => "all is well".to_owned(),
        1 => "1 finding".to_owned(),
        many => format!("{many} findings"),
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.1: each finding stands with its remedy below
    #[test]
    fn findings_have_their_remedies() {
        let told = |checks| lines(&Told { ok: false, version: "1", checks });
        let fine = || judge::limits(Some(65_536));
        let wrong = || judge::limits(Some(64));
        assert_eq!(told(vec![fine()]), ["ok  limits: 65536 files may be open at once", "all is well"]);
        let lines = told(vec![fine(), wrong()]);
        assert_eq!((lines.len(), lines[3].as_str()), (4, "1 finding"));
        assert!(lines[1].starts_with("!!  limits: ") && lines[2].starts_with("    -> "), "{lines:?}");
        assert_eq!(told(vec![wrong(), wrong()]).pop().as_deref(), Some("2 findings"));
    }
}
