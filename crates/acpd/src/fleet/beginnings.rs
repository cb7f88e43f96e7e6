//! Sessions that begin on this node, as the fleet is asked and told of them.

use super::sessions::{Fingerprints, creator};
use acpd_fleet::{Claim, Member};
use acpd_host::{Beginnings, Held, Pending};
use acpd_record::SessionId;

/// What the fleet is asked with.
#[derive(Debug)]
pub(super) struct FleetBeginnings {
    pub(super) member: Member,
    pub(super) fingerprints: Fingerprints,
}

impl Beginnings for FleetBeginnings {
    fn claim<'a>(&'a self, id: &'a SessionId, token: Option<&'a str>) -> Pending<'a, Result<Held, String>> {
        Box::pin(async move {
            let creator = token.and_then(|name| creator(&self.fingerprints, name));
            match self.member.claim(id, creator).await {
                Claim::Own(claimed) => Ok(Box::new(claimed) as Held),
                Claim::Other(owned) => Err(owned.session.node.to_string()),
                Claim::Unknown => {
                    tracing::warn!(session = %id, "a session begins under a key that other nodes do not hear of now");
                    Ok(Box::new(()) as Held)
                }
            }
        })
    }

    fn begun<'a>(&'a self, id: &'a SessionId) -> Pending<'a, ()> {
        Box::pin(self.member.tell(id))
    }
}
