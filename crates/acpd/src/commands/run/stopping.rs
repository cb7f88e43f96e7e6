//! What ends a turn from this side: the person, or `--timeout`. The first time it is cancelled, the second time left.

use super::conversation::Conversation;
use super::home::Home;
use super::talking::Phase;
use crate::config::Wait;
use crate::exit::Failure;
use crate::signals::StopSignal;
use crate::verdict::{Stop, Turn, verdict};
use acpd_host::method;
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

/// How long what is stopped by `--timeout` may take for it, beyond the time that an agent has for a cancel by default.
const LEAVES: Duration = Duration::from_secs(15);

impl Conversation {
    /// The person, or the time, wants the turn to end, that of the request `asked`; the second time, at once. Whether it goes
    /// on until then.
    pub(super) async fn stop(&mut self, by: Stop, phase: Phase, asked: u64) -> Result<bool, Failure> {
        // A session without any client would live on in the daemon.
        let is_to_come = matches!((&self.home, phase), (Home::Daemon { .. }, Phase::New | Phase::Resume));
        let before = self.stop;
        self.stop = before.or(Some(by));
        self.deadline = None;
        if before.is_some() || !(is_to_come || self.session.is_some()) {
            if let Home::Here(local) = &self.home {
                local.host.hasten();
            }
            return Ok(false);
        }
        let what = match by {
            Stop::Person => String::new(),
            Stop::Timeout => {
                self.deadline = Some(Instant::now() + LEAVES);
                format!("{}: ", self.time_is_up())
            }
        };
        if is_to_come {
            self.announce(&format!("{what}stopping; once more to leave at once"))?;
            return Ok(true);
        }
        // What was asked for here and nothing else: a prompt that runs is cancelled, one that waits is taken back, and the turn
        // of another client goes on.
        self.client.notify(method::CANCEL_REQUEST, &json!({"requestId": asked})).await;
        self.cancel_questions().await?;
        let again = match self.home {
            Home::Here(_) => "Ctrl-C stops at once",
            Home::Daemon { .. } => "Ctrl-C leaves while it goes on",
        };
        let how = match phase == Phase::Prompt && self.waits_in_line() {
            true => "taking the prompt back",
            false => "cancelling",
        };
        self.announce(&format!("{what}{how}; {again}"))?;
        Ok(true)
    }

    /// Whether a signal leaves the turn to the daemon: a closed terminal does, as a lost connection would.
    pub(super) fn is_left_by(&mut self, signal: StopSignal, phase: Phase) -> bool {
        let is_left = signal == StopSignal::Hangup && phase == Phase::Prompt && self.home.is_daemon();
        if is_left {
            self.stop = self.stop.or(Some(Stop::Person));
        }
        is_left
    }

    fn time_is_up(&self) -> String {
        let limit = self.words.limit.map_or(Wait::Never, Wait::After);
        format!("the time is up (--timeout {limit})")
    }

    /// What is said of an end, behind why it was stopped.
    pub(super) fn with_stop(&self, text: String) -> String {
        match self.stop {
            Some(Stop::Timeout) => format!("{}: {text}", self.time_is_up()),
            Some(Stop::Person) | None => text,
        }
    }

    /// It was left before anything was answered; `more` is what to say of that.
    pub(super) fn left(&self, more: Option<String>) -> Failure {
        let why = match self.stop {
            Some(Stop::Timeout) => self.time_is_up(),
            Some(Stop::Person) | None => "interrupted".to_owned(),
        };
        let text = more.map_or_else(|| why.clone(), |more| format!("{why}; {more}"));
        match verdict(Turn::Left, self.stop, self.refused) {
            Some(code) => Failure::Of(code, text),
            None => Failure::Failed(text),
        }
    }
}
