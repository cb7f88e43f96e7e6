//! `acpd sessions cancel`, `close`, `terminate`, `delete`: something that is done with each of several sessions.

use crate::clean;
use crate::cli::Several;
use crate::commands::each;
use crate::daemon::{Daemon, End, need_daemon};
use crate::exit::Failure;
use crate::stdout::print;
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
    let daemon = need_daemon(args.which).await?;
    each(&args.ids, async |id| act_on(&daemon, id, deed, args.json).await).await
}

async fn act_on(daemon: &Daemon, id: &str, deed: Deed, as_json: bool) -> Result<(), Failure> {
    let session = daemon.session(id).await?;
    let (id, done) = (session.session_id, deed.done());
    match deed {
        Deed::Cancel => daemon.cancel(&id).await?,
        Deed::End(end) => daemon.end(&id, end).await?,
    }
    // One that had ended before stays as it ended.
    let already = session.ended && deed != Deed::End(End::Delete);
    if as_json {
        let answer = json!({"sessionId": id, "done": done, "alreadyEnded": already});
        return print(&answer.to_string()).map(drop);
    }
    let id = clean::line(&id, 60);
    let text = if already { format!("{id} had ended already") } else { format!("{id} {done}") };
    print(&text).map(drop)
}
