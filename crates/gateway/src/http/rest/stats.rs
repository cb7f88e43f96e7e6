//! The last hour of the daemon (contract 7.3).

use super::super::metrics::{Levels, STEP_MS, Step};
use super::super::problem::Problem;
use super::super::settings::Shared;
use crate::identity::Identity;
use acpd_api::{Counted, ProblemKind, Scope, Standing, Stats, StatsStep};
use acpd_host::iso8601;
use axum::extract::State;
use axum::{Extension, Json};
use http::StatusCode;
use std::sync::Arc;

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
        return Err(Problem::new(StatusCode::NOT_FOUND, ProblemKind::NotFound, "nothing is measured here"));
    };
    let (now, steps) = measurements.stats();
    let steps = steps.into_iter().map(StatsStep::from).collect();
    Ok(Json(Stats { step_ms: STEP_MS, now: now.into(), steps }))
}
