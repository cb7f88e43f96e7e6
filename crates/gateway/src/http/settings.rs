//! How the front door is set up, and what all requests share.

use super::body::BodyBudget;
use super::codes::Codes;
use super::journal::Refusals;
use super::metrics::Measurements;
use super::pulse::Pulse;
use super::rest::{ASKED_WAITING, Asked};
use super::tokens::Tokens;
use crate::agent_list::AgentSight;
use crate::farewell::Farewell;
use crate::fleet::Fleet;
use crate::identity::{Allowance, Identity};
use acpd_host::{Host, Keep};
use acpd_inspector::Pages;
use parking_lot::RwLock;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// What can be set; `[server]`, `[limits]` and `[timeouts]` of the configuration.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// The agent of clients that name none.
    pub default_agent: String,
    /// Names that acpd may be called by, beside the address it listens on.
    pub allowed_hosts: Vec<String>,
    /// Origins of pages that may call, `scheme://host:port` each.
    pub allowed_origins: Vec<String>,
    /// Advertise the first draft's close (contract 1.4).
    pub session_stop: bool,
    /// The longest message, in bytes.
    pub message_bytes: usize,
    /// How long a reader may take nothing while something waits for it.
    pub viewer_stall: Duration,
    /// How long an ACP connection over HTTP stays without a reader.
    pub connection_idle: Duration,
    /// What a caller that needs no token may hold.
    pub local: Allowance,
    /// How long ended sessions are kept, and how much of them, where a request does not say.
    pub keep: Keep,
}

/// What browsers get.
pub(super) struct Inspector {
    pub(super) pages: Pages,
    /// By which they are let in.
    pub(super) codes: Codes,
}

/// What the daemon itself does.
pub(super) struct OfDaemon {
    /// What it is asked.
    pub(super) asked: mpsc::Sender<Asked>,
    /// What streams say when they end with it.
    pub(super) farewell: Farewell,
    /// What is found of agents on this machine.
    pub(super) sight: Arc<dyn AgentSight>,
    /// The fleet that it is a node of, if it is.
    pub(super) fleet: OnceLock<Fleet>,
}

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) host: Host,
    pub(crate) tokens: Tokens,
    /// Cancelled when the daemon stops: streams end.
    pub(crate) stop: CancellationToken,
    pub(super) measurements: Option<Measurements>,
    /// Room for the bodies of all requests.
    pub(super) bodies: BodyBudget,
    /// Whether acpd itself runs, for all that waits for clients.
    pub(super) pulse: Arc<Pulse>,
    pub(super) inspector: Inspector,
    /// Requests that were refused, as far as they were told.
    pub(super) refusals: Refusals,
    pub(super) daemon: OfDaemon,
    settings: RwLock<Arc<HttpSettings>>,
    local: RwLock<Identity>,
    pub(crate) since: tokio::time::Instant,
}

impl Shared {
    pub(super) fn new(
        host: Host,
        tokens: Tokens,
        settings: HttpSettings,
        sight: Arc<dyn AgentSight>,
        pages: Pages,
        measurements: Option<Measurements>,
        stop: CancellationToken,
    ) -> (Self, mpsc::Receiver<Asked>) {
        let (asked, requests) = mpsc::channel(ASKED_WAITING);
        let local = RwLock::new(Identity::local(settings.local));
        let (settings, since) = (RwLock::new(settings.into()), tokio::time::Instant::now());
        let bodies = BodyBudget::default();
        let (pulse, refusals) = (Arc::new(Pulse::new()), Refusals::default());
        let shared = Self {
            host,
            tokens,
            stop,
            measurements,
            bodies,
            pulse,
            inspector: Inspector { pages, codes: Codes::default() },
            refusals,
            daemon: OfDaemon { asked, farewell: Farewell::default(), sight, fleet: OnceLock::new() },
            settings,
            local,
            since,
        };
        (shared, requests)
    }

    /// The fleet that this daemon is a node of, if it is.
    pub(super) fn fleet(&self) -> Option<&Fleet> {
        self.daemon.fleet.get()
    }

    pub(crate) fn settings(&self) -> Arc<HttpSettings> {
        Arc::clone(&self.settings.read())
    }

    /// A caller that needs no token.
    pub(crate) fn local(&self) -> Identity {
        self.local.read().clone()
    }

    /// Goes by these from now on; what is open stays as it is.
    pub(super) fn set(&self, settings: HttpSettings) {
        if self.settings().local != settings.local {
            *self.local.write() = Identity::local(settings.local);
        }
        *self.settings.write() = settings.into();
    }
}
