//! What is acpd's own: the files of its log, under any name, and its state directory.

use crate::bench::{Bench, PATIENCE, Refusal, read, reason, write};
use crate::database_locks::lasting_locks;
use crate::swapping::{ROUNDS, Swapper};
use acpd_eventlog::{Batch, Durability, EventLog, NewSession, Options};
use acpd_host::{FileRules, FileSlots, Files, FilesSpec};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// The databases of a log.
const DATABASES: [&str; 2] = ["index-1.db", "hooks.db"];

/// Opens a log with a session in a directory below the session's own.
async fn log_in(bench: &Bench) -> EventLog {
    let log = EventLog::open(&bench.path("cwd/state"), Options::default()).expect("a log");
    let mut events = Batch::new();
    events.push(1, 0, b"said in another session");
    let new = NewSession { id: "other".into(), owner: "host".into(), events, ..NewSession::default() };
    drop(log.create(new).await.expect("it is new"));
    log.committed().await.expect("it is open");
    log
}

/// The files below a directory.
fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// The locks that this process has on the databases of a log for as long as it has them open.
fn locks(state: &Path) -> usize {
    let names = DATABASES.iter().flat_map(|name| [(*name).to_owned(), format!("{name}-shm")]);
    names.map(|name| lasting_locks(std::process::id(), &state.join(name))).sum()
}

fn assert_own<T: std::fmt::Debug>(name: &str, refused: Result<T, Refusal>) {
    let refused = refused.expect_err(name);
    assert!(refused.message.contains("one of acpd's own files"), "{name}: {}", refused.message);
    assert_eq!(reason::<()>(Err(refused)), (-32602, "acpd_own".to_owned()), "{name}");
}

// contract 2.2, contract 6: no file of the log is opened for an agent, whatever it reads and writes and whatever it
// calls it, and the log keeps its locks
#[tokio::test]
async fn no_way_leads_to_the_files_of_the_log() {
    for confine in [true, false] {
        let bench = Bench::with(FileRules { confine, ..FileRules::default() }).await;
        let log = log_in(&bench).await;
        let state = bench.path("cwd/state");
        fs::create_dir(state.join("hosts")).unwrap();
        bench.put("cwd/state/hosts/id", "1\n");
        bench.put("cwd/state/daemon.lock", "1\n");
        bench.link("cwd/named", state.join(DATABASES[0]));
        bench.link("cwd/relative", format!("state/{}-shm", DATABASES[0]));
        bench.link("cwd/folder", "state");
        let below = |path: &Path| path.strip_prefix(&state).expect("it is there").display().to_string();
        let segments: Vec<String> = ["sessions", "claims"]
            .into_iter()
            .flat_map(|name| files_below(&state.join(name)))
            .map(|path| below(&path))
            .collect();
        let (mut own, mut linked) = (Vec::new(), segments.clone());
        for database in DATABASES {
            own.push(format!("cwd/state/{database}-open"));
            linked.extend(["", "-shm", "-wal"].map(|ending| format!("{database}{ending}")));
        }
        for (number, name) in linked.iter().enumerate() {
            let link = format!("{}/linked-{number}", ["cwd", "more"][number % 2]);
            fs::hard_link(state.join(name), bench.path(&link)).unwrap();
            own.extend([
                link,
                format!("cwd/state/{name}"),
                format!("cwd/state/../state/{name}"),
                format!("cwd/folder/{name}"),
            ]);
        }
        let known = ["state/acpd.reserve", "state/daemon.lock", "state/hosts/id", "named", "relative"];
        own.extend(known.map(|name| format!("cwd/{name}")));
        assert!(segments.len() >= 2, "{segments:?}");
        let (before, names) = (locks(&state), bench.names("cwd/state"));
        assert_eq!(before, 2 * DATABASES.len());
        for name in &own {
            assert_own(name, bench.read(name).await);
            assert_own(name, bench.write(name, "mine").await);
        }
        for name in ["new", "made/new", "hosts/new", "sessions/new", "sessions/a1/other/9.log", "claims/new"]
        {
            assert_own(name, bench.write(&format!("cwd/state/{name}"), "mine").await);
            assert_own(name, bench.write(&format!("cwd/folder/{name}"), "mine").await);
        }
        assert_eq!((locks(&state), bench.names("cwd/state")), (before, names));
        bench.write("cwd/beside", "text").await.unwrap();
        assert_eq!(bench.read("cwd/beside").await.as_deref(), Ok("text"));
        log.close().await;
    }
}

// contract 2.2: what sessions have in redo files is served under no name either
#[tokio::test]
async fn no_way_leads_to_redo_files() {
    for confine in [true, false] {
        let bench = Bench::with(FileRules { confine, ..FileRules::default() }).await;
        let options = Options { durability: Durability::Power, ..Options::default() };
        let log = EventLog::open(&bench.path("cwd/state"), options).unwrap();
        let new = NewSession { id: "other".into(), owner: "host".into(), ..NewSession::default() };
        let mut appender = log.create(new).await.unwrap();
        let mut events = Batch::new();
        events.push(1, 0, b"said in another session");
        appender.append_durable(events).await.unwrap();
        let directory = files_below(&bench.path("cwd/state/redo"));
        let first = directory.iter().find(|path| path.ends_with("0")).unwrap();
        fs::hard_link(first, bench.path("cwd/linked")).unwrap();
        bench.link("cwd/named", first.clone());
        let below = first.strip_prefix(bench.path("cwd")).unwrap().display();
        for name in ["cwd/linked", "cwd/named", &format!("cwd/{below}")] {
            assert_own(name, bench.read(name).await);
            assert_own(name, bench.write(name, "mine").await);
        }
        assert_own("new", bench.write("cwd/state/redo/new", "mine").await);
        drop(appender);
        log.close().await;
    }
}

// contract 2.2: a project that somebody put into the state directory is a project
#[tokio::test]
async fn a_session_in_the_state_directory_has_its_files() {
    let bench = Bench::new().await;
    let log = log_in(&bench).await;
    let state = bench.path("cwd/state");
    fs::create_dir(state.join("project")).unwrap();
    fs::hard_link(state.join(DATABASES[0]), state.join("project/linked")).unwrap();
    let rules = FileRules::default();
    let spec = FilesSpec { directories: vec![state.join("project")], rules: rules.clone() };
    let files = Files::open(spec, &FileSlots::default()).await;
    let path = |name: &str| bench.text(&format!("cwd/state/project/{name}"));
    write(&files, &path("made/file"), "text").await.unwrap();
    assert_eq!(read(&files, json!({"path": path("made/file")})).await.as_deref(), Ok("text"));
    assert_own("linked", read(&files, json!({"path": path("linked")})).await);
    let database = path(&format!("../{}", DATABASES[0]));
    assert_eq!(reason(read(&files, json!({"path": database})).await).1, "outside");
    // What is acpd's own there is no project.
    let segment = files_below(&state.join("sessions")).pop().unwrap();
    let spec = FilesSpec { directories: vec![segment.parent().unwrap().to_owned()], rules };
    let files = Files::open(spec, &FileSlots::default()).await;
    assert_own("segment", read(&files, json!({"path": segment})).await);
    assert_own("segment", write(&files, &segment.display().to_string(), "mine").await);
    log.close().await;
}

// contract 2.2, contract 6: a name that becomes one of the log's between the look and the open is not opened either
#[tokio::test]
async fn a_name_that_is_swapped_for_one_of_the_log_is_not_opened() {
    let bench = Bench::new().await;
    let log = log_in(&bench).await;
    let state = bench.path("cwd/state");
    fs::hard_link(state.join(format!("{}-shm", DATABASES[0])), bench.path("cwd/linked")).unwrap();
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
