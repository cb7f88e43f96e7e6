//! What is no regular file in the state directory, or is far too long: nothing keeps a daemon from starting.

use crate::gap::gone;
use crate::session::{Session, keeping};
use acpd_e2e::{Deadline, Exit, PATIENCE, Scratch, make_database_log};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs::File;
use std::path::Path;

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
}

/// Makes something of each kind that is no file of an end.
const ODD: [fn(&Path); 4] = [
    pipe,
    |path| std::fs::create_dir(path).expect("made"),
    |path| File::create(path).and_then(|file| file.set_len(3 << 30)).expect("made"),
    |path| std::os::unix::fs::symlink("/dev/zero", path).expect("a link"),
];

/// A session whose daemon, keeper and agent were killed, with something odd where its end would be.
fn without_an_end(scratch: &Scratch, make: fn(&Path)) -> Session {
    let mut daemon = scratch.serve();
    let session = Session::begin(&daemon, scratch, "example", "hang");
    session.event(&daemon, "prompt");
    let pid = session.pid(&daemon);
    daemon.kill();
    let directory = scratch.state().join("keepers");
    // Its name says which one it is; it listens when it outlives its daemon.
    let keeper = acpd_e2e::until("the keeper listens", || {
        let mut files = std::fs::read_dir(&directory).ok()?.flatten().map(|file| file.path());
        files.find(|path| path.extension().is_some_and(|extension| extension == "sock"))
    });
    for process in scratch.mark().running("acpd keeper") {
        let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, Signal::KILL).expect("it lives");
    }
    gone(pid);
    make(&keeper.with_extension("end"));
    session
}

// contract 7.2: whatever lies where a keeper would have left word of an end, the daemon starts and the session has an end
#[test]
fn an_odd_end_keeps_no_daemon_from_starting() {
    for make in ODD {
        let scratch = keeping("60s");
        let session = without_an_end(&scratch, make);
        let mut daemon = scratch.serve();
        let ended = session.event(&daemon, "ended")["terminationInfo"].clone();
        assert_eq!(ended["cause"], "daemon_lost", "{ended}");
        let again = crate::session::post(&daemon, &session.path("/resume"), &json!({}));
        assert_eq!(again.status, 200, "{}", again.json());
        daemon.stop();
    }
}

// contract 6: a pipe in the place of a file that a daemon only remembers things in keeps it from nothing
#[test]
fn a_pipe_among_its_files_keeps_no_daemon_from_starting() {
    let scratch = Scratch::new();
    scratch.serve().stop();
    let places =
        ["agent-methods.json", "token-uses.json", "token-uses.json.new", "daemon.config", "daemon.address"];
    let places =
        places.into_iter().chain(["acpd.reserve", "hosts/x", "keepers/a.1.end", "keepers/a.1.end-begun"]);
    let receipt = "agents/mine/1.0/receipt.json";
    for place in places.chain([receipt]) {
        let path = scratch.state().join(place);
        let _not_there = std::fs::remove_file(&path);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("made");
        pipe(&path);
    }
    let deadline = Deadline::after(PATIENCE);
    let mut daemon = scratch.serve();
    assert!(!deadline.is_over());
    daemon.stop();
}

// contract 6: a lock that is no file is named in the error, at once
#[test]
fn a_lock_that_is_no_file_is_named() {
    for (is_old, lock) in [(false, "daemon.lock"), (false, "index-1.db-open"), (true, "acpd.db-open")] {
        let scratch = Scratch::new();
        std::fs::create_dir_all(scratch.state()).expect("made");
        scratch.exempt_logs("one cannot be opened");
        if is_old {
            make_database_log(&scratch.state());
        }
        pipe(&scratch.state().join(lock));
        let [state, config] = [scratch.state(), scratch.config_file()].map(|path| path.display().to_string());
        let (exit, _, err) =
            scratch.run(&["serve", "--listen", "127.0.0.1:0", "--state-dir", &state, "--config", &config]);
        assert!(
            exit == Exit::Code(1) && err.contains(lock) && err.contains("no regular file"),
            "{exit:?} {err}"
        );
    }
}
