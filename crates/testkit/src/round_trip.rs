//! Moves the sessions that tests leave to another log, and back out of it.
//!
//! Invariant: what is exported, imported and exported again is the same, byte by byte (contract 7.3).

use acpd_eventlog::{EventLog, ListQuery, Options};
use acpd_host::{Archive, Creator, ExportForm, HostFile, SessionId, SessionImport};
use std::path::Path;

/// Events of one state directory that are moved. More of them say nothing new, and take seconds.
const EVENTS: u64 = 5_000;
/// The longest message that an import takes here, in bytes.
const MESSAGE_BYTES: usize = 256 << 20;

/// Moves the sessions of the log in `state`, as many as there is time for.
pub(crate) async fn all(log: &EventLog, state: &Path) -> Result<(), String> {
    let rows = log.list(ListQuery::default()).await.map_err(|error| error.to_string())?;
    let elsewhere = tempfile::tempdir().map_err(|error| error.to_string())?;
    let there = EventLog::open(elsewhere.path(), Options::default()).map_err(|error| error.to_string())?;
    let (from, to) = (Archive::new(log.clone(), state), Archive::new(there.clone(), elsewhere.path()));
    let (mut left, mut verdict) = (EVENTS, Ok(()));
    for row in rows {
        // One that has never run is no export.
        if row.last_seq < 2 {
            continue;
        }
        let Some(rest) = left.checked_sub(row.last_seq) else { continue };
        left = rest;
        let moved = async {
            let id = SessionId::parse(&row.id).ok_or("its id is none")?;
            let first = exported(&from, &id).await?;
            import(&there, elsewhere.path(), &first).await?;
            let second = exported(&to, &id).await?;
            if first != second {
                return Err(difference(&first, &second));
            }
            Ok(())
        };
        verdict = moved.await.map_err(|wrong| format!("{}: {wrong}", row.id));
        if verdict.is_err() {
            break;
        }
    }
    there.close().await;
    verdict
}

async fn exported(from: &Archive, id: &SessionId) -> Result<Vec<u8>, String> {
    let told = |error: acpd_host::HostError| format!("it is not exported: {error}");
    let (mut export, mut all) = (from.export(id, ExportForm::Jsonl).await.map_err(told)?, Vec::new());
    while let Some(piece) = export.next_piece().await.map_err(told)? {
        all.extend_from_slice(&piece);
    }
    Ok(all)
}

async fn import(log: &EventLog, state: &Path, file: &[u8]) -> Result<(), String> {
    let owner = HostFile::create(state).map_err(|error| error.to_string())?;
    let creator = Creator { client: "test".into(), token: None, key: None };
    let mut import = SessionImport::into_log(log.clone(), owner, creator, MESSAGE_BYTES);
    let told = |error| format!("its export is not imported: {error}");
    import.push(file).await.map_err(told)?;
    import.finish().await.map(drop).map_err(told)
}

/// The first line that differs.
fn difference(first: &[u8], second: &[u8]) -> String {
    let (first, second) = (String::from_utf8_lossy(first), String::from_utf8_lossy(second));
    let same = first.lines().zip(second.lines()).take_while(|(first, second)| first == second).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("nothing").chars().take(500).collect::<String>();
    format!("line {} of its export was {}\nand came back as {}", same + 1, line(&first), line(&second))
}
