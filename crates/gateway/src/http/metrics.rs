//! What can be measured, for Prometheus: `GET /metrics` (contract 6).
//!
//! The other crates say what happens through the `metrics` facade, which costs nothing without a recorder; the daemon
//! installs it here. Every family whose labels are known begins at 0, so that the first failure is an increase.

mod process;
mod registry;
mod ring;

use super::health::trouble;
use super::problem::Problem;
use super::rest::check_scope;
use super::settings::Shared;
use crate::identity::Identity;
use acpd_api::{ProblemKind, Scope};
use acpd_host::{metric_names as names, now_ms};
use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use metrics::Unit;
use parking_lot::Mutex;
use registry::Registry;
use ring::{Counts, Ring};
pub(super) use ring::{Levels, STEP_MS, Step};
use std::sync::Arc;
use std::time::Duration;

/// Seconds: from a commit in memory to a disk that is in trouble.
const SHORT: [f64; 12] = [0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0];
/// Seconds: from the start of a process to a turn of hours.
const LONG: [f64; 12] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0];

const BUILD: &str = "acpd_build_info";
const VIEWERS: &str = "acpd_viewers";
const STALLS: &str = "acpd_viewer_stalls_total";
const REQUESTS: &str = "acpd_http_requests_total";
const REQUEST_SECONDS: &str = "acpd_http_request_seconds";
const REFUSED_TOKENS: &str = "acpd_tokens_refused_total";

/// How clients come in.
const TRANSPORTS: [&str; 3] = ["sse", "acp_sse", "websocket"];
/// What is answered most; others begin when they are first answered.
const STATUSES: [&str; 8] = ["200", "202", "400", "401", "403", "404", "429", "500"];

/// The bounds of a histogram.
fn bounds(name: &str) -> &'static [f64] {
    if name.starts_with("acpd_agent_") || name.starts_with("acpd_turn_") { &LONG } else { &SHORT }
}

/// How many of what is counted are one of what is told: costs are counted in billionths.
fn divisor(name: &str) -> u64 {
    if name == names::COST { 1_000_000_000 } else { 1 }
}

/// Everything that is measured in this process.
#[derive(Clone)]
pub struct Measurements {
    registry: Registry,
    /// The last hour.
    ring: Arc<Mutex<Ring>>,
}

impl Measurements {
    /// Listens from now on, for the whole process. Before the host is there: some figures go up and down with what it
    /// starts.
    ///
    /// # Errors
    /// When the process is measured already.
    pub fn listen() -> Result<Self, MeasurementsError> {
        let registry = Registry::new(bounds, divisor);
        metrics::set_global_recorder(registry.clone()).map_err(|_| MeasurementsError::Taken)?;
        acpd_host::describe_metrics();
        process::describe();
        metrics::describe_gauge!(BUILD, "1, with the version of acpd");
        metrics::gauge!(BUILD, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        metrics::describe_gauge!(VIEWERS, "Streams of events that clients have open, by how they came in");
        metrics::describe_counter!(
            STALLS,
            "Readers that were closed because they took nothing, by how they came in"
        );
        for transport in TRANSPORTS {
            metrics::gauge!(VIEWERS, "transport" => transport).set(0.0);
            metrics::counter!(STALLS, "transport" => transport).absolute(0);
        }
        metrics::describe_counter!(REQUESTS, "HTTP requests, by status");
        for status in STATUSES {
            metrics::counter!(REQUESTS, "status" => status).absolute(0);
        }
        metrics::describe_histogram!(
            REQUEST_SECONDS,
            Unit::Seconds,
            "How long HTTP requests took until their answers began"
        );
        drop(metrics::histogram!(REQUEST_SECONDS));
        metrics::describe_counter!(
            REFUSED_TOKENS,
            "Requests that were refused because they had no token or an unknown one"
        );
        metrics::counter!(REFUSED_TOKENS).absolute(0);
        Ok(Self { registry, ring: Arc::default() })
    }

    /// All of it in Prometheus' text format, in an order that does not change.
    pub fn text(&self) -> String {
        process::look();
        self.registry.text()
    }

    /// Takes the figures of each step. Never ends.
    pub(super) async fn keep_steps(&self) {
        loop {
            tokio::time::sleep(Duration::from_millis(STEP_MS)).await;
            let levels = self.levels();
            let sum = |name| self.registry.sum(name, None);
            let (commits, commit_seconds) = self.registry.recorded(names::COMMITS);
            let totals = Counts {
                turns: sum(names::TURNS_STARTED),
                turns_ended: sum(names::TURNS_ENDED),
                runs: sum(names::RUNS_STARTED),
                events: sum(names::EVENTS),
                event_bytes: sum(names::BYTES),
                requests: sum(REQUESTS),
                commits,
                commit_us: (commit_seconds * 1e6) as u64,
            };
            self.ring.lock().add(now_ms(), levels, totals);
        }
    }

    /// What is there now, and the steps of the last hour.
    pub(super) fn stats(&self) -> (Levels, Vec<Step>) {
        (self.levels(), self.ring.lock().steps())
    }

    fn levels(&self) -> Levels {
        process::look();
        let sum = |name| self.registry.sum(name, None);
        let in_state = |state: &str| self.registry.sum(names::SESSIONS, Some(("state", state)));
        Levels {
            sessions: sum(names::SESSIONS),
            running: in_state("running"),
            waiting: in_state("waiting"),
            agent_processes: sum(names::PROCESSES),
            viewers: sum(VIEWERS),
            memory_bytes: sum(process::RESIDENT),
            open_files: sum(process::OPEN),
            queue_bytes: sum(names::QUEUE_BYTES),
        }
    }
}

impl std::fmt::Debug for Measurements {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Measurements")
    }
}

/// Why nothing is measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasurementsError {
    /// Another recorder was installed before.
    #[error("this process is measured already")]
    Taken,
}

/// A stream of events that is open, until it is dropped.
#[derive(Debug)]
pub(crate) struct ViewerCount(&'static str);

impl ViewerCount {
    /// One more, over `transport`: `sse`, `acp_sse` or `websocket`.
    pub(crate) fn new(transport: &'static str) -> Self {
        metrics::gauge!(VIEWERS, "transport" => transport).increment(1.0);
        Self(transport)
    }
}

impl Drop for ViewerCount {
    fn drop(&mut self) {
        metrics::gauge!(VIEWERS, "transport" => self.0).decrement(1.0);
    }
}

/// Counts readers that were closed because they took nothing, over `transport` as above.
pub(crate) fn count_stalls(transport: &'static str, stalls: u64) {
    metrics::counter!(STALLS, "transport" => transport).increment(stalls);
}

/// Counts a request whose caller is not known.
pub(super) fn count_refused_token() {
    metrics::counter!(REFUSED_TOKENS).increment(1);
}

/// Counts an answer, and how long it took to begin.
pub(super) fn count_request(status: StatusCode, took: Duration) {
    metrics::counter!(REQUESTS, "status" => status.as_u16().to_string()).increment(1);
    metrics::histogram!(REQUEST_SECONDS).record(took);
}

/// `GET /metrics`
pub(super) async fn metrics(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
) -> Result<Response, Problem> {
    check_scope(&identity, Scope::Admin)?;
    let Some(measurements) = &shared.measurements else {
        return Err(Problem::new(StatusCode::NOT_FOUND, ProblemKind::NotFound, "nothing is measured here"));
    };
    // So that the gauge is true now, also without a request for it before.
    let _told_by_the_gauge = trouble(&shared).await;
    if let Some(fleet) = shared.fleet() {
        fleet.measure();
    }
    let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, text)], measurements.text()).into_response())
}
