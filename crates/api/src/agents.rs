//! Agents: how they stand, what is found of them on their machine, and what a check of one has shown.

use crate::operation::{FORBIDDEN, Operation, Spec, Tag, Target, Verb, json};
use acpd_record::{Containment, Continuity, TerminationInfo};
use serde::Serialize;
use serde_json::{Map, Value};

/// All agents.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentList {
    /// Those that sessions can have, by name.
    pub agents: Vec<Agent>,
    /// The other known agents: none of them is installed where acpd runs.
    pub not_installed: Vec<NotInstalled>,
}

/// An agent.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Agent {
    /// It serves clients that name none.
    pub default: bool,
    /// How it stands.
    #[serde(flatten)]
    pub health: AgentHealth,
    /// What is found of it on its machine.
    #[serde(flatten)]
    pub facts: AgentFacts,
}

/// The health of one agent.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentHealth {
    /// The name of its entry.
    pub name: String,
    /// Whether it works.
    pub status: AgentStatus,
    /// How long its oldest process has been running, in milliseconds.
    pub uptime_ms: Option<u64>,
    /// Processes that were started after one that had ended by itself.
    pub restart_count: u64,
    /// What went wrong with the last start that failed, or the last process that crashed; it stays.
    pub last_error: Option<String>,
    /// When that was, ISO 8601.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub last_error_at: Option<String>,
    /// Its processes that run, spares and those that are being started among them.
    pub processes: usize,
    /// What acpd sees of the processes that it starts, by what the system allows.
    pub containment: Containment,
    /// How far its runs could be carried on, by what the system allows.
    pub continuity: Continuity,
    /// `agentInfo` of its last answer to `initialize`, if it gave one since this process began: its name and version.
    pub agent_info: Option<Map<String, Value>>,
    /// `authMethods` of that answer.
    pub auth_methods: Option<Vec<Value>>,
    /// `agentCapabilities` of that answer.
    pub capabilities: Option<Map<String, Value>>,
}

/// Whether an agent works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AgentStatus {
    /// A process of it runs.
    Running,
    /// None runs, and nothing is wrong with that.
    Stopped,
    /// None runs: the last start failed, or the last process crashed.
    Error,
}

/// What is found of an agent on its machine.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentFacts {
    /// What its makers call it, if it is a known one.
    pub title: Option<String>,
    /// Where it comes from.
    pub origin: AgentOrigin,
    /// Its program, as it is configured or known.
    pub command: String,
    /// The arguments of that.
    pub args: Vec<String>,
    /// The program is there, and can be run.
    pub installed: bool,
    /// The program's file.
    pub program: Option<String>,
    /// The version of what is installed, where that can be told.
    pub version: Option<String>,
    /// Whether it is logged in, as far as variables and files show; absent where that cannot be told.
    pub logged_in: Option<bool>,
}

/// Where an agent comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AgentOrigin {
    /// It has an entry in the configuration.
    #[default]
    Configured,
    /// It is known to acpd, and its program was found in `PATH`.
    Found,
    /// It is in acpd itself.
    Builtin,
}

/// A known agent that is not installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotInstalled {
    /// Its name.
    pub name: String,
    /// What its makers call it.
    pub title: String,
    /// The command that installs it, on the machine of acpd.
    pub install: String,
}

/// What a check of an agent has shown.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentCheck {
    /// The name of its entry.
    pub name: String,
    /// It started and said what it is.
    pub ok: bool,
    /// What acpd saw of the processes that it started; absent when it could not be started.
    pub containment: Option<Containment>,
    /// How far its runs could be carried on, by what the system allows.
    pub continuity: Continuity,
    /// How long that took, in milliseconds.
    pub start_ms: Option<u64>,
    /// Its answer to `initialize`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Map<String, Value>>"))]
    pub initialize: Option<Value>,
    /// How it ended when it was stopped.
    pub end: Option<String>,
    /// Why it does not work.
    pub error: Option<String>,
    /// The same as a record, with what it wrote to stderr.
    pub termination_info: Option<Box<TerminationInfo>>,
}

/// Lists the agents.
#[derive(Clone, Copy, Debug)]
pub struct ListAgents;

impl Operation for ListAgents {
    type Input<'a> = ();
    type Answer = AgentList;
    const SPEC: Spec = Spec {
        path: "/agents",
        id: "listAgents",
        tag: Tag::Agents,
        summary: "how each agent stands, and what is found of it on its machine.",
        detail: "Known agents that are installed are as if they were configured; the others are in `notInstalled`.",
        answers: &[json(200, "all agents"), FORBIDDEN],
        ..Spec::NEW
    };
}

/// Checks an agent.
#[derive(Clone, Copy, Debug)]
pub struct CheckAgent;

impl Operation for CheckAgent {
    type Input<'a> = ();
    type Answer = AgentCheck;
    const SPEC: Spec = Spec {
        verb: Verb::Post,
        path: "/agents/{name}/check",
        id: "checkAgent",
        tag: Tag::Agents,
        target: Some(Target::Agent),
        summary: "starts an agent as for a session, asks it what it is, and stops it.",
        answers: &[json(200, "whether it works, and why not"), FORBIDDEN],
        ..Spec::NEW
    };
}
