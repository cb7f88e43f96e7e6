//! What is started for which request, and which process serves which session.

use crate::asking::{TERMINATE, close, meta, of, taking};
use crate::tapped::{tapped, times_heard};
use acpd_e2e::{Client, Gate, Scratch, taking_shell_agent};
use serde_json::{Value, json};
use std::path::Path;

fn starts(scratch: &Scratch, agent: &str) -> usize {
    times_heard(scratch, agent, "initialize")
}

/// Creates a session that works in `cwd`.
fn working_in(client: &mut Client, cwd: &Path) -> String {
    let result = client.call("session/new", &json!({"cwd": cwd, "mcpServers": []}));
    result["sessionId"].as_str().expect("a session has an id").to_owned()
}

// contract 1: nothing is started for a request that cannot succeed
#[test]
fn what_cannot_be_starts_nothing() {
    let scratch = tapped(Scratch::new(), "tapped", "", "--without fork");
    let scratch = tapped(scratch, "forgetful", "", "--without load,resume");
    let (mut client, session) = scratch.session("tapped");
    assert_eq!(starts(&scratch, "tapped"), 1, "the one that initialize started serves the first session");
    let cwd = |cwd: &str| json!({"cwd": cwd, "mcpServers": []});
    let with = |session: &str, cwd: &str| json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
    let mut refused = |method: &str, params: &Value, code: i64| {
        let error = client.refused(method, params);
        assert_eq!(error["code"], code, "{method} {params}: {error}");
    };
    refused("session/new", &cwd("relative"), -32602);
    refused("session/new", &cwd("/nowhere/at/all"), -32602);
    refused("session/new", &json!({"cwd": "/", "mcpServers": 1}), -32602);
    refused("session/fork", &with("nope", "/usr"), -32002);
    refused("session/fork", &with(&session, "/usr"), -32601);
    refused("session/load", &with("nope", "/usr"), -32002);
    close(&mut client, &session);
    let mut refused = |method: &str, params: &Value, code: i64| {
        let error = client.refused(method, params);
        assert_eq!(error["code"], code, "{method} {params}: {error}");
    };
    refused("session/resume", &with(&session, "relative"), -32602);
    refused("session/load", &with(&session, "/nowhere/at/all"), -32602);
    assert_eq!(starts(&scratch, "tapped"), 1);
    client.finish();

    let (mut other, forgotten) = scratch.session("forgetful");
    assert_eq!(other.turn(&forgotten, "words"), "end_turn");
    close(&mut other, &forgotten);
    let error = other.refused("session/resume", &taking(&scratch, &forgotten));
    assert!(error["message"].as_str().unwrap().contains("can neither resume nor load"), "{error}");
    let result = other.call("session/load", &taking(&scratch, &session));
    assert!(meta(&result)["reason"].as_str().unwrap().contains("it belongs to agent tapped"), "{result}");
    assert_eq!(starts(&scratch, "forgetful"), 1);
    other.finish();
}

/// A shell agent that says where its process is, and refuses sessions in directories that are named so.
fn telling_where() -> Vec<String> {
    taking_shell_agent(
        "take; answer '{\"protocolVersion\":1,\"agentCapabilities\":{}}'\n\
         while take; do case $line in\n\
         *'\"session/new\"'*refused*)\n\
         printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32603,\"message\":\"%s\"}}\\n' $id \"$$\";;\n\
         *'\"session/new\"'*) answer '{\"sessionId\":\"shell-1\"}';;\n\
         *) update \"$$ in ${PWD##*/}\"; answer '{\"stopReason\":\"end_turn\"}';;\n\
         esac; done",
    )
}

// contract 1: a process that was started in the directory of a session that its agent refused serves no session of
// another directory; the one that initialize started, before any directory was known, serves the first session anywhere
#[test]
fn a_process_serves_the_directory_it_was_started_in() {
    let scratch = Scratch::new().shell("telling", &telling_where());
    for name in ["refused", "other", "third"] {
        std::fs::create_dir(scratch.path(name)).expect("a directory");
    }
    let mut client = scratch.stdio("telling");
    client.initialize();
    let said = |client: &mut Client, session: &str| {
        let asked = client.prompt(session, "where");
        client.result(&asked);
        let text = client.text_since(&asked, session);
        let (pid, place) = text.split_once(" in ").expect("it says both");
        (pid.to_owned(), place.to_owned())
    };
    let refusing = |client: &mut Client| {
        let params = json!({"cwd": scratch.path("refused"), "mcpServers": []});
        client.refused("session/new", &params)["message"].as_str().expect("a process id").to_owned()
    };
    let first = refusing(&mut client);
    let session = working_in(&mut client, &scratch.path("other"));
    assert_eq!(said(&mut client, &session), (first, "work".to_owned()), "started where acpd runs");

    let second = refusing(&mut client);
    let session = working_in(&mut client, &scratch.path("third"));
    let (pid, place) = said(&mut client, &session);
    assert_eq!(place, "third");
    assert_ne!(pid, second);
    // It still waits for its own.
    assert_eq!(refusing(&mut client), second);
    client.finish();
}

// contract 1.1: a process that was stopped while it took a session up may have begun with it, and serves no other
#[test]
fn a_process_that_began_with_a_session_serves_no_other() {
    let scratch = Scratch::new();
    let gate = Gate::new(scratch.path("gate"));
    let script = format!(
        "take; answer '{{\"protocolVersion\":1,\"agentCapabilities\":{{\"loadSession\":true}}}}'\n\
         while take; do case $line in\n\
         *'\"session/new\"'*) answer '{{\"sessionId\":\"shell-1\"}}';;\n\
         *'\"session/load\"'*) echo $$ >'{}'; {};;\n\
         *) update \"$$\"; answer '{{\"stopReason\":\"end_turn\"}}';;\n\
         esac; done",
        scratch.path("loading").display(),
        gate.line()
    );
    let scratch = scratch.shell("slow", &taking_shell_agent(&script));
    let (mut client, session) = scratch.session("slow");
    assert_eq!(client.turn(&session, "x"), "end_turn");
    close(&mut client, &session);
    let load = client.request("session/load", &taking(&scratch, &session));
    let _it_stays = gate.arrival();
    let loading = std::fs::read_to_string(scratch.path("loading")).expect("it says who it is");
    client.call(TERMINATE, &of(&session));
    assert_eq!(meta(&client.result(&load))["resumable"], false);
    let other = client.new_session();
    let asked = client.prompt(&other, "who");
    client.result(&asked);
    assert_ne!(client.text_since(&asked, &other), loading.trim());
    client.finish();
}
