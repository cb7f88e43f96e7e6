//! `acpd agents`: which there are, whether they work, and their logins.

mod add;
mod entry;
mod health;
mod installation;
mod login;
mod outcome;
mod outdated;
mod place;
mod remove;
mod update;
mod wish;

use crate::cli::Agents;
use crate::exit::{Code, Failure};
use crate::local_host::{agent_specs, load_config};
use crate::process;
use crate::stdout::print;
use acpd_host::{AgentCheck, AgentSpec, TaskScope};
use acpd_supervisor::{KeeperCommand, Supervisor};
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

pub(crate) async fn agents(args: Agents) -> Result<(), Failure> {
    match args {
        Agents::List { json, which } => health::list(json, which).await,
        Agents::Add(args) => add::add(*args).await,
        Agents::Outdated(args) => outdated::outdated(args).await,
        Agents::Update(args) => update::update(args).await,
        Agents::Remove(args) => remove::remove(args).await,
        Agents::Check { name, json, config, state_dir } => check(&name, json, config, state_dir).await,
        Agents::Login { name, method, config, state_dir } => {
            login::login(login::Asked { name, method, config, state_dir }).await
        }
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
    let checked = start(&spec).await?;
    let told = match json {
        true => serde_json::to_string(&checked)?,
        false => describe(&checked, &login::ways_of(&spec, &checked)),
    };
    match (checked.ok, json) {
        (true, _) => print(&told).map(drop),
        (false, true) => print(&told).and(Err(Failure::Told(Code::Failed))),
        (false, false) => {
            let error = checked.error.as_deref().unwrap_or_default();
            Err(Failure::Failed(explain(name, error, &json!(checked.termination_info))))
        }
    }
}

/// Starts an agent, asks it what it is, and stops it.
pub(crate) async fn start(spec: &AgentSpec) -> Result<AgentCheck, Failure> {
    let scope = TaskScope::default();
    let supervisor = supervisor(&scope)?;
    let cwd = std::env::current_dir()?;
    let checked = acpd_host::check_agent(&supervisor, &scope, spec, &cwd);
    let checked = with_progress(&spec.name, checked).await;
    scope.finished().await;
    Ok(checked)
}

/// Starts programs without a host, in a scope of their own.
fn supervisor(scope: &TaskScope) -> Result<Supervisor, Failure> {
    let keeper = KeeperCommand::this_binary(process::KEEPER)?;
    let host = uuid::Uuid::now_v7().to_string();
    Ok(Supervisor::new(keeper, &host, scope.clone()))
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

/// What an agent is, with the ways to log in to it.
fn describe(checked: &AgentCheck, ways: &[String]) -> String {
    let result = checked.initialize.as_ref().unwrap_or(&Value::Null);
    let took = Duration::from_millis(checked.start_ms.unwrap_or_default());
    let mut lines = vec![format!(
        "{}: {} started in {:.1} s and was stopped ({})",
        checked.name,
        checked.title.as_deref().unwrap_or("an agent that does not say its name"),
        took.as_secs_f64(),
        checked.end.as_deref().unwrap_or_default()
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
