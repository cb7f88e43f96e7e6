//! By which upstream a session is reached, from the first message for it until nothing needs it or its node is lost.

use super::{Owner, RelayCore, Seat, To, UPSTREAMS, Upstream, UpstreamId, Way, own_error};
use crate::relay::refusal::{Loss, misplaced};
use crate::wire_error::WireError;
use acpd_fleet::NodeName;
use acpd_host::method;
use acpd_record::SessionId;
use acpd_wire::{codes, put_member, splice, write_notification, write_request};
use bytes::{Bytes, BytesMut};
use serde_json::value::RawValue;
use std::collections::BTreeSet;

impl RelayCore {
    /// By which upstream a session is reached; None when it is not at another node.
    pub(super) fn way(
        &mut self,
        session: &SessionId,
        owner: Option<Owner>,
    ) -> Result<Option<Way>, WireError> {
        let seat = self.sessions.get_mut(session);
        let Some(owner) = owner else {
            return Ok(match seat {
                // It has just been forked.
                Some(seat) if !seat.is_listed => Some((seat.upstream, None)),
                _ => None,
            });
        };
        if let Some(seat) = seat
            && self.upstreams.get(&seat.upstream).is_some_and(|upstream| upstream.id == owner.id)
        {
            seat.is_listed = true;
            return Ok(Some((seat.upstream, None)));
        }
        if self.is_forwarded {
            return Err(misplaced(&owner.node, session));
        }
        if let Some(since) = owner.gone_since {
            return Err(Loss::Gone(since).to_error(&owner.node, session));
        }
        let Some(address) = owner.address else {
            return Err(Loss::NoAddress.to_error(&owner.node, session));
        };
        if self.upstreams.len() >= UPSTREAMS {
            let message = format!("this connection is at {UPSTREAMS} sessions of other nodes already");
            return Err(own_error(codes::INTERNAL_ERROR, message));
        }
        self.made += 1;
        let upstream = UpstreamId(self.made);
        self.upstreams.insert(upstream, Upstream { id: owner.id, asked: BTreeSet::new() });
        self.sessions.insert(session.clone(), Seat { upstream, is_watched: false, is_listed: true });
        let (node, agent, session) = (owner.node, owner.agent, session.clone());
        let initialize = initialize(self.introduction.as_deref().unwrap_or(b"{}"), &session);
        let to = To { node, address, agent, session, initialize, is_asked: false };
        Ok(Some((upstream, Some(Box::new(to)))))
    }

    /// Whether a node owes the client something.
    pub(in crate::relay) fn owes(&self, upstream: UpstreamId) -> bool {
        self.open.values().any(|open| open.upstream == upstream)
    }

    /// Forgets an upstream that nothing needs any more; whether that is so.
    pub(in crate::relay) fn forget_idle(&mut self, upstream: UpstreamId) -> bool {
        let is_watched = self.sessions.values().any(|seat| seat.upstream == upstream && seat.is_watched);
        let is_idle = !is_watched && !self.owes(upstream);
        if is_idle {
            self.forget(upstream);
        }
        is_idle
    }

    /// An upstream is lost: what the client is told, each about a session.
    pub(in crate::relay) fn lost(
        &mut self,
        upstream: UpstreamId,
        node: &NodeName,
        loss: &Loss,
    ) -> Vec<(SessionId, Bytes)> {
        let answered = self.open.extract_if(|_, open| open.upstream == upstream);
        let mut told: Vec<_> = answered
            .map(|(id, open)| {
                let line = loss.to_error(node, &open.session).to_line(&id);
                (open.session, line)
            })
            .collect();
        let seats = self.sessions.iter().filter(|(_, seat)| seat.upstream == upstream && seat.is_watched);
        let watched: Vec<SessionId> = seats.map(|(session, _)| session.clone()).collect();
        let asked = self.forget(upstream);
        if let Some(session) = watched.first() {
            told.extend(asked.into_iter().map(|id| {
                let mut line = BytesMut::new();
                let params = format!("{{\"requestId\":{id}}}");
                write_notification(&mut line, method::CANCEL_REQUEST, Some(params.as_bytes()));
                (session.clone(), line.freeze())
            }));
        }
        told.extend(watched.into_iter().map(|session| {
            let line = loss.to_closing(node, &session);
            (session, line)
        }));
        told
    }

    fn forget(&mut self, upstream: UpstreamId) -> BTreeSet<u64> {
        self.sessions.retain(|_, seat| seat.upstream != upstream);
        self.upstreams.remove(&upstream).map(|upstream| upstream.asked).unwrap_or_default()
    }
}

/// The client's `initialize` with the session that it is going to join, whose process then answers it.
fn initialize(params: &[u8], session: &SessionId) -> Bytes {
    let raw: Option<&RawValue> = serde_json::from_slice(params).ok();
    let path = ["_meta", acpd_host::META, "joins"];
    let edit = raw.and_then(|raw| put_member(params, raw, &path, session.as_json()));
    let mut joining = BytesMut::new();
    match edit {
        Some((place, text)) => splice(&mut joining, params, &[(place, &text)]),
        None => splice(&mut joining, params, &[]),
    }
    let mut line = BytesMut::new();
    write_request(&mut line, 0, method::INITIALIZE, Some(&joining));
    line.freeze()
}
