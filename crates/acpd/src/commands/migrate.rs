//! `acpd migrate`: moves the sessions of an earlier acpd's database to files, without a daemon.

use crate::cli::Migrate;
use crate::exit::Failure;
use crate::local_host::load_config;
use crate::migrating;
use crate::state_dir;
use crate::streams::{print, print_json, remark};
use crate::view::byte_count;
use acpd_eventlog::migration::{self, LostEvents, Migrated};
use acpd_host::chain;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The outcome of the command.
struct Outcome {
    migrated: Option<Migrated>,
    /// Bytes of the old database, if it was removed.
    removed: Option<u64>,
}

pub(crate) async fn migrate(args: Migrate) -> Result<(), Failure> {
    let Migrate { remove_old, json, config, state_dir } = args;
    let dir = load_config(config, state_dir)?.storage.path;
    if !acpd_eventlog::has_log(&dir)? {
        return tell(&Outcome { migrated: None, removed: None }, json);
    }
    state_dir::claim(&dir)?;
    let migrated = blocking(&dir, move |dir| migrating::work(dir, !json, |_| {})).await?;
    let migrated = migrated.map_err(|why| Failure::Failed(why.to_string()))?;
    let removed = match remove_old {
        true => blocking(&dir, |dir| migration::remove_kept(dir, None)).await??,
        false => None,
    };
    tell(&Outcome { migrated, removed }, json)
}

async fn blocking<T: Send + 'static>(
    dir: &Path,
    work: impl FnOnce(&Path) -> T + Send + 'static,
) -> Result<T, Failure> {
    let dir: PathBuf = dir.to_owned();
    let done = tokio::task::spawn_blocking(move || work(&dir)).await;
    done.map_err(|error| Failure::Failed(chain(&error)))
}

fn tell(outcome: &Outcome, is_json: bool) -> Result<(), Failure> {
    if is_json {
        return print_json(&in_json(outcome).to_string()).map(drop);
    }
    let Outcome { migrated, removed } = outcome;
    match migrated {
        Some(Migrated { sessions, lost, .. }) => {
            lost.iter().for_each(|events| remark(&lost_line(events)));
            let noun = if *sessions == 1 { "session is a file" } else { "sessions are files" };
            print(&format!(
                "{sessions} {noun} now; {}",
                describe_database(!lost.is_empty(), removed.is_some())
            ))?;
        }
        None => remark("nothing to migrate"),
    }
    if let Some(bytes) = removed {
        print(&format!("removed the old database, {}", byte_count(*bytes)))?;
    }
    Ok(())
}

fn in_json(Outcome { migrated, removed }: &Outcome) -> Value {
    let lost = migrated.iter().flat_map(|migrated| &migrated.lost);
    let lost: Vec<Value> = lost
        .map(
            |LostEvents { session, first, last }| json!({"sessionId": session, "first": first, "last": last}),
        )
        .collect();
    let sessions = migrated.as_ref().map_or(0, |migrated| migrated.sessions);
    json!({"migrated": migrated.is_some(), "sessions": sessions, "lost": lost, "removedBytes": removed})
}

fn lost_line(LostEvents { session, first, last }: &LostEvents) -> String {
    format!("events {first} to {last} of session {session} cannot be read, and are missing")
}

/// The fate of the database, in words.
fn describe_database(has_lost: bool, is_removed: bool) -> &'static str {
    match (has_lost, is_removed) {
        (true, _) => "the database is kept as acpd.db.damaged",
        (false, true) => "the database is not kept",
        (false, false) => "the database is kept as acpd.db.migrated for 30 days",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // issue 29: programs are told what was migrated and what is lost
    #[test]
    fn programs_are_told_what_came_of_it() {
        let lost = vec![LostEvents { session: "a".into(), first: 3, last: 5 }];
        let migrated = Migrated { sessions: 2, bytes: 9, lost };
        for (outcome, expected) in [
            (
                Outcome { migrated: Some(migrated), removed: None },
                r#"{"lost":[{"first":3,"last":5,"sessionId":"a"}],"migrated":true,"removedBytes":null,"sessions":2}"#,
            ),
            (
                Outcome { migrated: None, removed: Some(7) },
                r#"{"lost":[],"migrated":false,"removedBytes":7,"sessions":0}"#,
            ),
        ] {
            let expected: Value = serde_json::from_str(expected).expect("JSON");
            assert_eq!(in_json(&outcome), expected);
        }
    }
}
