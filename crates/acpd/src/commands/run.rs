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

use super::working_directory;
use crate::cli::{Run, RunFormat};
use crate::client::Client;
use crate::config::Wait;
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
    match Hosting::find(args.location).await? {
        Hosting::Here(config) => {
            let agent = args.agent.unwrap_or_else(|| config.server.default_agent.clone());
            config.agent(&agent).map_err(Failure::missing)?;
            let cwd = working_directory(args.cwd, true)?;
            let mut signals = StopSignals::listen()?;
            let local = LocalHost::open(&config).await?;
            let client = Client::connect(&local.host, &agent);
            let mut conversation = Conversation::new(client, Home::Here(local), words, Some(agent), &cwd);
            let outcome = conversation.hold(&cwd, &mut signals).await;
            if let Home::Here(local) = conversation.home {
                drop(conversation.client);
                local.close(&mut signals).await;
            }
            Ok(outcome)
        }
        Hosting::Daemon(hosted) => {
            let Hosted { daemon, configuration, .. } = *hosted;
            let cwd = working_directory(args.cwd, daemon.address().is_here())?;
            let link = daemon.link(args.agent.as_deref()).await?;
            let mut signals = StopSignals::listen()?;
            let client = Client::over(link, daemon.scope());
            let home = Home::Daemon { daemon: Box::new(daemon), reach, configuration };
            let mut conversation = Conversation::new(client, home, words, args.agent, &cwd);
            Ok(conversation.hold(&cwd, &mut signals).await)
        }
    }
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
