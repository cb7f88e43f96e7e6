//! Events of a session, page by page or as a stream.

use crate::operation::{Answer, Body, Header, Operation, Spec, nothing, problem};
use acpd_record::Json;
use serde::{Deserialize, Serialize};

/// What can be asked for.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventsQuery {
    /// Only events behind this one: a sequence number, or the `nextCursor` of a page.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[0-9]+(@.+)?$")))]
    pub after: Option<String>,
    /// Events of a page at most, 1 to 1000. Default 100.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>", range(min = 1, max = 1000)))]
    pub limit: Option<String>,
}

/// A page of events. The server writes it without this type: stored bytes are copied into it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventsPage {
    /// The events in order.
    pub events: Vec<Json>,
    /// Where the next page begins; not there on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Returns the events of a session.
#[derive(Clone, Copy, Debug)]
pub struct GetSessionEvents;

impl Operation for GetSessionEvents {
    type Input<'a> = EventsQuery;
    type Answer = EventsPage;
    const SPEC: Spec = Spec {
        path: "/sessions/{id}/events",
        id: "getSessionEvents",
        headers: &[Header::LastEventId],
        summary: "everything that happened, and what happens.",
        detail: "`Accept` chooses the body of a 200. With `text/event-stream` in it: a stream that begins behind the cursor, \
                 follows the\nsession and ends with its run; each event of it has the number as `id`, the kind as `event` and \
                 one `Event` as\n`data`, and `limit` has no meaning; 204 behind the last event of a session that has ended. \
                 With anything else, or without `Accept`: one `EventsPage`.",
        answers: &[
            Answer {
                status: 200,
                words: "with `Accept: text/event-stream` a stream of events, else a page of them",
                body: Body::JsonOrStream,
            },
            nothing(204, "a stream was asked for behind the last event of a session that has ended"),
            problem(409, "the cursor is of the future, or of another session"),
            problem(410, "the cursor is older than what is kept"),
        ],
        ..Spec::OF_SESSION
    };
}
