//! The streams of a fleet: how each is set up, and whether one that is there already can be used.
//!
//! What nodes could disagree about and still work together (how long the archive is kept, on how many servers) becomes what the
//! last of them says; what they could not, as the lease, is refused. Not here: what is in them.

use crate::connect::NatsError;
use crate::link::{Failed, Link};
use crate::settings::NatsSettings;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::stream::{Config, DiscardPolicy, Info, StorageType};
use std::time::Duration;
use tracing::warn;

/// How long the server says of an entry that its age has removed it. Who watches is told at once, who was cut off is told
/// everything anew; the server takes no less than a second.
const MARKERS: Duration = Duration::from_mins(1);

/// On how many servers things are kept where nothing is said.
const REPLICAS: usize = 3;

/// A bucket whose entries leave after `lease`; None: never.
pub(crate) fn bucket(stream: String, root: &str, lease: Option<Duration>) -> Config {
    Config {
        name: stream,
        subjects: vec![format!("{root}>")],
        storage: StorageType::File,
        max_messages_per_subject: 1,
        discard: DiscardPolicy::New,
        max_age: lease.unwrap_or_default(),
        allow_message_ttl: true,
        subject_delete_marker_ttl: lease.map(|_| MARKERS),
        allow_rollup: true,
        deny_delete: true,
        // What decides is read from the leader only.
        allow_direct: false,
        ..Config::default()
    }
}

/// The archive.
pub(crate) fn archive(stream: &str, root: &str, settings: &NatsSettings) -> Config {
    let bytes = settings.archive_bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
    Config {
        name: stream.to_owned(),
        subjects: vec![format!("{root}>")],
        storage: StorageType::File,
        max_age: settings.archive_age,
        // As the server tells it.
        max_bytes: bytes.unwrap_or(-1),
        deny_delete: true,
        allow_direct: false,
        ..Config::default()
    }
}

/// Makes a stream, or sees to it that the one that is there can be used.
///
/// # Cancel safety
/// It may have been made.
pub(crate) async fn ensure(link: &Link, wanted: &Config, replicas: Option<usize>) -> Result<(), NatsError> {
    let mut found = look(link, wanted).await?;
    if found.is_none() {
        match make(link, wanted, replicas).await {
            Ok(()) => return Ok(()),
            // Another node has made it at this moment.
            Err(failed) if failed.is(ErrorCode::STREAM_NAME_EXIST) => {}
            Err(failed) => return Err(refused(wanted, failed)),
        }
        found = look(link, wanted).await?;
    }
    let Some(found) = found else {
        return Err(NatsError::unusable(wanted, "another node has just removed it"));
    };
    check(&found, wanted)?;
    adjust(link, found, wanted, replicas).await
}

async fn look(link: &Link, wanted: &Config) -> Result<Option<Config>, NatsError> {
    match link.api::<Info>(&format!("STREAM.INFO.{}", wanted.name), &()).await {
        Ok(info) => Ok(Some(info.config)),
        Err(failed) if failed.is(ErrorCode::STREAM_NOT_FOUND) => Ok(None),
        Err(failed) => Err(refused(wanted, failed)),
    }
}

/// Makes it on as many servers as it is to be kept on, or on fewer where that is left open.
async fn make(link: &Link, wanted: &Config, replicas: Option<usize>) -> Result<(), Failed> {
    let mut count = replicas.unwrap_or(REPLICAS);
    loop {
        let config = Config { num_replicas: count, ..wanted.clone() };
        match link.api::<Info>(&format!("STREAM.CREATE.{}", wanted.name), &config).await {
            Ok(_) => break,
            Err(failed) if replicas.is_none() && count > 1 && are_too_many(&failed) => count -= 1,
            Err(failed) => return Err(failed),
        }
    }
    if replicas.is_none() && count < REPLICAS {
        warn_of(wanted, count);
    }
    Ok(())
}

/// Whether there are not as many servers.
fn are_too_many(failed: &Failed) -> bool {
    [ErrorCode::STREAM_REPLICAS_NOT_SUPPORTED, ErrorCode::CLUSTER_NO_PEERS, ErrorCode::INSUFFICIENT_RESOURCES]
        .into_iter()
        .any(|code| failed.is(code))
}

fn warn_of(wanted: &Config, count: usize) {
    let stream = &wanted.name;
    warn!(
        stream,
        count, "the fleet's engine keeps it on fewer than {REPLICAS} servers: it is lost with them"
    );
}

fn refused(wanted: &Config, failed: Failed) -> NatsError {
    NatsError::Engine { stream: wanted.name.clone(), source: failed.into() }
}

/// Whether nodes with these settings can work with a stream that is there.
fn check(found: &Config, wanted: &Config) -> Result<(), NatsError> {
    let is_bucket = wanted.max_messages_per_subject == 1;
    let why = if found.subjects != wanted.subjects {
        format!("it has the subjects {}", found.subjects.join(", "))
    } else if found.storage != wanted.storage {
        "it is not kept in files".to_owned()
    } else if is_bucket && found.max_messages_per_subject != wanted.max_messages_per_subject {
        "it keeps more than the last version of an entry".to_owned()
    } else if is_bucket && found.max_age != wanted.max_age {
        let (theirs, ours) = (found.max_age, wanted.max_age);
        format!(
            "its entries leave after {theirs:?}, those of this node after {ours:?}: a fleet has one lease"
        )
    } else if is_bucket && !found.allow_message_ttl {
        "its entries cannot have a time to live".to_owned()
    } else if found.subject_delete_marker_ttl.is_none() && wanted.subject_delete_marker_ttl.is_some() {
        "it does not say which entries have left".to_owned()
    } else if found.sealed || found.no_ack || found.deny_purge {
        "it is sealed, acknowledges nothing or keeps what is purged".to_owned()
    } else {
        return Ok(());
    };
    Err(NatsError::unusable(wanted, &why))
}

/// Changes what can be changed while others use it.
async fn adjust(
    link: &Link,
    found: Config,
    wanted: &Config,
    replicas: Option<usize>,
) -> Result<(), NatsError> {
    let mut new = found.clone();
    if wanted.max_messages_per_subject != 1 {
        (new.max_age, new.max_bytes) = (wanted.max_age, wanted.max_bytes);
        // The server refuses one that is longer than the age.
        new.duplicate_window = new.duplicate_window.min(new.max_age);
    }
    if new != found {
        update(link, &new).await.map_err(|failed| refused(wanted, failed))?;
    }
    match replicas {
        Some(count) if count != new.num_replicas => {
            let more = Config { num_replicas: count, ..new };
            update(link, &more).await.map_err(|failed| refused(wanted, failed))
        }
        // There may be more servers than when it was made.
        None if new.num_replicas < REPLICAS => {
            let count = new.num_replicas;
            if update(link, &Config { num_replicas: REPLICAS, ..new }).await.is_err() {
                warn_of(wanted, count);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

async fn update(link: &Link, config: &Config) -> Result<(), Failed> {
    let _updated: Info = link.api(&format!("STREAM.UPDATE.{}", config.name), config).await?;
    Ok(())
}
