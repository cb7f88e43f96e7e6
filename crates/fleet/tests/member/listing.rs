//! Lists of sessions: each node knows what those of the others do, as far as the engine takes and tells it.

use crate::node::{LEASE, id, name, node, state, until};
use acpd_fleet::{Creator, Memory};
use serde_json::json;
use std::sync::Arc;

// design fleet: one list: each node knows the sessions of the others, with what they do, until they are deleted
#[tokio::test(start_paused = true)]
async fn a_session_is_known_everywhere() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    a.sessions.put("s", "idle", 1);
    let owned = until("b knows the session", || b.member.elsewhere(&id("s"))).await;
    assert_eq!((owned.session.node.clone(), owned.gone_for, state(&owned)), (name("a"), None, "idle"));
    assert!(owned.session.epoch.is_none() && owned.node.is_some());
    assert_eq!(a.member.elsewhere(&id("s")), None, "it is its own");
    a.sessions.put("s", "running", 2_000);
    let running = || b.member.elsewhere(&id("s")).filter(|owned| state(owned) == "running");
    let owned = until("it runs", running).await;
    assert!(owned.session.epoch.is_some_and(|epoch| epoch.0 > 0));
    assert_eq!(b.member.sessions_elsewhere(|_| true).len(), 1);
    let room = || b.member.node(&name("a")).filter(|sight| sight.record.room == 9);
    until("it has less room", room).await;
    let counted = b.member.nodes().into_iter().map(|sight| (sight.sessions, sight.live));
    assert_eq!(counted.collect::<Vec<_>>(), [(1, 1), (0, 0)]);
    assert_eq!(b.member.sessions_elsewhere(|owned| state(owned) == "idle"), []);
    a.sessions.0.lock().clear();
    until("it is deleted", || b.member.elsewhere(&id("s")).is_none().then_some(())).await;
    assert!(!a.member.is_stale() && !b.member.is_stale());
}

// design fleet: one list: a session of which the log says late what it did long before is known as well
#[tokio::test(start_paused = true)]
async fn a_change_that_is_read_late_is_told() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    a.sessions.put("s", "idle", 100_000);
    until("b knows the session", || b.member.elsewhere(&id("s"))).await;
    a.sessions.put("late", "idle", 1);
    until("b knows the other one", || b.member.elsewhere(&id("late"))).await;
}

// design fleet, engine down: what is known is served as stale, and what was missed is made up for
#[tokio::test(start_paused = true)]
async fn without_the_engine_lists_are_stale() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    a.sessions.put("s", "idle", 1);
    until("b knows the session", || b.member.elsewhere(&id("s"))).await;
    for link in [&a.link, &b.link] {
        link.cut(true);
    }
    until("it is said", || b.member.is_stale().then_some(())).await;
    assert!(b.member.trouble().expect("the reason").contains("the link is cut"));
    a.sessions.put("s", "running", 2_000);
    // tidy: allow sleep, on a clock that is paused nothing marks that nothing is forgotten
    tokio::time::sleep(LEASE * 2).await;
    let owned = b.member.elsewhere(&id("s")).expect("it is still known");
    assert_eq!(state(&owned), "idle");
    for link in [&a.link, &b.link] {
        link.cut(false);
    }
    let running = || b.member.elsewhere(&id("s")).filter(|owned| state(owned) == "running");
    let owned = until("it runs", running).await;
    assert_eq!(owned.gone_for, None);
    until("it is not stale", || (!b.member.is_stale()).then_some(())).await;
    assert_eq!(b.member.trouble(), None);
}

// design fleet, sessions, log archive: what the engine does not take is passed over, counted, and in the way of nothing; what is too long
// is cut or left out as far as it can be
#[tokio::test(start_paused = true)]
async fn what_the_engine_does_not_take_is_passed_over() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    a.link.bound(600);
    for (session, long) in [("1-long", 700), ("2-refused", 700), ("3-plain", 1)] {
        a.sessions.put(session, "idle", 100);
        let mut rows = a.sessions.0.lock();
        let row = rows.get_mut(&id(session)).expect("it is there");
        row.info["title"] = json!("t".repeat(long));
        if session == "2-refused" {
            let creator = Creator { name: "n".repeat(700), fingerprint: String::new() };
            row.creator = Some(creator);
        }
    }
    let cut = until("it is listed", || b.member.elsewhere(&id("1-long"))).await;
    assert_eq!((state(&cut), cut.session.info.get("title")), ("idle", None));
    until("the next is listed", || b.member.elsewhere(&id("3-plain"))).await;
    assert!(b.member.elsewhere(&id("2-refused")).is_none() && a.member.refusals().0 > 0);
    until("a has told all that it can", || (!b.member.is_behind()).then_some(())).await;
    let archived_all = || {
        let archived = |session| b.member.elsewhere(&id(session)).map(|owned| owned.session.archived);
        (archived("1-long") == Some(100) && archived("3-plain") == Some(100)).then_some(())
    };
    until("the archive has them", archived_all).await;
    // When it is taken, it is told.
    a.link.bound(usize::MAX);
    until("it is listed now", || b.member.elsewhere(&id("2-refused"))).await;
    // A piece that is refused holds up no other session.
    a.link.bound(1);
    let refused = a.member.refusals().1;
    a.sessions.put("3-plain", "idle", 110);
    let cut = until("the archive has it", || (a.member.lag() == 0).then_some(a.member.refusals().1)).await;
    assert_eq!(cut, refused, "pieces are cut to what is taken");
}
