//! The daemon itself: its health, its last hour, and what it is asked to do.

use crate::operation::{Access, FORBIDDEN, Operation, Spec, Verb, json, problem};
use serde::Serialize;

/// The answer of a process that runs.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// Whether it is of use.
    pub status: HealthStatus,
    /// Why it is degraded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The version of acpd.
    pub version: String,
    /// Since it began to listen, in milliseconds.
    pub uptime_ms: u64,
}

/// `degraded` while it could take on no work.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the description names them alone")]
pub enum HealthStatus {
    Ok,
    Degraded,
}

/// Whether new sessions can be taken.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ready {
    /// It can.
    pub ready: bool,
    /// Why not, or what is wrong beside that: a fleet whose engine does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What the daemon goes by from now on.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reloaded {
    /// The configuration that was read; not there when the daemon goes by none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// How many tokens there are.
    pub tokens: usize,
    /// How many agents there are.
    pub agents: usize,
}

/// What takes the daemon's place.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HandingOver {
    /// The version of acpd that takes its place.
    pub version: String,
}

/// The last hour of the daemon, in steps.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// How long a step is, in milliseconds.
    pub step_ms: u64,
    /// What is there now.
    pub now: Standing,
    /// The steps of the last hour, or since the daemon began; the oldest first.
    pub steps: Vec<StatsStep>,
}

/// What is there at a moment.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    /// Live sessions.
    pub sessions: u64,
    /// Those with a turn that runs.
    pub running: u64,
    /// Those that wait for an answer.
    pub waiting: u64,
    /// Processes of agents, without what these started.
    pub agent_processes: u64,
    /// Streams of events that clients have open.
    pub viewers: u64,
    /// Memory of the daemon that is resident.
    pub memory_bytes: u64,
    /// Files and sockets that the daemon has open.
    pub open_files: u64,
    /// Bytes of events that wait to be written.
    pub queue_bytes: u64,
}

/// A step.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StatsStep {
    /// When it ended, ISO 8601.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub at: String,
    /// What was there then.
    #[serde(flatten)]
    pub standing: Standing,
    /// What happened in it.
    #[serde(flatten)]
    pub counted: Counted,
}

/// What happened in a step.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Counted {
    /// Turns that began.
    pub turns: u64,
    /// Turns that ended.
    pub turns_ended: u64,
    /// Runs of agents that began.
    pub runs: u64,
    /// Events that were committed.
    pub events: u64,
    /// Their bytes, before they were packed.
    pub event_bytes: u64,
    /// HTTP requests that were answered.
    pub requests: u64,
    /// Commits to the log.
    pub commits: u64,
    /// What they took, all together, in microseconds.
    pub commit_us: u64,
}

/// Returns the health of the daemon.
#[derive(Clone, Copy, Debug)]
pub struct GetHealth;

impl Operation for GetHealth {
    type Input<'a> = ();
    type Answer = Health;
    const SPEC: Spec = Spec {
        path: "/health",
        id: "getHealth",
        access: Access::Open,
        summary: "this process answers, and says whether it is of use. Restarting it would not help \
                  where it is not, so the status is 200 either way.",
        answers: &[json(200, "the process answers")],
        ..Spec::NEW
    };
}

/// Returns the readiness of the daemon.
#[derive(Clone, Copy, Debug)]
pub struct GetReady;

impl Operation for GetReady {
    type Input<'a> = ();
    type Answer = Ready;
    const SPEC: Spec = Spec {
        path: "/ready",
        id: "getReady",
        access: Access::Open,
        summary: "it can write its log and is not about to stop.",
        answers: &[json(200, "new sessions can be taken"), json(503, "they cannot, and why")],
        ..Spec::NEW
    };
}

/// Reloads the configuration.
#[derive(Clone, Copy, Debug)]
pub struct ReloadConfiguration;

impl Operation for ReloadConfiguration {
    type Input<'a> = ();
    type Answer = Reloaded;
    const SPEC: Spec = Spec {
        verb: Verb::Post,
        path: "/reload",
        id: "reloadConfiguration",
        summary: "reads the configuration anew, as SIGHUP does. What was in force stays when it is wrong.",
        answers: &[
            json(200, "what the daemon goes by from now on"),
            FORBIDDEN,
            problem(422, "the configuration is wrong, and everything stays as it was"),
            problem(503, "others have the configuration read, or acpd is about to stop"),
        ],
        ..Spec::NEW
    };
}

/// Hands over to the binary that is on disk.
#[derive(Clone, Copy, Debug)]
pub struct HandOver;

impl Operation for HandOver {
    type Input<'a> = ();
    type Answer = HandingOver;
    const SPEC: Spec = Spec {
        verb: Verb::Post,
        path: "/handover",
        id: "handOver",
        summary: "hands over to the binary that is on disk now, as SIGUSR2 does. \
                  The daemon goes on when that would not start.",
        answers: &[
            json(202, "the binary has accepted configuration and log, and takes the daemon's place"),
            FORBIDDEN,
            problem(409, "it would not start, and the daemon goes on; `detail` says why"),
            problem(503, "others ask the daemon for something, or acpd is about to stop"),
        ],
        ..Spec::NEW
    };
}

/// Returns the last hour of the daemon.
#[derive(Clone, Copy, Debug)]
pub struct GetStats;

impl Operation for GetStats {
    type Input<'a> = ();
    type Answer = Stats;
    const SPEC: Spec = Spec {
        path: "/stats",
        id: "getStats",
        summary: "the last hour of the daemon, in steps of 10 s.",
        answers: &[json(200, "the steps, and what is there now"), FORBIDDEN],
        ..Spec::NEW
    };
}
