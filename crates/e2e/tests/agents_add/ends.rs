//! What ends an installation before it is done: nothing of it stays, and the next one goes on.

use crate::fixtures::{agent, binary, publish_npm, registry};
use crate::world::World;
use acpd_e2e::{Exit, PATIENCE};
use rustix::process::Signal;
use serde_json::json;

// issue 14: killed in the middle, an installation is not there; the next one removes what it left
#[test]
fn what_was_killed_is_not_there() {
    let world = World::new();
    let came = world.https.stalls("/x");
    let place = world.registry(&registry("x", "1.0", &binary(&world.https.url("/x"), "x", None)));
    let config = world.config();
    let started = world.start(&["agents", "add", "x", "--registry", &place]);
    came.recv_timeout(PATIENCE).expect("it is fetched");
    started.signal(Signal::KILL);
    assert_eq!(started.end().0, Exit::Signal(9));
    let agents = world.scratch.state().join("agents");
    let left = || std::fs::read_dir(agents.join(".staging")).map_or(0, Iterator::count);
    assert_eq!((agents.join("x").exists(), left()), (false, 1));
    assert_eq!(world.config(), config);
    world.https.bytes("/x", agent());
    world.done(&["agents", "add", "x", "--registry", &place]);
    assert!(agents.join("x/1.0/receipt.json").is_file() && !agents.join(".staging").exists());
}

// issue 14: Ctrl-C leaves no process and no half directory, whether acpd fetches or npm does
#[test]
fn an_interrupt_takes_back_what_was_begun() {
    let world = World::new();
    publish_npm(&world.npm, "slow-npm", &[("1.0.0", &agent())], &json!({}));
    let from_npm = world.npm.stalls("/slow-npm/-/slow-npm-1.0.0.tgz");
    let from_https = world.https.stalls("/x");
    let archive = binary(&world.https.url("/x"), "x", None);
    for (distribution, came) in [(archive, from_https), (json!({"npx": {"package": "slow-npm"}}), from_npm)] {
        let place = world.registry(&registry("x", "1.0.0", &distribution));
        let config = world.config();
        let started = world.start(&["agents", "add", "x", "--registry", &place]);
        came.recv_timeout(PATIENCE).expect("it is fetched");
        started.signal(Signal::INT);
        let (exit, _, err) = started.end();
        assert_eq!(exit, Exit::Code(130), "{err}");
        assert!(err.contains("interrupted; what was begun is taken back"), "{err}");
        world.scratch.mark().only_left(&[]).expect("no process is left");
        assert!(!world.scratch.state().join("agents").exists());
        assert_eq!(world.config(), config);
    }
}

// issue 14: two at once: one after the other, and both are there
#[test]
fn two_at_once_wait_for_each_other() {
    let world = World::new();
    let came = world.https.stalls("/slow");
    world.https.bytes("/x", agent());
    let slow = world.https.url("/slow");
    let place = world.registry(&registry("slow", "1.0", &binary(&slow, "x", None)));
    let first = world.start(&["agents", "add", "slow", "--registry", &place]);
    came.recv_timeout(PATIENCE).expect("it is fetched");
    let other = world.scratch.path("other.json");
    std::fs::write(&other, registry("x", "1.0", &binary(&world.https.url("/x"), "x", None)))
        .expect("it is written");
    let other = other.display().to_string();
    let second = world.start(&["agents", "add", "x", "--registry", &other, "--no-check"]);
    let third = world.start(&["agents", "add", "another", "--registry", &other, "--no-check"]);
    // That one fails before it has to wait.
    assert_eq!(third.end().0, Exit::Code(1));
    assert!(!world.scratch.state().join("agents/x").exists(), "it waits");
    first.signal(Signal::INT);
    assert_eq!(first.end().0, Exit::Code(130));
    assert_eq!(second.end().0, Exit::Code(0));
    assert!(world.config().contains("[agents.x]") && !world.config().contains("[agents.slow]"));
}
