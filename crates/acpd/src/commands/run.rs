//! `acpd run`: one prompt through a hosted session, shown to a person or as JSON lines.

mod attachments;
mod conversation;
mod ending_here;
mod failing;
mod feed;
mod home;
mod leaving;
mod lines;
mod questions;
mod show;
mod standard_input;
mod stopping;
mod talking;
mod target;

use super::directory;
use crate::cli::{Run, RunFormat};
use crate::client::Client;
use crate::config::{Config, Wait};
use crate::exit::Failure;
use crate::hosting::{Hosted, Hosting, reach};
use crate::local_host::LocalHost;
use crate::signals::StopSignals;
use acpd_host::PermissionMode;
use attachments::Attachment;
use conversation::Conversation;
use home::Home;
use lines::{ErrorLine, Line, ResultLine};
use serde_json::{Value, json};
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
    let limit = args.timeout.and_then(Wait::limit);
    let attachments = attachments::read_all(&args.file, &args.image)?;
    let (format, mode, directories) = (args.format(), args.permission_mode, Vec::new());
    let mut words = Words { prompt, attachments, directories, format, mode, limit };
    let reach = reach(&args.location);
    let add_dir = args.add_dir;
    let wished = |is_here, words: &mut Words| {
        let directories = add_dir.iter().map(|given| directory("--add-dir", given, is_here));
        words.directories = directories.collect::<Result<_, _>>()?;
        Wish::of(args.session, args.go_on, args.cwd, is_here)
    };
    match Hosting::find(args.location).await? {
        Hosting::Here(config) => {
            let wish = wished(true, &mut words)?;
            here(&config, wish, args.agent, words).await
        }
        Hosting::Daemon(hosted) => {
            let Hosted { daemon, configuration, .. } = *hosted;
            let wish = wished(daemon.address().is_here(), &mut words)?;
            let (scope, daemon) = (daemon.scope().clone(), Box::new(daemon));
            let home = Home::Daemon { daemon, reach, configuration };
            let target = wish.found(&home, args.agent.as_deref()).await?;
            let agent = target.agent().map(str::to_owned).or(args.agent);
            let Home::Daemon { daemon, .. } = &home else { unreachable!("it was made just now") };
            let link = daemon.link(agent.as_deref()).await?;
            let mut signals = StopSignals::listen()?;
            let client = Client::over(link, &scope);
            let mut conversation = Conversation::new(client, home, words, agent, target.cwd());
            Ok(conversation.hold(target, &mut signals).await)
        }
    }
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
    let mut signals = StopSignals::listen()?;
    let local = LocalHost::open(config).await?;
    let host = local.host.clone();
    let home = Home::Here(local);
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
            host.shutdown(CLIENT).await;
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

/// What is said, and how.
struct Words {
    prompt: String,
    /// Behind it.
    attachments: Vec<Attachment>,
    /// Beside the working directory.
    directories: Vec<PathBuf>,
    format: RunFormat,
    mode: Option<PermissionMode>,
    /// How long it may take.
    limit: Option<Duration>,
}

impl Words {
    /// The content blocks of the prompt.
    fn blocks(&mut self) -> Vec<Value> {
        let words = json!({"type": "text", "text": std::mem::take(&mut self.prompt)});
        let attached = self.attachments.drain(..).map(|attachment| attachment.block);
        std::iter::once(words).chain(attached).collect()
    }

    /// The first of what an agent with these capabilities does not take, with the flag.
    fn refused(&self, capabilities: &Value) -> Option<String> {
        let takes = capabilities["sessionCapabilities"]["additionalDirectories"].is_object();
        let directory = self.directories.first().filter(|_| !takes);
        let directory =
            directory.map(|one| format!("--add-dir {}: the agent takes no other directories", one.display()));
        self.attachments.iter().find_map(|one| one.refused(capabilities)).or(directory)
    }
}

/// clap's own words, without its "error: ", which the exit adds.
fn clap_failure(error: clap::Error) -> Failure {
    let text = error.to_string();
    Failure::Usage(text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned())
}
