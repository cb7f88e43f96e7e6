//! A handler with the checks that come before each operation: the kind of a body, then the names in the query.
//!
//! They are part of the handler and no layer: a layer of axum moves the request into a future on the heap, and copies
//! the layers below it, for each request.

use super::super::body;
use super::super::parameters;
use super::super::problem::Problem;
use super::super::settings::Shared;
use acpd_api::{Members, Op, Verb};
use axum::body::HttpBody;
use axum::extract::Request;
use axum::handler::Handler;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use futures_util::future::Either;
use http::Method;
use std::future::{Ready, ready};
use std::sync::Arc;

/// The method of an operation with its checks, without what answers.
pub(super) struct Endpoint {
    method: MethodFilter,
    checks: Checks,
}

impl Endpoint {
    pub(super) fn new(op: Op) -> Self {
        let method = match op.spec().verb {
            Verb::Get => MethodFilter::GET,
            Verb::Post => MethodFilter::POST,
            Verb::Delete => MethodFilter::DELETE,
        };
        // An export is lines of JSON.
        let kinds: &[&str] = match op {
            Op::ImportSession => &[body::JSON, "application/x-ndjson"],
            _ => &[body::JSON],
        };
        Self { method, checks: Checks { takes: op.query(), kinds } }
    }

    /// The route on which `handler` answers what passes the checks.
    pub(super) fn serve<T: 'static>(
        self,
        handler: impl Handler<T, Arc<Shared>>,
    ) -> MethodRouter<Arc<Shared>> {
        on(self.method, Checked { handler, checks: self.checks })
    }
}

/// What a request has to be like.
#[derive(Clone, Copy)]
struct Checks {
    takes: Members,
    /// The kinds that a body may be sent as.
    kinds: &'static [&'static str],
}

impl Checks {
    /// Refuses a POST that is sent as something else than JSON, whatever it asks for: forms of pages cannot send that; and a
    /// parameter that the operation does not have.
    fn pass(self, request: &Request) -> Result<(), Problem> {
        if request.method() == Method::POST {
            body::check_kind(request.headers(), !request.body().is_end_stream(), self.kinds)?;
        }
        parameters::check(request.uri(), self.takes)
    }
}

/// A handler behind its checks.
#[derive(Clone)]
struct Checked<H> {
    handler: H,
    checks: Checks,
}

impl<T, S, H: Handler<T, S>> Handler<T, S> for Checked<H> {
    type Future = Either<H::Future, Ready<Response>>;

    fn call(self, request: Request, state: S) -> Self::Future {
        match self.checks.pass(&request) {
            Ok(()) => Either::Left(self.handler.call(request, state)),
            Err(problem) => Either::Right(ready(problem.into_response())),
        }
    }
}
