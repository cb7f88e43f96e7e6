//! `acpd sessions prompt`: one more prompt in a session that is live.

use crate::cli::{HostLocation, Prompt, Run, RunFormat, SessionChoice, SessionPrompt};
use crate::commands::{clap_failure, run, standard_input};
use crate::daemon::{Prompted, Session, need_daemon_to_change};
use crate::exit::Failure;
use crate::streams::{print, print_json};
use crate::view::short_id;
use std::io::IsTerminal;

pub(super) async fn prompt(args: SessionPrompt) -> Result<(), Failure> {
    let given = Prompt::of(&args.prompt, std::io::stdin().is_terminal(), &["sessions", "prompt"]);
    let given = given.map_err(clap_failure)?;
    let daemon = need_daemon_to_change(args.one.which.clone()).await?;
    let session = daemon.session(&args.one.id).await?;
    if session.ended {
        return Err(ended(&session));
    }
    if args.no_wait {
        let text = standard_input::whole(given).await?;
        let Prompted { turn, waiting, raw } = daemon.prompt(&session.session_id, &text).await?;
        return match (args.one.json, turn) {
            (true, _) => print_json(raw.get()),
            (false, Some(turn)) => print(&format!("turn {turn} has begun")),
            (false, None) => print(&format!("it waits in line, behind {waiting}")),
        }
        .map(drop);
    }
    let which = args.one.which;
    run::run(Run {
        choice: SessionChoice { session: Some(session.session_id), ..SessionChoice::default() },
        timeout: None,
        detach: false,
        keep_open: false,
        format: if args.one.json { RunFormat::Json } else { RunFormat::Text },
        json: false,
        location: HostLocation {
            config: which.config,
            state_dir: which.state_dir,
            embedded: false,
            connect: which.connect,
        },
        prompt: args.prompt,
    })
    .await
}

fn ended(session: &Session) -> Failure {
    let id = short_id(&session.session_id);
    Failure::Failed(format!("the session {id} has ended; `acpd run --session {id}` goes on with it"))
}
