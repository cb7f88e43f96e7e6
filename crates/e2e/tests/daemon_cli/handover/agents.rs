//! Agents that a daemon hands over, or leaves to the next one when it is stopped (contract 7.2, 7.3).

use super::serve;
use crate::cli::{answers, done, front_end, json, leave, numbers, state};
use acpd_e2e::{Daemon, Exit, Http, Message, Scratch};
use serde_json::{Value, json};

fn keeping() -> Scratch {
    Scratch::new().keep("60s")
}

fn agent(scratch: &Scratch, session: &str) -> Value {
    json(scratch, &["sessions", "show", session])["metadata"]["agentPid"].clone()
}

fn events(daemon: &Daemon, session: &str, kind: &str) -> Vec<Value> {
    let path = format!("/v1/sessions/{session}/events?limit=1000");
    let (mut found, mut next) = (Vec::new(), Some(path.clone()));
    while let Some(page) = next {
        let page = Http::on(daemon.connect()).request("GET", &page, &[], "").json();
        let events = page["events"].as_array().unwrap_or_else(|| panic!("events: {page}"));
        found.extend(events.iter().filter(|event| event["kind"] == kind).cloned());
        next = page["nextCursor"].as_str().map(|cursor| format!("{path}&after={cursor}"));
    }
    found
}

// contract 7.3: ten upgrades in one turn: the same agent, and an editor sees one answer, each update once and in order
#[test]
fn an_editor_sees_nothing_of_ten_upgrades() {
    let scratch = keeping();
    let mut daemon = serve(&scratch);
    let (mut client, session) = front_end(&scratch);
    let before = agent(&scratch, &session);
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "stream 20000 60"}]});
    let asked = client.request_as("\"the prompt\"", "session/prompt", &prompt);
    for _ in 0..10 {
        let told = json(&scratch, &["handover"]);
        assert_eq!((&told["pid"], &told["sessions"]), (&daemon.pid().into(), &1.into()), "{told}");
        assert_eq!(agent(&scratch, &session), before, "the same agent");
    }
    assert_eq!(client.result(&asked)["stopReason"], "end_turn");
    assert_eq!(numbers(client.since(&asked)), (0..20_000).collect::<Vec<_>>());
    assert_eq!(answers(&client, "the prompt"), 1);
    assert_eq!(events(&daemon, &session, "reattached").len(), 10);
    assert_eq!(events(&daemon, &session, "run_started").len(), 1);
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    // The last image has counted its own.
    let counted = Http::on(daemon.connect()).request("GET", "/metrics", &[], "");
    let counted = String::from_utf8_lossy(&counted.body);
    for what in ["taken_over", "handed_over"] {
        assert!(counted.contains(&format!("acpd_agents_{what}_total{{agent=\"example\"}} 1\n")), "{counted}");
    }
    leave(client);
    daemon.stop();
}

// contract 7.3: a question that an editor has open stays open over a hand-over; its answer reaches the agent
#[test]
fn an_answer_is_given_behind_a_hand_over() {
    let scratch = keeping();
    let mut daemon = serve(&scratch);
    let (mut client, session) = front_end(&scratch);
    let asked = client.prompt(&session, "ask edit\nstream 3 20");
    let question =
        client.until("a question", |message| message.method() == Some("session/request_permission"));
    let words = done(&scratch, &["handover"]);
    assert!(words.contains("1 session went on"), "{words}");
    assert_eq!(state(&scratch, &session), "waiting");
    let result = json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}});
    client.write_line(json!({"jsonrpc": "2.0", "id": question.json["id"], "result": result}).to_string());
    assert_eq!(client.result(&asked)["stopReason"], "end_turn");
    let asked = |message: &&Message| message.method() == Some("session/request_permission");
    assert_eq!(client.received().iter().filter(asked).count(), 1);
    let resolved = events(&daemon, &session, "permission_resolved");
    assert_eq!(
        (resolved.len(), &resolved[0]["result"]["outcome"]["optionId"]),
        (1, &json!("allow-once")),
        "{resolved:?}"
    );
    leave(client);
    daemon.stop();
}

// contract 7.2: on_stop = "keep" leaves agents to the next daemon, as its death would; without, SIGTERM ends them
#[test]
fn a_stop_may_leave_agents() {
    let scratch = keeping().config("[server]\non_stop = \"keep\"");
    let mut daemon = scratch.serve();
    let (mut client, session) = front_end(&scratch);
    let before = agent(&scratch, &session);
    let asked = client.prompt(&session, "stream 10000 60");
    client.until("some of it", |message| message.text().is_some());
    let told = json(&scratch, &["stop"]);
    assert_eq!((&told["sessions"], &told["waiting"]), (&1.into(), &1.into()), "{told}");
    assert_eq!(daemon.wait(), Exit::Code(0));

    let mut daemon = scratch.serve();
    assert_eq!(client.result(&asked)["stopReason"], "end_turn");
    assert_eq!(numbers(client.since(&asked)), (0..10_000).collect::<Vec<_>>());
    assert_eq!(agent(&scratch, &session), before, "the same agent");
    done(&scratch, &["sessions", "terminate", &session]);
    leave(client);
    daemon.stop();
}

// contract 7.2: without on_stop = "keep" nothing goes on behind a stop, and the log does not say that something does
#[test]
fn a_stop_that_ends_agents_leaves_none() {
    let scratch = keeping();
    let mut daemon = scratch.serve();
    for _ in 0..6 {
        done(&scratch, &["run", "--detach", "--keep-open", "hang"]);
    }
    let log = daemon.stop();
    assert!(log.contains("agents_go_on=false") && !log.contains("agents_go_on=true"), "{log}");
}

// contract 7.3: a command goes on over a hand-over, the agent that waits for it gets all of its output, and nothing is left
#[test]
fn a_command_goes_on_over_a_hand_over() {
    let scratch = keeping();
    let mut daemon = serve(&scratch);
    let (mut client, session) = front_end(&scratch);
    let script = "echo begun; until [ -e go ]; do sleep 0.01; done; echo over";
    let asked = client.prompt(&session, &format!("run sh -c '{script}'"));
    client.until("the terminal", |message| message.update_kind() == Some("tool_call"));
    acpd_e2e::until("a terminal", || events(&daemon, &session, "terminal").first().cloned());
    done(&scratch, &["handover"]);
    std::fs::write(scratch.work().join("go"), "").expect("written");
    assert_eq!(client.result(&asked)["stopReason"], "end_turn");
    let terminals = events(&daemon, &session, "terminal");
    let written: String = terminals.iter().filter_map(|event| event["output"].as_str()).collect();
    assert_eq!(written, "begun\nover\n");
    leave(client);
    // It looks for zombies first.
    daemon.stop();
}
