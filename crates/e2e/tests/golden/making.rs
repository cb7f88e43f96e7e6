//! Makes fixtures: plays the scenes with a binary, and keeps what it recorded and what it shows of that.
//!
//! In every run the scenes are played with the binary under test, so that they do not rot. With `ACPD_GOLDEN_BINARY` and
//! `ACPD_GOLDEN_NAME` they are played with that one, below a neutral path, and become fixtures of that name; with
//! `ACPD_GOLDEN_SHOWN_BY` another binary shows them.

use crate::archive::{pack, path, write_text};
use crate::difference::difference;
use crate::events::{Stored, stored};
use crate::scenes::{World, all, killed};
use crate::show::{View, show};
use acpd_e2e::{files_below, judge_log};
use acpd_host::EventKind;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where the scenes of fixtures keep their files: on every machine the same.
const NEUTRAL: &str = "/tmp/acpd-golden";

/// The binary and the name of fixtures to make.
fn wanted() -> Option<(PathBuf, String)> {
    let name = std::env::var("ACPD_GOLDEN_NAME").ok()?;
    Some((std::env::var_os("ACPD_GOLDEN_BINARY").expect("ACPD_GOLDEN_BINARY is set too").into(), name))
}

fn world() -> World {
    match wanted() {
        None => World::new(acpd_e2e::acpd(), None),
        Some((binary, _)) => {
            std::fs::create_dir_all(NEUTRAL).expect("a directory for files");
            World::new(binary, Some(NEUTRAL.into()))
        }
    }
}

/// Keeps a world as a fixture, and what its binary shows of it, which has to be the same twice.
fn keep(world: &World, suffix: &str) {
    let Some((binary, name)) = wanted() else { return };
    let binary = std::env::var_os("ACPD_GOLDEN_SHOWN_BY").map_or(binary, PathBuf::from);
    let name = format!("{name}{suffix}");
    let archive = path(&name, "tar");
    pack(&world.scratch.path(""), &["agent", "state"], &archive);
    let mut expected = String::new();
    for view in View::ALL {
        let shown = show(&archive, view, &binary);
        if let Some(difference) = difference(&shown, &show(&archive, view, &binary)) {
            panic!("{name}, {view:?}: {}: shown twice, it differs\n{difference}", binary.display());
        }
        expected.push_str(&shown);
    }
    write_text(&expected, &path(&name, "expected"));
    is_neutral(world, &expected);
    // Else it was never made, or is gone.
    let _gone = std::fs::remove_dir_all(NEUTRAL);
}

/// Nothing of the machine stands in a fixture.
fn is_neutral(world: &World, expected: &str) {
    let kept = std::fs::read_dir(world.scratch.path("agent")).expect("it is there").flatten();
    let kept = kept.filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
    let events = stored(&world.scratch.state()).into_iter().flat_map(|session| session.events);
    let events = events.map(|event| String::from_utf8_lossy(&event.payload).into_owned());
    let (scratch, (binary, _)) = (world.scratch.path(""), wanted().expect("a fixture is being made"));
    let of_this_machine = [
        scratch.display().to_string(),
        binary.display().to_string(),
        env!("CARGO_MANIFEST_DIR").to_owned(),
        std::env::var("HOME").unwrap_or_default() + "/",
        std::env::var("PATH").unwrap_or_default(),
        std::fs::read_to_string("/etc/hostname").unwrap_or_default(),
    ];
    for text in kept.chain(events).chain([expected.to_owned()]) {
        for own in of_this_machine.iter().map(|own| own.trim()).filter(|own| own.len() > 3) {
            assert!(!text.contains(own), "{own} is in {text:.2000}");
        }
    }
}

/// True of a log as one is that nobody has closed.
fn is_left_open(state: &Path) -> bool {
    let has_content = |path: PathBuf| path.metadata().is_ok_and(|file| file.len() > 0);
    // What its host says it has.
    files_below(&state.join("claims")).into_iter().any(has_content)
}

fn judged(world: &World) -> Vec<Stored> {
    let state = world.scratch.state();
    judge_log(&state).unwrap_or_else(|wrong| panic!("{wrong}"));
    stored(&state).into_iter().flat_map(|session| session.events).collect()
}

// contract 1.6: the scenes have every kind of event, and every cause of an end that a log can have
#[test]
fn scenes_cover_all_there_is() {
    let world = all(world());
    keep(&world, "");
    let events = judged(&world);
    let missing = (1..).map_while(EventKind::from_number);
    // A daemon that takes over is a scene of its own: `continuity`.
    let missing = missing.filter(|kind| *kind != EventKind::Reattached);
    let missing = missing.filter(|kind| !events.iter().any(|event| event.kind == kind.number()));
    assert_eq!(missing.collect::<Vec<_>>(), []);
    let ends = events.iter().filter(|event| event.kind == EventKind::Ended.number());
    let ends: Vec<Value> =
        ends.map(|end| serde_json::from_slice(&end.payload).expect("it is JSON")).collect();
    let causes: BTreeSet<&str> = ends.iter().filter_map(|end| end["cause"].as_str()).collect();
    // A process that cannot be started, or does not answer `initialize`, has no session yet.
    let expected = [
        "agent_crash",
        "agent_exit",
        "client_close",
        "client_terminate",
        "daemon_lost",
        "daemon_shutdown",
        "idle_timeout",
        "out_of_memory",
        "protocol_error",
    ];
    assert_eq!(causes, BTreeSet::from(expected));
}

// contract 1.6: and a log as SIGKILL leaves it, with turns, questions and terminals open
#[test]
fn a_killed_daemon_leaves_a_log() {
    let world = killed(world());
    assert!(is_left_open(&world.scratch.state()), "nothing of it was put in order");
    keep(&world, "_killed");
    let events = judged(&world);
    assert!(events.iter().any(|event| event.kind == EventKind::Terminal.number()));
}
