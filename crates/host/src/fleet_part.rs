//! What a host is told by the fleet that it is in: the policy of sessions that name none, that it is fenced, and whose a session is that
//! is to begin.
//!
//! Which session that concerns is decided here; when a node is fenced, and who takes sessions up, is decided in the fleet.
//! Without a fleet every session is local and nothing is fenced.

use crate::agent::Deadlines;
use crate::creation::Held;
use crate::error::HostError;
use crate::setup::Creator;
use acpd_record::{Partition, SessionId};
use acpd_supervisor::Pending;
use parking_lot::Mutex;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// What a fleet is asked and told of sessions that begin.
pub trait Beginnings: Debug + Send + Sync {
    /// Claims the id of a session that is to begin under a key of the token of this name; what it returns is held until the
    /// session has begun, or will not. The error is the node that has claimed it.
    fn claim<'a>(&'a self, id: &'a SessionId, token: Option<&'a str>) -> Pending<'a, Result<Held, String>>;

    /// A session has begun. Other nodes know of it when this is done, unless that takes long.
    fn begun<'a>(&'a self, id: &'a SessionId) -> Pending<'a, ()>;
}

/// What a host is told by its fleet.
#[derive(Debug, Default)]
pub(crate) struct FleetPart {
    beginnings: OnceLock<Arc<dyn Beginnings>>,
    policies: Mutex<Option<Policies>>,
    pub(crate) fence: Fence,
    pub(crate) deadlines: Deadlines,
}

/// What the sessions of a node may be.
#[derive(Debug)]
struct Policies {
    /// Those that name none.
    default: Partition,
    /// Why no other node can take sessions up, if none can.
    no_failover: Option<String>,
}

impl FleetPart {
    /// There is a fleet, in which sessions that name no policy have this one.
    pub(crate) fn set(&self, default: Partition, no_failover: Option<String>) {
        *self.policies.lock() = Some(Policies { default, no_failover });
    }

    /// It is asked and told of sessions that begin, from now on.
    pub(crate) fn ask(&self, beginnings: Arc<dyn Beginnings>) {
        let _was_asked_before = self.beginnings.set(beginnings);
    }

    /// Claims the id of a session that is to begin under a key.
    ///
    /// # Errors
    /// When another node has it.
    pub(crate) async fn claim(&self, id: &SessionId, creator: &Creator) -> Result<Option<Held>, HostError> {
        let Some(beginnings) = self.beginnings.get() else { return Ok(None) };
        let claimed = beginnings.claim(id, creator.token.as_deref()).await;
        claimed.map(Some).map_err(|node| HostError::OnNode { id: id.to_string(), node })
    }

    /// A session has begun.
    pub(crate) async fn begun(&self, id: &SessionId) {
        if let Some(beginnings) = self.beginnings.get() {
            beginnings.begun(id).await;
        }
    }

    /// The policy of sessions that name none.
    pub(crate) fn default_policy(&self) -> Partition {
        self.policies.lock().as_ref().map(|policies| policies.default).unwrap_or_default()
    }

    /// The policy of a session for which this one is wanted.
    ///
    /// # Errors
    /// When it needs a fleet and there is none.
    pub(crate) fn policy(&self, wanted: Option<Partition>) -> Result<Partition, HostError> {
        policy(self.policies.lock().as_ref(), wanted)
    }
}

fn policy(policies: Option<&Policies>, wanted: Option<Partition>) -> Result<Partition, HostError> {
    let why = match policies {
        None => Some(
            "failover needs a fleet, and this daemon is in none; leave it out, give local, or set [fleet] in the configuration",
        ),
        Some(policies) => policies.no_failover.as_deref(),
    };
    match (wanted, why) {
        (Some(Partition::Failover), Some(why)) => {
            Err(HostError::InvalidParams { message: format!("partition: {why}") })
        }
        _ => Ok(wanted.or(policies.map(|policies| policies.default)).unwrap_or_default()),
    }
}

/// Whether the fleet may have given up this node. Sessions that another node may take up do not run here then.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fence(Arc<AtomicBool>);

impl Fence {
    /// Puts it up, or takes it down.
    pub(crate) fn set(&self, is_up: bool) {
        // The order against the sessions that are live is that of the lock of their registry.
        self.0.store(is_up, Ordering::Relaxed);
    }

    /// Whether any session is kept from running.
    pub(crate) fn is_up(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether a session with this policy is kept from running.
    pub(crate) fn holds(&self, policy: Partition) -> bool {
        self.is_up() && !policy.is_local()
    }

    /// Lets what runs a session with this policy go on.
    ///
    /// # Errors
    /// [`HostError::Fenced`] when it does not.
    pub(crate) fn pass(&self, policy: Partition) -> Result<(), HostError> {
        match self.holds(policy) {
            true => Err(HostError::Fenced),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Partition::{Failover, Local};

    // contract 7.2: a session says what becomes of it, else the configuration; without a fleet nothing fails over
    #[test]
    fn who_says_what_becomes_of_a_session() {
        let keep = Some("keep is too long");
        for (policies, wanted, expected) in [
            (None, None, Ok(Local)),
            (None, Some(Local), Ok(Local)),
            (None, Some(Failover), Err("partition: failover needs a fleet")),
            (Some((Local, None)), None, Ok(Local)),
            (Some((Failover, None)), None, Ok(Failover)),
            (Some((Failover, None)), Some(Local), Ok(Local)),
            (Some((Local, None)), Some(Failover), Ok(Failover)),
            (Some((Local, keep)), None, Ok(Local)),
            (Some((Local, keep)), Some(Failover), Err("partition: keep is too long")),
        ] {
            let policies =
                policies.map(|(default, why)| Policies { default, no_failover: why.map(str::to_owned) });
            match (policy(policies.as_ref(), wanted), expected) {
                (Ok(policy), Ok(expected)) => assert_eq!(policy, expected, "{policies:?} {wanted:?}"),
                (Err(error), Err(says)) => assert!(error.to_string().starts_with(says), "{error}"),
                (policy, _) => panic!("{policies:?} {wanted:?}: {policy:?}"),
            }
        }
    }

    // design fleet, partition: only sessions that another node may take up are fenced, and only while the fence is up
    #[test]
    fn who_is_fenced() {
        let fence = Fence::default();
        for (is_up, policy, holds) in [
            (false, Local, false),
            (false, Failover, false),
            (true, Local, false),
            (true, Failover, true),
            (false, Failover, false),
        ] {
            fence.set(is_up);
            assert_eq!(fence.holds(policy), holds, "{is_up} {policy:?}");
            assert_eq!(matches!(fence.pass(policy), Err(HostError::Fenced)), holds);
        }
    }
}
