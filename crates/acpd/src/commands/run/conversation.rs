//! `acpd run` from the connection to the end: who takes part, what is known so far, and what came of it.
//!
//! Owned by the command. Not here: what is asked and what comes (`talking.rs`), what stops it (`stopping.rs`), how it is
//! left (`ending_here.rs`, `leaving.rs`).

use super::Words;
use super::catching_up::CATCHES_UP;
use super::feed::Feed;
use super::home::Home;
use super::late::Late;
use super::lines::{ErrorLine, Line, ResultLine};
use super::own_turn::OwnTurn;
use super::questions::Questions;
use super::show::{Lines, Show};
use super::target::Target;
use super::unanswered::Unanswered;
use crate::client::{Client, Incoming};
use crate::exit::Failure;
use crate::signals::StopSignals;
use crate::verdict::{Stop, Turn, verdict};
use crate::view::Screen;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// One prompt, from the connection to its end.
pub(super) struct Conversation {
    pub(super) client: Client,
    pub(super) home: Home,
    pub(super) show: Show,
    pub(super) questions: Questions,
    /// Answers that are told once the log has them.
    pub(super) unanswered: Unanswered,
    pub(super) agent: Option<String>,
    pub(super) words: Words,
    pub(super) session: Option<String>,
    /// Its events.
    pub(super) feed: Option<Feed>,
    /// What waits for them.
    pub(super) late: Late,
    /// The turn of the prompt.
    pub(super) turn: OwnTurn,
    /// The prompts before it in a session that others prompt too, until that was said.
    pub(super) in_line: u64,
    /// What a program is told at the end.
    pub(super) result: ResultLine,
    /// The ways to log in that the agent names.
    pub(super) auth_methods: Value,
    /// What the agent supports.
    pub(super) capabilities: Value,
    /// What the agent asked before a chat has begun. The host bounds how much there is.
    pub(super) early: Vec<Incoming>,
    pub(super) begun: Instant,
    /// When it is stopped, or left if it does not stop.
    pub(super) deadline: Option<Instant>,
    /// What stopped it from this side.
    pub(super) stop: Option<Stop>,
    /// A permission was refused.
    pub(super) refused: bool,
    /// The number of its last event before the prompt.
    pub(super) before: u64,
    /// The session was live before, and lives on.
    pub(super) joined: bool,
    /// The session was there before.
    pub(super) resumed: bool,
    /// The session's run is over: there is nothing to close.
    pub(super) ended: bool,
    /// The output is not read any more.
    pub(super) unread: bool,
    pub(super) outcome: Option<Result<(), Failure>>,
}

impl Conversation {
    pub(super) fn new(client: Client, home: Home, words: Words, agent: Option<String>, cwd: &Path) -> Self {
        let screen = Screen::of_process();
        let questions = Questions::new(words.format, screen);
        let show = match words.chat {
            Some(_) => Show::chat(cwd),
            None => Show::new(words.format, screen, cwd),
        };
        let deadline = words.limit.map(|limit| Instant::now() + limit);
        Self {
            client,
            home,
            show,
            questions,
            unanswered: Unanswered::default(),
            agent,
            words,
            session: None,
            feed: None,
            late: Late::default(),
            turn: OwnTurn::new(uuid::Uuid::new_v4().to_string()),
            in_line: 0,
            result: ResultLine::default(),
            auth_methods: Value::Null,
            capabilities: Value::Null,
            early: Vec::new(),
            begun: Instant::now(),
            deadline,
            stop: None,
            refused: false,
            before: 0,
            joined: false,
            resumed: false,
            ended: false,
            unread: false,
            outcome: None,
        }
    }

    /// Goes on until it is over, and tells how it ended.
    pub(super) async fn hold(&mut self, target: Target, signals: &mut StopSignals) -> Result<(), Failure> {
        let outcome = self.hold_on(target, signals).await;
        if self.show.lines().is_none() || self.unread || matches!(outcome, Err(Failure::Unread(_))) {
            return outcome;
        }
        let mut result = std::mem::take(&mut self.result);
        result.session_id = self.session.take();
        if let (None, None, Err(failure)) = (&result.stop_reason, &result.error, &outcome) {
            result.error = Some(ErrorLine { message: failure.to_string(), ..ErrorLine::default() });
        }
        Lines::write(&Line::Result(Box::new(result)))?;
        outcome
    }

    async fn hold_on(&mut self, target: Target, signals: &mut StopSignals) -> Result<(), Failure> {
        // A session that is live has its agent.
        if let (false, Some(view)) = (target.is_live(), self.show.view()) {
            view.starting(self.agent.as_deref())?;
        }
        let talked = match self.talk(target, signals).await {
            Ok(()) if self.feed.is_some() => self.catch_up(CATCHES_UP, signals).await.map(drop),
            talked => talked,
        };
        self.result.duration_ms = u64::try_from(self.took().as_millis()).unwrap_or(u64::MAX);
        self.forget_questions();
        match self.home {
            Home::Here(_) => {
                talked?;
                self.end_here(signals).await?;
            }
            Home::Daemon { .. } => {
                if let Err(failure) = talked {
                    self.unread = true;
                    match failure {
                        // The turn is left to the daemon, as with a lost connection.
                        Failure::HungUp(_) => self.stop = self.stop.or(Some(Stop::Person)),
                        failure => self.outcome = Some(Err(failure)),
                    }
                }
                self.leave_daemon(signals).await?;
            }
        }
        match self.outcome.take() {
            Some(outcome) => outcome,
            None => {
                if let Some(view) = self.show.view() {
                    view.interrupted()?;
                }
                Err(self.left(None))
            }
        }
    }

    /// Since the turn began.
    pub(super) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// How long the turn took, as every client can read it.
    pub(super) fn took(&self) -> Duration {
        self.turn.took().unwrap_or_else(|| self.elapsed())
    }

    /// The prompt waits in line behind those of others, or was taken back there.
    pub(super) fn waits_in_line(&self) -> bool {
        self.joined && self.feed.is_some() && self.turn.is_to_come()
    }

    pub(super) fn announce(&mut self, text: &str) -> Result<(), Failure> {
        match &mut self.show {
            _ if self.unread => Ok(()),
            Show::Text(view) => view.announce(text).map_err(Failure::from),
            Show::Quiet(_) | Show::Json(_) => Ok(()),
        }
    }

    pub(super) fn turn_ended(&mut self, stop_reason: &str) -> Result<(), Failure> {
        self.forget_questions();
        let took = self.took();
        match self.show.view() {
            Some(_) if self.joined && self.turn.is_to_come() && stop_reason == "cancelled" => {
                self.announce("the prompt was taken back before its turn began")?;
            }
            Some(view) if self.stop.is_some() => view.cut_turn_ended(stop_reason, took)?,
            Some(view) => view.turn_ended(stop_reason, took)?,
            None => {}
        }
        let code = verdict(Turn::Ended(stop_reason), self.stop, self.refused);
        self.result.stop_reason = Some(stop_reason.to_owned());
        self.outcome = Some(match (code, self.show.tells()) {
            (None, _) => Ok(()),
            (Some(code), true) => Err(Failure::Told(code)),
            (Some(code), false) => {
                let text = format!("the turn ended with stop reason {stop_reason}");
                Err(Failure::Of(code, self.with_stop(text)))
            }
        });
        Ok(())
    }
}
