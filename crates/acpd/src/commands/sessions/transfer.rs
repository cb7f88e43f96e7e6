//! `acpd sessions export` and `import`: sessions as files.

mod intake;
mod output;

use super::CLIENT;
use super::place::Place;
use crate::clean;
use crate::cli::{Export, Import};
use crate::commands::each;
use crate::daemon::{Daemon, Looked, Session, look_for};
use crate::exit::{self, Failure};
use crate::flag_names::in_flags;
use crate::local_host::LocalHost;
use crate::progress::Progress;
use crate::streams::{print, print_json};
use acpd_host::{Creator, ExportForm};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use intake::Intake;
use output::Output;
use serde_json::json;
use serde_json::value::RawValue;
use std::io;
use std::path::Path;

pub(super) async fn export(args: Export) -> Result<(), Failure> {
    let form = if args.details { args.format.with_details() } else { Some(args.format) };
    let form = form.ok_or_else(|| Failure::Usage("--details is of --format markdown only".to_owned()))?;
    let place = Place::find(args.which).await?;
    let mut output = Output::open(args.output)?;
    let mut progress = Progress::new("exported", !output.is_terminal());
    let exported = each(&args.ids, async |id| {
        let exported = export_one(&place, id, form, &mut output, &mut progress).await;
        // The next begins where this one did.
        exported.or_else(|failure| output.back().and(Err(failure)))
    });
    let exported = exported.await;
    drop(progress);
    place.close().await;
    // What could be exported is kept.
    output.finish()?;
    exported.map_err(Failure::or_read_enough)
}

async fn export_one(
    place: &Place,
    id: &str,
    form: ExportForm,
    output: &mut Output,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let session = place.session(id).await?;
    let mut pieces = place.export(&session.session_id, form).await?;
    while let Some(piece) = pieces.next().await? {
        output.write(&piece)?;
        progress.add(piece.len());
    }
    output.keep()
}

pub(super) async fn import(args: Import) -> Result<(), Failure> {
    match look_for(args.which).await? {
        Looked::Found(daemon) => {
            import_all(&Taker::Daemon(daemon.for_a_change()), &args.file, args.json).await
        }
        Looked::Unserved(config) => {
            LocalHost::hosting(&config, CLIENT, async |local| {
                import_all(&Taker::Here(local), &args.file, args.json).await
            })
            .await
        }
    }
}

/// What takes sessions over.
enum Taker<'a> {
    Daemon(Daemon),
    /// A host inside.
    Here(&'a LocalHost),
}

impl Taker<'_> {
    async fn take(
        &self,
        pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    ) -> Result<Session, Failure> {
        match self {
            Self::Daemon(daemon) => {
                let raw: Box<RawValue> = daemon.import(pieces).await?;
                Ok(Session::read(raw)?)
            }
            Self::Here(local) => {
                let creator = Creator { client: CLIENT.into(), token: None, key: None };
                let mut import = local.host.import(creator, local.line_limit);
                let mut pieces = std::pin::pin!(pieces);
                while let Some(piece) = pieces.next().await {
                    import.push(&piece?).await?;
                }
                let id = import.finish().await?;
                Ok(Session::of(&local.host.inspect(&id, None).await?)?)
            }
        }
    }
}

async fn import_all(taker: &Taker<'_>, file: &Path, as_json: bool) -> Result<(), Failure> {
    let mut intake = Intake::open(file)?;
    let mut first = None;
    while let Some(pieces) = intake.next_session().await {
        let told = taker.take(pieces).await.and_then(|session| tell_imported(&session, as_json));
        if let Err(failure) = told {
            if intake.is_only() {
                return Err(intake.trouble().await.unwrap_or(in_words(failure)));
            }
            let failure = in_words(failure);
            first.get_or_insert(failure.code());
            let (count, line) = (intake.count(), intake.first_line());
            // The failure names a line of the session.
            exit::tell(
                &failure
                    .within(&format!("session {count} of the file (its line 1 is line {line} of the file)")),
            );
        }
    }
    match (intake.trouble().await, first) {
        (Some(trouble), _) => Err(trouble),
        (None, Some(code)) => Err(Failure::Told(code)),
        (None, None) => Ok(()),
    }
}

/// The failure of an import as people read it.
fn in_words(failure: Failure) -> Failure {
    match failure {
        Failure::Failed(why) => Failure::Failed(in_flags(&why).into_owned()),
        Failure::Of(code, why) => Failure::Of(code, in_flags(&why).into_owned()),
        other => other,
    }
}

fn tell_imported(session: &Session, as_json: bool) -> Result<(), Failure> {
    let id = clean::line(&session.session_id, 60);
    match as_json {
        true => print_json(&json!({"sessionId": session.session_id, "done": "imported"}).to_string()),
        false => print(&format!("{id} imported, {} events", session.event_count)),
    }
    .map(drop)
}
