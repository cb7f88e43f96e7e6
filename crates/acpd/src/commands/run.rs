//! `acpd run`: one prompt through a hosted session, shown to a person or as JSON lines.

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

use crate::cli::{Run, RunFormat};
use crate::client::Client;
use crate::config::{Config, Wait};
use crate::exit::Failure;
use crate::hosting::{Hosted, Hosting, reach};
use crate::local_host::LocalHost;
use crate::signals::StopSignals;
use acpd_host::PermissionMode;
use conversation::Conversation;
use home::Home;
use lines::{ErrorLine, Line, ResultLine};
use show::Lines;
use std::io::IsTerminal;
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
    let words = Words { prompt, format: args.format(), mode: args.permission_mode, limit };
    let reach = reach(&args.location);
    let wished = |is_here| Wish::of(args.session, args.go_on, args.cwd, is_here);
    match Hosting::find(args.location).await? {
        Hosting::Here(config) => here(&config, wished(true)?, args.agent, words).await,
        Hosting::Daemon(hosted) => {
            let Hosted { daemon, configuration, .. } = *hosted;
            let wish = wished(daemon.address().is_here())?;
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
    format: RunFormat,
    mode: Option<PermissionMode>,
    /// How long it may take.
    limit: Option<Duration>,
}

/// clap's own words, without its "error: ", which the exit adds.
fn clap_failure(error: clap::Error) -> Failure {
    let text = error.to_string();
    Failure::Usage(text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned())
}
