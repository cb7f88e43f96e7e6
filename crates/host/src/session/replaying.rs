//! Keeps out of the log what an agent replays behind its answer to `session/load` (SE-7).
//!
//! Part of the session task, for runs that activated a session. Reads the history only as far as the replay goes, and
//! stops with it. Invariant: nothing that is new is lost; what is not certain yet is held until it is, and comes in its
//! order before the turn that it belongs to ends.

use super::performer::Performer;
use super::replay::{Replay, Said, Verdict};
use super::task::SessionTask;
use crate::agent::FromAgent;
use crate::chain::chain;
use acpd_eventlog::{Cursor, CursorError, EventLog};
use bytes::Bytes;

/// What is held because it is not certain yet, in bytes. Over it, it counts as new.
const HELD: usize = 1024 * 1024;

/// The history of a session that was activated, and how far its agent has told it again.
pub(crate) struct Past {
    log: EventLog,
    id: String,
    /// The last event of the history.
    until: u64,
    /// None before it is needed.
    cursor: Option<Cursor>,
    replay: Replay,
    held: Vec<FromAgent>,
    held_bytes: usize,
}

impl Past {
    /// The events of session `id` up to `until`.
    pub(crate) fn new(log: EventLog, id: String, until: u64) -> Self {
        Self { log, id, until, cursor: None, replay: Replay::new(), held: Vec::new(), held_bytes: 0 }
    }

    /// Follows what the agent told before its answer; all of it is replay.
    async fn follow(&mut self, lines: &[Bytes]) {
        for line in lines {
            self.judge(&Said::of_line(line)).await;
        }
    }

    /// What is new of some messages. `is_echo` says whether a line repeats the running prompt.
    async fn sift(
        &mut self,
        messages: Vec<FromAgent>,
        is_echo: impl Fn(&[u8]) -> bool + Send + Sync,
    ) -> Vec<FromAgent> {
        self.replay.taken();
        let mut news = Vec::with_capacity(messages.len());
        for message in messages {
            let line = match &message {
                FromAgent::Notification { line, update: Some(_), .. } if !self.replay.is_over() => line,
                // An answer ends what was said in its turn, and a question of the agent's belongs behind it.
                FromAgent::Answer { .. } | FromAgent::Request { .. } | FromAgent::NotReading { .. } => {
                    self.release_held(&mut news);
                    news.push(message);
                    continue;
                }
                _ => {
                    news.push(message);
                    continue;
                }
            };
            let bytes = line.len();
            let verdict = match Said::of_line(line) {
                Said::Beside => {
                    news.push(message);
                    continue;
                }
                // It tells of the prompt that runs, not of an old one that was the same.
                _ if is_echo(line) => self.replay.end_with_news(),
                said => self.judge(&said).await,
            };
            match verdict {
                Verdict::Replay => drop(self.take_held()),
                Verdict::Perhaps => {
                    self.held.push(message);
                    self.held_bytes += bytes;
                    if self.held_bytes > HELD {
                        self.release_held(&mut news);
                    }
                }
                Verdict::AfterReplay => {
                    drop(self.take_held());
                    news.push(message);
                }
                Verdict::News | Verdict::More => {
                    news.append(&mut self.take_held());
                    news.push(message);
                }
            }
        }
        news
    }

    /// What is held is new after all, and so is what comes.
    fn release_held(&mut self, news: &mut Vec<FromAgent>) {
        if !self.held.is_empty() {
            self.replay.end();
            news.append(&mut self.take_held());
        }
    }

    /// Whether something is neither news nor replay yet.
    pub(super) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    fn take_held(&mut self) -> Vec<FromAgent> {
        self.held_bytes = 0;
        std::mem::take(&mut self.held)
    }

    async fn judge(&mut self, said: &Said) -> Verdict {
        loop {
            match self.replay.judge(said) {
                Verdict::More => {
                    if let Err(error) = self.feed().await {
                        tracing::warn!(
                            error = chain(&error),
                            "a replay cannot be told from news without the history"
                        );
                        self.replay.end();
                    }
                }
                verdict => return verdict,
            }
        }
    }

    /// Reads on in the history.
    async fn feed(&mut self) -> Result<(), CursorError> {
        let cursor = match &mut self.cursor {
            Some(cursor) => cursor,
            None => self.cursor.insert(self.log.cursor(&self.id, 0).await?),
        };
        // The session is live: at the end the cursor would wait for more.
        let block = if cursor.position() < self.until { cursor.next().await? } else { None };
        match block {
            Some(block) => {
                for event in block.events().take_while(|event| event.seq <= self.until) {
                    if let Ok(event) = acpd_record::Event::read(event.kind, event.payload) {
                        self.replay.feed(&event);
                    }
                }
            }
            None => self.replay.fed(),
        }
        Ok(())
    }
}

impl SessionTask {
    /// What the agent told of the conversation before its answer.
    pub(super) async fn told_before(&mut self, lines: &[Bytes]) {
        if let Some(past) = self.past() {
            past.follow(lines).await;
        }
    }

    /// What is new of what the agent says.
    pub(super) async fn without_replay(&mut self, messages: Vec<FromAgent>) -> Vec<FromAgent> {
        let Some(mut past) = self.past().take() else { return messages };
        if self.live().with(Performer::was_prompted) == Some(true) {
            past.replay.prompted();
        }
        let is_echo = |line: &[u8]| self.live().with(|run| run.core().is_echo(line)) == Some(true);
        let news = past.sift(messages, is_echo).await;
        if !past.replay.is_over() {
            *self.past() = Some(past);
        }
        news
    }

    /// What is not certain belongs to a turn that is given up now, and is recorded before its end.
    pub(super) fn held_until_cancel(&mut self) -> Vec<FromAgent> {
        let mut news = Vec::new();
        let now = Performer::now().at;
        let deadline = self.live().with(|run| run.core().cancel_deadline()).flatten();
        let given_up = deadline.is_some_and(|at| at <= now);
        if let Some(past) = self.past().as_mut().filter(|_| given_up) {
            past.release_held(&mut news);
        }
        news
    }

    /// The run is over: what was not certain is recorded.
    pub(super) fn held_at_the_end(&mut self) -> Vec<FromAgent> {
        self.past().take().map(|mut past| past.take_held()).unwrap_or_default()
    }
}
