//! `acpd sessions export` and `import`: sessions as files.

mod intake;
mod output;

use crate::clean;
use crate::cli::{Export, ExportForm, Import};
use crate::commands::each;
use crate::daemon::{Daemon, Session, need_daemon};
use crate::exit::{self, Failure};
use crate::progress::Progress;
use crate::stdout::print;
use intake::Intake;
use output::Output;
use serde_json::json;
use serde_json::value::RawValue;

pub(super) async fn export(args: Export) -> Result<(), Failure> {
    let daemon = need_daemon(args.which).await?;
    let mut output = Output::open(args.output)?;
    let mut progress = Progress::new("exported", !output.is_terminal());
    let exported = each(&args.ids, async |id| {
        let exported = export_one(&daemon, id, args.format, &mut output, &mut progress).await;
        // The next begins where this one did.
        exported.or_else(|failure| output.back().and(Err(failure)))
    });
    let exported = exported.await;
    drop(progress);
    // What could be exported is kept.
    output.finish()?;
    exported.map_err(Failure::or_read_enough)
}

async fn export_one(
    daemon: &Daemon,
    id: &str,
    form: ExportForm,
    output: &mut Output,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let session = daemon.session(id).await?;
    let mut pieces = daemon.export(&session.session_id, form).await?;
    while let Some(piece) = pieces.next_piece().await? {
        output.write(&piece)?;
        progress.add(piece.len());
    }
    output.keep()
}

pub(super) async fn import(args: Import) -> Result<(), Failure> {
    let daemon = need_daemon(args.which).await?;
    let mut intake = Intake::open(&args.file)?;
    let mut first = None;
    while let Some(pieces) = intake.next_session().await {
        let imported: Result<Box<RawValue>, _> = daemon.import(pieces).await;
        let told = match imported {
            Ok(raw) => tell_imported(raw, args.json),
            Err(error) => Err(error.into()),
        };
        if let Err(failure) = told {
            if intake.is_only() {
                return Err(intake.trouble().await.unwrap_or(failure));
            }
            exit::tell(&failure);
            first.get_or_insert(failure.code());
        }
    }
    match (intake.trouble().await, first) {
        (Some(trouble), _) => Err(trouble),
        (None, Some(code)) => Err(Failure::Told(code)),
        (None, None) => Ok(()),
    }
}

fn tell_imported(raw: Box<RawValue>, as_json: bool) -> Result<(), Failure> {
    let session = Session::read(raw).map_err(|error| Failure::Failed(error.to_string()))?;
    let id = clean::line(&session.session_id, 60);
    print(&match as_json {
        true => json!({"sessionId": session.session_id, "done": "imported"}).to_string(),
        false => format!("{id} imported, {} events", session.event_count),
    })
    .map(drop)
}
