//! The first POST of a client: it makes a connection, and its answer names it.

use super::super::problem::Problem;
use super::connections::{self, Connection};
use super::headers::CONNECTION;
use super::{Acp, post};
use crate::connection::Arrival;
use crate::outbox::Closing;
use crate::relay::Served;
use acpd_api::ProblemKind;
use acpd_wire::Message;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use std::sync::Arc;

/// Serves `initialize`. Bounded by the time that an agent may take for it.
pub(super) async fn initialize(acp: &Arc<Acp>, served: Served, line: Bytes) -> Result<Response, Problem> {
    let permit = served.options.identity.connect().ok_or_else(too_many)?;
    let (connection, answer) = connections::start(acp, served, permit);
    // A client that does not wait for its answer never learns the id: nothing of it may stay.
    let unclaimed = Unclaimed(Some(connection));
    let failed = || {
        let detail = "acpd ends, or could not serve the connection";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, ProblemKind::NotInitialized, detail)
    };
    let arrivals = unclaimed.0.as_ref().and_then(|connection| connection.arrivals()).ok_or_else(failed)?;
    arrivals.send(Arrival::Line(line)).await.map_err(|_| failed())?;
    drop(arrivals);
    let answer = answer.await.map_err(|_| failed())?;
    let accepted = matches!(Message::parse(&answer), Ok(Message::Response { outcome: Ok(_), .. }));
    let mut response = post::json(StatusCode::OK, answer);
    if accepted {
        let connection = unclaimed.claim();
        let id = HeaderValue::from_str(connection.id()).expect("digits are ASCII");
        response.headers_mut().insert(CONNECTION, id);
        acp.connections.insert(connection);
    }
    Ok(response)
}

pub(super) fn too_many() -> Problem {
    let detail = "this token has as many connections as it may have: end one first";
    Problem::new(StatusCode::TOO_MANY_REQUESTS, ProblemKind::TooManyConnections, detail)
}

/// Ends a connection unless its client got its id.
struct Unclaimed(Option<Arc<Connection>>);

impl Unclaimed {
    fn claim(mut self) -> Arc<Connection> {
        self.0.take().expect("it is taken once, here")
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            connection.end(Closing::Deleted);
        }
    }
}
