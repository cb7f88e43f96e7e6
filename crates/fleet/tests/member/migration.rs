//! Sessions whose node is lost, and which another node continues.

use crate::node::{LEASE, Node, Sessions, archived, id, is_whole, name, node, node_on, until, within};
use acpd_fleet::{Fence, Memory, Partition};
use std::sync::Arc;
use std::time::Duration;

/// How long a lease, the margin and what comes behind take, when it fails twice at first.
const TAKEN_UP: Duration = Duration::from_secs(20 + 7 + 2 * (20 + 5) + 5);

// design fleet, partition: a session of a lost node is taken up once, with all its history, if it may be; then it is the new node's
#[tokio::test(start_paused = true)]
async fn a_session_of_a_lost_node_is_taken_up_once() {
    let memory = Memory::new(LEASE);
    let [of_a, of_b, of_c] = [(); 3].map(|()| Arc::<Sessions>::default());
    let a = node(&memory, "a", "1", "x", &of_a);
    let others = [node(&memory, "b", "2", "x", &of_b), node(&memory, "c", "3", "x", &of_c)];
    of_a.put_as("s", "running", 100, Partition::Failover);
    of_a.put("t", "running", 101);
    let [b, c] = &others;
    // The disk of the node that has the most room is full at first.
    of_c.put("u", "idle", 1);
    of_b.1.lock().refused = 2;
    let told = || b.member.elsewhere(&id("s")).filter(|owned| owned.session.archived == 100);
    let before = until("it is archived", told).await.session;
    until("it may run", || a.may_run().then_some(())).await;
    let lost = tokio::time::Instant::now();
    a.kill();
    let taken = |node: &Node| !node.taken_up().is_empty();
    let begun = within(TAKEN_UP, "it is claimed", || b.member.taking_up(&id("s"))).await;
    assert!(begun.session.node == name("b") && b.taken_up().is_empty(), "it does not have it yet");
    assert!(c.member.taking_up(&id("s")).is_none(), "that is another node's");
    within(TAKEN_UP, "it is taken up", || others.iter().any(taken).then_some(())).await;
    assert!(lost.elapsed() >= LEASE, "not before the lease is over");
    // tidy: allow sleep, on a clock that is paused nothing marks that nothing more is done
    tokio::time::sleep(LEASE * 3).await;
    assert_eq!((b.taken_up(), c.taken_up()), (vec![(id("s"), 100)], vec![]));
    assert!(b.member.taking_up(&id("s")).is_none(), "it has it");
    let owned = c.member.elsewhere(&id("s")).expect("it is b's");
    assert_eq!((&owned.session.node, owned.gone_for, owned.session.taking_up), (&name("b"), None, false));
    assert!(owned.session.epoch > before.epoch);
    let left = c.member.elsewhere(&id("t")).expect("it is a's");
    assert!(left.session.node == name("a") && left.gone_for.is_some());
    // It goes on there.
    of_b.put_as("s", "running", 200, Partition::Failover);
    let goes_on = || c.member.elsewhere(&id("s")).filter(|owned| owned.session.archived == 200);
    until("it goes on", goes_on).await;
    assert!(is_whole(&archived(&c.member, "s", 0).await, 200));

    // Its first node is back, and has more of it.
    drop(a);
    of_a.put_as("s", "running", 150, Partition::Failover);
    let again = node(&memory, "a", "1", "y", &of_a);
    let superseded = || Some(of_a.1.lock().superseded.clone()).filter(|superseded| !superseded.is_empty());
    assert_eq!(until("it learns it", superseded).await, [(id("s"), name("b"))]);
    until("its other sessions may run", || again.may_run().then_some(())).await;
    assert!(is_whole(&archived(&c.member, "s", 0).await, 200), "it has added nothing");
    assert_eq!(again.member.elsewhere(&id("s")).map(|owned| owned.session.node.clone()), Some(name("b")));
    assert!(again.member.elsewhere(&id("t")).is_none(), "that is its own");
}

// design fleet, partition: an owner that is cut off ends its session before another may take it up, and does not begin again
// before it has read whose it is
#[tokio::test(start_paused = true)]
async fn an_owner_that_is_cut_off_ends_first() {
    let memory = Memory::new(LEASE);
    let [of_a, of_b] = [(); 2].map(|()| Arc::<Sessions>::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    of_a.put_as("s", "running", 100, Partition::Failover);
    of_a.put_as("t", "running", 101, Partition::Failover);
    let told = || (a.member.lag() == 0 && b.member.sessions_elsewhere(|_| true).len() == 2).then_some(());
    until("they are known", told).await;
    until("they may run", || a.may_run().then_some(())).await;
    a.link.cut(true);
    let cut = tokio::time::Instant::now();
    until("it is fenced", || a.is_fenced().then_some(())).await;
    let counted = of_a.1.lock().counts_until.expect("it was heard");
    assert!(counted <= tokio::time::Instant::now() && counted > cut, "what it had said before");
    assert!(cut.elapsed() < LEASE, "{:?}", cut.elapsed());
    assert_eq!(b.taken_up(), []);
    within(TAKEN_UP, "both are taken up", || (b.taken_up().len() == 2).then_some(())).await;
    assert!(a.is_fenced());
    a.link.cut(false);
    until("it may run what is its own", || a.may_run().then_some(())).await;
    let mut superseded = of_a.1.lock().superseded.clone();
    superseded.sort();
    assert_eq!(superseded, [(id("s"), name("b")), (id("t"), name("b"))], "before that");
}

// design fleet, partition: a node that is away for less than its lease keeps its sessions
#[tokio::test(start_paused = true)]
async fn a_node_that_is_back_in_time_keeps_its_sessions() {
    let memory = Memory::new(LEASE);
    let [of_a, of_b] = [(); 2].map(|()| Arc::<Sessions>::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    of_a.put_as("s", "running", 100, Partition::Failover);
    until("it is known", || b.member.elsewhere(&id("s"))).await;
    until("it may run", || a.may_run().then_some(())).await;
    for _ in 0..3 {
        a.link.cut(true);
        until("it is fenced", || a.is_fenced().then_some(())).await;
        a.link.cut(false);
        until("it may run again", || a.may_run().then_some(())).await;
    }
    // At a start what was left runs until it is known whose it is, or that takes too long.
    drop(a);
    let link = Arc::new(memory.link());
    link.cut(true);
    let a = node_on(link, "a", "1", "y", &of_a);
    assert_eq!(until("it begins", || a.sessions.1.lock().fence).await, Fence::ForNew);
    until("it is fenced", || a.is_fenced().then_some(())).await;
    a.link.cut(false);
    until("it may run again", || a.may_run().then_some(())).await;
    // A node that leaves may come back as well: its next version, with the agents that were kept.
    a.member.leave().await;
    a.kill();
    // tidy: allow sleep, on a clock that is paused nothing marks that nothing is done
    tokio::time::sleep(LEASE).await;
    drop(a);
    let _again = node(&memory, "a", "1", "z", &of_a);
    // tidy: allow sleep, on a clock that is paused nothing marks that nothing is done
    tokio::time::sleep(LEASE * 3).await;
    assert_eq!((b.taken_up(), of_a.1.lock().superseded.clone()), (vec![], vec![]));
}

// design fleet, partition: while a session is taken up it is listed by the node that takes it up
#[tokio::test(start_paused = true)]
async fn a_session_that_is_taken_up_is_always_listed() {
    let memory = Memory::new(LEASE);
    let [of_a, of_b] = [(); 2].map(|()| Arc::<Sessions>::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    of_a.put_as("s", "running", 100, Partition::Failover);
    until("it is archived", || b.member.elsewhere(&id("s")).filter(|owned| owned.session.archived == 100))
        .await;
    of_b.1.lock().refused = 1;
    a.kill();
    let is_listed = || {
        let elsewhere = b.member.sessions_elsewhere(|owned| owned.session.session == id("s")).len();
        elsewhere + of_b.0.lock().len()
    };
    within(TAKEN_UP, "it is taken up", || {
        assert!(is_listed() >= 1, "it is missing");
        (!b.taken_up().is_empty()).then_some(())
    })
    .await;
    // tidy: allow sleep, on a clock that is paused nothing marks that nothing happens
    tokio::time::sleep(LEASE).await;
    assert_eq!(is_listed(), 1, "once");
}
