//! What a door of a fleet shows of other nodes, and to whom (contract 7.3).
//!
//! Tokens are each node's own, so a right on this node is none on another: a session of another node exists for its creator, by name
//! and fingerprint together, for tokens that its node has said see all of its sessions, and, as a row, for callers without a
//! token. What they may do there is for that node to say. Not here: how a request gets there (`http/forwarding.rs`).

mod peers;
mod rows;

pub(crate) use peers::{ASK_AFTER, FORWARDED_BY, PeerClient, PeerError};
pub(crate) use rows::Listed;

use crate::identity::Identity;
use acpd_api::OfNode;
use acpd_fleet::{Member, Owned, Sight};
use acpd_host::{Host, Pending, iso8601, now_ms};
use acpd_record::SessionId;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

const UP: &str = "acpd_fleet_up";
const NODES: &str = "acpd_fleet_nodes";
const LAG: &str = "acpd_fleet_lag_events";
const REFUSED: &str = "acpd_fleet_refused_total";

/// A connection to another node, with TLS where its address says so.
pub trait PeerStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> PeerStream for T {}

/// How other nodes are reached.
pub trait Dial: Debug + Send + Sync {
    /// Connects to an address, `https://HOST:PORT`. The error is why there is no connection, in one line.
    fn dial(&self, address: String) -> Pending<'_, Result<Box<dyn PeerStream>, String>>;
}

/// A fleet, as one of its doors has it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// This node in it.
    pub(crate) member: Member,
    /// The others.
    pub(crate) peers: PeerClient,
}

impl Fleet {
    /// The fleet of this node.
    pub fn new(member: Member, dial: Arc<dyn Dial>) -> Self {
        Self { member, peers: PeerClient::new(dial) }
    }

    /// What an operator measures, as it is now.
    pub(crate) fn measure(&self) {
        metrics::describe_gauge!(UP, "1 while the engine of the fleet answers, else 0");
        metrics::gauge!(UP).set(if self.member.is_stale() { 0.0 } else { 1.0 });
        metrics::describe_gauge!(NODES, "Nodes of the fleet, by whether they are there");
        let (there, gone): (Vec<_>, Vec<_>) =
            self.member.nodes().into_iter().partition(|sight| sight.gone_for.is_none());
        metrics::gauge!(NODES, "state" => "reachable").set(there.len() as f64);
        metrics::gauge!(NODES, "state" => "unreachable").set(gone.len() as f64);
        metrics::describe_gauge!(
            LAG,
            "Events of this node's sessions that are not in the fleet's archive yet"
        );
        metrics::gauge!(LAG).set(self.member.lag() as f64);
        metrics::describe_counter!(
            REFUSED,
            "Writes that the engine of the fleet did not take, by what they were: entries of sessions, pieces of the archive"
        );
        let (entries, pieces) = self.member.refusals();
        metrics::counter!(REFUSED, "what" => "entry").absolute(entries);
        metrics::counter!(REFUSED, "what" => "piece").absolute(pieces);
    }

    /// Finds out whether a session that is not here for a caller is another node's; whether that is known then.
    pub(crate) async fn is_sure(&self, host: &Host, session: &SessionId, identity: &Identity) -> bool {
        let is_elsewhere = || self.member.elsewhere(session).is_some();
        if is_elsewhere() || host.find(session, |creator| identity.sees(creator)).await.is_ok() {
            return true;
        }
        self.member.told().await;
        is_elsewhere()
            || (!self.member.is_stale()
                && self.member.look(session).await.is_ok()
                && (is_elsewhere() || !self.member.is_behind()))
    }

    /// The first node that is not heard, and may have sessions that are not known here.
    pub(crate) fn unheard(&self) -> Option<Sight> {
        let may_have_more = |sight: &Sight| sight.gone_for.is_some() && !sight.record.left;
        self.member.nodes().into_iter().find(may_have_more)
    }

    /// Why what is known of other nodes may be old.
    pub(crate) fn trouble(&self) -> Option<String> {
        let is_stale = self.member.is_stale();
        is_stale.then(|| match self.member.trouble() {
            Some(reason) => format!("the fleet does not know of this node: {reason}"),
            None => "the engine of the fleet does not answer".to_owned(),
        })
    }

    /// What is said of the own sessions of this node.
    pub(crate) fn here(&self) -> OfNode {
        OfNode { node: self.member.me().name.to_string(), reachable: true, unreachable_since: None }
    }
}

/// Whether a session of another node exists for a caller.
pub(crate) fn exists_for(owned: &Owned, identity: &Identity) -> bool {
    let Some(name) = identity.name() else { return true };
    let Some(fingerprint) = identity.fingerprint() else { return false };
    let creator = owned.session.creator.as_ref();
    creator.is_some_and(|creator| creator.name == **name && creator.fingerprint == fingerprint)
        || owned.node.as_ref().is_some_and(|node| node.seers.iter().any(|seer| seer == fingerprint))
}

/// Whether a session of another node exists for the token of this fingerprint, which is meant for that node, whatever it is called there.
pub(crate) fn exists_for_token(owned: &Owned, fingerprint: &str) -> bool {
    owned.session.creator.as_ref().is_some_and(|creator| creator.fingerprint == fingerprint)
        || owned.node.as_ref().is_some_and(|node| node.seers.iter().any(|seer| seer == fingerprint))
}

/// Where a session of another node is.
pub(crate) fn of_node(owned: &Owned) -> OfNode {
    OfNode {
        node: owned.session.node.to_string(),
        reachable: owned.gone_for.is_none(),
        unreachable_since: owned.gone_for.map(since),
    }
}

/// Since when a node is gone.
pub(crate) fn gone_since(sight: &Sight) -> Option<String> {
    sight.gone_for.map(since)
}

fn since(gone_for: Duration) -> String {
    iso8601(now_ms().saturating_sub(i64::try_from(gone_for.as_millis()).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{fingerprint, hash_token};
    use crate::identity::Allowance;
    use acpd_api::Scope;
    use acpd_fleet::{Creator, NodeId, NodeName, NodeRecord, SessionRecord};

    fn caller(name: &str, secret: &str, scope: Scope) -> Identity {
        Identity::of_token(name, scope, true, Allowance::UNLIMITED).of_hash(&hash_token(secret))
    }

    fn owned(creator: Option<(&str, &str)>, seers: &[&str]) -> Owned {
        let name = NodeName::try_from("a".to_owned()).expect("a name");
        let print = |secret: &str| fingerprint(&hash_token(secret));
        let mut node = NodeRecord::new(name, NodeId("1".to_owned()), "1");
        node.seers = seers.iter().map(|secret| print(secret)).collect();
        let mut session =
            SessionRecord::new(SessionId::parse("s").expect("an id"), &node, serde_json::Value::Null);
        session.creator =
            creator.map(|(name, secret)| Creator { name: name.to_owned(), fingerprint: print(secret) });
        Owned { session: session.into(), node: Some(node.into()), gone_for: None }
    }

    // design fleet, access: `ci` of one node is not `ci` of another, and an admin of one is nothing on another
    #[test]
    fn no_right_of_this_node_is_one_on_another() {
        let (ci, other_ci) = (caller("ci", "one", Scope::Control), caller("ci", "two", Scope::Control));
        let (root, renamed) = (caller("root", "three", Scope::Admin), caller("cd", "one", Scope::Control));
        let local = Identity::local(Allowance::UNLIMITED);
        for (what, session, exists) in [
            ("of ci", owned(Some(("ci", "one")), &[]), [true, false, false, false, true]),
            ("of no token", owned(None, &[]), [false, false, false, false, true]),
            ("of an admin there", owned(None, &["three"]), [false, false, true, false, true]),
        ] {
            let callers = [&ci, &other_ci, &root, &renamed, &local];
            assert_eq!(callers.map(|caller| exists_for(&session, caller)), exists, "{what}");
            // Which tokens are meant for that node.
            let by_token = ["one", "two", "three"]
                .map(|token| exists_for_token(&session, &fingerprint(&hash_token(token))));
            let [one, two, three, _, _] = exists;
            assert_eq!(by_token, [one, two, three], "{what}");
        }
    }
}
