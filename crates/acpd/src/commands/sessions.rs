//! `acpd sessions`: what a daemon hosts, or a state directory holds, and ending it.

mod acting;
mod answering;
mod events;
mod forking;
mod place;
mod prompting;
mod pruning;
mod search;
mod transfer;

use crate::cli::{List, One, Sessions, State};
use crate::daemon::{End, Listing, Looked, SessionFilter, look_for};
use crate::exit::Failure;
use crate::stored::Stored;
use crate::streams::{print, print_json, remark, window};
use crate::view::{Screen, session_list, session_record};
use crate::waiting::Waiting;
use acpd_api::SessionState;
use acting::{Deed, act};
use jiff::Timestamp;
use place::Place;
use serde_json::json;
use std::path::PathBuf;

pub(crate) async fn sessions(args: Sessions) -> Result<(), Failure> {
    match args {
        Sessions::List(list) => listed(list).await,
        Sessions::Search(args) => search::search(args).await,
        Sessions::Show(one) => show(one).await,
        Sessions::Events(args) => events::events(args).await,
        Sessions::Prompt(args) => prompting::prompt(args).await,
        Sessions::Cancel(several) => act(several, Deed::Cancel).await,
        Sessions::Answer(args) => answering::answer(args).await,
        Sessions::Close(several) => act(several, Deed::End(End::Close)).await,
        Sessions::Terminate(several) => act(several, Deed::End(End::Terminate)).await,
        Sessions::Delete(several) => act(several, Deed::End(End::Delete)).await,
        Sessions::Fork(args) => forking::fork(args).await,
        Sessions::Export(args) => transfer::export(args).await,
        Sessions::Import(args) => transfer::import(args).await,
        Sessions::Prune(args) => pruning::prune(args).await,
    }
}

/// What is said of a list that has the sessions of other nodes as they were.
const STALE: &str = "the engine of the fleet does not answer, or a node is not heard; what is listed of other nodes may be old, and some may be missing";

/// What it calls itself to a host inside, as it is called over the socket of a daemon.
const CLIENT: &str = "command line";

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
    let found = look_for(args.which).await?;
    let is_here = match &found {
        Looked::Found(daemon) => daemon.address().is_here(),
        Looked::Unserved(_) => true,
    };
    let filter = SessionFilter {
        agent: args.agent,
        cwd: args.cwd.map(|cwd| directory(is_here, cwd)).transpose()?,
        ended: match (args.ended, args.live) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        },
        state: args.state.map(state),
        text: args.query,
        node: None,
    };
    let most = args.limit.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
    let mut waiting = Waiting::default();
    let Listing { sessions, more, stale, .. } = match found {
        Looked::Found(daemon) => daemon.listing(&filter, most).await?,
        Looked::Unserved(config) => {
            let stored = Stored::open(&config).await?;
            let sessions = stored.sessions(filter, most, args.json).await;
            if let Ok((sessions, _)) = &sessions {
                waiting = Waiting::of(sessions);
            }
            stored.close().await;
            let (sessions, more) = sessions?;
            Listing { sessions, more, ..Listing::default() }
        }
    };
    if args.json {
        let raw: Vec<_> = sessions.iter().map(|session| &session.raw).collect();
        return print_json(&format!("{{\"sessions\":{}}}", json!(raw))).map(drop);
    }
    if sessions.is_empty() {
        remark("no sessions");
        if stale {
            remark(STALE);
        }
        return Ok(());
    }
    let width = window().map(|(columns, _)| columns);
    let table = session_list(&sessions, Timestamp::now(), width, screen_of_stdout());
    print(&table.join("\n"))?;
    if more {
        remark("there are more");
    }
    if stale {
        remark(STALE);
    }
    if let Some(told) = waiting.told(Timestamp::now()) {
        remark(&told);
    }
    Ok(())
}

fn state(state: State) -> SessionState {
    match state {
        State::Starting => SessionState::Starting,
        State::Idle => SessionState::Idle,
        State::Running => SessionState::Running,
        State::Waiting => SessionState::Waiting,
        State::Ended => SessionState::Ended,
    }
}

/// A directory as the daemon knows it: where it is this machine, without links, as sessions have theirs.
fn directory(is_here: bool, given: PathBuf) -> Result<String, Failure> {
    let absolute = std::path::absolute(&given)?;
    let real = match is_here {
        true => std::fs::canonicalize(&absolute).unwrap_or(absolute),
        false => absolute,
    };
    real.into_os_string()
        .into_string()
        .map_err(|_| Failure::Usage(format!("--cwd {}: not UTF-8", given.display())))
}

async fn show(args: One) -> Result<(), Failure> {
    let place = Place::find(args.which).await?;
    let session = place.session(&args.id).await;
    place.close().await;
    let session = session?;
    if args.json {
        return print_json(&json!(session.raw).to_string()).map(drop);
    }
    let screen = screen_of_stdout();
    let mut lines = session_record(&session, Timestamp::now(), screen);
    let asked = answering::asked_lines(&session, screen);
    if !asked.is_empty() && !session.ended {
        lines.push(String::new());
        lines.extend(asked);
    }
    print(&lines.join("\n")).map(drop)
}
