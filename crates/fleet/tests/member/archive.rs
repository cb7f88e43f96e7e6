//! The archive of the events of sessions.

use crate::node::{LEASE, archived, id, is_whole, name, node, until};
use acpd_fleet::{Engine, Expected, Memory, NodeId, NodeRecord, Partition, Piece, epoch_of};
use std::sync::Arc;

// design fleet, log archive: all events of a session come to the archive, each once, over a cut link and a start of the node
#[tokio::test(start_paused = true)]
async fn the_archive_gets_every_event_once() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    for (at, session) in (1..).zip(["s", "t"]) {
        a.sessions.put(session, "idle", 100 * at);
    }
    until("all is known", || {
        (a.member.lag() == 0 && b.member.sessions_elsewhere(|_| true).len() == 2).then_some(())
    })
    .await;
    for (session, seq) in [("s", 100), ("t", 200)] {
        assert!(is_whole(&archived(&b.member, session, 0).await, seq), "{session}");
    }
    a.link.cut(true);
    a.sessions.put("s", "running", 1_000);
    until("it is behind", || (a.member.lag() == 900).then_some(())).await;
    a.link.cut(false);
    until("it has made up for it", || (a.member.lag() == 0).then_some(())).await;
    let of_a = Arc::clone(&a.sessions);
    drop(a);
    of_a.put("s", "idle", 2_000);
    let again = node(&memory, "a", "1", "y", &of_a);
    let told = || b.member.elsewhere(&id("s")).filter(|owned| owned.session.archived == 2_000);
    until("the next life goes on", told).await;
    assert_eq!(again.member.lag(), 0);
    let runs = archived(&b.member, "s", 0).await;
    assert!(is_whole(&runs, 2_000));
    // From any event on, that event's run is the first.
    for after in [1, 6, 7, 8, 99, 100, 101, 999, 1_000, 1_999, 2_000] {
        let behind: Vec<_> = runs.iter().filter(|(_, last)| *last > after).copied().collect();
        assert_eq!(archived(&b.member, "s", after).await, behind, "{after}");
    }
    assert_eq!(archived(&b.member, "unknown", 0).await, []);
}

// design fleet, fence: an owner whose session was claimed appends nothing more, and learns it by that
#[tokio::test(start_paused = true)]
async fn what_was_claimed_is_not_added_to() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    a.sessions.put_as("s", "idle", 100, Partition::Failover);
    let told = || b.member.elsewhere(&id("s")).filter(|owned| owned.session.archived == 100);
    until("it is archived", told).await;
    let (other, session) = (NodeRecord::new(name("c"), NodeId("3".to_owned()), "1"), id("s"));
    let (mut claim, revision) = memory.session(&session).await.expect("it answers").expect("it is there");
    (claim.node, claim.node_id, claim.epoch) = (other.name, other.id, None);
    let claimed = memory.put_session(&claim, Expected::Unchanged(revision)).await.expect("it is as it was");
    let (last, at) = memory.last(&session).await.expect("it answers").expect("it is there");
    let opening = Piece::opening(epoch_of(&claim, claimed), last.last);
    memory.append(&session, &opening, at).await.expect("it follows");
    a.sessions.put_as("s", "running", 300, Partition::Failover);
    until("it is another one's", || a.member.elsewhere(&session)).await;
    until("nothing of it is to be added", || (a.member.lag() == 0).then_some(())).await;
    let (last, _) = memory.last(&session).await.expect("it answers").expect("it is there");
    assert_eq!(last, opening);
}
