//! What other programs of the same user do at keepers, and to them: a daemon hangs for none of it, and leaves nothing behind.

use crate::gap::gone;
use crate::session::{Session, keeping, of_kind, post};
use acpd_e2e::{Daemon, Exit, Scratch, session_files, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

/// The socket of the one keeper.
fn socket(scratch: &Scratch) -> PathBuf {
    let keepers = scratch.state().join("keepers");
    until("a keeper listens", || {
        let files = std::fs::read_dir(&keepers).ok()?;
        files.flatten().map(|file| file.path()).find(|path| path.extension().is_some_and(|end| end == "sock"))
    })
}

/// The key of the one keeper, as any program of this user can read it.
fn key(scratch: &Scratch) -> String {
    const BEFORE: &str = "\"key\":\"";
    until("the key is stored", || {
        session_files(&scratch.state()).into_iter().find_map(|file| {
            let bytes = std::fs::read(file).ok()?;
            let text = String::from_utf8_lossy(&bytes);
            let at = text.rfind(BEFORE)? + BEFORE.len();
            Some(text.get(at..at + 64)?.to_owned())
        })
    })
}

/// Takes the one agent over, as a daemon does.
fn take_over(scratch: &Scratch) -> UnixStream {
    let hello = json!({"versions": [1, 1], "key": key(scratch)}).to_string();
    let mut stream = UnixStream::connect(socket(scratch)).expect("the keeper listens");
    let length = u32::try_from(hello.len() + 1).expect("it is short");
    stream.write_all(&length.to_le_bytes()).expect("it reads");
    stream.write_all(format!("H{hello}").as_bytes()).expect("it reads");
    stream.read_exact(&mut [0; 5]).expect("it answers");
    stream
}

fn hanging(scratch: &Scratch) -> (Daemon, Session, u64) {
    let daemon = scratch.serve();
    let session = Session::begin(&daemon, scratch, "example", "hang");
    session.event(&daemon, "prompt");
    let pid = session.pid(&daemon);
    (daemon, session, pid)
}

// contract 7.3, contract 1.1: a session whose agent was taken away ends as superseded at once, is answered for, and holds up no
// stop; nothing is done to the agent
#[test]
fn an_agent_that_was_taken_away_ends_its_session() {
    let scratch = keeping("300ms");
    let (mut daemon, session, pid) = hanging(&scratch);
    let stranger = take_over(&scratch);
    let ended = session.event(&daemon, "ended")["terminationInfo"].clone();
    let how = (&ended["reason"], &ended["terminatedBy"], &ended["cause"]);
    assert_eq!(how, (&json!("error"), &json!("daemon"), &json!("superseded")), "{ended}");
    assert!(ended.get("escalation").is_none_or(|rungs| rungs == &json!([])), "{ended}");
    assert_eq!(of_kind(&session.events(&daemon), "turn_ended").len(), 0);
    assert_eq!(post(&daemon, &format!("/v1/sessions/{}/terminate", session.id), &json!({})).status, 204);
    assert_eq!(session.prompt(&daemon, "hello").status, 409);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait(), Exit::Code(0));
    drop(stranger);
    // It waits for another one as long as it is kept.
    gone(pid);
    until("its keeper is gone", || scratch.mark().running("acpd keeper").is_empty().then_some(()));
}

// contract 7.2: an agent is taken over although other programs keep its keeper busy with connections
#[test]
fn a_keeper_that_is_flooded_with_connections_is_found() {
    let scratch = keeping("60s");
    let (mut daemon, session, pid) = hanging(&scratch);
    let (socket, is_over) = (socket(&scratch), CancellationToken::new());
    std::thread::scope(|scope| {
        // Also when this fails: the scope waits for its threads.
        let _over = is_over.clone().drop_guard();
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = Vec::new();
                while !is_over.is_cancelled() {
                    last.extend(UnixStream::connect(&socket));
                    last.drain(..last.len().saturating_sub(16));
                }
            });
        }
        daemon.kill();
        daemon = scratch.serve();
        assert_eq!(session.pid(&daemon), pid);
    });
    assert_eq!(of_kind(&session.events(&daemon), "reattached").len(), 1);
    daemon.stop();
}

// contract 7.2: what cannot be found any more is ended before the next daemon listens, and not left to its time
#[test]
fn a_keeper_without_a_name_is_ended() {
    let scratch = keeping("60s");
    let (mut daemon, session, pid) = hanging(&scratch);
    std::fs::remove_file(socket(&scratch)).expect("it was there");
    daemon.kill();
    let mut daemon = scratch.serve();
    assert_eq!(session.event(&daemon, "ended")["terminationInfo"]["cause"], "daemon_lost");
    gone(pid);
    daemon.stop();
}

// contract 1.2: an agent whose keeper was killed has crashed, and no daemon was missing
#[test]
fn a_keeper_that_is_killed_takes_its_agent_with_it() {
    let scratch = keeping("60s");
    let (mut daemon, session, pid) = hanging(&scratch);
    let keepers = scratch.mark().running("acpd keeper");
    let keeper = i32::try_from(keepers[0].pid).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(keeper, Signal::KILL).expect("it lives");
    let ended = session.event(&daemon, "ended")["terminationInfo"].clone();
    assert_eq!(ended["cause"], "agent_crash", "{ended}");
    gone(pid);
    daemon.stop();
}
