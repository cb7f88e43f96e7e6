//! Events of the turn that are still on their way when its prompt is answered: answer and events come by two connections, and
//! each of them may be lost and found again by itself.
//!
//! Invariant: a turn counts as shown when its recorded end was, or all that is recorded of the session.

use super::conversation::Conversation;
use super::feed::Feed;
use super::lines::ErrorLine;
use crate::client::Incoming;
use crate::exit::{Code, Failure};
use crate::runtime::if_any;
use crate::signals::StopSignals;
use crate::verdict::{Stop, Turn, verdict};
use crate::view::short_id;
use std::time::Duration;
use tokio::time::Instant;

/// The time that recorded events may take to come here.
pub(super) const CATCHES_UP: Duration = Duration::from_secs(10);

impl Conversation {
    /// Takes the events that are recorded. Whether all of the turn was shown; while the next event does not come, it is waited
    /// for `patience`, unless the person or the time wants to leave.
    pub(super) async fn catch_up(
        &mut self,
        patience: Duration,
        signals: &mut StopSignals,
    ) -> Result<bool, Failure> {
        let Some(session) = self.session.clone() else { return Ok(true) };
        // Of a daemon that is away only what is worth the wait is asked again.
        let (mut count, mut last, mut is_away) = (self.home.count_events(&session, false), None, false);
        let (mut heard_at, mut hears) = (Instant::now(), true);
        while last.is_none_or(|last| self.late.last() < last)
            && let Some(feed) = &mut self.feed
        {
            if is_away && self.turn.is_over() {
                break;
            }
            // Behind the end of the turn there is little to wait for.
            let patience = if self.turn.is_over() { patience.min(CATCHES_UP) } else { patience };
            tokio::select! {
                event = feed.next() => {
                    heard_at = Instant::now();
                    self.recorded(event)?;
                }
                recorded = &mut count, if last.is_none() => match recorded {
                    Some(recorded) => last = Some(recorded),
                    None if is_away || patience <= CATCHES_UP => break,
                    None => (count, is_away) = (self.home.count_events(&session, true), true),
                },
                incoming = self.client.next(), if hears => match incoming {
                    Some(Incoming::News(news)) => self.say(&news)?,
                    Some(_) => {}
                    None => hears = false,
                },
                () = tokio::time::sleep_until(heard_at + patience) => break,
                () = signals.next() => {
                    self.stop = self.stop.or(Some(Stop::Person));
                    break;
                }
                () = if_any(self.deadline.map(tokio::time::sleep_until)) => {
                    self.stop = self.stop.or(Some(Stop::Timeout));
                    break;
                }
            }
        }
        self.feed = None::<Feed>;
        Ok(self.turn.is_over() || last.is_some_and(|last| self.late.last() >= last))
    }

    /// The turn has ended, and its events were not shown to their end: that is no success.
    pub(super) fn report_incomplete(&mut self) {
        self.forget_questions();
        let shown = self.session.as_deref().map(short_id).unwrap_or_default();
        let text = self.with_stop(format!(
            "the turn has ended, and the daemon was lost before all of it was shown; `acpd sessions events {shown}{}` shows it",
            self.words.reach
        ));
        self.result.error = Some(ErrorLine { message: text.clone(), ..ErrorLine::default() });
        let code = verdict(Turn::Left, self.stop, self.refused).unwrap_or(Code::Failed);
        self.outcome = Some(Err(Failure::Of(code, text)));
    }
}
