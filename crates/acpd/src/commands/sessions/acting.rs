//! `acpd sessions cancel`, `close`, `terminate`, `delete`: something that is done with each of several sessions.

use super::CLIENT;
use crate::clean;
use crate::cli::Several;
use crate::commands::each;
use crate::config::Config;
use crate::daemon::{Daemon, End, FindError, Looked, Session, look_for, no_daemon};
use crate::exit::Failure;
use crate::local_host::LocalHost;
use crate::stored::Stored;
use crate::streams::{print, print_json};
use acpd_host::{EndRequest, HostError, SessionId};
use serde_json::json;

/// What is done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    Cancel,
    End(End),
}

impl Deed {
    fn done(self) -> &'static str {
        match self {
            Self::Cancel => "cancelled",
            Self::End(End::Close) => "closed",
            Self::End(End::Terminate) => "terminated",
            Self::End(End::Delete) => "deleted",
        }
    }
}

pub(super) async fn act(args: Several, deed: Deed) -> Result<(), Failure> {
    match look_for(args.which).await? {
        Looked::Found(daemon) => {
            let daemon = daemon.for_a_change();
            each(&args.ids, async |id| act_on(&daemon, id, deed, args.json).await).await
        }
        Looked::Unserved(config) => match deed {
            Deed::End(end) => each(&args.ids, async |id| end_here(&config, id, end, args.json).await).await,
            Deed::Cancel => Err(no_daemon(&config.storage.path).within("nothing was done")),
        },
    }
}

/// Ends or removes a session of a state directory that no daemon serves. Where its agent waits for the next daemon, it is
/// stopped through its keeper; where it has ended meanwhile, that is recorded.
async fn end_here(config: &Config, id: &str, end: End, as_json: bool) -> Result<(), Failure> {
    let stored = Stored::open(config).await?;
    let session = stored.session(id).await;
    stored.close().await;
    let session = session?;
    let is_live = session.detached_since.is_some();
    let Some(id) = SessionId::parse(&session.session_id) else {
        return Err(FindError::Unknown { id: session.session_id }.into());
    };
    let shares = config.agents.get(&session.agent).is_some_and(|agent| agent.share_process);
    let ending = async |local: &LocalHost| {
        let ended = match end {
            End::Delete => local.host.delete_session(&id, CLIENT).await,
            End::Close => local.host.end_session(&id, EndRequest::Close, CLIENT).await.map(drop),
            End::Terminate => local.host.end_session(&id, EndRequest::Terminate, CLIENT).await.map(drop),
        };
        ended.map_err(|error| match error {
            HostError::Detached { .. } if shares => Failure::Failed(format!(
                "{error}: its agent's process serves other sessions too (share_process in [agents.{}])",
                clean::line(&session.agent, 60)
            )),
            error => error.into(),
        })
    };
    match is_live {
        true => LocalHost::hosting_detached(config, id.clone(), CLIENT, ending).await?,
        false => LocalHost::hosting(config, CLIENT, ending).await?,
    }
    tell(&session, Deed::End(end), as_json)
}

async fn act_on(daemon: &Daemon, id: &str, deed: Deed, as_json: bool) -> Result<(), Failure> {
    let session = daemon.session(id).await?;
    match deed {
        Deed::Cancel => daemon.cancel(&session.session_id).await?,
        Deed::End(end) => daemon.end(&session.session_id, end).await?,
    }
    tell(&session, deed, as_json)
}

/// Says what was done; the session is as it was before.
fn tell(session: &Session, deed: Deed, as_json: bool) -> Result<(), Failure> {
    let (id, done) = (&session.session_id, deed.done());
    // One that had ended before stays as it ended.
    let already = session.ended && deed != Deed::End(End::Delete);
    if as_json {
        let answer = json!({"sessionId": id, "done": done, "alreadyEnded": already});
        return print_json(&answer.to_string()).map(drop);
    }
    let id = clean::line(id, 60);
    let text = match deed {
        _ if already => format!("{id} had ended already"),
        // The agent is told all the same: it may work where no turn is known to run.
        Deed::Cancel if session.state == "idle" => format!("{id} was told to cancel; no turn was running"),
        _ => format!("{id} {done}"),
    };
    print(&text).map(drop)
}
