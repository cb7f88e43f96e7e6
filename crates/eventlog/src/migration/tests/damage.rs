//! Databases of which a part cannot be read.

use super::super::*;
use super::fixture::{end, make_old, noise, open, session};
use crate::{Batch, CursorError, EventLog};
use tempfile::TempDir;

const EVENTS: u64 = 300;
const DONE: &str = "it is done";

/// A database with two sessions, and what readers find first of each.
async fn fill(dir: &Path) -> [Vec<Option<Vec<u8>>>; 2] {
    let log = open(dir);
    for id in ["whole", "broken"] {
        let mut appender = log.create(session(id, "host")).await.expect(DONE);
        for n in 0..EVENTS {
            let mut batch = Batch::new();
            let payload = [format!("event {n} of {id}.").as_bytes(), &noise(2500, n)].concat();
            batch.push(1, n as i64, &payload);
            appender.append_durable(batch).await.expect(DONE);
        }
        appender.append_final(end(5)).await.expect(DONE);
    }
    let found = [firsts(&log, "whole").await, firsts(&log, "broken").await];
    log.close().await;
    make_old(dir).await;
    found
}

/// What a reader that begins behind each event finds first: nothing where it meets damage.
async fn firsts(log: &EventLog, id: &str) -> Vec<Option<Vec<u8>>> {
    let mut firsts = Vec::new();
    for after in 0..EVENTS {
        let mut cursor = log.cursor(id, after).await.expect("it is there");
        let first = match cursor.next().await {
            Ok(block) => {
                let block = block.expect("it has more");
                let event = block.events().next().expect("an event");
                assert_eq!(event.seq, after + 1);
                Some(event.payload.to_vec())
            }
            Err(CursorError::Read { .. } | CursorError::Damaged { .. }) => None,
            Err(error) => panic!("{after}: {error}"),
        };
        firsts.push(first);
    }
    firsts
}

/// Damages the page with this text.
fn damage(dir: &Path, text: &str) {
    let path = dir.join("acpd.db");
    let mut bytes = fs::read(&path).expect("it is read");
    let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).expect("it is there");
    let page = at / 8192 * 8192;
    bytes[page..page + 8192].fill(0x5a);
    fs::write(&path, bytes).expect("it is written");
}

// issue 29: damage costs what cannot be read: all else is migrated, it is said what is lost, and the database stays
#[tokio::test]
async fn what_can_be_read_is_migrated() {
    let dir = TempDir::new().expect("a directory");
    let [whole, broken] = fill(dir.path()).await;
    damage(dir.path(), "event 40 of broken.");
    damage(dir.path(), "event 200 of broken.");
    assert!(whole.iter().chain(&broken).all(Option::is_some));

    let migrated = migrate(dir.path(), &mut |_| {}).expect("it is migrated").expect("there is one");
    let said: Vec<u64> = migrated.lost.iter().flat_map(|lost| lost.first..=lost.last).collect();
    assert!(said.contains(&41) && said.contains(&201) && said.len() < 20, "{said:?}");
    assert!(migrated.lost.iter().all(|lost| lost.session == "broken"));
    let log = open(dir.path());
    assert_eq!(firsts(&log, "whole").await, whole);
    let after = firsts(&log, "broken").await;
    let lost: Vec<u64> = (1..=EVENTS).filter(|seq| after[*seq as usize - 1].is_none()).collect();
    assert_eq!(said, lost, "what cannot be read is what was said");
    for (now, then) in after.iter().zip(&broken).filter(|(now, _)| now.is_some()) {
        assert_eq!(now, then, "all else is what it was");
    }
    log.close().await;
    assert!(dir.path().join("acpd.db.damaged").exists() && !dir.path().join("acpd.db.migrated").exists());
    assert_eq!(remove_kept(dir.path(), None).expect("it is looked at"), None);
    assert!(dir.path().join("acpd.db.damaged").exists());
}

// issue 29: a database of which the sessions cannot be told stays as it is
#[tokio::test]
async fn without_its_sessions_a_database_stays() {
    let dir = TempDir::new().expect("a directory");
    fill(dir.path()).await;
    damage(dir.path(), "agent of broken");
    let before = fs::read(dir.path().join("acpd.db")).expect("it is read");
    for _ in 0..2 {
        let left = migrate(dir.path(), &mut |_| {});
        assert!(matches!(left, Err(NotMigrated::Failed { .. })), "{left:?}");
        let now = fs::read(dir.path().join("acpd.db")).expect("it is read");
        assert_eq!(now.len(), before.len());
    }
    assert!(!dir.path().join("sessions").exists());
}
