//! A node that joins with many sessions: in which order they are written, and how often.

use crate::node::{LEASE, Sessions, id, node_on, until};
use acpd_fleet::{Memory, Partition};
use std::sync::Arc;
use std::time::Duration;

const COUNT: usize = 2_000;
/// How long each write takes; some are on their way at a time.
const WRITE: Duration = Duration::from_millis(50);

/// Sessions that have all ended, of some events each.
fn many() -> Arc<Sessions> {
    let sessions = Arc::<Sessions>::default();
    for number in 0..COUNT {
        let session = format!("ended-{number:04}");
        sessions.put_as(&session, "ended", 3, Partition::Local);
        sessions.0.lock().get_mut(&id(&session)).expect("it is there").ended = true;
    }
    sessions
}

// contract 7.3: what a node lists is written once each, before the archive is: others wait for the one and not for the other
#[tokio::test(start_paused = true)]
async fn a_node_that_joins_lists_its_sessions_first() {
    let memory = Memory::new(LEASE);
    let b = node_on(Arc::new(memory.link()), "b", "2", "x", &Arc::default());
    let link = Arc::new(memory.link());
    link.slow_writes(WRITE);
    let a = node_on(Arc::clone(&link), "a", "1", "x", &many());
    let listed = || b.member.sessions_elsewhere(|_| true).len();
    until("all are listed", || (listed() == COUNT).then_some(())).await;
    let (entries, pieces) = link.writes();
    assert_eq!(entries, COUNT, "each once");
    assert!(pieces < COUNT / 10, "{pieces} pieces went before");
    until("all are in the archive", || (a.member.lag() == 0).then_some(())).await;
}

// contract 7.3: a session is at every door as soon as its creator has its answer, also while its node joins with many others
#[tokio::test(start_paused = true)]
async fn a_session_that_begins_meanwhile_waits_for_few() {
    let memory = Memory::new(LEASE);
    let b = node_on(Arc::new(memory.link()), "b", "2", "x", &Arc::default());
    let link = Arc::new(memory.link());
    link.slow_writes(WRITE);
    let sessions = many();
    let a = node_on(Arc::clone(&link), "a", "1", "x", &sessions);
    until("some are listed", || (link.writes().0 > 100).then_some(())).await;
    let before = link.writes().0;
    // The last by its id as well.
    sessions.put("new", "idle", 5_000);
    a.member.tell(&id("new")).await;
    assert!(b.member.elsewhere(&id("new")).is_some(), "it is listed when its creator is answered");
    let others = link.writes().0 - before;
    assert!(others < COUNT / 2, "{others} others went before it");
    assert!(b.member.is_behind(), "there are more");
}
