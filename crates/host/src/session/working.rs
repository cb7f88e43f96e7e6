//! What a session has running beside it: requests of the agent that acpd serves, and terminals.

use super::live::LiveSession;
use super::parts::RunParts;
use crate::agent::AgentMethods;
use crate::services::{Service, ServiceError};
use acpd_terminal::{Keeping, TerminalEvent, TerminalId};
use bytes::Bytes;
use std::sync::Weak;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// What terminals say, on its way to the session. Full: they leave out what is in the middle, and say how much.
const FEED: usize = 64;

/// What runs, and what comes of it.
#[derive(Default)]
pub(super) struct Working {
    /// Requests that are served, by their numbers; each ends when its token is cancelled.
    running: Vec<(u64, CancellationToken)>,
    /// Where terminals speak to. It is there from its first use on: most sessions never need it.
    feed: Option<mpsc::Sender<TerminalEvent>>,
    /// Its other end, until the session task takes it.
    new_feed: Option<mpsc::Receiver<TerminalEvent>>,
    /// Told when the terminals of an ending session are gone.
    releasing: Option<oneshot::Receiver<()>>,
    /// The method by which the agent was asked to close its session.
    close_method: Option<&'static str>,
}

impl Drop for Working {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl Working {
    /// Whether the session task has to listen to terminals, and does not yet.
    pub(super) fn has_new_feed(&self) -> bool {
        self.new_feed.is_some()
    }

    pub(super) fn take_feed(&mut self) -> Option<mpsc::Receiver<TerminalEvent>> {
        self.new_feed.take()
    }

    pub(super) fn feed(&mut self) -> mpsc::Sender<TerminalEvent> {
        let feed = self.feed.get_or_insert_with(|| {
            let (sender, receiver) = mpsc::channel(FEED);
            self.new_feed = Some(receiver);
            sender
        });
        feed.clone()
    }

    /// Serves a request; what comes of it is given to `live`, when the log has room.
    pub(super) fn serve(
        &mut self,
        (number, service): (u64, Service),
        params: Bytes,
        (parts, keeping): (&RunParts, Option<Keeping>),
        live: Weak<LiveSession>,
    ) {
        let work = parts.services.clone().serve(service, params, (self.feed(), keeping));
        let withdrawn = CancellationToken::new();
        let stop = withdrawn.clone();
        parts.scope.spawn("service", async move {
            let outcome =
                stop.run_until_cancelled(work).await.unwrap_or_else(|| Err(ServiceError::withdrawn()));
            // A session that is gone has answered for it.
            if let Some(live) = live.upgrade() {
                live.room().await;
                live.with(|run| run.served(number, outcome));
            }
        });
        self.running.push((number, withdrawn));
    }

    /// A request was served.
    pub(super) fn finished(&mut self, number: u64) {
        self.running.retain(|(running, _)| *running != number);
    }

    pub(super) fn withdraw(&mut self, number: u64) {
        self.running.iter().filter(|(running, _)| *running == number).for_each(|(_, stop)| stop.cancel());
    }

    /// Nothing is served any more.
    pub(super) fn abandon(&mut self) {
        self.running.drain(..).for_each(|(_, withdrawn)| withdrawn.cancel());
    }

    /// The agent is asked to close its session, or has no method for it.
    pub(super) fn closes_by(&mut self, method: Option<&'static str>) {
        self.close_method = method;
    }

    pub(super) fn close_is_missing(&self, methods: &AgentMethods) {
        if let Some(method) = self.close_method {
            methods.remember_missing(method);
        }
    }

    pub(super) fn kill(terminals: &[TerminalId], parts: &RunParts) {
        let services = &parts.services;
        for handle in terminals.iter().filter_map(|id| services.terminals.get(&services.owner, id).ok()) {
            parts.scope.spawn("terminal of a cancelled turn", async move { drop(handle.kill().await) });
        }
    }

    /// TE-11: a session that ends releases its terminals at once; that is not waited for here.
    pub(super) fn begin_release(&mut self, parts: &RunParts) {
        let services = parts.services.clone();
        let (released, releasing) = oneshot::channel();
        self.releasing = Some(releasing);
        parts.scope.spawn("release", async move {
            services.terminals.release_all(&services.owner).await;
            // A session whose task was lost does not wait for it.
            let _lost = released.send(());
        });
    }

    /// A release that was begun.
    pub(super) fn release(&mut self) -> Option<oneshot::Receiver<()>> {
        self.releasing.take()
    }
}
