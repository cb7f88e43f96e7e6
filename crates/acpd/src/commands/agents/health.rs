//! `acpd agents list`: what is configured here, or how the agents of a daemon are doing.

use crate::clean;
use crate::cli::Which;
use crate::commands::sessions::{print_remark, screen_of_stdout};
use crate::commands::shown;
use crate::config::Config;
use crate::daemon::{Chosen, Daemon, choose, find_daemon};
use crate::daemon_config::DaemonConfig;
use crate::exit::Failure;
use crate::hosting::warn_of_unused;
use crate::stdout::{print, window};
use crate::view::{Cell, Column, Cut, Paint, Tone, span, table};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

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
        return of_configuration(&config, json);
    };
    of_daemon(&daemon, json).await?;
    let given = which.config.as_deref();
    let own = DaemonConfig::of(&config.storage.path);
    if let Some(own) = own.filter(|own| own.is_another(given)) {
        print_remark(&own.words(given));
    }
    Ok(())
}

fn of_configuration(config: &Config, json: bool) -> Result<(), Failure> {
    let default = &config.server.default_agent;
    if json {
        let agents: Vec<Value> = config
            .agents
            .iter()
            .map(|(name, agent)| {
                json!({"name": name, "command": agent.command, "args": agent.args, "default": name == default})
            })
            .collect();
        return print(&json!({"agents": agents}).to_string()).map(drop);
    }
    let width = config.agents.keys().map(String::len).max().unwrap_or_default();
    let lines: Vec<String> = config
        .agents
        .iter()
        .map(|(name, agent)| {
            let words = std::iter::once(&agent.command).chain(&agent.args);
            let command = words.map(|word| shown(word)).collect::<Vec<_>>().join(" ");
            let mark = if name == default { "  (default)" } else { "" };
            format!("{name:width$}  {command}{mark}")
        })
        .collect();
    print(&lines.join("\n")).map(drop)
}

#[derive(Deserialize)]
struct Agents {
    agents: Vec<Box<RawValue>>,
}

/// How an agent of a daemon is doing.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AgentHealth {
    name: String,
    default: bool,
    status: String,
    uptime_ms: Option<u64>,
    restart_count: u64,
    last_error: Option<Value>,
    processes: u64,
}

const COLUMNS: [Column; 6] = [
    Column::text("AGENT", Cut::Never),
    Column::text("STATUS", Cut::Never),
    Column::number("UPTIME"),
    Column::number("RESTARTS"),
    Column::number("PROCESSES"),
    Column::text("LAST ERROR", Cut::End(20)),
];

async fn of_daemon(daemon: &Daemon, json: bool) -> Result<(), Failure> {
    let Agents { agents } = daemon.get("/v1/agents").await?;
    if json {
        return print(&format!("{{\"agents\":{}}}", json!(agents))).map(drop);
    }
    let mut rows = Vec::new();
    for agent in &agents {
        let health: AgentHealth = serde_json::from_str(agent.get())?;
        rows.push(row(&health));
    }
    let width = window().map(|(columns, _)| columns);
    print(&table(&COLUMNS, &rows, width, Paint::new(screen_of_stdout().colour)).join("\n")).map(drop)
}

fn row(health: &AgentHealth) -> [Cell; 6] {
    let status = clean::line(&health.status, 20);
    let tone = match status.as_str() {
        "running" => Tone::Good,
        "error" => Tone::Bad,
        _ => Tone::Plain,
    };
    let mark = if health.default { " (default)" } else { "" };
    let uptime = health.uptime_ms.map(|millis| span(i64::try_from(millis / 1_000).unwrap_or(i64::MAX)));
    // A text, or an object with its time.
    let error = health.last_error.as_ref().and_then(|error| error.as_str().or(error["message"].as_str()));
    [
        format!("{}{mark}", clean::line(&health.name, 64)).into(),
        Cell { text: status, tone },
        uptime.unwrap_or_default().into(),
        health.restart_count.to_string().into(),
        health.processes.to_string().into(),
        Cell { text: clean::line(error.unwrap_or_default(), TEXT), tone: Tone::Dim },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 6: status, uptime, restarts, last error; nothing unfiltered
    #[test]
    fn the_health_of_an_agent_is_a_row() {
        for (health, row_) in [
            (
                r#"{"name":"a","default":true,"status":"running","uptimeMs":61000,"restartCount":2,"processes":1}"#,
                ["a (default)", "running", "1m", "2", "1", ""],
            ),
            (
                r#"{"name":"b","status":"error","restartCount":0,"processes":0,"lastError":{"message":"x\u001b[2J"}}"#,
                ["b", "error", "", "0", "0", "x␛[2J"],
            ),
            (r#"{"name":"c","status":"stopped","lastError":"y"}"#, ["c", "stopped", "", "0", "0", "y"]),
        ] {
            let health: AgentHealth = serde_json::from_str(health).expect("the health of an agent");
            assert_eq!(row(&health).map(|cell| cell.text), row_);
        }
    }
}
