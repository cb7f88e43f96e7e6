//! Turns in which nothing comes from the agent for long (contract 7.3).

use acpd_e2e::{Gate, Http, Scratch, acpd, check_event, connect, shell_agent, until, until_counted};
use serde_json::{Value, json};
use std::process::Stdio;

const STALLED: &str = "_sandboxagent/session/stalled";

/// A world with an agent, `gated`, that says nothing in its turn before it is let through the gate.
fn gated(stall: &str) -> (Scratch, Gate) {
    let scratch = Scratch::new().timeout("stall", stall);
    let gate = Gate::new(scratch.path("gate"));
    let turn = format!("take; {}; update back; answer '{{\"stopReason\":\"end_turn\"}}'; take", gate.line());
    (scratch.shell("gated", &shell_agent(&turn)), gate)
}

// contract 7.3: viewers, events and metrics tell a turn that says nothing, and that it goes on; the turn is left alone
#[test]
fn a_silent_turn_is_told_to_all() {
    let (scratch, gate) = gated("300ms");
    let mut daemon = scratch.serve();
    let mut client = daemon.over_websocket(&scratch, "/acp?agent=gated");
    client.initialize();
    let session = client.new_session();
    let prompt = client.prompt(&session, "hello");
    let first = client.until(STALLED, |message| message.method() == Some(STALLED));
    let params = &first.json["params"];
    assert_eq!((&params["sessionId"], &params["turn"]), (&json!(session), &json!(1)));
    assert!(params["silentMs"].as_u64() >= Some(300) && params.get("goesOn").is_none(), "{params}");
    gate.let_one_through();
    assert_eq!(client.result(&prompt)["stopReason"], "end_turn");
    let told: Vec<&str> = client
        .since(&prompt)
        .iter()
        .filter_map(|message| match message.method() {
            Some(STALLED) if message.json["params"]["goesOn"] == true => Some("goes on"),
            Some(STALLED) => Some("stalled"),
            _ => message.text(),
        })
        .collect();
    // A slow machine may have it stall again.
    assert!(told.starts_with(&["stalled", "goes on", "back"]), "{told:?}");
    let events = Http::on(connect(daemon.address()))
        .request("GET", &format!("/v1/sessions/{session}/events"), &[], "")
        .json();
    let events = events["events"].as_array().expect("a page").clone();
    events.iter().for_each(check_event);
    let of_kind: Vec<&Value> = events.iter().filter(|event| event["kind"] == "stalled").collect();
    assert_eq!((of_kind[0].get("goesOn"), of_kind[1].get("goesOn")), (None, Some(&json!(true))));
    let begun = told.iter().filter(|told| **told == "stalled").count() as u64;
    until_counted(daemon.address(), "acpd_turns_stalled_total", begun);
    drop(client);
    daemon.stop();
}

// contract 7.2: a person is told, and can cancel
#[test]
fn a_person_is_told() {
    let (scratch, gate) = gated("1s");
    let said = scratch.path("said");
    let mut command = scratch.command(acpd());
    command.args(["run", "--agent", "gated", "--state-dir"]).arg(scratch.state());
    command.arg("--config").arg(scratch.config_file()).arg("hello");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(std::fs::File::create(&said).expect("there is room"));
    let run = command.spawn().expect("acpd starts");
    let said = || std::fs::read_to_string(&said).expect("it is there");
    let words = "nothing has come from the agent for 1s; Ctrl-C cancels";
    until("it is told", || said().contains(words).then_some(()));
    gate.let_one_through();
    let ended = run.wait_with_output().expect("it is our child");
    let out = String::from_utf8(ended.stdout).expect("text");
    assert_eq!((ended.status.code(), out.trim()), (Some(0), "back"), "{}", said());
}
