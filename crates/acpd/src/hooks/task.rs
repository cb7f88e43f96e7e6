//! The task of one hook: looks into the outbox, tells what is there, and takes out what was told.

use super::body::{self, Body};
use super::schedule::{Became, Schedule, Tried, WAITING};
use super::spec::HookSpec;
use super::{Means, command, metrics, post};
use crate::config::HookTarget;
use crate::runtime::if_any;
use acpd_eventlog::{Note, QueryError};
use acpd_host::chain;
use data_encoding::HEXLOWER;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long one try may take.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct HookTask {
    teller: Arc<Teller>,
    schedule: Schedule,
    /// What was told, and could not be taken out yet: it is not told again while this task lives.
    over: Vec<u64>,
    share: metrics::WaitingShare,
}

/// What became of a look into the outbox.
enum Look {
    Seen,
    /// It is tried again.
    Failed,
    /// There is no log any more.
    Closed,
}

/// What tells one event.
struct Teller {
    means: Means,
    spec: HookSpec,
    name: String,
}

impl HookTask {
    pub(super) fn new(means: Means, spec: HookSpec) -> Self {
        let name = spec.name();
        let teller = Arc::new(Teller { means, spec, name });
        Self {
            teller,
            schedule: Schedule::default(),
            over: Vec::new(),
            share: metrics::WaitingShare::default(),
        }
    }

    /// Tells until it is dropped, or the log is closed.
    pub(super) async fn run(mut self) {
        let grown = self.teller.means.log.outbox_grown();
        let mut telling = FuturesUnordered::new();
        loop {
            let news = grown.notified();
            tokio::pin!(news);
            // Before the look, so that what is noted right behind it is seen.
            news.as_mut().enable();
            let again = match self.look().await {
                Look::Closed => return,
                Look::Seen => None,
                Look::Failed => Some(Instant::now() + PATIENCE),
            };
            self.take_out().await;
            let now = Instant::now();
            while let Some(note) = self.schedule.next(now.into_std()) {
                let teller = Arc::clone(&self.teller);
                telling.push(async move { (note.number, teller.tell(&note).await) });
            }
            self.share.show(self.schedule.len());
            let due = self.schedule.due().map(Instant::from_std).into_iter().chain(again).min();
            tokio::select! {
                () = news => {}
                Some((number, tried)) = telling.next(), if !telling.is_empty() => self.tried(number, tried),
                () = if_any(due.map(tokio::time::sleep_until)) => {}
            }
        }
    }

    /// Takes what is new in the outbox.
    async fn look(&mut self) -> Look {
        let limit = u32::try_from(WAITING).unwrap_or(u32::MAX);
        loop {
            let (log, after) = (&self.teller.means.log, self.schedule.last_number());
            let found = match log.outbox(&self.teller.name, after, limit).await {
                Ok(found) => found,
                Err(QueryError::Closed) => return Look::Closed,
                Err(error) => {
                    let hook = self.teller.spec.place();
                    tracing::warn!(
                        hook,
                        error = chain(&error),
                        "what a hook is to be told cannot be read now"
                    );
                    return Look::Failed;
                }
            };
            let is_all = found.len() < WAITING;
            for note in found {
                if let Some(dropped) = self.schedule.take(note) {
                    self.dropped(dropped, "too many events wait for it");
                }
            }
            if is_all {
                return Look::Seen;
            }
        }
    }

    fn dropped(&mut self, number: u64, reason: &str) {
        tracing::warn!(hook = self.teller.spec.place(), reason, "a hook is not told of an event");
        metrics::dropped();
        self.over.push(number);
    }

    fn tried(&mut self, number: u64, tried: Tried) {
        match self.schedule.tried(number, tried, Instant::now().into_std()) {
            Became::Told => {
                metrics::told();
                self.over.push(number);
            }
            Became::Moot => self.over.push(number),
            Became::Waits => metrics::failed(),
            Became::Dropped => {
                metrics::failed();
                self.dropped(number, "it was tried for a day");
            }
        }
    }

    async fn take_out(&mut self) {
        if self.over.is_empty() {
            return;
        }
        // On a disk that is full it is told again after a restart, at worst.
        match self.teller.means.log.take_out(self.over.clone()).await {
            Ok(()) => self.over.clear(),
            Err(error) => {
                self.over.drain(..self.over.len().saturating_sub(WAITING));
                tracing::debug!(error = chain(&error), "what hooks were told stays in the outbox for now");
            }
        }
    }
}

impl Teller {
    async fn tell(&self, note: &Note) -> Tried {
        let place = self.spec.place();
        let body = match body::of_note(&self.means.log, note, self.spec.content).await {
            Ok(Some(body)) => body,
            Ok(None) => return Tried::Moot,
            Err(error) => {
                tracing::warn!(
                    hook = place,
                    session = note.session,
                    error = chain(&error),
                    "a hook was not told"
                );
                return Tried::Failed { age: Duration::ZERO };
            }
        };
        let delivery = self.delivery(note);
        let error = match tokio::time::timeout(PATIENCE, self.send(&body, &delivery)).await {
            Ok(Ok(())) => {
                tracing::debug!(
                    hook = place,
                    session = note.session,
                    seq = note.seq,
                    delivery,
                    "a hook was told"
                );
                return Tried::Told;
            }
            Ok(Err(error)) => error,
            Err(_) => format!("it took longer than {} s", PATIENCE.as_secs()),
        };
        let (session, seq) = (&*note.session, note.seq);
        tracing::warn!(hook = place, session, seq, delivery, error, "a hook was not told");
        let age = jiff::Timestamp::now().as_millisecond() - body.at_ms;
        Tried::Failed { age: Duration::from_millis(u64::try_from(age).unwrap_or_default()) }
    }

    async fn send(&self, body: &Body, delivery: &str) -> Result<(), String> {
        match &self.spec.target {
            HookTarget::Url(url) => {
                let post = post::Post {
                    url,
                    secret: self.spec.secret.as_ref(),
                    delivery,
                    timestamp: jiff::Timestamp::now().as_second(),
                    body: body.json.clone(),
                };
                post::post(&post).await.map_err(|error| chain(&error))
            }
            HookTarget::Command(command) => {
                let told = command::run(&self.means.supervisor, command, &body.json).await;
                told.map_err(|error| chain(&error))
            }
        }
    }

    /// The id under which this hook is told of an event, whenever that is.
    fn delivery(&self, note: &Note) -> String {
        let what = format!("{} {} {}", self.name, note.session, note.seq);
        HEXLOWER.encode(&Sha256::digest(what)[..16])
    }
}
