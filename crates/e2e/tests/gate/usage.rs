//! What sessions have used, how their last turns ended, and what is asked in them: over REST, ACP and on the command line.

use crate::door::plain;
use acpd_e2e::{Client, Daemon, Http, Scratch, until};
use serde_json::{Value, json};

fn show(daemon: &Daemon, session: &str) -> Value {
    plain(daemon, "GET", &format!("/v1/sessions/{session}"), &[]).json()
}

/// The same as the list of sessions has it.
fn listed(daemon: &Daemon, session: &str) -> Value {
    let sessions = plain(daemon, "GET", "/v1/sessions", &[]).json()["sessions"].take();
    let mut sessions = sessions.as_array().expect("a list").iter();
    sessions.find(|listed| listed["sessionId"] == session).expect("it is listed").clone()
}

/// And as ACP's list has it.
fn listed_over_acp(client: &mut Client, session: &str) -> Value {
    let list = client.call("session/list", &json!({}));
    let mut sessions = list["sessions"].as_array().expect("a list").iter();
    let entry = sessions.find(|listed| listed["sessionId"] == session).expect("it is listed");
    entry["_meta"]["sandboxagent.dev"].clone()
}

/// What this is about, of any of these.
fn tally(shown: &Value) -> [Value; 3] {
    ["usage", "lastTurn", "openQuestions"].map(|name| shown[name].clone())
}

fn begin(daemon: &Daemon, scratch: &Scratch) -> (Client, String) {
    let mut client = daemon.over_websocket(scratch, "/acp");
    // What turns used is no member of the schema's stable part.
    client.tolerant();
    let capabilities = json!({"elicitation": {"form": {}}});
    client.call("initialize", &json!({"protocolVersion": 1, "clientCapabilities": capabilities}));
    let session = client.new_session();
    (client, session)
}

fn post(daemon: &Daemon, session: &str, verb: &str) -> Value {
    let answer =
        Http::on(daemon.connect()).request("POST", &format!("/v1/sessions/{session}/{verb}"), &[], "");
    assert!((200..300).contains(&answer.status), "{}", answer.json());
    answer.json()
}

const FIRST: &str = "usage 100 1000 0.1 USD\nusage 100 1000 0.3 USD\nturn-usage input 11 output 7 total 18";

// contract 7.3: sums over the turns of all runs, the same wherever a session is shown, while it is live and when it has ended
#[test]
fn what_turns_use_is_summed() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut client, session) = begin(&daemon, &scratch);
    assert_eq!(tally(&show(&daemon, &session)), [Value::Null, Value::Null, json!(0)], "nothing was told yet");
    assert_eq!(client.turn(&session, FIRST), "end_turn");
    let first = json!({"tokens": {"input": 11, "output": 7, "total": 18}, "cost": {"USD": 0.3}});
    assert_eq!(show(&daemon, &session)["usage"], first);
    client.turn(
        &session,
        "usage 100 1000 0.25 USD\nusage 1 2 9 credits\nturn-usage input 1 thought 5\nstop-reason refusal",
    );
    // What was paid stays paid.
    let cost = json!({"USD": 0.3, "credits": 9.0});
    let second = json!({"tokens": {"input": 12, "output": 7, "thought": 5, "total": 18}, "cost": cost});
    let shown = show(&daemon, &session);
    assert_eq!((&shown["usage"], &shown["lastTurn"]["stopReason"]), (&second, &json!("refusal")));
    assert_eq!(tally(&listed(&daemon, &session)), tally(&shown));
    assert_eq!(tally(&listed_over_acp(&mut client, &session)), tally(&shown));

    client.call("session/close", &json!({"sessionId": session}));
    for ended in [show(&daemon, &session), listed(&daemon, &session), listed_over_acp(&mut client, &session)]
    {
        assert_eq!((&ended["ended"], tally(&ended)), (&json!(true), tally(&shown)));
    }
    assert_eq!(tally(&post(&daemon, &session, "resume")), tally(&shown), "another run has used nothing yet");
    client.call("session/resume", &json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []}));
    // This agent goes on with its total.
    client.turn(&session, "usage 100 1000 0.5 USD");
    let cost = json!({"USD": 0.55, "credits": 9.0});
    assert_eq!(show(&daemon, &session)["usage"]["cost"], cost);
    // A fork has used nothing, and no turn of it has ended.
    let fork = post(&daemon, &session, "fork");
    assert_eq!(tally(&fork), [Value::Null, Value::Null, json!(0)]);
    assert_eq!(tally(&listed(&daemon, fork["sessionId"].as_str().expect("an id"))), tally(&fork));
    daemon.stop();
}

// contract 7.3: a daemon that is killed forgets nothing of it, and what is shown before the loss is recorded is what is recorded
#[test]
fn what_was_used_survives_a_kill() {
    let scratch = Scratch::new().keep("0s");
    let mut daemon = scratch.serve();
    let (mut client, session) = begin(&daemon, &scratch);
    assert_eq!(client.turn(&session, FIRST), "end_turn");
    let (mut asking, asked) = begin(&daemon, &scratch);
    asking.prompt(&asked, "usage 1 2 0.2 USD\nask edit Something");
    asking.until("a question", |message| message.method() == Some("session/request_permission"));
    client.prompt(&session, "usage 100 1000 0.75 USD\nworking\nhang");
    client.until_text("working");
    let before = show(&daemon, &session);
    assert_eq!(before["usage"]["cost"], json!({"USD": 0.75}));
    assert_eq!(before["lastTurn"]["stopReason"], "end_turn", "the one that runs is not over");
    assert!(before["turnStartedAt"].as_str() >= before["lastTurn"]["endedAt"].as_str(), "{before}");
    assert_eq!(listed(&daemon, &session)["turnStartedAt"], before["turnStartedAt"]);
    assert_eq!(listed(&daemon, &asked)["openQuestions"], 1);
    daemon.kill();
    let looked_at = |id: &str| -> Value {
        let mut command = scratch.command(acpd_e2e::acpd());
        command.args(["sessions", "show", id, "--json", "--state-dir"]).arg(scratch.state());
        let shown = command.output().expect("it runs");
        serde_json::from_slice(&shown.stdout).expect("it is JSON")
    };
    let [lost, unanswered] = [&session, &asked].map(|id| looked_at(id));
    assert_eq!(lost["usage"], before["usage"]);
    assert!(lost["lastTurn"].get("stopReason").is_none(), "{lost}");
    assert_eq!(lost.get("turnStartedAt"), None, "it ended with its daemon");
    assert_eq!(
        (&unanswered["openQuestions"], &unanswered["usage"]),
        (&json!(0), &json!({"cost": {"USD": 0.2}}))
    );

    let mut daemon = scratch.serve();
    for (id, lost) in [(&session, &lost), (&asked, &unanswered)] {
        until("it is recorded", || show(&daemon, id)["ended"].as_bool().filter(|ended| *ended));
        assert_eq!(tally(&show(&daemon, id)), tally(lost));
        assert_eq!(tally(&listed(&daemon, id)), tally(lost));
    }
    daemon.stop();
}

// contract 7.3: permission requests and forms count while they wait, for everyone who looks
#[test]
fn open_questions_are_counted() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut client, session) = begin(&daemon, &scratch);
    for text in ["ask edit Something", "elicit What?"] {
        let prompt = client.prompt(&session, text);
        let method =
            if text.starts_with("ask") { "session/request_permission" } else { "elicitation/create" };
        client.until("a question", |message| message.method() == Some(method));
        for shown in
            [show(&daemon, &session), listed(&daemon, &session), listed_over_acp(&mut client, &session)]
        {
            assert_eq!((&shown["openQuestions"], &shown["state"]), (&json!(1), &json!("waiting")), "{text}");
        }
        client.notify("session/cancel", &json!({"sessionId": session}));
        assert_eq!(client.result(&prompt)["stopReason"], "cancelled");
        let shown = show(&daemon, &session);
        assert_eq!(
            (&shown["openQuestions"], &shown["lastTurn"]["stopReason"]),
            (&json!(0), &json!("cancelled"))
        );
    }
    daemon.stop();
}
