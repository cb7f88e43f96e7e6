//! What is asked of the host, one request after the other, and what happens meanwhile.

use super::catching_up::CATCHES_UP;
use super::conversation::Conversation;
use super::feed::Feed;
use super::home::Home;
use super::lines::{Line, SessionLine};
use super::settings::Offer;
use super::show::Lines;
use super::target::Target;
use crate::clean;
use crate::client::Incoming;
use crate::daemon::Event;
use crate::exit::Failure;
use crate::runtime::if_any;
use crate::signals::StopSignals;
use crate::verdict::Stop;
use crate::view::{TICK, short_id, span};
use acpd_host::{META, method};
use acpd_record::{Reattached, Stalled};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tokio::time::Instant;

/// What the host is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Initialize,
    New,
    Resume,
    Set,
    Prompt,
}

impl Conversation {
    /// Goes on until the turn is over, or the output is not read any more.
    pub(super) async fn talk(&mut self, target: Target, signals: &mut StopSignals) -> Result<(), Failure> {
        let mut params = json!({
            "protocolVersion": 1,
            "clientCapabilities": {
                "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
                // A person can be told what to type.
                "auth": {"terminal": true},
                "_meta": {META: {"terminals": true}},
            },
            "clientInfo": {"name": self.words.name, "version": env!("CARGO_PKG_VERSION")},
        });
        if matches!(self.home, Home::Here(_)) || self.words.chat.is_some() {
            // A chat asks them, `run` tells that it declines. In a daemon another client may have a better answer.
            params["clientCapabilities"]["elicitation"] = json!({"form": {}, "url": {}});
        }
        if let Some(session) = target.live() {
            // Its process answers, and none is started for that.
            params["_meta"] = json!({META: {"joins": session}});
        }
        let asked = self.request(Phase::Initialize, method::INITIALIZE, &params, signals).await?;
        let Some(known) = asked else { return Ok(()) };
        self.know_agent(&known["_meta"][META]["agent"]);
        self.auth_methods = known["authMethods"].clone();
        self.capabilities = known["agentCapabilities"].clone();
        if self.home.is_here() {
            let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            let more = self.words.directories.iter().map(PathBuf::as_path);
            self.words.roots = std::iter::once(target.cwd()).chain(more).map(real).collect();
        }
        if let Some(refused) = self.words.refused(&known["agentCapabilities"]) {
            self.outcome = Some(Err(Failure::Usage(refused)));
            return Ok(());
        }
        if let Some(view) = self.show.view() {
            match target.is_live() {
                true => view.runs()?,
                false => view.started(known.get("agentInfo"), self.begun.elapsed())?,
            }
        }
        self.begun = Instant::now();
        if !self.take_up(target, signals).await? {
            return Ok(());
        }
        if self.stop.is_some() {
            self.outcome = Some(Err(self.left(None)));
            return Ok(());
        }
        if let Some(chatting) = self.words.chat.take() {
            return self.chat(chatting, signals).await;
        }
        if self.words.detached.is_some() {
            return self.detach().await;
        }
        let meta = json!({META: {"idempotencyKey": self.turn.key()}});
        let params = json!({"sessionId": self.session, "prompt": self.words.blocks(&self.capabilities), "_meta": meta});
        match self.request(Phase::Prompt, method::SESSION_PROMPT, &params, signals).await? {
            Some(mut ended) => {
                self.result.usage = Some(ended["usage"].take()).filter(Value::is_object);
                let stop_reason = ended["stopReason"].as_str().unwrap_or("unknown");
                self.learn_of_refusals(stop_reason).await;
                self.turn_ended(stop_reason)
            }
            None => Ok(()),
        }
    }

    /// Creates the session, or goes on with one. Whether there is one to prompt.
    async fn take_up(&mut self, target: Target, signals: &mut StopSignals) -> Result<bool, Failure> {
        let (cwd, tells) = (target.cwd().to_owned(), target.is_found() && self.words.chat.is_none());
        let found = match target.session(&self.home, self.agent.as_deref()).await {
            Ok(found) => found,
            Err(failure) => {
                self.outcome = Some(Err(failure));
                return Ok(false);
            }
        };
        let mut params = json!({"cwd": cwd, "mcpServers": std::mem::take(&mut self.words.servers)});
        if !self.words.directories.is_empty() {
            params["additionalDirectories"] = json!(self.words.directories);
        }
        if let Some(meta) = self.words.meta() {
            params["_meta"] = json!({META: meta});
        }
        let (answer, after) = match found {
            None => {
                let asked = self.request(Phase::New, method::SESSION_NEW, &params, signals).await?;
                let Some(created) = asked else { return Ok(false) };
                self.session = created["sessionId"].as_str().map(str::to_owned);
                if self.session.is_none() {
                    // It cannot be closed from here.
                    let text = "the answer to session/new does not say which session was created; `acpd sessions list` has it";
                    self.outcome = Some(Err(Failure::Failed(text.to_owned())));
                    return Ok(false);
                }
                (created, 0)
            }
            Some(session) => {
                if tells {
                    let title = session.title.as_deref().map(|title| format!(", {}", clean::line(title, 60)));
                    let id = short_id(&session.session_id);
                    self.announce(&format!("goes on with session {id}{}", title.unwrap_or_default()))?;
                }
                params["sessionId"] = json!(session.session_id);
                let asked = self.request(Phase::Resume, method::SESSION_RESUME, &params, signals).await?;
                let Some(resumed) = asked else { return Ok(false) };
                (self.joined, self.resumed) = (!session.ended, true);
                if self.joined {
                    self.turn.joins();
                    let known = &resumed["_meta"][META];
                    let waiting = known["promptsWaiting"].as_u64().unwrap_or_default();
                    self.in_line = waiting + u64::from(known["turnActive"] == true);
                }
                let id = self.session.insert(session.session_id);
                // What was before is not told again.
                let before = tokio::time::timeout(CATCHES_UP, self.home.count_events(id, true)).await;
                (resumed, before.ok().flatten().unwrap_or_default())
            }
        };
        self.before = after;
        self.tell_session(&cwd).await?;
        if self.set(Offer::of(&answer), signals).await? {
            return Ok(true);
        }
        if !self.resumed && self.outcome.is_some() {
            self.discard(signals).await;
        }
        Ok(false)
    }

    /// Deletes the session that was made for a prompt that is not sent: it would stand in lists without a title. A client that
    /// may not do that, and a host that is gone, leave it.
    async fn discard(&mut self, signals: &mut StopSignals) {
        let Some(session) = self.session.clone() else { return };
        if self
            .ask_about(method::SESSION_DELETE, &session, signals)
            .await
            .is_some_and(|answer| answer.is_ok())
        {
            self.session = None;
        }
    }

    /// Sets the session as it is wished. Whether it is so.
    async fn set(&mut self, mut offer: Offer, signals: &mut StopSignals) -> Result<bool, Failure> {
        for setting in std::mem::take(&mut self.words.settings) {
            let change = match offer.change(&setting) {
                Ok(Some(change)) => change,
                Ok(None) => continue,
                Err(wrong) => {
                    self.outcome = Some(Err(Failure::Usage(wrong)));
                    return Ok(false);
                }
            };
            let mut params = change.params;
            params["sessionId"] = json!(self.session);
            let Some(answer) = self.request(Phase::Set, change.method, &params, signals).await? else {
                return Ok(false);
            };
            offer.update(&answer);
        }
        Ok(true)
    }

    /// Asks the host for something, and shows what happens meanwhile. None when there is no answer to go on with.
    async fn request(
        &mut self,
        phase: Phase,
        method: &str,
        params: &Value,
        signals: &mut StopSignals,
    ) -> Result<Option<Value>, Failure> {
        let asked = self.client.request(method, params).await;
        let mut ticks = tokio::time::interval(TICK);
        loop {
            let goes_on = tokio::select! {
                incoming = self.client.next() => match incoming {
                    None => false,
                    Some(Incoming::Answer { id, outcome }) if id == asked => {
                        return self.answered(phase, outcome, signals).await;
                    }
                    Some(incoming) => {
                        self.came(incoming).await?;
                        true
                    }
                },
                event = if_any(self.feed.as_mut().map(Feed::next)) => {
                    self.recorded(event)?;
                    self.take_late().await?;
                    true
                }
                _ = ticks.tick() => {
                    self.tick(phase)?;
                    true
                }
                typed = self.questions.typed() => {
                    !self.pressed(typed).await? || self.stop(Stop::Person, phase, asked).await?
                }
                signal = signals.next_one() => {
                    !self.is_left_by(signal, phase) && self.stop(Stop::Person, phase, asked).await?
                }
                _ = if_any(self.deadline.map(tokio::time::sleep_until)) => {
                    self.stop(Stop::Timeout, phase, asked).await?
                }
            };
            if !goes_on {
                return Ok(None);
            }
        }
    }

    /// What was asked for is answered. What was recorded of a turn before is shown before.
    async fn answered(
        &mut self,
        phase: Phase,
        outcome: Result<Value, Value>,
        signals: &mut StopSignals,
    ) -> Result<Option<Value>, Failure> {
        let is_success = outcome.as_ref().is_ok_and(|result| result["stopReason"] == "end_turn");
        let is_whole = match (phase, is_success) {
            (Phase::Prompt, true) => self.catch_up(self.home.patience(), signals).await?,
            (Phase::Prompt, false) => self.catch_up(CATCHES_UP, signals).await.map(|_| true)?,
            _ => true,
        };
        match outcome {
            Ok(_) if !is_whole => {
                self.report_incomplete();
                Ok(None)
            }
            Ok(result) => Ok(Some(result)),
            Err(error) => self.failed(phase, &error).map(|()| None),
        }
    }

    /// The host said something else.
    async fn came(&mut self, incoming: Incoming) -> Result<(), Failure> {
        match incoming {
            Incoming::Answer { .. } => Ok(()),
            Incoming::News(news) => self.say(&news),
            Incoming::Notification { method, params } if method != method::CANCEL_REQUEST => {
                self.notified(&method, &params)
            }
            // A chat asks when it has begun.
            incoming @ Incoming::Request { .. } if self.words.chat.is_some() => {
                self.early.push(incoming);
                Ok(())
            }
            incoming => {
                if let Incoming::Notification { params, .. } = &incoming {
                    // A question on the screen goes at once, one that waits for its events behind them.
                    self.withdrawn(params).await?;
                }
                let behind = self.recorded_so_far(self.feed.is_some()).await;
                self.late.push(behind, incoming);
                self.take_late().await
            }
        }
    }

    /// Looks at what the agent asks, as far as the events before it were shown. What it asks in the turn of another client is
    /// for other clients to answer.
    async fn take_late(&mut self) -> Result<(), Failure> {
        while let Some(incoming) = self.late.next(self.feed.is_some()) {
            match incoming {
                Incoming::Request { id, method, params } if self.feed.is_none() || self.turn.is_shown() => {
                    self.requested(id, &method, &params).await?;
                }
                Incoming::Notification { params, .. } => self.withdrawn(&params).await?,
                Incoming::Request { .. } | Incoming::Answer { .. } | Incoming::News(_) => {}
            }
        }
        Ok(())
    }

    /// The number of events of the session; none when they are not followed, so that nothing is waited for.
    pub(super) async fn recorded_so_far(&self, is_followed: bool) -> u64 {
        match &self.session {
            Some(session) if is_followed => {
                self.home.look(session).await.map_or(0, |session| session.event_count)
            }
            _ => 0,
        }
    }

    /// Time went by.
    fn tick(&mut self, phase: Phase) -> Result<(), Failure> {
        if phase == Phase::Prompt && self.waits_in_line() {
            return match std::mem::take(&mut self.in_line) {
                0 => Ok(()),
                before => {
                    self.say(&format!("the prompt waits in line, behind {before}; Ctrl-C takes it back"))
                }
            };
        }
        let elapsed = self.elapsed();
        match self.show.view() {
            Some(view) => view.tick(elapsed).map_err(Failure::from),
            None => Ok(()),
        }
    }

    /// Tells a program which session it is, and follows its events.
    async fn tell_session(&mut self, cwd: &Path) -> Result<(), Failure> {
        let Some(session) = &self.session else { return Ok(()) };
        if self.show.lines().is_some() {
            let (agent, cwd) = (self.agent.as_deref().unwrap_or_default(), cwd.to_string_lossy());
            Lines::write(&Line::Session(SessionLine { session_id: session, agent, cwd: &cwd }))?;
        }
        // Of a turn that goes on alone nothing is told, and a chat follows them itself.
        if self.words.detached.is_none() && self.words.chat.is_none() {
            self.feed = Feed::open(&self.home, session, self.before).await;
            // What was before counts as shown: a prompt that is taken back waits for no event.
            self.late.shown(self.before);
        }
        Ok(())
    }

    pub(super) fn recorded(&mut self, event: Option<Event>) -> Result<(), Failure> {
        let Some(event) = event else {
            self.feed = None;
            return Ok(());
        };
        self.late.shown(event.seq);
        let was_to_come = self.turn.is_to_come();
        let is_shown = self.turn.take(&event);
        if was_to_come && !self.turn.is_to_come() {
            self.begun = Instant::now();
        }
        if !is_shown {
            return Ok(());
        }
        self.show.event(&event)?;
        match self.unanswered.take(&event, self.words.name) {
            Some(outcome) => self.tell_unanswered(outcome),
            None => Ok(()),
        }
    }

    pub(super) fn notified(&mut self, method: &str, params: &[u8]) -> Result<(), Failure> {
        // Updates come as events.
        let is_told = self.outcome.is_none() && (self.feed.is_none() || self.turn.is_shown());
        match method {
            method::SESSION_STALLED if is_told => self.stalled(params),
            method::SESSION_REATTACHED if is_told => self.reattached(params),
            _ => Ok(()),
        }
    }

    /// A person may want to cancel what does not go on. That it goes on is to be seen.
    fn stalled(&mut self, params: &[u8]) -> Result<(), Failure> {
        match (self.show.view(), serde_json::from_slice::<Stalled>(params)) {
            (Some(view), Ok(stalled)) if !stalled.goes_on => {
                let silent = in_words(stalled.silent_ms);
                Ok(view.announce(&format!("nothing has come from the agent for {silent}; Ctrl-C cancels"))?)
            }
            _ => Ok(()),
        }
    }

    fn reattached(&mut self, params: &[u8]) -> Result<(), Failure> {
        match (self.show.view(), serde_json::from_slice::<Reattached>(params)) {
            (Some(view), Ok(Reattached { gap_ms })) => {
                let gap = in_words(gap_ms);
                Ok(view.announce(&format!("acpd was gone for {gap}; the agent went on"))?)
            }
            _ => Ok(()),
        }
    }
}

fn in_words(ms: u64) -> String {
    span(i64::try_from(ms / 1000).unwrap_or(i64::MAX))
}
