//! What is acpd's own: the files of its log, under any name, and its state directory.

use crate::bench::{Bench, PATIENCE, Refusal, read, reason, write};
use crate::swapping::{ROUNDS, Swapper};
use acpd_eventlog::{EventLog, Options};
use acpd_host::{FileRules, FileSlots, Files, FilesSpec};
use serde_json::json;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Opens a log in a directory below the session's.
async fn log_in(bench: &Bench) -> EventLog {
    let log = EventLog::open(&bench.path("cwd/state"), Options::default()).expect("a log");
    log.committed().await.expect("it is open");
    log
}

/// The POSIX locks that this process has on the files of a log.
fn locks(state: &Path) -> usize {
    let inodes =
        ["acpd.db", "acpd.db-shm"].map(|name| fs::metadata(state.join(name)).expect("it is there").ino());
    let process = std::process::id().to_string();
    let held = fs::read_to_string("/proc/locks").expect("proc is mounted");
    let ours = held
        .lines()
        .filter(|line| line.contains(" POSIX ") && line.split_whitespace().any(|word| word == process));
    ours.filter(|line| inodes.iter().any(|inode| line.contains(&format!(":{inode} ")))).count()
}

fn assert_own<T: std::fmt::Debug>(name: &str, refused: Result<T, Refusal>) {
    let refused = refused.expect_err(name);
    assert!(refused.message.contains("one of acpd's own files"), "{name}: {}", refused.message);
    assert_eq!(reason::<()>(Err(refused)), (-32602, "acpd_own".to_owned()), "{name}");
}

// contract 2.2, contract 6: the log keeps its locks, whatever an agent reads and writes and whatever it calls it
#[tokio::test]
async fn no_way_leads_to_the_files_of_the_log() {
    for confine in [true, false] {
        let bench = Bench::with(FileRules { confine, ..FileRules::default() }).await;
        let log = log_in(&bench).await;
        let state = bench.path("cwd/state");
        fs::create_dir(state.join("hosts")).unwrap();
        bench.put("cwd/state/hosts/id", "1\n");
        bench.put("cwd/state/daemon.lock", "1\n");
        bench.link("cwd/named", state.join("acpd.db"));
        bench.link("cwd/relative", "state/acpd.db-shm");
        bench.link("cwd/folder", "state");
        for (name, linked) in
            [("acpd.db", "cwd/one"), ("acpd.db-shm", "more/two"), ("acpd.db-wal", "cwd/three")]
        {
            fs::hard_link(state.join(name), bench.path(linked)).unwrap();
        }
        let (before, names) = (locks(&state), bench.names("cwd/state"));
        assert!(before >= 2, "{before} locks");
        for name in [
            "cwd/state/acpd.db",
            "cwd/state/acpd.db-shm",
            "cwd/state/acpd.db-wal",
            "cwd/state/acpd.db-open",
            "cwd/state/acpd.reserve",
            "cwd/state/daemon.lock",
            "cwd/state/hosts/id",
            "cwd/state/../state/acpd.db",
            "cwd/folder/acpd.db",
            "cwd/named",
            "cwd/relative",
            "cwd/one",
            "more/two",
            "cwd/three",
        ] {
            assert_own(name, bench.read(name).await);
            assert_own(name, bench.write(name, "mine").await);
        }
        for name in ["cwd/state/new", "cwd/folder/new", "cwd/state/made/new", "cwd/state/hosts/new"] {
            assert_own(name, bench.write(name, "mine").await);
        }
        assert_eq!((locks(&state), bench.names("cwd/state")), (before, names));
        bench.write("cwd/beside", "text").await.unwrap();
        assert_eq!(bench.read("cwd/beside").await.as_deref(), Ok("text"));
        log.close().await;
    }
}

// contract 2.2: a project that somebody put into the state directory is a project
#[tokio::test]
async fn a_session_in_the_state_directory_has_its_files() {
    let bench = Bench::new().await;
    let log = log_in(&bench).await;
    fs::create_dir(bench.path("cwd/state/project")).unwrap();
    fs::hard_link(bench.path("cwd/state/acpd.db"), bench.path("cwd/state/project/linked")).unwrap();
    let spec = FilesSpec { directories: vec![bench.path("cwd/state/project")], rules: FileRules::default() };
    let files = Files::open(spec, &FileSlots::default()).await;
    let path = |name: &str| bench.text(&format!("cwd/state/project/{name}"));
    write(&files, &path("made/file"), "text").await.unwrap();
    assert_eq!(read(&files, json!({"path": path("made/file")})).await.as_deref(), Ok("text"));
    assert_own("linked", read(&files, json!({"path": path("linked")})).await);
    assert_eq!(reason(read(&files, json!({"path": path("../acpd.db")})).await).1, "outside");
    log.close().await;
}

// contract 2.2, contract 6: a name that becomes one of the log's between the look and the open is not opened either
#[tokio::test]
async fn a_name_that_is_swapped_for_one_of_the_log_is_not_opened() {
    let bench = Bench::new().await;
    let log = log_in(&bench).await;
    let state = bench.path("cwd/state");
    fs::hard_link(state.join("acpd.db-shm"), bench.path("cwd/linked")).unwrap();
    bench.put("cwd/file", "inside\n");
    let before = locks(&state);
    let swapper = Swapper::new(bench.path("cwd/file"), bench.path("cwd/linked"));
    let (mut served, mut refused) = (0, 0);
    let race = async {
        // Until both were met.
        while served < ROUNDS || refused < ROUNDS {
            match bench.read("cwd/file").await {
                Ok(text) => {
                    assert_eq!(text, "inside\n");
                    served += 1;
                }
                Err(refusal) => {
                    assert_eq!(refusal.data["reason"], "acpd_own");
                    refused += 1;
                }
            }
        }
    };
    tokio::time::timeout(PATIENCE, race).await.expect("both names are met");
    drop(swapper);
    assert_eq!(locks(&state), before);
    log.close().await;
}
