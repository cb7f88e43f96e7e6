//! The last hour of the daemon (contract 7.3).

use super::super::metrics::{Levels, STEP_MS, Step};
use super::super::problem::{Kind, Problem};
use super::super::settings::Shared;
use crate::identity::{Identity, Scope};
use acpd_host::iso8601;
use axum::extract::State;
use axum::{Extension, Json};
use http::StatusCode;
use serde::Serialize;
use std::sync::Arc;

/// The last hour of the daemon, in steps.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct Stats {
    /// How long a step is, in milliseconds.
    step_ms: u64,
    /// What is there now.
    now: Standing,
    /// The steps of the last hour, or since the daemon began; the oldest first.
    steps: Vec<StatsStep>,
}

/// What is there at a moment.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct Standing {
    /// Live sessions.
    sessions: u64,
    /// Those with a turn that runs.
    running: u64,
    /// Those that wait for an answer.
    waiting: u64,
    /// Processes of agents, without what these started.
    agent_processes: u64,
    /// Streams of events that clients have open.
    viewers: u64,
    /// Memory of the daemon that is resident.
    memory_bytes: u64,
    /// Files and sockets that the daemon has open.
    open_files: u64,
    /// Bytes of events that wait to be written.
    queue_bytes: u64,
}

/// A step.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct StatsStep {
    /// When it ended, ISO 8601.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    at: String,
    /// What was there then.
    #[serde(flatten)]
    standing: Standing,
    /// What happened in it.
    #[serde(flatten)]
    counted: Counted,
}

/// What happened in a step.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct Counted {
    /// Turns that began.
    turns: u64,
    /// Turns that ended.
    turns_ended: u64,
    /// Runs of agents that began.
    runs: u64,
    /// Events that were committed.
    events: u64,
    /// Their bytes, before they were packed.
    event_bytes: u64,
    /// HTTP requests that were answered.
    requests: u64,
    /// Commits to the log.
    commits: u64,
    /// What they took, all together, in microseconds.
    commit_us: u64,
}

impl From<Levels> for Standing {
    fn from(levels: Levels) -> Self {
        Self {
            sessions: levels.sessions,
            running: levels.running,
            waiting: levels.waiting,
            agent_processes: levels.agent_processes,
            viewers: levels.viewers,
            memory_bytes: levels.memory_bytes,
            open_files: levels.open_files,
            queue_bytes: levels.queue_bytes,
        }
    }
}

impl From<Step> for StatsStep {
    fn from(step: Step) -> Self {
        let counts = step.counts;
        Self {
            at: iso8601(step.at_ms),
            standing: step.levels.into(),
            counted: Counted {
                turns: counts.turns,
                turns_ended: counts.turns_ended,
                runs: counts.runs,
                events: counts.events,
                event_bytes: counts.event_bytes,
                requests: counts.requests,
                commits: counts.commits,
                commit_us: counts.commit_us,
            },
        }
    }
}

/// `GET /v1/stats`: the last hour of the daemon, in steps of 10 s.
pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
) -> Result<Json<Stats>, Problem> {
    super::check_scope(&identity, Scope::Admin)?;
    let Some(measurements) = &shared.measurements else {
        return Err(Problem::new(StatusCode::NOT_FOUND, Kind::NotFound, "nothing is measured here"));
    };
    let (now, steps) = measurements.stats();
    let steps = steps.into_iter().map(StatsStep::from).collect();
    Ok(Json(Stats { step_ms: STEP_MS, now: now.into(), steps }))
}
