//! Whose a session is: claims of ids, and false owners in the directory.

use crate::node::{LEASE, Sessions, id, name, node, state, until};
use acpd_fleet::{Claim, Engine, Expected, Memory, NodeId, NodeRecord, Partition, SessionRecord};
use serde_json::json;
use std::sync::Arc;

// design fleet, fence: a node that starts again goes on with its claims
#[tokio::test(start_paused = true)]
async fn a_claim_outlives_its_node() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    let epoch = |state: &'static str| {
        let member = b.member.clone();
        move || {
            member
                .elsewhere(&id("s"))
                .filter(|owned| owned.session.info["state"] == state)
                .and_then(|owned| owned.session.epoch)
        }
    };
    a.sessions.put("s", "idle", 1);
    until("it is claimed", || b.member.elsewhere(&id("s"))).await;
    a.sessions.put("s", "running", 2_000);
    let first = until("it is written", epoch("running")).await;
    let of_a = Arc::clone(&a.sessions);
    drop(a);
    of_a.put("s", "waiting", 3_000);
    let _again = node(&memory, "a", "1", "y", &of_a);
    assert_eq!(until("it is written again", epoch("waiting")).await, first);
}

// contract 7.3: the id of a session that is to begin is one node's; it is free again when none came of it
#[tokio::test(start_paused = true)]
async fn an_id_is_claimed_before_its_session_begins() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    for of in [&a, &b] {
        until("it is told", || (!of.member.is_stale()).then_some(())).await;
    }
    let is_other = |claim: &Claim| matches!(claim, Claim::Other(owned) if owned.session.node == name("a"));
    let claim = a.member.claim(&id("s"), None).await;
    assert!(matches!(claim, Claim::Own(_)));
    // The same request under way twice.
    let again = a.member.claim(&id("s"), None).await;
    assert!(matches!(again, Claim::Own(_)));
    assert!(is_other(&b.member.claim(&id("s"), None).await), "at once");
    assert_eq!(b.member.sessions_elsewhere(|_| true), [], "it is no session");
    drop(claim);
    // tidy: allow sleep, on a clock that is paused nothing marks that nothing happens
    tokio::time::sleep(LEASE * 2).await;
    assert!(is_other(&b.member.claim(&id("s"), None).await), "the other request is under way");
    drop(again);
    let free = until("it is free", || b.member.elsewhere(&id("s")).is_none().then_some(()));
    free.await;
    let claim = b.member.claim(&id("s"), None).await;
    assert!(matches!(claim, Claim::Own(_)));
    b.sessions.put("s", "idle", 1);
    drop(claim);
    b.member.tell(&id("s")).await;
    assert_eq!(a.member.look(&id("s")).await.map(|at| at.is_some()), Ok(true));
    let owned = a.member.elsewhere(&id("s")).expect("it is told");
    assert_eq!((owned.session.node.clone(), state(&owned)), (name("b"), "idle"));
    // tidy: allow sleep, on a clock that is paused nothing marks that nothing happens
    tokio::time::sleep(LEASE * 2).await;
    assert!(a.member.elsewhere(&id("s")).is_some_and(|owned| state(&owned) == "idle"), "it stays");
    a.link.cut(true);
    until("it is said", || a.member.is_stale().then_some(())).await;
    assert!(matches!(a.member.claim(&id("t"), None).await, Claim::Unknown));
    assert!(matches!(a.member.claim(&id("s"), None).await, Claim::Other(_)), "what is known is known");
}

/// Writes another owner into the entry of a session, as one does who has only a credential of the engine.
async fn claim_falsely(memory: &Memory, session: &str, owner: &NodeRecord, created_ms: i64) {
    let (mut entry, revision) = memory.session(&id(session)).await.expect("it answers").expect("it is there");
    (entry.node, entry.node_id, entry.epoch) = (owner.name.clone(), owner.id.clone(), None);
    entry.created_ms = created_ms;
    memory.put_session(&entry, Expected::Unchanged(revision)).await.expect("it is as it was");
}

// contract 7.3: the truth of a session is the log of its node: a false owner in the directory takes nothing from it, and
// the entry is written again, under an epoch of its own
#[tokio::test(start_paused = true)]
async fn a_node_believes_its_own_log() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    for (session, state) in [("live", "running"), ("ended", "idle")] {
        a.sessions.put(session, state, 100);
    }
    a.sessions.0.lock().get_mut(&id("ended")).expect("it is there").ended = true;
    let told = |session| b.member.elsewhere(&id(session)).filter(|owned| owned.session.archived == 100);
    for session in ["live", "ended"] {
        until("it is archived", || told(session)).await;
    }
    let false_owner = NodeRecord::new(name("evil"), NodeId("3".to_owned()), "1");
    memory.put_node(&false_owner, Expected::Nothing).await.expect("it is new");
    for session in ["live", "ended"] {
        let epoch = told(session).expect("it is known").session.epoch;
        for _ in 0..3 {
            claim_falsely(&memory, session, &false_owner, 0).await;
            until("b is told", || {
                b.member.elsewhere(&id(session)).filter(|owned| owned.session.node == name("evil"))
            })
            .await;
            assert_eq!(a.member.elsewhere(&id(session)), None, "it is here");
            assert_eq!(a.member.sessions_elsewhere(|_| true), [], "and is listed once");
            let again = || b.member.elsewhere(&id(session)).filter(|owned| owned.session.node == name("a"));
            let again = until("its entry is written again", again).await;
            assert_eq!(again.session.node_id, NodeId("1".to_owned()));
        }
        let written = || told(session).filter(|owned| owned.session.epoch > epoch);
        until("under an epoch of its own, behind which the archive goes on", written).await;
    }
    assert_eq!(a.sessions.1.lock().superseded, []);
    // What it gave up is the other node's.
    a.sessions.put_as("movable", "running", 100, Partition::Failover);
    until("it is archived", || told("movable")).await;
    claim_falsely(&memory, "movable", &false_owner, 0).await;
    until("it is given up", || a.sessions.1.lock().superseded.first().cloned()).await;
}

// contract 7.3: a false owner takes nothing either from a node that begins, from the first moment on, also while it cannot
// read its log
#[tokio::test(start_paused = true)]
async fn a_node_that_begins_believes_its_own_log() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::<Sessions>::default(), Arc::default());
    let b = node(&memory, "b", "2", "x", &of_b);
    let false_owner = NodeRecord::new(name("evil"), NodeId("3".to_owned()), "1");
    memory.put_node(&false_owner, Expected::Nothing).await.expect("it is new");
    let claim = SessionRecord::new(id("live"), &false_owner, json!({"state": "idle"}));
    memory.put_session(&claim, Expected::Nothing).await.expect("it is new");
    of_a.put("live", "running", 100);
    for unread in [0, 5] {
        let of =
            |owner: &str| b.member.elsewhere(&id("live")).filter(|owned| owned.session.node == name(owner));
        until("b is told", || of("evil")).await;
        of_a.1.lock().unread = unread;
        let a = node(&memory, "a", "1", "x", &of_a);
        until("its entry is written again", || {
            assert_eq!(a.member.elsewhere(&id("live")), None, "it is here");
            assert_eq!(a.member.sessions_elsewhere(|_| true), [], "and is listed once");
            of("a")
        })
        .await;
        drop(a);
        claim_falsely(&memory, "live", &false_owner, 0).await;
    }
}
