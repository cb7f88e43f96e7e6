//! What is between a client and its connection where the daemon is a node of a fleet: messages for sessions of other nodes go
//! there, and what comes back goes to the client (contract 7.3).
//!
//! For each of these sessions there is an *upstream*, a WebSocket to the node that has it, made when it is first needed; each is a
//! task of its own. One for all sessions of a node would hold all of them up where the client does not read the stream of one,
//! and would have one agent for all. Invariants: all else goes to the connection, in its order; each request is answered once,
//! also when its node is lost, which the connection outlives; the caller's own token goes there, and no right of this node; a message
//! goes on once at most; a client that does not read, and a node that does not, hold up one another and no other. Not here:
//! which session is where (`crates/fleet`), and what the node does.

mod core;
mod refusal;
mod upstream;

use crate::connection::{self, Arrival, ConnectionIo, ConnectionOptions};
use crate::farewell::Farewell;
use crate::fleet::{Fleet, exists_for, of_node};
use crate::identity::Identity;
use crate::outbox::Outbox;
use crate::wire_error::wire_error;
use acpd_fleet::Owned;
use acpd_host::{Host, HostError, Pending, TaskScope};
use acpd_record::SessionId;
use bytes::Bytes;
use core::{Owner, RelayCore, Said, UpstreamId};
use http::HeaderValue;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use upstream::Upstream;

/// Lines that wait for an upstream. Full: the client is not read.
const WAITING: usize = 16;

/// A client that came in, and how it is served.
pub(crate) struct Served {
    pub(crate) options: ConnectionOptions,
    /// In a fleet.
    pub(crate) access: Option<FleetAccess>,
}

/// What a client shows other nodes of a fleet.
#[derive(Clone, Debug)]
pub(crate) struct FleetAccess {
    pub(crate) fleet: Fleet,
    /// The caller's token for other nodes, as a header has it.
    pub(crate) token: Option<HeaderValue>,
    /// It came by another node.
    pub(crate) is_forwarded: bool,
    /// Why this node ends, when it does.
    pub(crate) farewell: Farewell,
}

/// Serves a client until it is gone, with a relay if there are other nodes.
pub(crate) fn serve(
    host: Host,
    Served { options, access }: Served,
    io: ConnectionIo,
) -> Pending<'static, ()> {
    let Some(access) = access else { return connection::serve(host, options, io) };
    let farewell = access.farewell.clone();
    let has_agent = host.agents().known(&options.agent).is_ok();
    let caller = (options.identity.clone(), has_agent);
    let (relay, io) = Relay::before(io, host.scope().clone(), caller, access);
    Box::pin(async move {
        let here = host.clone();
        tokio::join!(
            relay.run(|| here.is_closing() && !farewell.hands_over(), Some(&here)),
            connection::serve(host, options, io)
        );
    })
}

/// The relay of one client.
struct Relay {
    arrivals: mpsc::Receiver<Arrival>,
    /// The connection.
    here: mpsc::Sender<Arrival>,
    gone: CancellationToken,
    /// Of its upstreams.
    scope: TaskScope,
    identity: Identity,
    shared: Arc<Shared>,
    upstreams: HashMap<UpstreamId, mpsc::Sender<Bytes>>,
}

/// What a relay and its upstreams have together.
#[derive(Debug)]
struct Shared {
    core: Mutex<RelayCore>,
    access: FleetAccess,
    outbox: Outbox,
    /// The client is gone, and with it all upstreams.
    over: CancellationToken,
}

impl Shared {
    fn core(&self) -> MutexGuard<'_, RelayCore> {
        self.core.lock()
    }
}

impl Relay {
    /// A relay on what a transport has, and what is left for the connection, whose agent this node may have or not.
    fn before(
        io: ConnectionIo,
        scope: TaskScope,
        (identity, has_agent): (Identity, bool),
        access: FleetAccess,
    ) -> (Self, ConnectionIo) {
        let ConnectionIo { arrivals, gone, outbox, last_events } = io;
        // What is read ahead is read by the transport.
        let (here, lines) = mpsc::channel(1);
        let core = Mutex::new(RelayCore::new(identity.clone(), access.is_forwarded, has_agent));
        let shared = Shared { core, access, outbox: outbox.clone(), over: gone.child_token() };
        let io = ConnectionIo { arrivals: lines, gone: gone.clone(), outbox, last_events };
        let (shared, upstreams) = (Arc::new(shared), HashMap::new());
        (Self { arrivals, here, gone, scope, identity, shared, upstreams }, io)
    }

    /// Relays until the client is gone, or its connection is over. What is owed then is answered only if this node `ends`:
    /// by the next image the client asks it again.
    async fn run(mut self, ends: impl Fn() -> bool, host: Option<&Host>) {
        let _upstreams_end = self.shared.over.clone().drop_guard();
        let (gone, here) = (self.gone.clone(), self.here.clone());
        loop {
            let arrival = tokio::select! {
                biased;
                () = gone.cancelled() => break,
                () = here.closed() => break,
                arrival = self.arrivals.recv() => arrival,
            };
            let Some(arrival) = arrival else { break };
            tokio::select! {
                biased;
                () = gone.cancelled() => break,
                () = here.closed() => break,
                () = self.take(arrival, host) => {}
            }
        }
        if ends() {
            let owed = self.shared.core().drain(&wire_error(&HostError::ShuttingDown));
            for (session, line) in owed {
                let _gone = self.shared.outbox.about(&session).send(line).await;
            }
        }
    }

    async fn take(&mut self, arrival: Arrival, host: Option<&Host>) {
        let Arrival::Line(line) = arrival else { return self.pass(arrival).await };
        self.shared.access.fleet.member.told().await;
        // Whose session it is may not be known yet.
        let unknown = match host {
            Some(host) => self.not_known(&line, host).await,
            None => None,
        };
        // An upstream that nothing needed may end just now: then there is another one.
        for _ in 0..2 {
            let said = self.shared.core().said(&line, |session| self.owner(session));
            match said {
                Said::Here => {
                    return match unknown {
                        Some((session, answer)) => {
                            let _gone = self.shared.outbox.about(&session).send(answer).await;
                        }
                        None => self.pass(Arrival::Line(line)).await,
                    };
                }
                Said::Answered { session, line } => {
                    let _gone = self.shared.outbox.about(&session).send(line).await;
                    return;
                }
                Said::Dropped(why) => return tracing::debug!(why, "a message for another node is dropped"),
                Said::There { upstream, new, line, is_request } => {
                    let is_sent = new.as_ref().is_some_and(|to| to.is_asked);
                    if let Some(to) = new {
                        let (sender, lines) = mpsc::channel(WAITING);
                        self.upstreams.retain(|_, upstream| !upstream.is_closed());
                        self.upstreams.insert(upstream, sender);
                        let task = Upstream::new(Arc::clone(&self.shared), upstream, *to, lines);
                        self.scope.spawn("upstream", task.run());
                    }
                    let Some(there) = self.upstreams.get(&upstream).filter(|_| !is_sent) else { return };
                    // What was asked has been answered when the upstream was lost.
                    if there.send(line).await.is_ok() || is_request {
                        return;
                    }
                }
            }
        }
    }

    /// Finds out whose the session of a request is that is not here. What it is answered where that cannot be said: a client that hears
    /// of none gives it up for good.
    async fn not_known(&self, line: &Bytes, host: &Host) -> Option<(SessionId, Bytes)> {
        let fleet = &self.shared.access.fleet;
        let (id, session) = self.shared.core().request_for(line)?;
        if fleet.is_sure(host, &session, &self.identity).await {
            return None;
        }
        let line = refusal::not_known_yet(&fleet.member.me().name, &session).to_line(&id);
        Some((session, line))
    }

    async fn pass(&self, arrival: Arrival) {
        let _over = self.here.send(arrival).await;
    }

    fn owner(&self, session: &SessionId) -> Option<Owner> {
        let member = &self.shared.access.fleet.member;
        let owned = member.elsewhere(session).filter(|owned| exists_for(owned, &self.identity))?;
        let gone_since = of_node(&owned).unreachable_since;
        let Owned { session, node, .. } = owned;
        let address = node.and_then(|node| node.address.clone());
        let (node, id, agent) = (session.node.clone(), session.node_id.clone(), session.told().agent);
        Some(Owner { node, id, address, agent, gone_since })
    }
}

#[cfg(test)]
mod tests;
