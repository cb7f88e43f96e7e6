//! Random histories against a model: whatever is appended, wherever cursors begin, however often the log is
//! reopened, each cursor gives exactly the suffix, once and in order.

use acpd_eventlog::{Appender, Batch, EventLog, IndexUpdate, NewSession, Options};
use proptest::prelude::*;
use tempfile::TempDir;
use tokio::task::JoinSet;

const SESSIONS: usize = 3;

#[derive(Debug, Clone)]
enum Step {
    /// Events of these sizes to a session; durable or only queued; with an index update or without.
    Append {
        session: usize,
        sizes: Vec<usize>,
        durable: bool,
        indexed: bool,
    },
    /// A cursor that begins after this share of what is committed, and reads while the writer goes on.
    Follow {
        session: usize,
        share: f64,
    },
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let sizes = prop::collection::vec(prop_oneof![9 => 0..300_usize, 1 => 0..200_000_usize], 0..20);
    prop_oneof![
        8 => (0..SESSIONS, sizes, any::<bool>(), any::<bool>())
            .prop_map(|(session, sizes, durable, indexed)| Step::Append { session, sizes, durable, indexed }),
        3 => (0..SESSIONS, 0.0..=1.0).prop_map(|(session, share)| Step::Follow { session, share }),
        1 => Just(Step::Reopen),
    ]
}

type Seen = (usize, u64, Vec<(u64, Vec<u8>)>);

struct Run {
    dir: TempDir,
    options: Options,
    log: EventLog,
    appenders: Vec<Appender>,
    model: Vec<Vec<Vec<u8>>>,
    cursors: JoinSet<Seen>,
    updates: i64,
}

impl Run {
    async fn start(cache_bytes: usize) -> Self {
        let dir = TempDir::new().expect("a directory");
        let options = Options { cache_bytes, ..super::options() };
        let log = EventLog::open(dir.path(), options.clone()).expect("the log opens");
        let mut appenders = Vec::new();
        for n in 0..SESSIONS {
            let new = NewSession { id: n.to_string(), owner: "host".into(), ..NewSession::default() };
            appenders.push(log.create(new).await.expect("a new session"));
        }
        let model = vec![Vec::new(); SESSIONS];
        Self { dir, options, log, appenders, model, cursors: JoinSet::new(), updates: 0 }
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Append { session, sizes, durable, indexed } => {
                let mut batch = Batch::new();
                for size in sizes {
                    let payload = vec![self.model[session].len() as u8; size];
                    batch.push(session as u16, size as i64, &payload);
                    self.model[session].push(payload);
                }
                if indexed {
                    self.updates += 1;
                    batch.update_index(IndexUpdate { updated_ms: self.updates, ..IndexUpdate::default() });
                }
                let (appender, count) = (&mut self.appenders[session], batch.len());
                let first = appender.next_seq();
                let appended =
                    if durable { appender.append_durable(batch).await } else { appender.append(batch).await };
                let range = appended.expect("room on the disk");
                assert_eq!((*range.start(), range.count() as u64), (first, count));
                assert_eq!(appender.next_seq(), self.model[session].len() as u64 + 1);
            }
            Step::Follow { session, share } => {
                let committed = self.appenders[session].committed().seq();
                let after = (committed as f64 * share) as u64;
                let mut cursor = self.log.cursor(&session.to_string(), after).await.expect("a cursor");
                self.cursors.spawn(async move {
                    let mut seen = Vec::new();
                    while let Some(block) = cursor.next().await.expect("readable") {
                        for event in block.events() {
                            assert_eq!(
                                (event.kind, event.at_ms),
                                (session as u16, event.payload.len() as i64)
                            );
                            seen.push((event.seq, event.payload.to_vec()));
                        }
                    }
                    (session, after, seen)
                });
            }
            Step::Reopen => {
                self.settle().await;
                self.log.clone().close().await;
                self.log = EventLog::open(self.dir.path(), self.options.clone()).expect("the log opens");
                for n in 0..SESSIONS {
                    let again = self.log.reopen(&n.to_string(), "host").await.expect("nobody else has it");
                    assert_eq!(again.next_seq(), self.model[n].len() as u64 + 1);
                    self.appenders.push(again);
                }
            }
        }
    }

    /// Ends the sessions, and compares what all cursors saw with the model.
    async fn settle(&mut self) {
        self.appenders.clear();
        while let Some(seen) = self.cursors.join_next().await {
            let (session, after, seen) = seen.expect("no panic");
            let suffix = (after + 1..).zip(self.model[session][after as usize..].iter().cloned());
            assert!(seen.into_iter().eq(suffix), "session {session} after {after}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    // contract 1.6: exactly what is missing, once, in order; UP-1: the same order for all viewers
    #[test]
    fn every_cursor_sees_exactly_the_suffix(
        steps in prop::collection::vec(step(), 1..60),
        cache_bytes in prop_oneof![Just(0_usize), Just(10_000), Just(16 << 20)],
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
        runtime.block_on(async {
            let mut run = Run::start(cache_bytes).await;
            for step in steps {
                run.step(step).await;
            }
            run.step(Step::Follow { session: 0, share: 0.0 }).await;
            run.settle().await;
            run.log.close().await;
        });
    }
}
