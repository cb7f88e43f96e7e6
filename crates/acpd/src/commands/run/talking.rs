//! What is asked of the host, one request after the other, and what happens meanwhile.

use super::conversation::Conversation;
use super::show::Show;
use super::{CLIENT, Home};
use crate::client::Incoming;
use crate::exit::Failure;
use crate::runtime::if_any;
use crate::signals::StopSignals;
use crate::verdict::Stop;
use crate::view::TICK;
use acpd_host::{META, method};
use acpd_wire::member;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use tokio::time::Instant;

/// What the host is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Initialize,
    New,
    Prompt,
}

impl Conversation {
    /// Goes on until the turn is over, or the output is not read any more.
    pub(super) async fn talk(&mut self, cwd: &Path, signals: &mut StopSignals) -> Result<(), Failure> {
        let mut params = json!({
            "protocolVersion": 1,
            "clientCapabilities": {
                "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
                // A person can be told what to type.
                "auth": {"terminal": true},
                "_meta": {META: {"terminals": true}},
            },
            "clientInfo": {"name": CLIENT, "version": env!("CARGO_PKG_VERSION")},
        });
        if let Home::Here(_) = self.home {
            // So that what is declined can be told. In a daemon another client may have a better answer.
            params["clientCapabilities"]["elicitation"] = json!({"form": {}, "url": {}});
        }
        let asked = self.request(Phase::Initialize, method::INITIALIZE, &params, signals).await?;
        let Some(known) = asked else { return Ok(()) };
        self.know_agent(&known["_meta"][META]["agent"]);
        self.auth_methods = known["authMethods"].clone();
        if let Some(view) = self.show.view() {
            view.started(known.get("agentInfo"), self.begun.elapsed())?;
        }
        self.begun = Instant::now();
        let mut params = json!({"cwd": cwd, "mcpServers": []});
        if let Some(mode) = self.words.mode {
            params["_meta"] = json!({META: {"permissionMode": mode.as_str()}});
        }
        let asked = self.request(Phase::New, method::SESSION_NEW, &params, signals).await?;
        let Some(created) = asked else { return Ok(()) };
        self.session = created["sessionId"].as_str().map(str::to_owned);
        if self.stop.is_some() {
            self.outcome = Some(Err(self.left(None)));
            return Ok(());
        }
        let params =
            json!({"sessionId": self.session, "prompt": [{"type": "text", "text": self.words.prompt}]});
        match self.request(Phase::Prompt, method::SESSION_PROMPT, &params, signals).await? {
            Some(ended) => self.turn_ended(ended["stopReason"].as_str().unwrap_or("unknown")),
            None => Ok(()),
        }
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
                    Some(Incoming::Answer { id, outcome: Ok(result) }) if id == asked => return Ok(Some(result)),
                    Some(Incoming::Answer { id, outcome: Err(error) }) if id == asked => {
                        self.failed(phase, &error)?;
                        false
                    }
                    Some(Incoming::Answer { .. }) => true,
                    Some(Incoming::Notification { method, params }) => {
                        self.notified(&method, &params).await?;
                        true
                    }
                    Some(Incoming::Request { id, method, params }) => {
                        self.requested(id, &method, &params).await?;
                        true
                    }
                },
                _ = ticks.tick() => {
                    let elapsed = self.elapsed();
                    if let Some(view) = self.show.view() {
                        view.tick(elapsed)?;
                    }
                    true
                }
                typed = self.questions.typed() => !self.pressed(typed).await? || self.stop(Stop::Person, phase).await?,
                _ = signals.next() => self.stop(Stop::Person, phase).await?,
                _ = if_any(self.deadline.map(tokio::time::sleep_until)) => self.stop(Stop::Timeout, phase).await?,
            };
            if !goes_on {
                return Ok(None);
            }
        }
    }

    pub(super) async fn notified(&mut self, method: &str, params: &[u8]) -> Result<(), Failure> {
        match method {
            method::SESSION_UPDATE if self.outcome.is_none() => self.update(params),
            method::TERMINAL if self.outcome.is_none() => self.terminal(params),
            method::CANCEL_REQUEST => self.withdrawn(params).await,
            _ => Ok(()),
        }
    }

    fn update(&mut self, params: &[u8]) -> Result<(), Failure> {
        let raw: Option<&RawValue> = serde_json::from_slice(params).ok();
        let Some(update) = raw.and_then(|raw| member(raw, "update")) else { return Ok(()) };
        match &mut self.show {
            Show::View(view) => view.update(update.get()).map_err(Failure::from),
            Show::Json(out) => {
                writeln!(out, "{}", update.get()).and_then(|()| out.flush()).map_err(Failure::from)
            }
        }
    }

    /// With `--json` there are updates only.
    fn terminal(&mut self, params: &[u8]) -> Result<(), Failure> {
        match (&mut self.show, serde_json::from_slice(params)) {
            (Show::View(view), Ok(params)) => view.terminal(&params).map_err(Failure::from),
            _ => Ok(()),
        }
    }
}
