//! What can be measured, for Prometheus: `GET /metrics` (contract 6).
//!
//! The other crates say what happens through the `metrics` facade, which costs nothing where nobody listens; the daemon
//! listens here.

use super::problem::{Kind, Problem};
use super::rest::check_scope;
use super::settings::Shared;
use crate::identity::{Identity, Scope};
use acpd_host::TaskScope;
use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use std::sync::Arc;
use std::time::Duration;

/// Latencies, in seconds: from a commit in memory to a disk that is in trouble.
const SECONDS: [f64; 12] = [0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0];
/// How often what was observed is put into its buckets.
const UPKEEP: Duration = Duration::from_secs(5);

const VIEWERS: &str = "acpd_viewers";
const STALLS: &str = "acpd_viewer_stalls_total";
const REQUESTS: &str = "acpd_http_requests_total";

/// Everything that is measured in this process.
#[derive(Clone)]
pub struct Measurements(PrometheusHandle);

impl Measurements {
    /// Listens from now on, for the whole process. Before the host is there: some figures go up and down with what it
    /// starts.
    ///
    /// # Errors
    /// When somebody listens already.
    pub fn listen() -> Result<Self, MeasurementsError> {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
            .map_err(|source| MeasurementsError::Buckets { source })?
            .build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).map_err(|_| MeasurementsError::Taken)?;
        acpd_host::describe_metrics();
        metrics::describe_gauge!(VIEWERS, "Streams of events that clients have open, by how they came in");
        metrics::describe_counter!(
            STALLS,
            "Readers that were closed because they took nothing, by how they came in"
        );
        metrics::describe_counter!(REQUESTS, "HTTP requests, by status");
        Ok(Self(handle))
    }

    /// Puts what was observed into its buckets now and then, whether anybody looks or not.
    pub(super) fn keep_up(&self, scope: &TaskScope) {
        let (upkeep, ended) = (self.0.clone(), scope.token().clone());
        scope.spawn("metrics", async move {
            let mut ticks = tokio::time::interval(UPKEEP);
            while ended.run_until_cancelled(ticks.tick()).await.is_some() {
                upkeep.run_upkeep();
            }
        });
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
    /// The buckets are of no use.
    #[error("the buckets of the latencies cannot be used")]
    Buckets {
        /// What is wrong with them.
        #[source]
        source: BuildError,
    },
    /// Somebody listens already.
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

/// Counts an answer.
pub(super) fn count_request(status: StatusCode) {
    metrics::counter!(REQUESTS, "status" => status.as_u16().to_string()).increment(1);
}

/// `GET /metrics`
pub(super) async fn metrics(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
) -> Result<Response, Problem> {
    check_scope(&identity, Scope::Admin)?;
    let Some(Measurements(handle)) = &shared.measurements else {
        return Err(Problem::new(StatusCode::NOT_FOUND, Kind::NotFound, "nothing is measured here"));
    };
    let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, text)], handle.render()).into_response())
}
