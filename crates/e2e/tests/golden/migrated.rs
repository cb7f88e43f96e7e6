//! State directories of earlier versions that today's daemon migrates: REST shows the same whenever it is killed meanwhile. That it
//! shows what those versions did, `fixtures.rs` sees.

use crate::archive::{path, unpack};
use crate::show_rest::ids;
use acpd_e2e::{Daemon, Exit, Http, LogForm, Scratch, until};
use rustix::process::Signal;

/// All that REST says of sessions and their events, page by page.
fn read(daemon: &Daemon) -> Vec<String> {
    let mut http = Http::on(daemon.connect());
    let mut get = |path: &str| {
        let answer = http.request("GET", path, &[], "");
        assert_eq!(answer.status, 200, "{path}");
        let text = String::from_utf8(answer.body.clone()).expect("it is text");
        (text, answer.json())
    };
    let mut texts = vec![get("/v1/sessions?limit=500").0];
    for id in ids(daemon) {
        texts.push(get(&format!("/v1/sessions/{id}")).0);
        let mut page = format!("/v1/sessions/{id}/events?limit=500");
        loop {
            let (text, shown) = get(&page);
            texts.push(text);
            match shown["nextCursor"].as_str() {
                Some(next) => page = format!("/v1/sessions/{id}/events?limit=500&after={next}"),
                None => break,
            }
        }
    }
    texts
}

/// A copy of a fixture.
fn copy_of(fixture: &str) -> Scratch {
    let scratch = Scratch::new();
    unpack(&path(fixture, "tar"), &scratch.path(""));
    assert_eq!(LogForm::of(&scratch.state()), Some(LogForm::Database));
    scratch
}

/// Reads all that a daemon shows of a directory, and the same of the next daemon.
fn read_twice(scratch: &Scratch) -> Vec<String> {
    let shown = [(); 2].map(|()| {
        let mut daemon = scratch.serve();
        let shown = read(&daemon);
        daemon.stop();
        is_migrated(scratch);
        shown
    });
    assert!(shown[0] == shown[1], "what follows from the sessions alone");
    shown.into_iter().next().expect("there are two")
}

fn is_migrated(scratch: &Scratch) {
    let state = scratch.state();
    assert_eq!(LogForm::of(&state), Some(LogForm::Files));
    assert!(["migrating", "migrated"].iter().all(|name| !state.join(name).exists()), "nothing is left over");
    assert!(state.join("acpd.db.migrated").exists(), "the database is kept");
}

// issue 29: a daemon that is killed while it migrates, wherever it is, leaves all to the next one
#[test]
fn a_kill_while_it_migrates_loses_nothing() {
    let before = read_twice(&copy_of("second"));
    assert!(before.len() > 1, "it has sessions");
    for reached in
        ["migrating", "migrating/sessions", "migrating/hooks.db", "migrated", "acpd.db.migrated", "sessions"]
    {
        let scratch = copy_of("second");
        let state = scratch.state();
        let [place, config] = [state.clone(), scratch.config_file()].map(|path| path.display().to_string());
        let begun =
            scratch.start(&["serve", "--listen", "127.0.0.1:0", "--state-dir", &place, "--config", &config]);
        until("it has come that far", || {
            // It may pass by between two looks.
            (state.join(reached).exists() || state.join("acpd.db.migrated").exists()).then_some(())
        });
        begun.signal(Signal::KILL);
        assert_eq!(begun.end().0, Exit::Signal(Signal::KILL.as_raw()), "{reached}");
        assert!(read_twice(&scratch) == before, "{reached}");
    }
}
