//! What is left of a schedule: the logs of all nodes, the archive, and what the nodes show.

use crate::judge::{Evidence, Log, Recorded, What};
use crate::schedule::Pace;
use crate::world::{NAMES, World};
use acpd_eventlog::{Block, EventLog, ListQuery, Options};
use acpd_fleet::{Assembly, Engine, Piece, Position};
use acpd_fleet_nats::{NatsSettings, Reached};
use acpd_record::{Event, SessionId, SessionMeta};
use std::path::Path;

type Failure = Box<dyn std::error::Error>;

/// All of it, for each session.
///
/// # Errors
/// What cannot be read.
pub(crate) fn gather(world: &World, sessions: &[String], pace: Pace) -> Result<Vec<Evidence>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(read(world, sessions, pace)).map_err(|error| error.to_string())
}

async fn read(world: &World, sessions: &[String], pace: Pace) -> Result<Vec<Evidence>, Failure> {
    let mut logs = Vec::new();
    for (node, at) in world.nodes.iter().zip(0..) {
        logs.extend(logs_of(&node.state(), at).await?);
    }
    for log in &mut logs {
        log.shown = shown(world, log);
    }
    let urls = world.servers.iter().map(|server| server.url()).collect();
    let engine = Reached::new(NatsSettings { lease: pace.lease, ..NatsSettings::new(urls) });
    let mut all = Vec::new();
    for session in sessions {
        let id = SessionId::parse(session).ok_or("it is an id")?;
        let owner = engine.session(&id).await?.map(|(record, _)| record.node.to_string());
        let owner = owner.and_then(|owner| NAMES.iter().position(|name| *name == owner));
        let (mut pieces, mut behind) = (Vec::new(), Position::default());
        while let Some((piece, at)) = engine.read(&id, behind).await? {
            pieces.push(piece);
            behind = at;
        }
        let of_it = logs.extract_if(.., |log| log.of == *session).collect();
        let archive = archived(&pieces)?;
        all.push(Evidence { session: session.clone(), owner, logs: of_it, pieces, archive });
    }
    Ok(all)
}

/// The events of pieces.
fn archived(pieces: &[Piece]) -> Result<Vec<Recorded>, Failure> {
    let (mut assembly, mut events) = (Assembly::default(), Vec::new());
    for run in pieces.iter().filter_map(|piece| assembly.take(piece.clone())) {
        let block = Block::unpack_run(run.first, run.last, &run.bytes, 0);
        events.extend(recorded(&block.ok_or_else(|| format!("the run {run:?} cannot be read"))?));
    }
    Ok(events)
}

/// The logs of a node, whose daemon may be running.
async fn logs_of(state: &Path, node: usize) -> Result<Vec<Log>, Failure> {
    let log = EventLog::open(state, Options::default())?;
    let mut logs = Vec::new();
    for row in log.list(ListQuery::default()).await? {
        let aside = SessionMeta::read(&row.info).set_aside;
        let of = aside.map_or_else(|| row.id.clone(), |aside| aside.id.to_string());
        let (mut events, mut cursor) = (Vec::new(), log.cursor(&row.id, 0).await?);
        while cursor.position() < row.last_seq {
            let Some(block) = cursor.next().await? else { break };
            events.extend(recorded(&block));
        }
        logs.push(Log { node, id: row.id, of, events, shown: Vec::new() });
    }
    log.close().await;
    Ok(logs)
}

fn recorded(block: &Block) -> Vec<Recorded> {
    let recorded = |event: acpd_eventlog::Event<'_>| {
        let what = match Event::read(event.kind, event.payload) {
            Ok(Event::RunStarted(_)) => What::RunStarted,
            Ok(Event::Ended(ended)) => What::Ended(ended.cause),
            _ => What::Other,
        };
        Recorded {
            seq: event.seq,
            at_ms: event.at_ms,
            kind: event.kind,
            payload: event.payload.to_vec(),
            what,
        }
    };
    block.events().map(recorded).collect()
}

/// What a node shows of a log, under the id that the session had.
fn shown(world: &World, log: &Log) -> Vec<String> {
    let path = format!("/v1/sessions/{}/events?limit=1000", log.id);
    let (mut all, mut next) = (Vec::new(), Some(path.clone()));
    while let Some(asked) = next {
        let page = world.nodes[log.node].get(&asked).json();
        let events = page["events"].as_array().into_iter().flatten();
        all.extend(events.map(|event| event.to_string().replace(&log.id, &log.of)));
        next = page["nextCursor"].as_str().map(|cursor| format!("{path}&after={cursor}"));
    }
    all
}
