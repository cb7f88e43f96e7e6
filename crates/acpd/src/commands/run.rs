//! `acpd run`: one prompt through a hosted session, shown to a person or as JSON lines.

mod failing;
mod leaving;
mod questions;
mod standard_input;

use super::shown;
use crate::clean;
use crate::cli::{HostLocation, Run};
use crate::client::{Client, Incoming};
use crate::daemon::Daemon;
use crate::exit::Failure;
use crate::hosting::{Hosted, Hosting};
use crate::local_host::LocalHost;
use crate::signals::StopSignals;
use crate::view::{Screen, TICK, View};
use acpd_host::{META, PermissionMode, SessionId, method};
use acpd_wire::{codes, member};
use questions::Questions;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::io::{IsTerminal, Stderr, Stdout, Write};
use std::path::PathBuf;
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
            config.agent(&agent).map_err(|error| Failure::Usage(error.to_string()))?;
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

/// The flags that say which daemon it is.
fn reach(location: &HostLocation) -> String {
    let place = |flag: &str, path: &Option<PathBuf>| {
        path.as_ref().map(|path| format!(" {flag} {}", shown(&path.to_string_lossy()))).unwrap_or_default()
    };
    match &location.connect.connect {
        Some(url) => {
            let url = format!(" --connect {}", shown(url));
            url + &place("--token-file", &location.connect.token_file) + &place("--ca", &location.connect.ca)
        }
        None => place("--config", &location.config) + &place("--state-dir", &location.state_dir),
    }
}

/// clap's own words, without its "error: ", which the exit adds.
fn clap_failure(error: clap::Error) -> Failure {
    let text = error.to_string();
    Failure::Usage(text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned())
}

/// The directory for the session, as ACP can name it; one of another machine is not looked for.
fn working_directory(given: Option<PathBuf>, is_here: bool) -> Result<PathBuf, Failure> {
    let shown = given.clone().unwrap_or_else(|| ".".into());
    let wrong = |why: &dyn std::fmt::Display| Failure::Usage(format!("--cwd {}: {why}", shown.display()));
    let mut cwd = std::path::absolute(&shown).map_err(|error| wrong(&error))?;
    if is_here {
        cwd = std::fs::canonicalize(cwd).map_err(|error| wrong(&error))?;
        if !cwd.is_dir() {
            return Err(wrong(&"not a directory"));
        }
    }
    match cwd.to_str() {
        Some(_) => Ok(cwd),
        None => Err(Failure::Usage(format!(
            "no session can work in {}: the name of the directory is not UTF-8, and ACP has no other names",
            cwd.display()
        ))),
    }
}

/// Where things are shown.
enum Show {
    View(Box<View<Stdout, Stderr>>),
    Json(Stdout),
}

/// How far the conversation has come: the id of the request that is open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Initialize(u64),
    New(u64),
    Prompt(u64),
    Over,
}

struct Conversation {
    client: Client,
    home: Home,
    show: Show,
    questions: Questions,
    agent: Option<String>,
    prompt: String,
    permission_mode: Option<PermissionMode>,
    session: Option<String>,
    /// The ways to log in that the agent names.
    auth_methods: Value,
    begun: Instant,
    /// The person does not want it any more.
    interrupted: bool,
    /// The session's run is over: there is nothing to close.
    ended: bool,
    /// The output is not read any more.
    unread: bool,
    outcome: Option<Result<(), Failure>>,
}

impl Conversation {
    fn new(client: Client, home: Home, words: Words, agent: Option<String>, cwd: &std::path::Path) -> Self {
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
            prompt: words.prompt,
            permission_mode: words.mode,
            session: None,
            auth_methods: Value::Null,
            begun: Instant::now(),
            interrupted: false,
            ended: false,
            unread: false,
            outcome: None,
        }
    }

    async fn hold(&mut self, cwd: &std::path::Path, signals: &mut StopSignals) -> Result<(), Failure> {
        if let Show::View(view) = &mut self.show {
            view.starting(self.agent.as_deref())?;
        }
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
        let first = Phase::Initialize(self.client.request(method::INITIALIZE, &params).await);
        let talked = self.talk(first, cwd, signals).await;
        self.forget_questions();
        match self.home {
            Home::Here(_) => {
                talked?;
                self.end_here(cwd, signals).await?;
            }
            Home::Daemon { .. } => {
                if let Err(failure) = talked {
                    self.unread = true;
                    self.outcome = Some(Err(failure));
                }
                self.leave_daemon(signals).await?;
            }
        }
        match (self.outcome.take(), &mut self.show) {
            (Some(outcome), _) => outcome,
            (None, show) => {
                if let Show::View(view) = show {
                    view.interrupted()?;
                }
                Err(Failure::Failed("interrupted".to_owned()))
            }
        }
    }

    /// Goes on until the turn is over, or the output is not read any more.
    async fn talk(
        &mut self,
        mut phase: Phase,
        cwd: &std::path::Path,
        signals: &mut StopSignals,
    ) -> Result<(), Failure> {
        let mut ticks = tokio::time::interval(TICK);
        while phase != Phase::Over {
            tokio::select! {
                incoming = self.client.next() => match incoming {
                    Some(incoming) => phase = self.take(incoming, phase, cwd).await?,
                    None => phase = Phase::Over,
                },
                _ = ticks.tick() => if let Show::View(view) = &mut self.show {
                    let elapsed = self.begun.elapsed().saturating_sub(self.questions.asked());
                    view.tick(elapsed)?;
                },
                typed = self.questions.typed() => if self.pressed(typed).await? {
                    phase = self.interrupt(phase).await?;
                },
                _ = signals.next() => phase = self.interrupt(phase).await?,
            }
        }
        Ok(())
    }

    /// The host ends the session before the connection closes.
    async fn end_here(&mut self, cwd: &std::path::Path, signals: &mut StopSignals) -> Result<(), Failure> {
        self.client.hang_up();
        loop {
            tokio::select! {
                incoming = self.client.next() => match incoming {
                    Some(incoming) => drop(self.take(incoming, Phase::Over, cwd).await?),
                    None => break,
                },
                _ = signals.next() => if let Home::Here(local) = &self.home {
                    local.host.agents().kill_all();
                },
            }
        }
        let (Home::Here(local), Some(session)) = (&self.home, &self.session) else { return Ok(()) };
        // What cannot be looked at any more is not told.
        let ended = match SessionId::parse(session) {
            Some(id) => local.host.inspect(&id, None).await.ok(),
            None => None,
        };
        let ended = ended.and_then(|summary| summary.termination);
        let ended = ended.map(|info| json!(info));
        self.report_leftovers(ended.as_ref())
    }

    /// Processes that were left behind, when nothing else was said of the end.
    fn report_leftovers(&mut self, ended: Option<&Value>) -> Result<(), Failure> {
        match ended {
            Some(info) if info["leaked"] == json!(true) && !self.ended => {
                self.announce("processes that the agent left behind were killed")
            }
            _ => Ok(()),
        }
    }

    /// Since the turn began, without the time that the person was asked.
    fn elapsed(&self) -> Duration {
        self.begun.elapsed().saturating_sub(self.questions.asked())
    }

    /// The person wants the turn to end; the second time, at once.
    async fn interrupt(&mut self, phase: Phase) -> Result<Phase, Failure> {
        // A session without any client would live on in the daemon.
        let is_to_come = matches!((&self.home, phase), (Home::Daemon { .. }, Phase::New(_)));
        if self.interrupted || !(is_to_come || self.session.is_some()) {
            if let Home::Here(local) = &self.home {
                local.host.agents().kill_all();
            }
            return Ok(Phase::Over);
        }
        self.interrupted = true;
        if is_to_come {
            self.announce("stopping; once more to leave at once")?;
            return Ok(phase);
        }
        self.client.notify(method::SESSION_CANCEL, &json!({"sessionId": self.session})).await;
        self.cancel_questions().await?;
        self.announce(match self.home {
            Home::Here(_) => "cancelling; Ctrl-C stops at once",
            Home::Daemon { .. } => "cancelling; Ctrl-C leaves while it goes on",
        })?;
        Ok(phase)
    }

    async fn take(
        &mut self,
        incoming: Incoming,
        phase: Phase,
        cwd: &std::path::Path,
    ) -> Result<Phase, Failure> {
        match incoming {
            Incoming::Notification { method, params } => {
                match method.as_str() {
                    method::SESSION_UPDATE if self.outcome.is_none() => self.update(&params)?,
                    method::TERMINAL if self.outcome.is_none() => self.terminal(&params)?,
                    method::CANCEL_REQUEST => self.withdrawn(&params).await?,
                    _ => {}
                }
                Ok(phase)
            }
            Incoming::Request { id, method, params } => {
                if phase != Phase::Over {
                    self.requested(id, &method, &params).await?;
                }
                Ok(phase)
            }
            Incoming::Answer { id, outcome } => match (phase, outcome) {
                (Phase::Initialize(asked), Ok(result)) if asked == id => {
                    self.know_agent(&result["_meta"][META]["agent"]);
                    self.auth_methods = result["authMethods"].clone();
                    if let Show::View(view) = &mut self.show {
                        view.started(result.get("agentInfo"), self.begun.elapsed())?;
                    }
                    self.begun = Instant::now();
                    let mut params = json!({"cwd": cwd, "mcpServers": []});
                    if let Some(mode) = self.permission_mode {
                        params["_meta"] = json!({META: {"permissionMode": mode.as_str()}});
                    }
                    Ok(Phase::New(self.client.request(method::SESSION_NEW, &params).await))
                }
                (Phase::New(asked), Ok(result)) if asked == id => {
                    self.session = result["sessionId"].as_str().map(str::to_owned);
                    if self.interrupted {
                        self.outcome = Some(Err(Failure::Failed("interrupted".to_owned())));
                        return Ok(Phase::Over);
                    }
                    let content = json!([{"type": "text", "text": self.prompt}]);
                    let params = json!({"sessionId": self.session, "prompt": content});
                    Ok(Phase::Prompt(self.client.request(method::SESSION_PROMPT, &params).await))
                }
                (Phase::Prompt(asked), Ok(result)) if asked == id => {
                    self.turn_ended(result["stopReason"].as_str().unwrap_or("unknown"))?;
                    Ok(Phase::Over)
                }
                (Phase::Initialize(asked) | Phase::New(asked) | Phase::Prompt(asked), Err(error))
                    if asked == id =>
                {
                    // A daemon knows its agents; without one, the name was looked up before.
                    let is_wrong = matches!(phase, Phase::Initialize(_))
                        && error["code"].as_i64() == Some(codes::INVALID_PARAMS);
                    match (error["message"].as_str().filter(|_| is_wrong), &self.home) {
                        (Some(message), Home::Daemon { configuration, .. }) => {
                            let text = format!("{}; {configuration}", clean::line(message, 300));
                            self.outcome = Some(Err(Failure::Usage(text)));
                        }
                        _ => self.failed(phase, &error)?,
                    }
                    Ok(Phase::Over)
                }
                _ => Ok(phase),
            },
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
        self.outcome = Some(match (stop_reason, &self.show) {
            ("end_turn", _) => Ok(()),
            (_, Show::View(_)) => Err(Failure::Told),
            (_, Show::Json(_)) => {
                Err(Failure::Failed(format!("the turn ended with stop reason {stop_reason}")))
            }
        });
        Ok(())
    }
}
