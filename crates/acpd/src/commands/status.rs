//! `acpd status`: whether there is a daemon, and how it stands.

mod fleet;
mod room;

use crate::address::Address;
use crate::clean::line;
use crate::cli::Operate;
use crate::commands::top::count_by_state;
use crate::daemon::{
    Chosen, Daemon, DaemonError, Listing, SessionFilter, choose, difference, find_daemon, no_daemon,
};
use crate::daemon_address;
use crate::daemon_config::DaemonConfig;
use crate::exit::Failure;
use crate::stored::waiting_in;
use crate::streams::{print, print_json, remark};
use crate::view::{byte_count, date_and_time, span};
use crate::waiting::Waiting;
use fleet::FleetState;
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use room::Room;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::IsTerminal;

/// Live sessions that are counted at most.
const MOST: usize = 10_000;

/// What a daemon says of itself.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Health {
    status: String,
    reason: Option<String>,
    version: String,
    uptime_ms: u64,
}

#[derive(Deserialize)]
struct Agents {
    agents: Vec<Agent>,
}

/// How an agent stands.
#[derive(Deserialize, Serialize)]
struct Agent {
    name: String,
    status: String,
    processes: u64,
}

/// How a daemon stands.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    running: bool,
    address: String,
    /// Where it listens beside its socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<i32>,
    version: String,
    client_version: &'static str,
    since: String,
    uptime_ms: u64,
    #[serde(flatten)]
    health: State,
    /// Live ones by state.
    sessions: BTreeMap<String, usize>,
    #[serde(skip)]
    sessions_words: String,
    /// Not there for callers that may not see them.
    #[serde(skip_serializing_if = "Option::is_none")]
    agents: Option<Vec<Agent>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    storage: Option<Room>,
    /// Not there without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    fleet: Option<FleetState>,
}

#[derive(Serialize)]
struct State {
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// There is none.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Absent {
    running: bool,
    address: String,
    error: String,
    /// Sessions whose agents wait for the next one, and when the first of these ends.
    waiting: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_until: Option<String>,
}

pub(crate) async fn status(args: Operate) -> Result<(), Failure> {
    let (daemon, state_dir) = match choose(&args.which).await? {
        Chosen::Named(daemon) => (Some(daemon), None),
        Chosen::Here(config) => {
            let dir = config.storage.path.clone();
            (find_daemon(&dir).await?, Some(dir))
        }
    };
    let Some(daemon) = daemon else {
        let dir = state_dir.unwrap_or_default();
        // What cannot be looked at is not told.
        let waiting = waiting_in(&dir).await.unwrap_or_default();
        return absent(Address::Local(dir.clone()).to_string(), no_daemon(&dir), waiting, args.json);
    };
    let report = match look(&daemon).await {
        Ok(report) => report,
        Err(error) => {
            return absent(daemon.address().to_string(), error.into(), Waiting::default(), args.json);
        }
    };
    // On a terminal it was told when the daemon was found.
    if let Some(text) = difference(env!("CARGO_PKG_VERSION"), &report.version)
        && !std::io::stderr().is_terminal()
    {
        remark(&text);
    }
    if args.json {
        return print_json(&serde_json::to_string(&report)?).map(drop);
    }
    let config = match daemon.address() {
        Address::Local(dir) => DaemonConfig::of(dir),
        _ => None,
    };
    print(&lines(&report, config.as_ref()).join("\n")).map(drop)
}

fn absent(address: String, failure: Failure, waiting: Waiting, json: bool) -> Result<(), Failure> {
    if !json {
        if let Some(told) = waiting.told(Timestamp::now()) {
            remark(&told);
        }
        return Err(failure);
    }
    let Waiting { sessions: waiting, until } = waiting;
    let waiting_until = until.map(|until| until.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    let told = Absent { running: false, address, error: failure.to_string(), waiting, waiting_until };
    print_json(&serde_json::to_string(&told)?)?;
    Err(Failure::Told(failure.code()))
}

async fn look(daemon: &Daemon) -> Result<Report, DaemonError> {
    let health: Health = daemon.get("/v1/health").await?;
    let filter = SessionFilter { ended: Some(false), ..SessionFilter::default() };
    let Listing { sessions: live, more, here, .. } = daemon.own_listing(&filter, MOST).await?;
    let mut sessions = BTreeMap::new();
    for session in &live {
        *sessions.entry(line(&session.state, 20)).or_insert(0) += 1;
    }
    let agents = match daemon.get::<Agents>("/v1/agents").await {
        Ok(Agents { agents }) => Some(agents),
        Err(DaemonError::Refused { problem }) if problem.status == StatusCode::FORBIDDEN => None,
        Err(error) => return Err(error),
    };
    let uptime = SignedDuration::from_millis(i64::try_from(health.uptime_ms).unwrap_or(i64::MAX));
    let since = Timestamp::now().checked_sub(uptime).unwrap_or(Timestamp::UNIX_EPOCH);
    Ok(Report {
        running: true,
        address: daemon.address().to_string(),
        url: match daemon.address() {
            Address::Local(dir) => daemon_address::of(dir),
            _ => None,
        },
        pid: daemon.process().await.ok().flatten().map(|process| process.as_raw_nonzero().get()),
        version: health.version,
        client_version: env!("CARGO_PKG_VERSION"),
        since: since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        uptime_ms: health.uptime_ms,
        health: State { status: health.status, reason: health.reason },
        sessions,
        sessions_words: count_by_state(&live, more),
        agents,
        storage: match daemon.address() {
            Address::Local(dir) => Some(Room::of(dir)),
            _ => None,
        },
        fleet: FleetState::of(daemon, here).await?,
    })
}

fn lines(report: &Report, config: Option<&DaemonConfig>) -> Vec<String> {
    let seconds = i64::try_from(report.uptime_ms / 1_000).unwrap_or(i64::MAX);
    let pid = report.pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
    let state = match (report.health.status.as_str(), &report.health.reason) {
        ("ok", _) => "runs".to_owned(),
        (status, Some(reason)) => format!("is {}: {}", line(status, 20), line(reason, 300)),
        (status, None) => format!("is {}", line(status, 20)),
    };
    let agents = report.agents.as_ref().map_or_else(
        || "not told: that needs a token with the scope admin".to_owned(),
        |agents| agents.iter().map(agent).collect::<Vec<_>>().join(", "),
    );
    let mut lines = vec![
        format!("acpd {} {state}", line(&report.version, 40)),
        format!("  at        {}{pid}", line(&report.address, 300)),
        format!("  since     {} UTC ({})", date_and_time(report.since.as_str().into()), span(seconds)),
    ];
    lines.splice(2..2, report.url.as_ref().map(|url| format!("  and at    {url}")));
    lines.extend(config.map(|config| format!("  config    {}", config.file_words())));
    lines.push(format!("  sessions  {}", report.sessions_words));
    lines.push(format!("  agents    {agents}"));
    lines.extend(report.storage.as_ref().map(|room| {
        let free = room.free_bytes.map(|free| format!(", {} free", byte_count(free))).unwrap_or_default();
        format!("  storage   {} in {}{free}", byte_count(room.bytes), room.path)
    }));
    lines.extend(report.fleet.as_ref().map(|fleet| format!("  fleet     {}", fleet.told())));
    lines
}

fn agent(agent: &Agent) -> String {
    let (name, status) = (line(&agent.name, 64), line(&agent.status, 20));
    match agent.processes {
        0 | 1 => format!("{name} {status}"),
        many => format!("{name} {status} ({many} processes)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.1: how a daemon stands, in lines; nothing of it drives the terminal
    #[test]
    fn a_daemon_is_told_in_lines() {
        let agent = |name: &str, status: &str, processes| Agent {
            name: name.to_owned(),
            status: status.to_owned(),
            processes,
        };
        let mut report = Report {
            running: true,
            address: "/s/acpd.sock".to_owned(),
            url: Some("http://127.0.0.1:2273".to_owned()),
            pid: Some(7),
            version: "0.1.0\u{1b}[2J".to_owned(),
            client_version: "0.1.0",
            since: "2026-11-23T02:00:00Z".to_owned(),
            uptime_ms: 61_000,
            health: State { status: "ok".to_owned(), reason: None },
            sessions: BTreeMap::new(),
            sessions_words: "1 live, 1 idle".to_owned(),
            agents: Some(vec![agent("a", "running", 2), agent("b", "stopped", 0)]),
            storage: Some(Room { path: "/s".to_owned(), bytes: 3 << 20, free_bytes: Some(5 << 30) }),
            fleet: None,
        };
        assert_eq!(
            lines(&report, None),
            [
                "acpd 0.1.0␛[2J runs",
                "  at        /s/acpd.sock (pid 7)",
                "  and at    http://127.0.0.1:2273",
                "  since     2026-11-23 02:00:00 UTC (1m)",
                "  sessions  1 live, 1 idle",
                "  agents    a running (2 processes), b stopped",
                "  storage   3.0 MiB in /s, 5.0 GiB free",
            ]
        );
        report.health = State { status: "degraded".to_owned(), reason: Some("the disk is full".to_owned()) };
        report.agents = None;
        let told = lines(&report, None);
        assert_eq!(told[0], "acpd 0.1.0␛[2J is degraded: the disk is full");
        assert!(told[5].contains("scope admin"), "{told:?}");
    }
}
