//! `acpd agents`: what is configured, and whether it works.

mod health;

use crate::cli::Agents;
use crate::exit::{Code, Failure};
use crate::local_host::{agent_specs, load_config};
use crate::process;
use crate::stdout::print;
use crate::view::logins;
use acpd_host::chain;
use acpd_host::{AgentInfo, TaskScope};
use acpd_supervisor::{KeeperCommand, Supervisor};
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

pub(crate) async fn agents(args: Agents) -> Result<(), Failure> {
    match args {
        Agents::List { json, which } => health::list(json, which).await,
        Agents::Check { name, json, config, state_dir } => check(&name, json, config, state_dir).await,
    }
}

async fn check(
    name: &str,
    json: bool,
    config: Option<PathBuf>,
    state_dir: Option<PathBuf>,
) -> Result<(), Failure> {
    let config = load_config(config, state_dir)?;
    config.agent(name).map_err(Failure::missing)?;
    let spec = agent_specs(&config).remove(name).expect("the line above found it");
    let scope = TaskScope::default();
    let keeper = KeeperCommand::this_binary(process::KEEPER)?;
    let host = uuid::Uuid::now_v7().to_string();
    let supervisor = Supervisor::new(keeper, &host, scope.clone());
    let cwd = std::env::current_dir()?;

    let begun = tokio::time::Instant::now();
    let started = acpd_host::check_agent(&supervisor, &scope, &spec, &cwd);
    let outcome = with_progress(name, started).await;
    let took = begun.elapsed();
    let outcome = match outcome {
        Ok(agent) => {
            agent.stop();
            let end = agent.ended().await.report.status.to_string();
            let result = &agent.info().result;
            print(&match json {
                true => json!({"name": name, "ok": true, "startMs": took.as_millis(), "initialize": result, "end": end})
                    .to_string(),
                false => describe(name, agent.info(), took, &end),
            })
            .map(drop)
        }
        Err((error, info)) if json => {
            let told = json!({"name": name, "ok": false, "error": chain(&error), "terminationInfo": info});
            print(&told.to_string()).and(Err(Failure::Told(Code::Failed)))
        }
        Err((error, info)) => Err(Failure::Failed(explain(name, &chain(&error), &json!(info)))),
    };
    scope.finished().await;
    outcome
}

/// On a terminal, says what is being waited for.
async fn with_progress<T>(name: &str, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    if !std::io::stderr().is_terminal() {
        return work.await;
    }
    let mut seconds = 0;
    loop {
        match tokio::time::timeout(Duration::from_secs(1), &mut work).await {
            Ok(done) => {
                let _closed = write!(anstream::stderr(), "\r\x1b[K");
                return done;
            }
            Err(_) => {
                seconds += 1;
                let _closed = write!(anstream::stderr(), "\r\x1b[Kstarting {name}... {seconds} s");
            }
        }
    }
}

fn describe(name: &str, info: &AgentInfo, took: Duration, end: &str) -> String {
    let result = &info.result;
    let mut lines = vec![format!(
        "{name}: {} started in {:.1} s and was stopped ({end})",
        info.title().unwrap_or_else(|| "an agent that does not say its name".to_owned()),
        took.as_secs_f64()
    )];
    let capabilities = &result["agentCapabilities"];
    let yes = |value: &Value| value.is_object() || *value == json!(true);
    let mut supports: Vec<String> = Vec::new();
    if yes(&capabilities["loadSession"]) {
        supports.push("load".to_owned());
    }
    let listed = |object: &Value| -> Vec<String> {
        let members = object.as_object().into_iter().flatten();
        members.filter(|(_, value)| yes(value)).map(|(name, _)| name.clone()).collect()
    };
    supports.extend(listed(&capabilities["sessionCapabilities"]));
    lines.push(format!("  sessions  {}", or_none(&supports)));
    lines.push(format!("  prompts   text, {}", or_none(&listed(&capabilities["promptCapabilities"]))));
    lines.push(format!("  mcp       stdio, {}", or_none(&listed(&capabilities["mcpCapabilities"]))));
    let ways = logins(&result["authMethods"]);
    let first = ways.first().map_or("it names no way", String::as_str);
    lines.push(format!("  login     {first}"));
    lines.extend(ways.iter().skip(1).map(|way| format!("            {way}")));
    lines.join("\n")
}

fn or_none(list: &[String]) -> String {
    if list.is_empty() { "nothing else".to_owned() } else { list.join(", ") }
}

/// What went wrong, with what the agent wrote about it.
fn explain(name: &str, error: &str, info: &Value) -> String {
    let stderr = info["stderr"]["tail"].as_str().or(info["stderr"]["head"].as_str());
    match stderr {
        Some(stderr) => {
            let shown: Vec<String> =
                stderr.lines().map(|line| format!("  | {}", line.escape_debug())).collect();
            format!("agent {name} does not work: {error}\nit wrote to stderr:\n{}", shown.join("\n"))
        }
        None => format!("agent {name} does not work: {error}"),
    }
}
