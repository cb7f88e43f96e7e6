//! `acpd sessions fork`: a new session with the history of another.

use crate::clean::line;
use crate::cli::Fork;
use crate::commands::working_directory;
use crate::daemon::{ForkSetup, Session, need_daemon_to_change};
use crate::exit::Failure;
use crate::streams::{print, print_json};
use crate::view::short_id;
use serde_json::json;

pub(super) async fn fork(args: Fork) -> Result<(), Failure> {
    let daemon = need_daemon_to_change(args.one.which).await?;
    let cwd = args.cwd.map(|cwd| working_directory(Some(cwd), daemon.address().is_here())).transpose()?;
    let setup = ForkSetup { cwd, permission_mode: args.permission_mode };
    let source = daemon.session(&args.one.id).await?;
    let fork = daemon
        .fork(&source.session_id, &setup)
        .await
        .map_err(|error| if error.is_not_supported() { cannot_fork(&source) } else { error.into() })?;
    match args.one.json {
        true => print_json(&json!(fork.raw).to_string()),
        false => print(&line(&fork.session_id, 60)),
    }
    .map(drop)
}

fn cannot_fork(source: &Session) -> Failure {
    let (id, agent) = (short_id(&source.session_id), line(&source.agent, 60));
    Failure::Failed(format!(
        "the agent {agent} cannot fork a session; `acpd run --session {id}` goes on with this one"
    ))
}
