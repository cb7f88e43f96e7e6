//! Turns in which nothing comes from the agent for long (contract 7.3).

use acpd_e2e::{Exit, Http, Scratch, check_event, connect, until_counted};
use serde_json::{Value, json};

const STALLED: &str = "_sandboxagent/session/stalled";

// contract 7.3: viewers, events and metrics tell a turn that says nothing, and that it goes on; the turn is left alone
#[test]
fn a_silent_turn_is_told_to_all() {
    let scratch = Scratch::new().timeout("stall", "300ms");
    let mut daemon = scratch.serve();
    let mut client = daemon.over_websocket(&scratch, "/acp");
    client.initialize();
    let session = client.new_session();
    let prompt = client.prompt(&session, "sleep 2000\nback");
    let first = client.until(STALLED, |message| message.method() == Some(STALLED));
    let params = &first.json["params"];
    assert_eq!((&params["sessionId"], &params["turn"]), (&json!(session), &json!(1)));
    assert!(params["silentMs"].as_u64() >= Some(300) && params.get("goesOn").is_none(), "{params}");
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
    let scratch = Scratch::new().timeout("stall", "1s");
    let (state, config) = (scratch.state(), scratch.config_file());
    let places = [state.to_str(), config.to_str()].map(|path| path.expect("scratch paths are text"));
    let args = ["run", "--state-dir", places[0], "--config", places[1], "sleep 2500\nback"];
    let (exit, out, err) = scratch.run(&args);
    assert_eq!((exit, out.trim()), (Exit::Code(0), "back"), "{err}");
    assert!(err.contains("nothing has come from the agent for 1s; Ctrl-C cancels"), "{err}");
}
