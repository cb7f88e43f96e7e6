//! What an operator is told of requests: each at debug, those that were refused at warn, not more than so many a minute.
//!
//! Invariants: neither a token nor a query is told, and a client that is refused all the time causes no more lines than
//! [`LINES`](crate::refusal_window::LINES) per [`WINDOW`] and kind of refusal; the number of the others is told at its
//! end.

use super::Peer;
use super::metrics::count_request;
use super::settings::Shared;
use crate::refusal_window::{RefusalWindow, WINDOW};
use acpd_api::ProblemKind;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::StatusCode;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::time::Instant;

/// Who called, in the extensions of an answer: the name of a token, if it was one.
#[derive(Clone, Debug)]
pub(super) struct Caller(pub(super) Option<Arc<str>>);

/// Sees every request and its answer, outside of everything else.
pub(super) async fn observe(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let peer = request.extensions().get::<Peer>().copied().unwrap_or(Peer::Unix);
    let response = next.run(request).await;
    let status = response.status();
    let took = began.elapsed();
    count_request(status, took);
    let kind = response.extensions().get::<ProblemKind>().map(|kind| kind.name());
    let token = response.extensions().get::<Caller>().and_then(|caller| caller.0.as_deref());
    let (path, code) = (uri.path(), status.as_u16());
    let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    tracing::debug!(%peer, token, %method, path, status = code, problem = kind, duration_ms, "request");
    if status.is_server_error() {
        shared.host.doubt();
    }
    let is_refusal =
        matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS);
    if is_refusal {
        let reason = kind.unwrap_or("refused");
        match shared.refusals.see(reason, Instant::now()) {
            Seen::Told => {
                tracing::warn!(%peer, token, %method, path, status = code, reason, "request refused");
            }
            Seen::FirstLeftOut => report_left_out(&shared, reason),
            Seen::LeftOut => {}
        }
    }
    response
}

/// At the end of the window, how many refusals of this kind were not told.
fn report_left_out(shared: &Arc<Shared>, reason: &'static str) {
    let (scope, shared) = (shared.host.scope().clone(), Arc::clone(shared));
    let ended = scope.token().clone();
    scope.spawn("refusals", async move {
        let _ended = ended.run_until_cancelled(tokio::time::sleep(WINDOW)).await;
        let more = shared.refusals.left_out(reason);
        tracing::warn!(reason, more, "requests refused, not told one by one");
    });
}

/// The refusals of each kind that were told lately.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<HashMap<&'static str, RefusalWindow>>);

/// What becomes of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// It is told.
    Told,
    /// It is only counted, as the first one; the count is to be told at the end of the window.
    FirstLeftOut,
    /// It is only counted.
    LeftOut,
}

impl Refusals {
    fn see(&self, kind: &'static str, now: Instant) -> Seen {
        let mut windows = self.0.lock();
        let window = windows.entry(kind).or_insert_with(|| RefusalWindow::new(now));
        // One that has left something out ends when that is told.
        if window.left_out() == 0 && window.is_over(now) {
            *window = RefusalWindow::new(now);
        }
        match (window.count(), window.left_out()) {
            (true, _) => Seen::Told,
            (false, 1) => Seen::FirstLeftOut,
            (false, _) => Seen::LeftOut,
        }
    }

    /// How many were left out; the next window begins with the next refusal.
    fn left_out(&self, kind: &'static str) -> u64 {
        let mut windows = self.0.lock();
        windows.remove(kind).map_or(0, |window| window.left_out())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    // contract 6: a client that guesses tokens cannot fill the log, and how often it tried is told
    #[test]
    fn refusals_are_told_up_to_a_limit_and_then_counted() {
        let (refusals, start) = (Refusals::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        for (second, kind, seen) in [
            (0, "unauthorized", Seen::Told),
            (1, "unauthorized", Seen::Told),
            (1, "unauthorized", Seen::Told),
            (2, "unauthorized", Seen::Told),
            (3, "unauthorized", Seen::Told),
            (4, "unauthorized", Seen::FirstLeftOut),
            (5, "foreign_host", Seen::Told),
            (6, "unauthorized", Seen::LeftOut),
            // The report of the others is late; they are still counted for it.
            (61, "unauthorized", Seen::LeftOut),
        ] {
            assert_eq!(refusals.see(kind, at(second)), seen, "{kind} after {second} s");
        }
        assert_eq!(refusals.left_out("unauthorized"), 3);
        assert_eq!(refusals.see("unauthorized", at(62)), Seen::Told);
        // Some now and then are all told.
        let told = (70..).step_by(20).take(20).all(|second| refusals.see("slow", at(second)) == Seen::Told);
        assert!(told);
        assert_eq!(refusals.left_out("never"), 0);
    }
}
