//! Session state that stays in sync: what a load or resume says of it (contract 1.5).

use crate::asking::{DETACH, close, of, take_part};
use acpd_e2e::{Client, Scratch, shell_agent};
use serde_json::{Value, json};

fn option<'a>(result: &'a Value, id: &str) -> &'a Value {
    let options = result["configOptions"].as_array().expect("there are options");
    &options.iter().find(|option| option["id"] == id).expect("it is one of them")["currentValue"]
}

/// Changes everything that can be changed.
fn change(client: &mut Client, session: &str) {
    let set = |id: &str, value: Value| {
        let mut params = json!({"sessionId": session, "configId": id, "value": value});
        if value.is_boolean() {
            params["type"] = json!("boolean");
        }
        params
    };
    client.call("session/set_mode", &json!({"sessionId": session, "modeId": "plan"}));
    for (id, value) in [("model", json!("example-large")), ("shout", json!(true))] {
        let result = client.call("session/set_config_option", &set(id, value.clone()));
        // UP-6: the answer is the complete list.
        assert_eq!(
            (result["configOptions"].as_array().map(Vec::len), option(&result, id)),
            (Some(2), &value)
        );
    }
}

fn is_changed(result: &Value) {
    assert_eq!(result["modes"]["currentModeId"], "plan", "{result}");
    assert_eq!(result["modes"]["availableModes"].as_array().map(Vec::len), Some(2));
    assert_eq!((option(result, "model"), option(result, "shout")), (&json!("example-large"), &json!(true)));
}

// contract 1.5, SE-4, UP-6: current modes and options after changes, live, reattached, taken up, in another process
#[test]
fn what_was_set_is_in_every_answer() {
    for args in [&[][..], &["--without", "resume"]] {
        let scratch = Scratch::new().example("agent", args);
        let (mut client, session) = scratch.session("agent");
        change(&mut client, &session);
        let check = |client: &mut Client| {
            for method in ["session/load", "session/resume"] {
                is_changed(&take_part(client, &scratch, method, &session).0);
            }
        };
        check(&mut client);
        client.call(DETACH, &of(&session));
        check(&mut client);
        close(&mut client, &session);
        check(&mut client);
        let asked = client.prompt(&session, "loud");
        client.result(&asked);
        assert_eq!(client.text_since(&asked, &session), "LOUD");
        client.finish();
        let mut later = scratch.stdio("agent");
        later.initialize();
        check(&mut later);
        later.finish();
    }
}

// contract 1.5, UP-6: a change that the agent makes, by `currentModeId`
#[test]
fn what_the_agent_changed_is_in_the_next_answer() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    for mode in ["plan", "default", "plan"] {
        let asked = client.prompt(&session, &format!("mode {mode}"));
        client.result(&asked);
        let update = client.since(&asked).iter().find(|m| m.update_kind() == Some("current_mode_update"));
        assert_eq!(update.unwrap().json["params"]["update"]["currentModeId"], mode);
        let (result, _) = take_part(&mut client, &scratch, "session/resume", &session);
        assert_eq!(result["modes"]["currentModeId"], mode);
    }
    client.finish();
}

// contract 1.5: an agent that accepts a mode and sends no update for it
// quirk mode-not-reported (agents that set a mode without a word): the mode that the agent accepted counts
#[test]
fn a_mode_that_was_accepted_counts() {
    let scratch = Scratch::new().shell(
        "terse",
        &shell_agent(
            "while take; do case $line in *set_mode*) answer '{}';; *) update x; answer '{\"stopReason\":\"end_turn\"}';; esac; done",
        )
        .into_iter()
        .map(|arg| {
            arg.replace(
                "{\"sessionId\":\"shell-1\"}",
                "{\"sessionId\":\"shell-1\",\"modes\":{\"currentModeId\":\"a\",\"availableModes\":[{\"id\":\"a\",\"name\":\"A\"},{\"id\":\"b\",\"name\":\"B\"}]}}",
            )
        })
        .collect::<Vec<_>>(),
    );
    let (mut client, session) = scratch.session("terse");
    client.call("session/set_mode", &json!({"sessionId": session, "modeId": "b"}));
    let (result, _) = take_part(&mut client, &scratch, "session/load", &session);
    assert_eq!(result["modes"]["currentModeId"], "b");
    client.finish();
}

// IN-7, SE-4: an answer shows boolean options only to clients that know them
#[test]
fn boolean_options_are_kept_from_clients_without_them() {
    let scratch = Scratch::new();
    let mut client = scratch.stdio("example");
    client.call("initialize", &json!({"protocolVersion": 1, "clientInfo": {"name": "bare", "version": "1"}}));
    let session = client.new_session();
    for method in ["session/load", "session/resume"] {
        let (result, _) = take_part(&mut client, &scratch, method, &session);
        let options = result["configOptions"].as_array().unwrap();
        assert!(options.iter().all(|option| option["type"] != "boolean"), "{result}");
        assert_eq!(options.len(), 1);
    }
    client.finish();
}

// UP-4: after a replay a client knows the last commands, plan, usage, title and mode, as a live one does
#[test]
fn a_replay_ends_in_the_live_state() {
    const KINDS: [&str; 5] =
        ["available_commands_update", "plan", "usage_update", "session_info_update", "current_mode_update"];
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    for text in [
        "commands a\nplan x\nusage 1 9\ntitle One\nmode plan",
        "title Two\nplan x,y\nusage 2 9\ncommands a,b\nmode default",
    ] {
        assert_eq!(client.turn(&session, text), "end_turn");
    }
    let last = |messages: &[acpd_e2e::Message], kind: &str| {
        messages.iter().rfind(|m| m.update_kind() == Some(kind)).map(|m| m.json["params"]["update"].clone())
    };
    let live = KINDS.map(|kind| last(client.received(), kind));
    assert!(live.iter().all(Option::is_some));
    close(&mut client, &session);
    let before = client.received().len();
    take_part(&mut client, &scratch, "session/load", &session);
    assert_eq!(KINDS.map(|kind| last(&client.received()[before..], kind)), live);
    client.finish();
}
