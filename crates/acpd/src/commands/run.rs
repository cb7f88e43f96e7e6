//! `acpd run`: one prompt through a hosted session, shown to a person or as JSON lines.

mod failing;
mod leaving;
mod questions;
mod standard_input;

use super::working_directory;
use crate::cli::Run;
use crate::client::{Client, Incoming};
use crate::daemon::Daemon;
use crate::exit::Failure;
use crate::hosting::{Hosted, Hosting, reach};
use crate::local_host::LocalHost;
use crate::signals::StopSignals;
use crate::verdict::{Stop, Turn, verdict};
use crate::view::{Screen, TICK, View};
use acpd_host::{META, PermissionMode, SessionId, method};
use acpd_wire::member;
use questions::Questions;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::io::{IsTerminal, Stderr, Stdout, Write};
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

pub(crate) async fn run(args: Run) -> Result<(), Failure> {
    let prompt = args.prompt(std::io::stdin().is_terminal()).map_err(clap_failure)?;
    let prompt = standard_input::whole(prompt).await?;
    let words = Words { prompt, json: args.json, mode: args.permission_mode };
    let reach = reach(&args.location);
    match Hosting::find(args.location).await? {
        Hosting::Here(config) => {
            let agent = args.agent.unwrap_or_else(|| config.server.default_agent.clone());
            config.agent(&agent).map_err(Failure::missing)?;
            let cwd = working_directory(args.cwd, true)?;
            let mut signals = StopSignals::listen()?;
            let local = LocalHost::open(&config).await?;
            let client = Client::connect(&local.host, &agent);
            let mut conversation = Conversation::new(client, Home::Here(local), words, Some(agent), &cwd);
            let outcome = conversation.hold(&cwd, &mut signals).await.map_err(Failure::or_read_enough);
            if let Home::Here(local) = conversation.home {
                drop(conversation.client);
                local.close(&mut signals).await;
            }
            outcome
        }
        Hosting::Daemon(hosted) => {
            let Hosted { daemon, configuration, .. } = *hosted;
            let cwd = working_directory(args.cwd, daemon.address().is_here())?;
            let link = daemon.link(args.agent.as_deref()).await?;
            let mut signals = StopSignals::listen()?;
            let client = Client::over(link, daemon.scope());
            let home = Home::Daemon { daemon: Box::new(daemon), reach, configuration };
            let mut conversation = Conversation::new(client, home, words, args.agent, &cwd);
            conversation.hold(&cwd, &mut signals).await.map_err(Failure::or_read_enough)
        }
    }
}

/// What it calls itself, also in the record of what it ended.
const CLIENT: &str = "acpd run";

/// What is said, and how.
struct Words {
    prompt: String,
    json: bool,
    mode: Option<PermissionMode>,
}

/// Who hosts the session.
enum Home {
    /// This process, for this conversation.
    Here(LocalHost),
    /// A daemon, which goes on without us.
    Daemon {
        daemon: Box<Daemon>,
        /// Whose agents it has.
        configuration: String,
        /// What to type for other commands to talk to it: flags, each with a space before it.
        reach: String,
    },
}

/// clap's own words, without its "error: ", which the exit adds.
fn clap_failure(error: clap::Error) -> Failure {
    let text = error.to_string();
    Failure::Usage(text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned())
}

/// Where things are shown.
enum Show {
    View(Box<View<Stdout, Stderr>>),
    Json(Stdout),
}

/// What the host is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Initialize,
    New,
    Prompt,
}

struct Conversation {
    client: Client,
    home: Home,
    show: Show,
    questions: Questions,
    agent: Option<String>,
    words: Words,
    session: Option<String>,
    /// The ways to log in that the agent names.
    auth_methods: Value,
    begun: Instant,
    /// What stopped it from this side.
    stop: Option<Stop>,
    /// A permission was refused.
    refused: bool,
    /// The session's run is over: there is nothing to close.
    ended: bool,
    /// The output is not read any more.
    unread: bool,
    outcome: Option<Result<(), Failure>>,
}

impl Conversation {
    fn new(client: Client, home: Home, words: Words, agent: Option<String>, cwd: &Path) -> Self {
        let screen = Screen::of_process();
        let questions = Questions::new(words.json, screen);
        let show = match words.json {
            true => Show::Json(std::io::stdout()),
            false => {
                let view = View::new(std::io::stdout(), std::io::stderr(), screen, Some(cwd.to_owned()));
                Show::View(Box::new(view))
            }
        };
        Self {
            client,
            home,
            show,
            questions,
            agent,
            words,
            session: None,
            auth_methods: Value::Null,
            begun: Instant::now(),
            stop: None,
            refused: false,
            ended: false,
            unread: false,
            outcome: None,
        }
    }

    async fn hold(&mut self, cwd: &Path, signals: &mut StopSignals) -> Result<(), Failure> {
        if let Show::View(view) = &mut self.show {
            view.starting(self.agent.as_deref())?;
        }
        let talked = self.talk(cwd, signals).await;
        self.forget_questions();
        match self.home {
            Home::Here(_) => {
                talked?;
                self.end_here(signals).await?;
            }
            Home::Daemon { .. } => {
                if let Err(failure) = talked {
                    self.unread = true;
                    self.outcome = Some(Err(failure));
                }
                self.leave_daemon(signals).await?;
            }
        }
        match self.outcome.take() {
            Some(outcome) => outcome,
            None => {
                if let Show::View(view) = &mut self.show {
                    view.interrupted()?;
                }
                Err(self.left("interrupted".to_owned()))
            }
        }
    }

    /// Goes on until the turn is over, or the output is not read any more.
    async fn talk(&mut self, cwd: &Path, signals: &mut StopSignals) -> Result<(), Failure> {
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
        if let Show::View(view) = &mut self.show {
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
            self.outcome = Some(Err(self.left("interrupted".to_owned())));
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
                    if let Show::View(view) = &mut self.show {
                        view.tick(elapsed)?;
                    }
                    true
                }
                typed = self.questions.typed() => !self.pressed(typed).await? || self.interrupt(phase).await?,
                _ = signals.next() => self.interrupt(phase).await?,
            };
            if !goes_on {
                return Ok(None);
            }
        }
    }

    /// The host ends the session before the connection closes.
    async fn end_here(&mut self, signals: &mut StopSignals) -> Result<(), Failure> {
        self.client.hang_up();
        loop {
            tokio::select! {
                incoming = self.client.next() => match incoming {
                    Some(Incoming::Notification { method, params }) => self.notified(&method, &params).await?,
                    Some(_) => {}
                    None => break,
                },
                _ = signals.next() => if let Home::Here(local) = &self.home {
                    local.host.agents().kill_all();
                },
            }
        }
        let (Home::Here(local), Some(session)) = (&self.home, &self.session) else { return Ok(()) };
        // What cannot be looked at any more is not told.
        let Some(id) = SessionId::parse(session) else { return Ok(()) };
        let ended = local.host.inspect(&id, None).await.ok().and_then(|summary| summary.termination);
        let ended = ended.map(|info| json!(info));
        self.report_leftovers(ended.as_ref())
    }

    /// Processes that were left behind, when nothing else was said of the end.
    fn report_leftovers(&mut self, ended: Option<&Value>) -> Result<(), Failure> {
        match ended.is_some_and(|info| info["leaked"] == json!(true)) && !self.ended {
            true => self.announce("processes that the agent left behind were killed"),
            false => Ok(()),
        }
    }

    /// Since the turn began, without the time that the person was asked.
    fn elapsed(&self) -> Duration {
        self.begun.elapsed().saturating_sub(self.questions.asked())
    }

    /// The person wants the turn to end; the second time, at once. Whether it goes on until then.
    async fn interrupt(&mut self, phase: Phase) -> Result<bool, Failure> {
        // A session without any client would live on in the daemon.
        let is_to_come = matches!((&self.home, phase), (Home::Daemon { .. }, Phase::New));
        let before = self.stop;
        self.stop = before.or(Some(Stop::Person));
        if before.is_some() || !(is_to_come || self.session.is_some()) {
            if let Home::Here(local) = &self.home {
                local.host.agents().kill_all();
            }
            return Ok(false);
        }
        if is_to_come {
            self.announce("stopping; once more to leave at once")?;
            return Ok(true);
        }
        self.client.notify(method::SESSION_CANCEL, &json!({"sessionId": self.session})).await;
        self.cancel_questions().await?;
        self.announce(match self.home {
            Home::Here(_) => "cancelling; Ctrl-C stops at once",
            Home::Daemon { .. } => "cancelling; Ctrl-C leaves while it goes on",
        })?;
        Ok(true)
    }

    async fn notified(&mut self, method: &str, params: &[u8]) -> Result<(), Failure> {
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

    fn announce(&mut self, text: &str) -> Result<(), Failure> {
        match &mut self.show {
            _ if self.unread => Ok(()),
            Show::View(view) => view.announce(text).map_err(Failure::from),
            Show::Json(_) => Ok(()),
        }
    }

    fn turn_ended(&mut self, stop_reason: &str) -> Result<(), Failure> {
        self.forget_questions();
        let elapsed = self.elapsed();
        if let Show::View(view) = &mut self.show {
            view.turn_ended(stop_reason, elapsed)?;
        }
        let code = verdict(Turn::Ended(stop_reason), self.stop, self.refused);
        self.outcome = Some(match (code, &self.show) {
            (None, _) => Ok(()),
            (Some(code), Show::View(_)) => Err(Failure::Told(code)),
            (Some(code), Show::Json(_)) => {
                Err(Failure::Of(code, format!("the turn ended with stop reason {stop_reason}")))
            }
        });
        Ok(())
    }

    /// It was left before anything was answered.
    fn left(&self, text: String) -> Failure {
        match verdict(Turn::Left, self.stop, self.refused) {
            Some(code) => Failure::Of(code, text),
            None => Failure::Failed(text),
        }
    }
}
