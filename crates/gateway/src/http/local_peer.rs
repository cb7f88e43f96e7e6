//! The peer at the other end of the Unix socket: by user and process, as the operating system says (contract 1.7, 7.2).
//!
//! The socket's mode keeps other users out already; this holds also where it was widened. A client that is refused is told
//! why, whatever is asked. Not here: whose process it is, which the host knows.

use super::metrics;
use super::problem::Problem;
use acpd_api::ProblemKind;
use acpd_host::{CallerRefused, Host};
use axum::Router;
use http::StatusCode;
use http::header::CONNECTION;
use rustix::process::geteuid;
use std::time::Duration;
use tokio::net::UnixStream;

/// Why a client is not let in.
#[derive(Debug, thiserror::Error)]
pub(super) enum PeerRefused {
    /// Another user, by whatever way.
    #[error("the socket is for the user who runs acpd (uid {ours}) and for root, not for uid {theirs}")]
    User { theirs: u32, ours: u32 },
    #[error(transparent)]
    Process(#[from] CallerRefused),
    #[error("the operating system does not say who this is: {0}")]
    Nameless(#[from] std::io::Error),
}

/// Admits a peer that may use the socket.
pub(super) fn admit(host: &Host, stream: &UnixStream) -> Result<(), PeerRefused> {
    let peer = stream.peer_cred()?;
    let ours = geteuid().as_raw();
    if !is_for(peer.uid(), ours) {
        return Err(PeerRefused::User { theirs: peer.uid(), ours });
    }
    // One that cannot be seen from here has no number (0): it is outside of this daemon's container, where none of its
    // agents can be.
    match peer.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0) {
        Some(pid) => Ok(host.agents().admits(pid)?),
        None => Ok(()),
    }
}

/// Whether a user may use the socket of another.
fn is_for(theirs: u32, ours: u32) -> bool {
    theirs == ours || theirs == 0
}

/// Answers everything with the same refusal and closes: a refused peer takes no place from others.
pub(super) fn refusing(reason: &PeerRefused) -> Router {
    let (kind, detail) = (reason.kind(), reason.to_string());
    let refusal = move || {
        let detail = detail.clone();
        metrics::count_request(StatusCode::FORBIDDEN, Duration::ZERO);
        async move { ([(CONNECTION, "close")], Problem::new(StatusCode::FORBIDDEN, kind, detail)) }
    };
    Router::new().fallback(refusal)
}

impl PeerRefused {
    fn kind(&self) -> ProblemKind {
        match self {
            Self::User { .. } | Self::Nameless(_) => ProblemKind::ForeignUser,
            Self::Process(_) => ProblemKind::AgentProcess,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_for;

    // SC-1: the socket is its owner's, and root's
    #[test]
    fn other_users_are_refused() {
        assert!(is_for(7, 7) && is_for(0, 7) && is_for(0, 0));
        assert!(!is_for(8, 7) && !is_for(7, 0) && !is_for(65534, 7));
    }
}
