//! What the supervisor can do here, in the words of clients (contract 7.3).

use acpd_record::{Containment, Continuity};
use acpd_supervisor as supervisor;

pub(crate) fn containment(found: supervisor::Containment) -> Containment {
    match found {
        supervisor::Containment::Subreaper => Containment::Subreaper,
        supervisor::Containment::ProcessGroup => Containment::Group,
    }
}

/// What acpd would see of an agent that is started now.
pub(crate) fn containment_here() -> Containment {
    containment(supervisor::Containment::here())
}

pub(crate) fn continuity_here() -> Continuity {
    match supervisor::Continuity::here() {
        supervisor::Continuity::Exact => Continuity::Exact,
        supervisor::Continuity::Graceful => Continuity::Graceful,
        supervisor::Continuity::None => Continuity::None,
    }
}
