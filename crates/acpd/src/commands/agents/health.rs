//! `acpd agents list`: the agents of a daemon or of the configuration, what is found of each, and the known ones that are not
//! installed. One shape, with a daemon and without one.

use super::supervisor;
use crate::clean;
use crate::cli::Which;
use crate::commands::sessions::screen_of_stdout;
use crate::config::Config;
use crate::daemon::{Chosen, Daemon, choose, find_daemon};
use crate::daemon_config::DaemonConfig;
use crate::exit::Failure;
use crate::hosting::warn_of_unused;
use crate::known_agents::KnownAgents;
use crate::local_host::agent_specs;
use crate::streams::{print, print_json, remark, window};
use crate::view::{Cell, Column, Cut, Paint, Tone, span, table};
use acpd_gateway::{AgentSight, list_agents};
use acpd_host::{TaskScope, health_of_none};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;

/// Characters of a text that are shown at most.
const TEXT: usize = 300;

pub(super) async fn list(json: bool, which: Which) -> Result<(), Failure> {
    let config = match choose(&which).await? {
        Chosen::Named(daemon) => {
            warn_of_unused(&daemon, which.config.as_deref());
            return of_daemon(&daemon, json).await;
        }
        Chosen::Here(config) => config,
    };
    let Some(daemon) = find_daemon(&config.storage.path).await? else {
        return of_configuration(&config, json).await;
    };
    of_daemon(&daemon, json).await?;
    let given = which.config.as_deref();
    let own = DaemonConfig::of(&config.storage.path);
    if let Some(own) = own.filter(|own| own.is_another(given)) {
        remark(&own.words(given));
    }
    Ok(())
}

async fn of_daemon(daemon: &Daemon, json: bool) -> Result<(), Failure> {
    let listed: Box<RawValue> = daemon.get("/v1/agents").await?;
    show(listed.get(), json, Running::InDaemon)
}

/// As a daemon would tell it that has started none yet.
async fn of_configuration(config: &Config, json: bool) -> Result<(), Failure> {
    let scope = TaskScope::default();
    let known = KnownAgents::new(config, supervisor(&scope)?, scope.clone());
    let specs = agent_specs(config).into_values().map(Arc::new).collect();
    let seen = known.look(specs).await;
    scope.finished().await;
    let health = config.agents.keys().map(|name| health_of_none(name)).collect();
    let listed = list_agents(&config.server.default_agent, health, seen);
    show(&serde_json::to_string(&listed)?, json, Running::Nowhere)
}

/// Whether there is a daemon in which agents run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Running {
    InDaemon,
    Nowhere,
}

fn show(listed: &str, json: bool, running: Running) -> Result<(), Failure> {
    if json {
        return print_json(listed).map(drop);
    }
    let listed: Listed = acpd_wire::read(listed.as_bytes())?;
    let width = window().map(|(columns, _)| columns);
    print(&lines(&listed, running, width, Paint::new(screen_of_stdout().colour)).join("\n")).map(drop)
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Listed {
    agents: Vec<Agent>,
    not_installed: Vec<NotInstalled>,
}

/// An agent that sessions can have.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Agent {
    name: String,
    default: bool,
    status: String,
    uptime_ms: Option<u64>,
    restart_count: u64,
    last_error: Option<Value>,
    processes: u64,
    command: String,
    /// A daemon of before does not say.
    installed: Option<bool>,
    program: Option<String>,
    version: Option<String>,
    logged_in: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NotInstalled {
    name: String,
    title: String,
    install: String,
}

const HERE: [Column; 5] = [
    Column::text("AGENT", Cut::Never),
    Column::text("INSTALLED", Cut::Never),
    Column::text("VERSION", Cut::Never),
    Column::text("LOGIN", Cut::Never),
    Column::text("PROGRAM", Cut::End(20)),
];

const IN_DAEMON: [Column; 9] = [
    Column::text("AGENT", Cut::Never),
    Column::text("STATUS", Cut::Never),
    Column::text("VERSION", Cut::Never),
    Column::text("LOGIN", Cut::Never),
    Column::number("UPTIME"),
    Column::number("RESTARTS"),
    Column::number("PROCESSES"),
    Column::text("PROGRAM", Cut::End(20)),
    Column::text("LAST ERROR", Cut::End(20)),
];

const OTHERS: [Column; 3] = [
    Column::text("NOT INSTALLED", Cut::Never),
    Column::text("WHAT", Cut::End(20)),
    Column::text("INSTALLED BY", Cut::Never),
];

fn lines(listed: &Listed, running: Running, width: Option<usize>, paint: Paint) -> Vec<String> {
    let mut lines = match running {
        Running::InDaemon => {
            let rows: Vec<_> = listed.agents.iter().map(in_daemon).collect();
            table(&IN_DAEMON, &rows, width, paint)
        }
        Running::Nowhere => {
            let rows: Vec<_> = listed.agents.iter().map(here).collect();
            table(&HERE, &rows, width, paint)
        }
    };
    if !listed.not_installed.is_empty() {
        let other = |other: &NotInstalled| {
            let texts = [&other.name, &other.title, &other.install];
            texts.map(|text| Cell { text: clean::line(text, 100), tone: Tone::Dim })
        };
        let rows: Vec<_> = listed.not_installed.iter().map(other).collect();
        lines.push(String::new());
        lines.extend(table(&OTHERS, &rows, width, paint));
    }
    lines
}

fn here(agent: &Agent) -> [Cell; 5] {
    let installed = match agent.installed {
        Some(false) => Cell { text: "no".to_owned(), tone: Tone::Bad },
        _ => "yes".to_owned().into(),
    };
    [agent.name_cell(), installed, agent.version_cell(), agent.login_cell(), agent.program_cell()]
}

fn in_daemon(agent: &Agent) -> [Cell; 9] {
    let status = clean::line(&agent.status, 20);
    let (status, tone) = match status.as_str() {
        "running" => (status, Tone::Good),
        "error" => (status, Tone::Bad),
        "stopped" if agent.installed == Some(false) => ("missing".to_owned(), Tone::Bad),
        _ => (status, Tone::Plain),
    };
    let uptime = agent.uptime_ms.map(|millis| span(i64::try_from(millis / 1_000).unwrap_or(i64::MAX)));
    // A text, or an object with its time.
    let error = agent.last_error.as_ref().and_then(|error| error.as_str().or(error["message"].as_str()));
    [
        agent.name_cell(),
        Cell { text: status, tone },
        agent.version_cell(),
        agent.login_cell(),
        uptime.unwrap_or_default().into(),
        agent.restart_count.to_string().into(),
        agent.processes.to_string().into(),
        agent.program_cell(),
        Cell { text: clean::line(error.unwrap_or_default(), TEXT), tone: Tone::Dim },
    ]
}

impl Agent {
    fn name_cell(&self) -> Cell {
        let mark = if self.default { " (default)" } else { "" };
        format!("{}{mark}", clean::line(&self.name, 64)).into()
    }

    fn version_cell(&self) -> Cell {
        clean::line(self.version.as_deref().unwrap_or_default(), 40).into()
    }

    fn login_cell(&self) -> Cell {
        match self.logged_in {
            Some(true) => Cell { text: "yes".to_owned(), tone: Tone::Good },
            Some(false) => Cell { text: "no".to_owned(), tone: Tone::Bad },
            None => String::new().into(),
        }
    }

    fn program_cell(&self) -> Cell {
        let file = self.program.as_deref().unwrap_or(&self.command);
        Cell { text: clean::line(file, TEXT), tone: Tone::Dim }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 6: what is found of an agent, its status, uptime, restarts, last error; nothing unfiltered
    #[test]
    fn an_agent_of_a_daemon_is_a_row() {
        for (agent, row) in [
            (
                r#"{"name":"a","default":true,"status":"running","uptimeMs":61000,"restartCount":2,"processes":1,
                    "command":"a","installed":true,"program":"/bin/a","version":"1.2","loggedIn":true}"#,
                ["a (default)", "running", "1.2", "yes", "1m", "2", "1", "/bin/a", ""],
            ),
            (
                r#"{"name":"b","status":"error","restartCount":0,"processes":0,"lastError":{"message":"x\u001b[2J"},
                    "command":"b","installed":false}"#,
                ["b", "error", "", "", "", "0", "0", "b", "x␛[2J"],
            ),
            (
                r#"{"name":"c","status":"stopped","lastError":"y","command":"c","installed":false,"loggedIn":false}"#,
                ["c", "missing", "", "no", "", "0", "0", "c", "y"],
            ),
            // Of a daemon that tells its health only.
            (r#"{"name":"d","status":"stopped"}"#, ["d", "stopped", "", "", "", "0", "0", "", ""]),
        ] {
            let agent: Agent = serde_json::from_str(agent).expect("an agent");
            assert_eq!(in_daemon(&agent).map(|cell| cell.text), row);
        }
    }

    // issue 14: known agents that are not installed stand apart, each with the command that installs it
    #[test]
    fn the_others_stand_apart() {
        let listed = r#"{"agents":[{"name":"a","command":"a","installed":true,"program":"/bin/a","version":"1"}],
            "notInstalled":[{"name":"codex","title":"Codex","install":"acpd agents add codex"}]}"#;
        let listed = serde_json::from_str(listed).expect("a list");
        assert_eq!(
            lines(&listed, Running::Nowhere, None, Paint::new(false)),
            [
                "AGENT  INSTALLED  VERSION  LOGIN  PROGRAM",
                "a      yes        1               /bin/a",
                "",
                "NOT INSTALLED  WHAT   INSTALLED BY",
                "codex          Codex  acpd agents add codex",
            ]
        );
    }
}
