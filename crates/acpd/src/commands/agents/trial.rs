//! A start of an agent, to see what it is and whether it works: for `check`, `add`, `update` and `doctor`.
//!
//! Invariant: nothing that an agent says of itself is printed but through [`line`]. Not here: what a session needs.

use super::{login, supervisor, with_progress};
use crate::clean::{line, verbatim};
use crate::exit::Failure;
use crate::known_agents::{Installed, version_said_by};
use acpd_api::AgentCheck;
use acpd_catalog::{needed_node, node_fits, to_run};
use acpd_host::{AgentSpec, CheckedAgent, Offered, TaskScope};
use acpd_supervisor::Supervisor;
use serde_json::{Value, json};
use std::time::Duration;

/// Characters of a list of capabilities.
const WIDTH: usize = 200;
/// Characters of a line of an agent's stderr.
const STDERR_WIDTH: usize = 500;

/// The outcome of a start of an agent.
pub(crate) struct Trial {
    pub(crate) check: AgentCheck,
    /// The name that the agent calls itself by.
    title: Option<String>,
    /// It runs, and answered `initialize` with an error of its own.
    pub(super) refused: bool,
    /// The need for another Node.js, if there is one.
    pub(crate) node: Option<String>,
    /// The ways to log in, a line each.
    ways: Vec<String>,
}

impl Trial {
    /// Starts an agent without a host, asks it what it is, and stops it.
    pub(crate) async fn of(spec: &AgentSpec) -> Result<Self, Failure> {
        let scope = TaskScope::default();
        let supervisor = supervisor(&scope)?;
        let trial = Self::by(&supervisor, &scope, spec).await;
        scope.finished().await;
        trial
    }

    /// The same, with what starts programs already.
    pub(super) async fn by(
        supervisor: &Supervisor,
        scope: &TaskScope,
        spec: &AgentSpec,
    ) -> Result<Self, Failure> {
        let cwd = std::env::current_dir()?;
        // As for a login: some agents name ways to log in only to clients that can show a terminal.
        let mut spec = spec.clone();
        spec.offered = Offered { terminal_logins: true, ..spec.offered };
        let checked = acpd_host::check_agent(supervisor, scope, &spec, &cwd);
        let CheckedAgent { check, title, refused } = with_progress(&spec.name, checked).await;
        let node = unmet_node(supervisor, &spec).await;
        let ways = login::ways_of(&spec, &check);
        Ok(Self { check, title, refused, node, ways })
    }

    /// Describes the agent, with the ways to log in to it.
    pub(super) fn describe(&self) -> String {
        let Self { check, title, node, ways, .. } = self;
        let result = check.initialize.as_ref().unwrap_or(&Value::Null);
        let took = Duration::from_millis(check.start_ms.unwrap_or_default());
        let title = title.as_deref().map(|title| line(title, WIDTH)).filter(|title| !title.is_empty());
        let mut lines = vec![format!(
            "{}: {} started in {:.1} s and was stopped ({})",
            check.name,
            title.as_deref().unwrap_or("an agent that does not say its name"),
            took.as_secs_f64(),
            check.end.as_deref().unwrap_or_default()
        )];
        let capabilities = &result["agentCapabilities"];
        let mut sessions = vec!["new".to_owned()];
        sessions.extend(is_on(&capabilities["loadSession"]).then(|| "load".to_owned()));
        sessions.extend(names(&capabilities["sessionCapabilities"]));
        lines.push(format!("  sessions  {}", listed(sessions)));
        let with = |first: &str, more: &Value| listed([vec![first.to_owned()], names(more)].concat());
        lines.push(format!("  prompts   {}", with("text", &capabilities["promptCapabilities"])));
        lines.push(format!("  mcp       {}", with("stdio", &capabilities["mcpCapabilities"])));
        let first = ways.first().map_or("none needed or offered", String::as_str);
        lines.push(format!("  login     {first}"));
        lines.extend(ways.iter().skip(1).map(|way| format!("            {way}")));
        lines.extend(node.iter().map(|node| format!("  node      {node}")));
        lines.join("\n")
    }

    /// Explains an agent that does not work.
    pub(super) fn explain(&self) -> String {
        let error = self.check.error.as_deref().unwrap_or_default();
        let why = match &self.node {
            Some(node) => format!("{error}; {node}"),
            None => error.to_owned(),
        };
        explain(&self.check.name, &why, &json!(self.check.termination_info))
    }
}

fn is_on(value: &Value) -> bool {
    value.is_object() || *value == json!(true)
}

fn names(object: &Value) -> Vec<String> {
    let members = object.as_object().into_iter().flatten();
    members.filter(|(_, value)| is_on(value)).map(|(name, _)| name.clone()).collect()
}

fn listed(names: Vec<String>) -> String {
    match &names[..] {
        [only] => format!("{only} only"),
        _ => line(&names.join(", "), WIDTH),
    }
}

/// Formats an error with the end or beginning of the agent's stderr.
pub(super) fn explain(name: &str, error: &str, info: &Value) -> String {
    let stderr = info["stderr"]["tail"].as_str().or(info["stderr"]["head"].as_str());
    let why = format!("agent {name} does not work: {}", line(error, 2_000));
    let Some(stderr) = stderr.filter(|stderr| !stderr.trim().is_empty()) else { return why };
    let shown: Vec<String> =
        stderr.lines().map(|text| format!("  | {}", verbatim(text, STDERR_WIDTH))).collect();
    format!("{why}\nit wrote to stderr:\n{}", shown.join("\n"))
}

/// The need of an agent for another Node.js than the one that would run it.
pub(crate) async fn unmet_node(supervisor: &Supervisor, spec: &AgentSpec) -> Option<String> {
    let path = login::variable(spec, "PATH").unwrap_or_default();
    let script = to_run(&spec.program.command.to_string_lossy(), &path)?;
    let need = needed_node(&script)?;
    let node = Installed {
        name: "node".to_owned(),
        file: to_run(&need.program, &path)?,
        env: spec.program.env.clone(),
        version_args: &["--version"],
    };
    let version = version_said_by(supervisor, &node).await?;
    let place = if need.program.contains('/') { need.program } else { "node".to_owned() };
    (!node_fits(&need.range, &version))
        .then(|| format!("it needs Node {}, and {} is {version}", need.range, line(&place, 100)))
}

/// The same for an agent that is not started.
pub(crate) async fn unmet_node_of(spec: &AgentSpec) -> Result<Option<String>, Failure> {
    let scope = TaskScope::default();
    let supervisor = supervisor(&scope)?;
    let unmet = unmet_node(&supervisor, spec).await;
    scope.finished().await;
    Ok(unmet)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(initialize: Value, node: Option<&str>) -> Trial {
        let title = initialize["agentInfo"]["name"].as_str().map(str::to_owned);
        let check = AgentCheck {
            name: "x".to_owned(),
            ok: true,
            containment: None,
            continuity: acpd_record::Continuity::None,
            start_ms: Some(1_200),
            initialize: Some(initialize),
            end: Some("exit status: 0".to_owned()),
            error: None,
            termination_info: None,
        };
        Trial { check, title, refused: false, node: node.map(str::to_owned), ways: Vec::new() }
    }

    // contract 6: nothing of an agent reaches a terminal unfiltered: neither its name nor what it can do
    #[test]
    fn what_an_agent_calls_itself_is_harmless() {
        let hostile = "X\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}[2J\u{9b}5n\r\n\u{202e}";
        let trial = trial(
            json!({"agentInfo": {"name": hostile}, "agentCapabilities": {"loadSession": true,
                "promptCapabilities": {hostile: true}, "mcpCapabilities": {hostile: {}},
                "sessionCapabilities": {hostile: {}}}}),
            None,
        );
        let text = trial.describe();
        assert!(!text.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'), "{text:?}");
        assert_eq!(text.lines().count(), 5, "{text}");
        let why = explain("x", hostile, &json!({"stderr": {"head": format!("{hostile}\"q\"")}}));
        assert!(!why.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'), "{why:?}");
        assert!(why.ends_with("\"q\""), "quotes are as they were written: {why}");
    }

    // issue 28, RA6, RA7: what it can do in words, and a Node.js that is too old
    #[test]
    fn an_agent_is_described() {
        let text = trial(
            json!({"agentCapabilities": {"promptCapabilities": {"image": true, "audio": false}}}),
            None,
        );
        assert_eq!(
            text.describe(),
            "x: an agent that does not say its name started in 1.2 s and was stopped (exit status: 0)\n  \
             sessions  new only\n  prompts   text, image\n  mcp       stdio only\n  login     none needed or offered"
        );
        let mut old = trial(json!({}), Some("it needs Node >=22, and node is 20.20.0"));
        assert!(old.describe().ends_with("\n  node      it needs Node >=22, and node is 20.20.0"));
        old.check.error = Some("agent exited".to_owned());
        assert!(old.explain().ends_with(": agent exited; it needs Node >=22, and node is 20.20.0"));
    }
}
