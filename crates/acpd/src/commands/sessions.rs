//! `acpd sessions`: what a daemon hosts, and ending it.

mod acting;
mod answering;
mod events;
mod prompting;
mod transfer;

use crate::cli::{List, One, Sessions};
use crate::daemon::{Daemon, End, SessionFilter, need_daemon};
use crate::exit::Failure;
use crate::stdout::{print, window};
use crate::view::{Screen, session_list, session_record};
use acting::{Deed, act};
use jiff::Timestamp;
use serde_json::json;
use std::path::PathBuf;

pub(crate) async fn sessions(args: Sessions) -> Result<(), Failure> {
    match args {
        Sessions::List(list) => listed(list).await,
        Sessions::Show(one) => show(one).await,
        Sessions::Events(args) => events::events(args).await,
        Sessions::Prompt(args) => prompting::prompt(args).await,
        Sessions::Cancel(several) => act(several, Deed::Cancel).await,
        Sessions::Answer(args) => answering::answer(args).await,
        Sessions::Close(several) => act(several, Deed::End(End::Close)).await,
        Sessions::Terminate(several) => act(several, Deed::End(End::Terminate)).await,
        Sessions::Delete(several) => act(several, Deed::End(End::Delete)).await,
        Sessions::Export(args) => transfer::export(args).await,
        Sessions::Import(args) => transfer::import(args).await,
    }
}

/// stdout as a screen: results are in colour when it is a terminal.
pub(crate) fn screen_of_stdout() -> Screen {
    let out = std::io::stdout();
    Screen {
        terminal: window().is_some(),
        colour: anstream::AutoStream::choice(&out) != anstream::ColorChoice::Never,
        shared: true,
    }
}

async fn listed(args: List) -> Result<(), Failure> {
    let daemon = need_daemon(args.which).await?;
    let filter = SessionFilter {
        agent: args.agent,
        cwd: args.cwd.map(|cwd| directory(&daemon, cwd)).transpose()?,
        ended: match (args.ended, args.live) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        },
    };
    let most = args.limit.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
    let (sessions, more) = daemon.sessions(&filter, most).await?;
    if args.json {
        let raw: Vec<_> = sessions.iter().map(|session| &session.raw).collect();
        return print(&format!("{{\"sessions\":{}}}", json!(raw))).map(drop);
    }
    if sessions.is_empty() {
        print_remark("no sessions");
        return Ok(());
    }
    let width = window().map(|(columns, _)| columns);
    let table = session_list(&sessions, Timestamp::now(), width, screen_of_stdout());
    print(&table.join("\n"))?;
    if more {
        print_remark("there are more");
    }
    Ok(())
}

/// A directory as the daemon knows it: where it is this machine, without links, as sessions have theirs.
fn directory(daemon: &Daemon, given: PathBuf) -> Result<String, Failure> {
    let absolute = std::path::absolute(&given)?;
    let real = match daemon.address().is_here() {
        true => std::fs::canonicalize(&absolute).unwrap_or(absolute),
        false => absolute,
    };
    real.into_os_string()
        .into_string()
        .map_err(|_| Failure::Usage(format!("--cwd {}: not UTF-8", given.display())))
}

/// A remark beside the result.
pub(crate) fn print_remark(text: &str) {
    use std::io::Write;
    // Without stderr the remark cannot be shown.
    let _closed = writeln!(anstream::stderr(), "{text}");
}

async fn show(args: One) -> Result<(), Failure> {
    let daemon = need_daemon(args.which).await?;
    let session = daemon.session(&args.id).await?;
    if args.json {
        return print(&json!(session.raw).to_string()).map(drop);
    }
    print(&session_record(&session, Timestamp::now(), screen_of_stdout()).join("\n")).map(drop)
}
