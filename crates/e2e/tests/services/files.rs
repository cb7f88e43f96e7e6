//! Files that an agent reads and writes through acpd.

use crate::answering::{answer, until_asked, until_withdrawn};
use crate::together::events;
use acpd_e2e::{Client, LogForm, Scratch, lasting_locks, session_files, shell_agent, until};
use serde_json::json;
use std::path::{Path, PathBuf};

fn said(client: &mut Client, session: &str, text: &str) -> String {
    let asked = client.prompt(session, text);
    client.result(&asked);
    client.text_since(&asked, session)
}

// contract 2.2, FS-1, FS-2, FS-3, FS-4
#[test]
fn an_agent_reads_and_writes_in_its_directories() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let file = scratch.work().join("deep/down/notes.txt");
    let path = file.display();
    assert_eq!(said(&mut client, &session, &format!("write {path} some words")), "wrote 10 bytes");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "some words");
    std::fs::write(&file, "one\r\ntwo\nthree").unwrap();
    assert_eq!(said(&mut client, &session, &format!("read {path}")), "one\r\ntwo\nthree");
    assert_eq!(said(&mut client, &session, &format!("read {path} 2 1")), "two\n");
    let missing = said(&mut client, &session, &format!("read {path}.not"));
    assert!(missing.contains("-32002"), "{missing}");
    for outside in ["/etc/passwd", &format!("{}/../config.toml", scratch.work().display()), "notes.txt"] {
        let refused = said(&mut client, &session, &format!("read {outside}"));
        assert!(refused.contains("-32602"), "{outside}: {refused}");
        assert!(said(&mut client, &session, &format!("write {outside} x")).contains("-32602"));
    }
    client.finish();
    // The content is in the file, not in the log.
    let requests: Vec<_> = events(&scratch, &session).into_iter().filter(|event| event.0 == 8).collect();
    let written = &requests[0].1["message"]["params"];
    assert_eq!((&written["contentBytes"], written.get("content")), (&json!(10), None));
    assert_eq!(requests[1].1["message"]["params"]["path"], json!(file));
}

// FS-1: unless it is configured otherwise
#[test]
fn confinement_can_be_switched_off() {
    let scratch = Scratch::new().config("[files]\nconfine = false");
    let (mut client, session) = scratch.session("example");
    let file = scratch.path("outside.txt");
    assert_eq!(said(&mut client, &session, &format!("write {} far", file.display())), "wrote 3 bytes");
    client.finish();
}

// FS-5: an editor that serves files itself is asked, if that is configured; where it cannot, or has left, acpd serves them,
// and the agent sees no difference
#[test]
fn an_editor_may_serve_files() {
    let scratch = Scratch::new().config("[files]\nforward = true");
    let mut client = scratch.stdio("example");
    let fs = json!({"readTextFile": true, "writeTextFile": true});
    client.call(
        "initialize",
        &json!({"protocolVersion": 1, "clientCapabilities": {"fs": fs}, "clientInfo": {"name": "e2e", "version": "1"}}),
    );
    let session = client.new_session();
    let file = scratch.work().join("notes.txt");
    std::fs::write(&file, "saved").unwrap();
    let read = format!("read {}", file.display());
    let prompt = client.prompt(&session, &read);
    let asked = until_asked(&mut client, "fs/read_text_file");
    assert_eq!(asked.json["params"], json!({"sessionId": session, "path": file}));
    answer(&mut client, &asked, &json!({"content": "not saved yet"}));
    client.result(&prompt);
    assert_eq!(client.text_since(&prompt, &session), "not saved yet");
    let prompt = client.prompt(&session, &read);
    let asked = until_asked(&mut client, "fs/read_text_file");
    let error = json!({"code": -32603, "message": "not open"});
    client.write_line(json!({"jsonrpc": "2.0", "id": asked.json["id"], "error": error}).to_string());
    client.result(&prompt);
    assert_eq!(client.text_since(&prompt, &session), "saved");
    let prompt = client.prompt(&session, &format!("write {} changed", file.display()));
    let asked = until_asked(&mut client, "fs/write_text_file");
    let left = client.request("_sandboxagent/session/detach", &json!({"sessionId": session}));
    until_withdrawn(&mut client, &asked);
    client.result(&left);
    client.result(&prompt);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "changed");
    client.finish();
}

// contract 2.2: an agent that does not get along with files is not offered them
// quirk file-unasked (agents that do not look at capabilities): with `files = false` it is answered with -32601, and
// does no harm
#[test]
fn files_can_be_kept_from_an_agent() {
    let scratch = Scratch::new().example("without", &[]).config("files = false\nterminals = false");
    let (mut client, session) = scratch.session("without");
    assert!(said(&mut client, &session, "read /etc/hostname").contains("-32601"));
    assert!(said(&mut client, &session, "run true").contains("-32601"));
    client.finish();
}

/// Open files of a process with this name.
fn opened(pid: u32, path: &Path) -> usize {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs");
    let leads_to = |entry: std::io::Result<std::fs::DirEntry>| std::fs::read_link(entry.ok()?.path()).ok();
    open.filter_map(leads_to).filter(|target| target == path).count()
}

// contract 2.2, FS-3: reads that take long are the business of their own session, and end with it
#[test]
fn slow_reads_take_nothing_from_other_sessions() {
    let scratch = Scratch::new();
    let hole = scratch.work().join("hole");
    std::fs::File::create(&hole).unwrap().set_len(1 << 43).unwrap();
    std::fs::write(scratch.work().join("small"), "some words").unwrap();
    let body = format!(
        "take; i=0; while [ $i -lt 200 ]; do i=$((i+1))\n\
         printf '{{\"jsonrpc\":\"2.0\",\"id\":\"r%s\",\"method\":\"fs/read_text_file\",\"params\":{{\"sessionId\":\"shell-1\",\"path\":\"{}\",\"line\":5,\"limit\":1}}}}\\n' $i\n\
         done; update asked; while :; do take; done",
        hole.display()
    );
    let scratch = scratch.shell("greedy", &shell_agent(&body));
    let mut daemon = scratch.serve();
    let mut greedy = daemon.over_websocket(&scratch, "/acp?agent=greedy");
    greedy.initialize();
    let sessions: Vec<String> = (0..8).map(|_| greedy.new_session()).collect();
    for session in &sessions {
        greedy.prompt(session, "go");
        greedy.until("all of its requests", |message| {
            message.text() == Some("asked") && message.session() == Some(session)
        });
    }
    let mut other = daemon.over_websocket(&scratch, "/acp?agent=example");
    other.initialize();
    let session = other.new_session();
    let small = scratch.work().join("small");
    assert_eq!(said(&mut other, &session, &format!("read {}", small.display())), "some words");
    for session in &sessions {
        greedy.call("_sandboxagent/session/terminate", &json!({"sessionId": session}));
    }
    until("none of it is read any more", || (opened(daemon.pid(), &hole) == 0).then_some(()));
    assert_eq!(said(&mut other, &session, &format!("read {}", small.display())), "some words");
    daemon.stop();
}

// contract 2.2: the first file outside is told to the person, once, with what would change it; the agent's directory is served
// quirk file-outside
#[test]
fn the_first_file_outside_is_told() {
    let scratch = Scratch::new();
    let own = scratch.path("home/.kimi-code");
    std::fs::create_dir_all(&own).unwrap();
    let plan = own.join("plans/one.md");
    let home = format!("env = {{ HOME = {:?} }}", scratch.path("home"));
    let binary = scratch.path("kimi");
    std::os::unix::fs::symlink(acpd_e2e::acpd(), &binary).unwrap();
    let scratch =
        scratch.agent("planner", binary.to_str().expect("text"), &["example-agent".to_owned()]).config(&home);
    let prompt = format!(
        "write {} steps\nread /etc/passwd\nread /etc/hostname\nread {}",
        plan.display(),
        plan.display()
    );
    let (state, config) = (scratch.state(), scratch.config_file());
    let places = ["--state-dir", state.to_str().expect("text"), "--config", config.to_str().expect("text")];
    let (exit, out, err) = scratch.run(&[&["run"][..], &places, &["--agent", "planner", &prompt]].concat());
    assert_eq!(exit, acpd_e2e::Exit::Code(0), "{err}");
    assert!(out.contains("wrote 5 bytes") && out.contains("steps"), "{out}{err}");
    assert_eq!(std::fs::read_to_string(&plan).unwrap(), "steps");
    assert_eq!(err.matches("outside the session's directories").count(), 1, "{err}");
    assert!(err.contains("/etc/passwd") && err.contains("files = false in [agents.planner]"), "{err}");
}

/// The locks that a process has on the databases of the log for as long as it has them open.
fn log_locks(pid: u32, state: &Path) -> usize {
    databases(state).iter().map(|path| lasting_locks(pid, path)).sum()
}

/// The databases of the log, each with the memory that its users share.
fn databases(state: &Path) -> Vec<PathBuf> {
    let form = LogForm::of(state).expect("there is a log");
    let names = form.databases().iter().flat_map(|name| [(*name).to_owned(), format!("{name}-shm")]);
    names.map(|name| state.join(name)).collect()
}

/// Has an agent try each way to the files of the log, before and after which its locks and sessions are whole.
fn no_way_leads_to_the_log(scratch: &Scratch) {
    let state = scratch.state();
    let mut daemon = scratch.serve();
    let mut client = daemon.over_websocket(scratch, "/acp?agent=example");
    client.initialize();
    let session = client.new_session();
    assert_eq!(said(&mut client, &session, "before"), "before");
    let held = log_locks(daemon.pid(), &state);
    let (databases, files) = (databases(&state), session_files(&state));
    assert_eq!(held, databases.len());
    let linked =
        databases.iter().filter(|path| path.extension().is_some_and(|end| end == "db-shm")).chain(&files);
    let mut paths = vec![state.join("daemon.lock"), scratch.work().join("named")];
    for (number, path) in linked.enumerate() {
        let link = scratch.work().join(format!("linked-{number}"));
        std::fs::hard_link(path, &link).expect("a link");
        paths.push(link);
    }
    std::os::unix::fs::symlink(files.last().expect("a session is stored"), &paths[1]).expect("a link");
    let beside = databases
        .iter()
        .step_by(2)
        .flat_map(|path| ["-wal", "-open"].map(|end| format!("{}{end}", path.display())));
    paths.extend(beside.map(PathBuf::from));
    paths.extend(databases.iter().chain(&files).cloned());
    for path in paths {
        for request in ["read", "write"] {
            let words = if request == "write" { " x" } else { "" };
            let refused = said(&mut client, &session, &format!("{request} {}{words}", path.display()));
            assert!(refused.contains("one of acpd's own files"), "{request} {}: {refused}", path.display());
        }
    }
    assert_eq!(log_locks(daemon.pid(), &state), held);
    // Takes itself for the last one that has the log open, if the locks are gone.
    let before = events(scratch, &session).len();
    for turn in 0..3 {
        assert_eq!(said(&mut client, &session, &format!("turn-{turn}")), format!("turn-{turn}"));
    }
    daemon.kill();
    scratch.serve().stop();
    let after = events(scratch, &session);
    let prompts = after[before..].iter().filter(|event| event.0 == crate::stored::PROMPT);
    assert_eq!(prompts.count(), 3, "{} events, then {}", before, after.len());
}

// contract 2.2, contract 6: an agent that looks through the directory of the log takes no lock from it, is served
// no file of it by whatever path, and nothing that is said afterwards is lost
#[test]
fn what_an_agent_reads_takes_nothing_from_the_log() {
    no_way_leads_to_the_log(&Scratch::new().config("[files]\nconfine = false"));
}
