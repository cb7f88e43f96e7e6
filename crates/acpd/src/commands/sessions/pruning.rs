//! `acpd sessions prune`: removes old sessions, of a daemon or of a state directory that none serves.

use super::{CLIENT, screen_of_stdout};
use crate::cli::Prune;
use crate::commands::serve::keep;
use crate::config::Config;
use crate::daemon::{Looked, Pruned, look_for, pruned};
use crate::exit::Failure;
use crate::local_host::LocalHost;
use crate::progress::waiting;
use crate::stored::Stored;
use crate::streams::{print, print_json, remark, window};
use crate::view::{byte_count, pruned_list};
use acpd_host::Keep;
use jiff::Timestamp;
use serde_json::json;

/// Where neither the command nor the configuration says which.
const ALL_KEPT: &str = "all sessions are kept: give --older-than or --keep-bytes, or set keep_for or keep_bytes in \
                        [storage] of the configuration";

pub(super) async fn prune(args: Prune) -> Result<(), Failure> {
    let Prune { older_than, keep_bytes, dry_run, json, which } = args;
    let given = Keep { older_than, bytes: keep_bytes };
    let found = look_for(which).await?;
    let what = if dry_run { "looking at sessions" } else { "removing sessions" };
    let sessions = waiting(what, !json, async {
        match found {
            Looked::Found(daemon) => Ok(daemon.for_a_change().prune(given, dry_run).await?),
            Looked::Unserved(config) => prune_here(&config, given, dry_run).await,
        }
    });
    tell(&sessions.await?, dry_run, json)
}

/// The same in a state directory that no daemon serves. What nothing goes from is left as it is.
async fn prune_here(config: &Config, given: Keep, dry_run: bool) -> Result<Vec<Pruned>, Failure> {
    let keep = if given.is_all() { keep(config) } else { given };
    if keep.is_all() {
        return Err(Failure::Usage(ALL_KEPT.to_owned()));
    }
    let stored = Stored::open(config).await?;
    let chosen = stored.prunable(keep).await;
    let has_ends = stored.has_ends().await;
    stored.close().await;
    let chosen = chosen?;
    // What ended while no daemon was there is recorded first.
    if dry_run || (chosen.is_empty() && !has_ends) {
        return Ok(chosen);
    }
    let mut gone = Vec::new();
    // What is removed by the time of an interruption is gone, and the rest stays.
    LocalHost::hosting(config, CLIENT, async |local| {
        gone = pruned(&local.host.prune(keep, CLIENT).await?)?;
        local.host.reclaim().await;
        Ok(())
    })
    .await?;
    Ok(gone)
}

fn tell(sessions: &[Pruned], dry_run: bool, as_json: bool) -> Result<(), Failure> {
    let bytes: u64 = sessions.iter().map(|session| session.bytes).sum();
    if as_json {
        let raw: Vec<_> = sessions.iter().map(|session| &session.raw).collect();
        return print_json(&format!("{{\"sessions\":{},\"bytes\":{bytes}}}", json!(raw))).map(drop);
    }
    let count = match sessions.len() {
        0 => {
            remark("nothing to remove");
            return Ok(());
        }
        1 => "1 session".to_owned(),
        count => format!("{count} sessions"),
    };
    if !dry_run {
        return print(&format!("removed {count}, {}", byte_count(bytes))).map(drop);
    }
    let width = window().map(|(columns, _)| columns);
    print(&pruned_list(sessions, Timestamp::now(), width, screen_of_stdout()).join("\n"))?;
    remark(&format!("{count}, {}, would be removed; without --dry-run they are", byte_count(bytes)));
    Ok(())
}
