//! How much of a long history a daemon reads, as its log tells.

use crate::journal::{Journal, serve};
use acpd_e2e::{Client, Daemon, Http, Scratch, until};
use acpd_eventlog::{EventLog, Options};
use serde_json::{Value, json};

const VARIABLES: &[(&str, &str)] = &[("ACPD_LOG", "acpd_host=debug")];

/// The numbers of events that were read of the session, one for each of the first `times` that its history was.
fn read(journal: &Journal, session: &str, times: usize) -> Vec<u64> {
    until("the lines of histories", || {
        let lines = journal.lines();
        let of_session =
            lines.iter().filter(|line| line["message"] == "history read" && line["session"] == session);
        let read: Vec<u64> = of_session.map(|line| line["read"].as_u64().expect("a number")).collect();
        (read.len() >= times).then_some(read)
    })
}

fn shown(daemon: &Daemon, session: &str) -> Value {
    let path = format!("/v1/sessions/{session}");
    Http::on(daemon.connect()).request("GET", &path, &[], "").json()
}

/// Waits for the first checkpoint of a session.
fn wait_for_checkpoint(scratch: &Scratch, session: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let log = EventLog::open(&scratch.state(), Options::default()).expect("it can be shared");
    let find = || runtime.block_on(log.checkpoint(session, u64::MAX >> 1)).expect("readable");
    until("a checkpoint", find);
    runtime.block_on(log.clone().close());
}

fn client(daemon: &Daemon, scratch: &Scratch) -> Client {
    let mut client = daemon.over_websocket(scratch, "/acp");
    client.initialize();
    client
}

// design 1: a session of many events opens as fast as one of few, after an end in good order and after none
#[test]
fn a_long_session_opens_from_its_checkpoint() {
    let scratch = Scratch::new().keep("0s");
    let (mut daemon, journal) = serve(&scratch, "", "--log-format json", VARIABLES);
    let mut owner = client(&daemon, &scratch);
    let session = owner.new_session();
    assert_eq!(owner.turn(&session, "stream 12000 10"), "end_turn");
    owner.call("session/close", &json!({"sessionId": session}));
    drop(owner);
    daemon.stop();
    assert!(read(&journal, &session, 0).is_empty(), "its own host knows it");

    let (mut daemon, journal) = serve(&scratch, "", "--log-format json", VARIABLES);
    let before = shown(&daemon, &session);
    let last = before["eventCount"].as_u64().expect("a number");
    assert!(last > 12000, "{before}");
    let mut owner = client(&daemon, &scratch);
    let place = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
    owner.call("session/resume", &place);
    assert_eq!(owner.turn(&session, "plan A,B\nhello"), "end_turn");
    let forked = owner.call("session/fork", &place);
    let fork = forked["sessionId"].as_str().expect("an id").to_owned();
    // The copy takes each event, those of the last turn too.
    let all = shown(&daemon, &session)["eventCount"].as_u64().expect("a number");
    assert_eq!(read(&journal, &session, 3), [0, 0, all]);
    // Those of the session and of its fork are written one after the other.
    wait_for_checkpoint(&scratch, &fork);
    daemon.kill();
    drop(owner);

    let (mut daemon, journal) = serve(&scratch, "", "--log-format json", VARIABLES);
    let after = shown(&daemon, &session);
    assert_eq!(after["terminationInfo"]["cause"], "daemon_lost");
    let since = after["eventCount"].as_u64().expect("a number") - last;
    // Once for the record of the end, which is the last event, and once to show it; from the checkpoint of the fork on.
    assert!(since > 1, "{before} {after}");
    assert_eq!(read(&journal, &session, 2), [0, 1]);
    let after = shown(&daemon, &fork);
    assert!(after["eventCount"].as_u64().is_some_and(|events| events > 12000), "{after}");
    let of_fork = read(&journal, &fork, 2);
    assert!(of_fork.len() == 2 && of_fork.iter().all(|read| *read < 5), "{of_fork:?}");
    daemon.stop();
}
