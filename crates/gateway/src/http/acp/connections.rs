//! The connections of clients over HTTP, by the id that each was given.
//!
//! An id is random and of use to the identity it was given to only (SC-3). A connection ends when its client says so, when
//! none of its events were read for too long, and with the daemon; its sessions live on.

use super::super::metrics::count_stalls;
use super::super::problem::Problem;
use super::super::secret::secret;
use super::{ARRIVALS, Acp};
use crate::connection::{Arrival, ConnectionIo};
use crate::identity::{ConnectionPermit, Identity};
use crate::outbox::{Closing, Keeping, StreamLimits, Streams, streaming_outbox};
use crate::relay::{Served, serve};
use acpd_api::ProblemKind;
use bytes::Bytes;
use http::StatusCode;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Streams of a connection.
const STREAMS: usize = 1024;
/// Of these, of sessions that it does not know yet.
const UNCONFIRMED: usize = 16;
/// Bytes that a stream, and all streams of a connection, keep to be given again.
const KEPT_PER_STREAM: usize = 16 * 1024 * 1024;
const KEPT: usize = 64 * 1024 * 1024;
/// The same for all connections: beyond it the oldest goes, whosever it is.
const KEPT_BY_ALL: usize = 256 * 1024 * 1024;
/// How long.
const KEPT_FOR: Duration = Duration::from_secs(300);
/// How long the last events may take to their readers when the daemon stops.
const LAST_EVENTS: Duration = Duration::from_millis(500);
/// How often connections are looked after: at most, and at least.
const SWEEP: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(5));

/// A client over HTTP.
pub(super) struct Connection {
    id: String,
    /// The name of the token that it was made with.
    owner: Option<Arc<str>>,
    pub(super) streams: Arc<Streams>,
    arrivals: Mutex<Option<mpsc::Sender<Arrival>>>,
    gone: CancellationToken,
    ending: OnceLock<Closing>,
}

impl Connection {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Where its messages go; None when it is over.
    pub(super) fn arrivals(&self) -> Option<mpsc::Sender<Arrival>> {
        let arrivals = self.arrivals.lock();
        arrivals.clone().filter(|arrivals| !arrivals.is_closed())
    }

    fn close_streams(&self) {
        self.streams.close(self.ending.get().copied().unwrap_or(Closing::Shutdown));
    }

    /// Lets go of the client.
    pub(super) fn end(&self, why: Closing) {
        let _ended_before = self.ending.set(why);
        self.arrivals.lock().take();
        self.gone.cancel();
    }
}

/// All of them.
pub(super) struct Connections {
    table: Mutex<HashMap<String, Arc<Connection>>>,
    keeping: Arc<Keeping>,
    /// The first connection is there.
    occupied: Notify,
}

impl Default for Connections {
    fn default() -> Self {
        let keeping = Arc::new(Keeping::new(KEPT_BY_ALL));
        Self { table: Mutex::default(), keeping, occupied: Notify::new() }
    }
}

impl Connections {
    /// The connection of that id, for this identity. To others it is as unknown as one that never was.
    pub(super) fn find(&self, id: &str, identity: &Identity) -> Result<Arc<Connection>, Problem> {
        let found = self.table().get(id).filter(|found| found.owner.as_ref() == identity.name()).cloned();
        found.ok_or_else(unknown)
    }

    /// Makes a connection known by its id.
    pub(super) fn insert(&self, connection: Arc<Connection>) {
        connection.streams.heard(None);
        self.table().insert(connection.id.clone(), connection);
        self.occupied.notify_one();
    }

    /// Ends a connection and forgets its id.
    pub(super) fn end(&self, connection: &Connection, why: Closing) {
        self.table().remove(&connection.id);
        connection.end(why);
    }

    fn table(&self) -> MutexGuard<'_, HashMap<String, Arc<Connection>>> {
        self.table.lock()
    }
}

/// There is no such connection, for this caller.
pub(super) fn unknown() -> Problem {
    let detail = "there is no connection of that id; it may have ended: begin anew with initialize";
    Problem::new(StatusCode::NOT_FOUND, ProblemKind::ConnectionNotFound, detail)
}

/// An id for a connection.
pub(super) fn fresh_id() -> String {
    secret::<16>()
}

/// Starts to serve a new client, which does not know its id yet; the receiver gets the answer to its first request.
pub(super) fn start(
    acp: &Arc<Acp>,
    client: Served,
    permit: ConnectionPermit,
) -> (Arc<Connection>, oneshot::Receiver<Bytes>) {
    let limits = StreamLimits {
        streams: STREAMS,
        unconfirmed: UNCONFIRMED,
        kept_per_stream: KEPT_PER_STREAM,
        kept: KEPT,
        kept_for: KEPT_FOR,
        stall: acp.shared.settings().viewer_stall,
    };
    let (streams, answer) = Streams::new(limits, Arc::clone(&acp.connections.keeping));
    let (outbox, dry) = streaming_outbox(Arc::clone(&streams));
    let (sender, arrivals) = mpsc::channel(ARRIVALS);
    let gone = acp.shared.stop.child_token();
    let connection = Arc::new(Connection {
        id: fresh_id(),
        owner: client.options.identity.name().cloned(),
        streams,
        arrivals: Mutex::new(Some(sender)),
        gone: gone.clone(),
        ending: OnceLock::new(),
    });
    let io = ConnectionIo { arrivals, gone, outbox, last_events: LAST_EVENTS };
    let serving = run(Arc::clone(acp), Arc::clone(&connection), client, io, dry, permit);
    acp.shared.host.scope().spawn("client over http", serving);
    (connection, answer)
}

async fn run(
    acp: Arc<Acp>,
    connection: Arc<Connection>,
    client: Served,
    io: ConnectionIo,
    dry: CancellationToken,
    permit: ConnectionPermit,
) {
    let (host, revoked) = (acp.shared.host.clone(), client.options.identity.revoked().clone());
    let serving = host.scope().spawn("connection", serve(host.clone(), client, io));
    tokio::pin!(serving);
    let served = tokio::select! {
        served = &mut serving => served,
        () = revoked.cancelled() => {
            connection.end(Closing::Revoked);
            connection.close_streams();
            serving.await
        }
        () = connection.gone.cancelled() => {
            // Also when the daemon stops: nothing is taken any more.
            connection.end(acp.shared.daemon.farewell.closing());
            let patience = if acp.shared.stop.is_cancelled() { LAST_EVENTS } else { Duration::ZERO };
            match tokio::time::timeout(patience, &mut serving).await {
                Ok(served) => served,
                // It waits for a viewer, which waits for a reader: there will be none.
                Err(_) => {
                    connection.close_streams();
                    serving.await
                }
            }
        }
    };
    if !matches!(served, Ok(Some(()))) {
        let _defect = connection.ending.set(Closing::Internal);
    }
    acp.connections.end(&connection, acp.shared.daemon.farewell.closing());
    if acp.shared.stop.is_cancelled() {
        // Viewers still write what the ends of their sessions said.
        let _late = tokio::time::timeout(LAST_EVENTS, dry.cancelled()).await;
    }
    connection.close_streams();
    drop(permit);
}

/// Watches all connections until the daemon stops: ends the unread ones, closes readers that have stalled.
pub(super) async fn sweep(acp: Arc<Acp>) {
    let stop = acp.shared.stop.clone();
    let sweeping = async {
        loop {
            let all: Vec<Arc<Connection>> = acp.connections.table().values().cloned().collect();
            if all.is_empty() {
                acp.connections.occupied.notified().await;
                continue;
            }
            let settings = acp.shared.settings();
            let (now, resumed) = (Instant::now(), acp.shared.pulse.resumed());
            for connection in &all {
                let swept = connection.streams.sweep(now, resumed);
                if swept.stalled > 0 {
                    count_stalls("acp_sse", swept.stalled);
                }
                let idle = swept.idle_since.map(|since| since.max(resumed));
                let is_over = connection.arrivals().is_none();
                if is_over || idle.is_some_and(|since| now.duration_since(since) > settings.connection_idle) {
                    acp.connections.end(connection, Closing::Expired);
                }
            }
            let streams = all.iter().map(|connection| &*connection.streams);
            acp.connections.keeping.make_room(streams, KEPT_FOR, now);
            let shortest = settings.viewer_stall.min(settings.connection_idle).min(KEPT_FOR);
            let soon = tokio::time::sleep((shortest / 8).clamp(SWEEP.0, SWEEP.1));
            tokio::select! {
                () = soon => {}
                () = acp.connections.keeping.too_much() => {}
            }
        }
    };
    stop.run_until_cancelled(sweeping).await;
}
