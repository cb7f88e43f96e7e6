//! `acpd run`: one prompt through a hosted session, shown to a person or as JSON lines.

mod attachments;
mod catching_up;
mod chat;
mod conversation;
mod detaching;
mod ending_here;
mod failing;
mod feed;
mod home;
mod jsonc;
mod late;
mod leaving;
mod lines;
mod mcp;
mod own_turn;
mod questions;
mod refusals;
mod settings;
mod show;
mod stopping;
mod talking;
mod target;
mod unanswered;

use super::{clap_failure, directory, standard_input};
use crate::cli::{CommandLine, HostLocation, Run, RunFormat, SessionChoice};
use crate::client::Client;
use crate::config::{Agent, Config, Wait, agent_name};
use crate::exit::Failure;
use crate::hosting::{Hosted, Hosting, reach};
use crate::local_host::LocalHost;
use crate::signals::StopSignals;
use acpd_api::AgentOrigin;
use acpd_host::PermissionMode;
use attachments::{Attachment, Takes};
use chat::Chatting;
pub(crate) use chat::{attach, chat};
use conversation::Conversation;
use home::Home;
use lines::{ErrorLine, Line, ResultLine};
use serde_json::{Map, Value, json};
use settings::Setting;
use show::Lines;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;
use target::Wish;

pub(crate) async fn run(args: Run) -> Result<(), Failure> {
    let format = args.format();
    match converse(args).await {
        Ok(outcome) => outcome.map_err(Failure::or_read_enough),
        Err(failure) => {
            if format == RunFormat::Json {
                let error = Some(ErrorLine { message: failure.to_string(), ..ErrorLine::default() });
                let result = ResultLine { error, ..ResultLine::default() };
                Lines::write(&Line::Result(Box::new(result)))?;
            }
            Err(failure)
        }
    }
}

/// The outcome of the conversation; an error when there was none.
async fn converse(args: Run) -> Result<Result<(), Failure>, Failure> {
    let prompt = args.prompt(std::io::stdin().is_terminal()).map_err(clap_failure)?;
    let prompt = standard_input::whole(prompt).await?;
    let (format, limit) = (args.format(), args.timeout.and_then(Wait::limit));
    let detached = args.detach.then_some(Detached { keeps_open: args.keep_open });
    let words = Words { prompt, format, limit, detached, ..Words::of(&args.choice)? };
    hold(args.choice, args.location, words).await
}

/// Holds a conversation in the session that is chosen. An error when it did not come to that.
async fn hold(
    choice: SessionChoice,
    mut location: HostLocation,
    mut words: Words,
) -> Result<Result<(), Failure>, Failure> {
    let wished = |is_here, words: &mut Words| {
        let directories = choice.add_dir.iter().map(|given| directory("--add-dir", given, is_here));
        words.directories = directories.collect::<Result<_, _>>()?;
        Wish::of(choice.session, choice.go_on, choice.cwd, is_here)
    };
    location.embedded |= choice.command.is_some();
    let reach = reach(&location);
    words.reach.clone_from(&reach);
    match Hosting::find(location, words.detached.is_some()).await? {
        Hosting::Here(_) if words.detached.is_some() => {
            Err(Failure::missing("--detach: there is no daemon that could go on; `acpd serve` starts one"))
        }
        Hosting::Here(mut config) => {
            let named = choice.command.map(|command| with_command(&mut config, command)).transpose()?;
            let wish = wished(true, &mut words)?;
            here(&config, wish, named.or(choice.agent), words).await
        }
        Hosting::Daemon(hosted) => {
            let Hosted { daemon, configuration, .. } = *hosted;
            let wish = wished(daemon.address().is_here(), &mut words)?;
            let home = Home::Daemon { daemon: Box::new(daemon), reach, configuration };
            let target = wish.found(&home, choice.agent.as_deref()).await?;
            let agent = target.agent().map(str::to_owned).or(choice.agent);
            let Home::Daemon { daemon, .. } = &home else { unreachable!("it was made just now") };
            let link = daemon.first_link(agent.as_deref()).await?;
            let mut signals = StopSignals::listen()?;
            let client = Client::over(link, daemon, agent.clone());
            let mut conversation = Conversation::new(client, home, words, agent, target.cwd());
            Ok(conversation.hold(target, &mut signals).await)
        }
    }
}

/// Makes an agent of a command, beside those of the configuration, and says its name.
fn with_command(config: &mut Config, command: CommandLine) -> Result<String, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::Usage(format!("--command {}: {why}", command.program));
    let mut program = command.program.clone();
    if program.contains('/') {
        // It is looked for from here, not from the directory of the session.
        let path = std::path::absolute(&program).map_err(|error| wrong(&error))?;
        program = path.to_string_lossy().into_owned();
    }
    let name = program.rsplit('/').next().unwrap_or(&program);
    let mut name = agent_name(name).map_err(|why| wrong(&why))?;
    if config.agents.get(&name).is_some_and(|agent| agent.origin != AgentOrigin::Found) {
        // Sessions of the configured one are not gone on with by another program.
        name.push_str("-command");
    }
    config.agents.insert(name.clone(), Agent::builtin(program, command.args));
    Ok(name)
}

/// The same with a host inside.
async fn here(
    config: &Config,
    wish: Wish,
    named: Option<String>,
    words: Words,
) -> Result<Result<(), Failure>, Failure> {
    let agent = named.as_deref().unwrap_or(&config.server.default_agent);
    if !wish.names_session() {
        config.agent(agent).map_err(Failure::missing)?;
    }
    let name = words.name;
    let mut signals = StopSignals::listen()?;
    let local = LocalHost::open(config, &mut signals).await?;
    let host = local.host.clone();
    let home = Home::Here(Box::new(local));
    let found = wish.found(&home, named.as_deref()).await.and_then(|target| {
        let agent = target.agent().unwrap_or(agent).to_owned();
        config.agent(&agent).map_err(Failure::missing)?;
        Ok((target, agent))
    });
    let (outcome, home) = match found {
        Ok((target, agent)) => {
            let client = Client::connect(&host, &agent);
            let mut conversation = Conversation::new(client, home, words, Some(agent), target.cwd());
            (Ok(conversation.hold(target, &mut signals).await), conversation.home)
        }
        Err(failure) => {
            // No connection ends it.
            host.shutdown(name).await;
            (Err(failure), home)
        }
    };
    if let Home::Here(local) = home {
        local.close(&mut signals).await;
    }
    outcome
}

/// What it calls itself, also in the record of what it ended.
const CLIENT: &str = "acpd run";

/// The turn is started and left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Detached {
    /// The session is not closed behind it.
    keeps_open: bool,
}

/// What is said, and how.
struct Words {
    /// What the client calls itself.
    name: &'static str,
    prompt: String,
    /// Behind it.
    attachments: Vec<Attachment>,
    /// Beside the working directory.
    directories: Vec<PathBuf>,
    /// The directories of the session, where they are on this machine.
    roots: Vec<PathBuf>,
    /// MCP servers for the agent, as ACP has them.
    servers: Vec<Value>,
    /// What the session is set to before.
    settings: Vec<Setting>,
    format: RunFormat,
    mode: Option<PermissionMode>,
    /// Of a new session.
    title: Option<String>,
    /// The turn is started and left.
    detached: Option<Detached>,
    /// How long it may take.
    limit: Option<Duration>,
    /// What to type for other commands to find the session: flags, each with a space before it.
    reach: String,
    /// Its agent is called by a name, not by a command.
    agent_is_named: bool,
    /// For many prompts instead of one.
    chat: Option<Chatting>,
}

impl Words {
    /// What a session is chosen with; its prompt is to come.
    fn of(choice: &SessionChoice) -> Result<Self, Failure> {
        Ok(Self {
            name: CLIENT,
            prompt: String::new(),
            attachments: attachments::read_all(&choice.file, &choice.image)?,
            directories: Vec::new(),
            roots: Vec::new(),
            servers: mcp::read_all(&choice.mcp)?,
            settings: Setting::of(choice),
            format: RunFormat::Text,
            mode: choice.permission_mode,
            title: choice.title.clone(),
            detached: None,
            limit: None,
            reach: String::new(),
            agent_is_named: choice.command.is_none(),
            chat: None,
        })
    }

    /// What acpd itself is told of the session, if anything (contract 2.1, contract 7.3).
    fn meta(&self) -> Option<Map<String, Value>> {
        let mut meta = Map::new();
        meta.extend(self.mode.map(|mode| ("permissionMode".to_owned(), mode.as_str().into())));
        meta.extend(self.title.clone().map(|title| ("title".to_owned(), title.into())));
        let closes = self.detached.is_some_and(|detached| !detached.keeps_open);
        meta.extend(closes.then(|| ("closeAfterTurn".to_owned(), true.into())));
        (!meta.is_empty()).then_some(meta)
    }

    /// The content blocks of the prompt.
    fn blocks(&mut self, capabilities: &Value) -> Vec<Value> {
        let words = json!({"type": "text", "text": std::mem::take(&mut self.prompt)});
        let attachments = std::mem::take(&mut self.attachments);
        let takes = Takes { capabilities, roots: &self.roots };
        // Those that are not taken were refused before there was a session.
        let attached = attachments.iter().filter_map(|one| one.block(takes).ok());
        std::iter::once(words).chain(attached).collect()
    }

    /// The first of what an agent with these capabilities does not take, with the flag.
    fn refused(&self, capabilities: &Value) -> Option<String> {
        let takes_directories = capabilities["sessionCapabilities"]["additionalDirectories"].is_object();
        let directory = self.directories.first().filter(|_| !takes_directories);
        let directory =
            directory.map(|one| format!("--add-dir {}: the agent takes no other directories", one.display()));
        let takes = Takes { capabilities, roots: &self.roots };
        let attachment = self.attachments.iter().find_map(|one| one.block(takes).err());
        let kinds = self.servers.iter().filter_map(|server| server["type"].as_str());
        let mut kinds = kinds.filter(|kind| capabilities["mcpCapabilities"][*kind] != true);
        let server = || Some(format!("--mcp: the agent takes no MCP servers over {}", kinds.next()?));
        attachment.or(directory).or_else(server)
    }
}
