//! Which nodes a fleet has, whether they are there, and what those that are not may have.

use crate::node::{HEARTBEAT, LEASE, Sessions, archived, id, is_whole, name, node, node_on, state, until};
use acpd_fleet::{Engine, Memory, NotRemoved, Removed};
use std::sync::Arc;
use std::time::Duration;

// design fleet: a node that leaves, and one that is lost, are shown as gone, with since when; its sessions stay in the list
#[tokio::test(start_paused = true)]
async fn a_node_that_is_gone_is_shown() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    a.sessions.put("s", "idle", 1);
    until("b knows the session", || b.member.elsewhere(&id("s"))).await;
    assert_eq!(b.member.unreachable_sessions(), 0);
    let gone = || b.member.node(&name("a")).and_then(|sight| sight.gone_for);
    // Killed: it says nothing any more.
    a.task.abort();
    until("it is lost", gone).await;
    assert_eq!(b.member.unreachable_sessions(), 1);
    let of_a = Arc::clone(&a.sessions);
    drop(a);
    let again = node(&memory, "a", "1", "y", &of_a);
    until("it is back", || gone().is_none().then_some(())).await;
    assert_eq!(b.member.unreachable_sessions(), 0);
    again.member.leave().await;
    assert!(until("it has left", gone).await < HEARTBEAT);
}

// contract 7.2: the name of a node is unique in its fleet; a copy of a state directory is no second node
#[tokio::test(start_paused = true)]
async fn a_name_has_one_node() {
    let memory = Memory::new(LEASE);
    let none = Arc::default();
    let first = node(&memory, "a", "1", "x", &none);
    until("it is there", || first.member.node(&name("a"))).await;
    let second = node(&memory, "a", "2", "x", &none);
    let trouble = until("the name is taken", || second.member.trouble()).await;
    assert!(trouble.contains("another node is called a"), "{trouble}");
    assert!(second.member.is_stale() && !first.member.is_stale());
    drop(second);
    let copy = node(&memory, "a", "1", "y", &none);
    let trouble =
        until("one of them says it", || first.member.trouble().or_else(|| copy.member.trouble())).await;
    assert!(trouble.contains("copy of this one's state directory"), "{trouble}");
    // Under another name it is none either, as long as the first one is there.
    drop(copy);
    let renamed = node(&memory, "b", "1", "z", &none);
    let trouble = until("it says it", || renamed.member.trouble().filter(|why| why.contains("node a"))).await;
    assert!(trouble.contains("node-id"), "{trouble}");
    assert!(first.member.node(&name("b")).is_none() && renamed.member.is_stale());
    first.member.leave().await;
    first.kill();
    until("a node that was renamed is one", || (!renamed.member.is_stale()).then_some(())).await;
}

// design fleet: what a node says of itself is told at once, not with the next heartbeat
#[tokio::test(start_paused = true)]
async fn a_change_is_told_at_once() {
    let memory = Memory::new(LEASE);
    let none = Arc::default();
    let (a, b) = (node(&memory, "a", "1", "x", &none), node(&memory, "b", "2", "x", &none));
    until("it is there", || b.member.node(&name("a"))).await;
    a.member.change(|record| record.draining = true);
    let drains = || b.member.node(&name("a")).filter(|sight| sight.record.draining);
    let told = tokio::time::timeout(HEARTBEAT / 2, until("it drains", drains));
    told.await.expect("before the next heartbeat");
    let names = b.member.nodes().into_iter().map(|sight| sight.record.name.to_string());
    assert_eq!(names.collect::<Vec<_>>(), ["a", "b"]);
}

// design fleet: what has become of its sessions is told by a node before it leaves
#[tokio::test(start_paused = true)]
async fn a_node_that_leaves_has_told_all() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    a.sessions.put("s", "idle", 1);
    until("b knows the session", || b.member.elsewhere(&id("s"))).await;
    a.sessions.put("s", "ended", 20);
    a.member.leave().await;
    assert!(b.member.look(&id("s")).await.is_ok());
    let owned = b.member.elsewhere(&id("s")).expect("it is known");
    assert_eq!((state(&owned), owned.session.seq, owned.session.archived), ("ended", 20, 20));
    assert!(is_whole(&archived(&b.member, "s", 0).await, 20));
    // Without an engine it goes all the same.
    b.link.cut(true);
    let begun = tokio::time::Instant::now();
    b.member.leave().await;
    assert!(begun.elapsed() < HEARTBEAT, "{:?}", begun.elapsed());
}

// design fleet: a node that is gone for good is removed with its sessions, at every node; one that is there is not
#[tokio::test(start_paused = true)]
async fn a_node_that_is_gone_for_good_is_removed() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b, of_c) = (Arc::default(), Arc::default(), Arc::default());
    let a = node(&memory, "a", "1", "x", &of_a);
    let (b, c) = (node(&memory, "b", "2", "x", &of_b), node(&memory, "c", "3", "x", &of_c));
    for session in ["s", "t"] {
        a.sessions.put(session, "idle", 9);
        until("it is known", || c.member.elsewhere(&id(session))).await;
    }
    until("it is archived", || (a.member.lag() == 0).then_some(())).await;
    let remove = async |called: &str| b.member.remove_node(&name(called)).await;
    assert_eq!(remove("a").await, Err(NotRemoved::There));
    assert_eq!(remove("b").await, Err(NotRemoved::There), "it is itself");
    assert_eq!(remove("x").await, Err(NotRemoved::Unknown));
    a.kill();
    until("it is lost", || b.member.gone_for(&name("a"))).await;
    assert_eq!(remove("a").await, Ok(Removed { sessions: 2, left: 0 }));
    for of in [&b, &c] {
        until("it is forgotten", || of.member.node(&name("a")).is_none().then_some(())).await;
        until("so are its sessions", || of.member.sessions_elsewhere(|_| true).is_empty().then_some(()))
            .await;
    }
    assert_eq!(archived(&c.member, "s", 0).await, []);
    assert_eq!(remove("a").await, Err(NotRemoved::Unknown));
    // It comes back all the same.
    let of_a = Arc::clone(&a.sessions);
    drop(a);
    let again = node(&memory, "a", "1", "y", &of_a);
    until("it is there", || b.member.elsewhere(&id("s")).filter(|owned| owned.gone_for.is_none())).await;
    again.kill();
    until("it is lost", || b.member.gone_for(&name("a"))).await;
    // Another one has its name.
    let other = node(&memory, "a", "4", "x", &Arc::default());
    until("it is there", || b.member.gone_for(&name("a")).is_none().then_some(())).await;
    assert_eq!(remove("a").await, Ok(Removed { sessions: 2, left: 0 }));
    assert_eq!(b.member.gone_for(&name("a")), None, "it stays");
    drop(other);
}

// contract 7.3: what is not known may be a session of a node that is not heard, until that is removed, or of one that is
// still telling what it has; a node that left has told all
#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_heard_may_have_more() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    a.sessions.put("s", "idle", 9);
    until("all is told", || (!a.member.is_behind() && !b.member.is_behind()).then_some(())).await;
    until("b knows the session", || b.member.elsewhere(&id("s"))).await;
    a.link.cut(true);
    until("a is not heard", || b.member.gone_for(&name("a"))).await;
    assert!(b.member.is_behind() && !b.member.is_stale());
    // A daemon that starts anew has never heard it.
    drop(b);
    let b = node(&memory, "b", "2", "y", &Arc::default());
    let sight = until("it is known by its session", || b.member.node(&name("a"))).await;
    assert!(sight.gone_for.is_some() && (sight.sessions, sight.live) == (1, 1), "{sight:?}");
    until("b is heard", || (!b.member.is_stale()).then_some(())).await;
    // tidy: allow sleep, on a clock that is paused nothing marks that nothing changes
    tokio::time::sleep(LEASE).await;
    assert!(b.member.is_behind());
    a.link.cut(false);
    until("it is back, and has told all", || (!b.member.is_behind()).then_some(())).await;
    a.kill();
    until("it is lost", || b.member.is_behind().then_some(())).await;
    assert_eq!(b.member.remove_node(&name("a")).await, Ok(Removed { sessions: 1, left: 0 }));
    until("it is forgotten", || (!b.member.is_behind()).then_some(())).await;
    // What is telling its sessions.
    let of_c = Arc::<Sessions>::default();
    of_c.put("t", "idle", 9);
    let link = Arc::new(memory.link());
    link.silence_sessions(true);
    let c = node_on(Arc::clone(&link), "c", "3", "x", &of_c);
    until("it has more than it has told", || b.member.is_behind().then_some(())).await;
    link.silence_sessions(false);
    until("it has told all", || (!b.member.is_behind()).then_some(())).await;
    assert!(b.member.elsewhere(&id("t")).is_some());
    c.member.leave().await;
    c.kill();
    until("it has left", || b.member.gone_for(&name("c"))).await;
    assert!(!b.member.is_behind(), "it has told all");
}

// contract 7.3: a node that is gone stays in the lists until it is removed, also at a daemon that starts later, and though it
// had no session; whether it has left in order is known there too
#[tokio::test(start_paused = true)]
async fn a_node_that_was_never_heard_is_known() {
    let memory = Memory::new(LEASE);
    let none = Arc::default();
    let a = node(&memory, "a", "1", "x", &none);
    let begin = async |run: &str| {
        let b = node(&memory, "b", "2", run, &Arc::default());
        until("it is a node", || (!b.member.is_stale()).then_some(())).await;
        b
    };
    let b = begin("x").await;
    until("a is heard", || b.member.node(&name("a")).filter(|sight| sight.gone_for.is_none())).await;
    a.kill();
    until("a is lost", || b.member.gone_for(&name("a"))).await;
    drop((a, b));
    let b = begin("y").await;
    let sight = b.member.node(&name("a")).expect("it belongs to the fleet");
    assert!(sight.gone_for.is_some() && !sight.record.left && sight.sessions == 0, "{sight:?}");
    assert_eq!(sight.record.version, "1");
    // tidy: allow sleep, on a clock that is paused nothing marks that nothing changes
    tokio::time::sleep(LEASE).await;
    assert!(b.member.is_behind(), "it may have sessions that nobody knows");
    let a = node(&memory, "a", "1", "y", &none);
    until("a is back", || (!b.member.is_behind()).then_some(())).await;
    a.member.leave().await;
    drop((a, b));
    let b = begin("z").await;
    assert!(b.member.node(&name("a")).is_some_and(|sight| sight.gone_for.is_some() && sight.record.left));
    until("it has told all", || (!b.member.is_behind()).then_some(())).await;
    // Its next life has another name, and the old one belongs to nobody.
    let renamed = node(&memory, "c", "1", "z", &none);
    until("it is known by the new one", || b.member.node(&name("c"))).await;
    until("and by no other", || b.member.node(&name("a")).is_none().then_some(())).await;
    renamed.kill();
    until("it is lost", || b.member.gone_for(&name("c"))).await;
    assert_eq!(b.member.remove_node(&name("c")).await, Ok(Removed { sessions: 0, left: 0 }));
    until("it is forgotten", || b.member.node(&name("c")).is_none().then_some(())).await;
    drop((renamed, b));
    let b = begin("last").await;
    let names: Vec<_> = b.member.nodes().into_iter().map(|sight| sight.record.name).collect();
    assert_eq!(names, [name("b")]);
}

// design fleet: a node is removed though its entry leaves by its lease while its sessions are removed; one that comes back
// meanwhile stays
#[tokio::test(start_paused = true)]
async fn an_entry_that_leaves_during_a_removal_is_no_node_that_comes_back() {
    for comes_back in [false, true] {
        // The engine has the entry for a second longer than the other node waits for word of it.
        let second = Duration::from_secs(1);
        let memory = Memory::new(LEASE + second);
        let (of_a, of_b) = (Arc::default(), Arc::default());
        let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
        a.sessions.put("s", "idle", 9);
        until("it is known", || b.member.elsewhere(&id("s"))).await;
        a.kill();
        until("it is lost", || b.member.gone_for(&name("a"))).await;
        assert!(memory.node(&name("a")).await.is_ok_and(|entry| entry.is_some()), "its entry is there");
        b.link.slow_removals(second * 2);
        let called = name("a");
        let removal = b.member.remove_node(&called);
        let (removed, again) = tokio::join!(removal, async {
            // tidy: allow sleep, the clock is paused, and the entry leaves by it
            tokio::time::sleep(second * 3 / 2).await;
            comes_back.then(|| node(&memory, "a", "1", "y", &Arc::default()))
        });
        let expected = match comes_back {
            false => Ok(Removed { sessions: 1, left: 0 }),
            true => Err(NotRemoved::There),
        };
        assert_eq!(removed, expected);
        drop(again);
    }
}
