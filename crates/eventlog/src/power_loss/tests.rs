//! Logs over files against what they acknowledged, whatever the machine loses, at each sync.

use super::*;
use crate::{Appender, Batch, Durability, EventLog, IndexUpdate, NewSession, Options, Renamed, Unchanged};
use tempfile::TempDir;

/// What is known of a session to whoever was answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known {
    /// Its last event at least.
    events: u64,
    is_gone: bool,
}

/// Sessions by id.
type Model = BTreeMap<String, Known>;

/// A machine at a sync: what was answered before, and what is left of the directory.
struct Moment {
    model: Model,
    left: Vec<(Unsynced, TempDir)>,
}

fn options() -> Options {
    Options { durability: Durability::Power, ..Options::default() }
}

fn batch(first: u64, count: u64) -> Batch {
    let mut batch = Batch::new();
    // What an event has follows from its number; some batches are packed, or several in a chain.
    (first..first + count).for_each(|seq| batch.push(1, 0, &payload(seq)));
    batch
}

fn payload(seq: u64) -> Vec<u8> {
    seq.to_string().repeat((seq * 7919 % 900) as usize + 1).into_bytes()
}

fn new(id: &str, owner: &str) -> NewSession {
    NewSession {
        id: id.into(),
        owner: owner.into(),
        info: b"info".to_vec(),
        events: batch(1, 2),
        ..NewSession::default()
    }
}

fn released(mut batch: Batch) -> Batch {
    let (ended, owner) = (Some(true), Some(None));
    batch.update_index(IndexUpdate { updated_ms: 9, ended, owner, ..IndexUpdate::default() });
    batch
}

/// Whatever a log does, and what was answered.
struct Scenario {
    dir: TempDir,
    log: EventLog,
    model: Arc<Mutex<Model>>,
    moments: Arc<Mutex<Vec<Moment>>>,
    _recorder: Recorder,
}

impl Scenario {
    /// Keeps what is left at each `nth` sync.
    fn begin(nth: usize) -> Self {
        let dir = TempDir::new().expect("a directory");
        let root = dir.path().to_owned();
        let (model, moments) = (Arc::<Mutex<Model>>::default(), Arc::<Mutex<Vec<Moment>>>::default());
        let (answered, kept, mut count) = (Arc::clone(&model), Arc::clone(&moments), 0_usize);
        let recorder = Recorder::begin(&root.clone(), move |disk| {
            count += 1;
            if !count.is_multiple_of(nth) {
                return;
            }
            let model = answered.lock().clone();
            let mixed = |seed: usize| Unsynced::Mixed((count * 3 + seed) as u64 * 0x9E37_79B9);
            let all = [Unsynced::Lost, Unsynced::Zeros, mixed(0), mixed(1)];
            let left = all.map(|unsynced| {
                let to = TempDir::new().expect("a directory");
                disk.lose_power(&root, to.path(), unsynced);
                (unsynced, to)
            });
            kept.lock().push(Moment { model, left: left.into() });
        });
        let log = EventLog::open(dir.path(), options()).expect("the log opens");
        Self { dir, log, model, moments, _recorder: recorder }
    }

    fn knows(&self, id: &str, events: u64) {
        self.model.lock().entry(id.to_owned()).or_default().events = events;
    }

    async fn create(&self, id: &str, owner: &str) -> Appender {
        let appender = self.log.create(new(id, owner)).await.expect("it is new");
        self.knows(id, 2);
        appender
    }

    async fn append(&self, appender: &mut Appender, count: u64) {
        let range = appender.append_durable(batch(appender.next_seq(), count)).await.expect("there is room");
        self.knows(appender.id(), *range.end());
    }

    async fn end(&self, appender: Appender) {
        let (id, next) = (appender.id().to_owned(), appender.next_seq());
        let range = appender.append_final(released(batch(next, 1))).await.expect("there is room");
        self.knows(&id, *range.end());
    }

    fn sync_segments(&self) {
        let files = &self.log.shared.files;
        let redo = files.redo.as_ref().expect("commits survive the loss of power");
        redo.sync();
    }

    /// Looks at what is left of each moment.
    async fn check(self) {
        self.log.clone().close().await;
        let moments = std::mem::take(&mut *self.moments.lock());
        assert!(moments.len() > 20, "{} moments", moments.len());
        for Moment { model, left } in moments {
            for (unsynced, dir) in left {
                let log = EventLog::open(dir.path(), options()).expect("the log opens");
                assert_eq!(fs::read_dir(dir.path().join("redo")).map_or(0, Iterator::count), 0);
                for (id, known) in &model {
                    check_session(&log, id, known, unsynced).await;
                }
                log.close().await;
            }
        }
        drop(self.dir);
    }
}

/// Nothing that was answered is lost, nothing is twice, and there is no hole; and the session goes on.
async fn check_session(log: &EventLog, id: &str, known: &Known, unsynced: Unsynced) {
    let row = log.get(id).await.expect("it is read");
    if known.is_gone {
        return assert_eq!(row, None, "{id} is back, {unsynced:?}");
    }
    let row = row.unwrap_or_else(|| panic!("{id} is lost, {unsynced:?}"));
    assert!(row.last_seq >= known.events, "{id}: {} of {} events, {unsynced:?}", row.last_seq, known.events);
    let mut cursor = log.cursor(id, 0).await.expect("it is there");
    let mut next = 1;
    while let Some(block) = cursor.next().await.expect("it is read") {
        for event in block.events() {
            assert_eq!((event.seq, event.payload), (next, &payload(next)[..]), "{id}, {unsynced:?}");
            next += 1;
        }
    }
    assert_eq!(next, row.last_seq + 1, "{id}, {unsynced:?}");
    let Some(owner) = row.owner else { return };
    let owned = log.owned_by(&owner).await.expect("they are read");
    assert!(owned.iter().any(|row| row.id == id), "{owner} does not have {id}, {unsynced:?}");
    if row.ended {
        return;
    }
    let mut adopted = log.adopt(id, &owner, "heir", batch(next, 1)).await.expect("its host is dead");
    adopted.append_durable(batch(next + 1, 1)).await.expect("there is room");
    drop(adopted);
    assert_eq!(log.get(id).await.expect("it is read").map(|row| row.last_seq), Some(next + 1));
}

// issue 29, durability = "power": whatever is lost that was not synced, at each sync: appends, groups, and new generations
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_appended_survives_the_loss_of_power() {
    let scenario = Scenario::begin(7);
    let mut all = Vec::new();
    for id in ["a", "b", "c"] {
        all.push(scenario.create(id, "host").await);
    }
    for round in 0..30_u64 {
        for appender in &mut all {
            scenario.append(appender, 1 + round % 7).await;
        }
        // Many at once, of which nothing is known before the last.
        for appender in &mut all {
            appender.append(batch(appender.next_seq(), 3)).await.expect("there is room");
            appender.append(batch(appender.next_seq(), 40)).await.expect("there is room");
        }
        if round % 4 == 3 {
            scenario.sync_segments();
        }
    }
    for appender in all {
        scenario.end(appender).await;
    }
    scenario.check().await;
}

// issue 29, durability = "power": the same of all that claims a session: its beginning, resume, adoption, last words, renaming
// and removal
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_claimed_survives_the_loss_of_power() {
    let scenario = Scenario::begin(5);
    let log = &scenario.log;
    for round in 0..3 {
        let id = |name: &str| format!("{name}-{round}");
        let mut resumed = scenario.create(&id("resumed"), "host").await;
        scenario.append(&mut resumed, 5).await;
        scenario.end(resumed).await;
        let mut resumed = log.reopen(&id("resumed"), "host").await.expect("nobody has it");
        scenario.append(&mut resumed, 5).await;
        let mut adopted = scenario.create(&id("adopted"), "dead").await;
        scenario.append(&mut adopted, 3).await;
        drop(adopted);
        let next = scenario.model.lock()[&id("adopted")].events + 1;
        let mut adopted =
            log.adopt(&id("adopted"), "dead", "host", batch(next, 2)).await.expect("it is left");
        scenario.knows(&id("adopted"), next + 1);
        scenario.append(&mut adopted, 2).await;
        let mut ended = scenario.create(&id("ended"), "dead").await;
        scenario.append(&mut ended, 3).await;
        drop(ended);
        let last = log
            .append_to(&id("ended"), Some("dead"), "next", released(batch(6, 1)))
            .await
            .expect("it is left");
        scenario.knows(&id("ended"), last);
        let seen = Unchanged { last_seq: last, updated_ms: 9 };
        let renamed = Renamed { id: id("renamed"), info: b"renamed".to_vec(), at_ms: 10 };
        // Meanwhile it has the one id or the other.
        scenario.model.lock().remove(&id("ended"));
        assert!(log.rename(&id("ended"), "host", seen, renamed).await.expect("there is room"));
        scenario.knows(&id("renamed"), last);
        let removed = scenario.create(&id("removed"), "host").await;
        scenario.end(removed).await;
        scenario.model.lock().remove(&id("removed"));
        log.delete(&id("removed"), "host").await.expect("nobody has it");
        scenario.model.lock().insert(id("removed"), Known { events: 0, is_gone: true });
        let mut partial = log.begin_partial("host").await.expect("there is room");
        partial.append(batch(1, 4)).await.expect("there is room");
        let whole = NewSession { events: released(batch(5, 1)), ..new(&id("partial"), "host") };
        partial.finish(whole).await.expect("it is new");
        scenario.knows(&id("partial"), 5);
    }
    scenario.check().await;
}
