//! What ACP clients are shown of a state directory: lists, statuses, replays, and sessions that go on.

use crate::show::{AGENTS, Showing, broken, initialized};
use crate::show_rest::{gained, ids};
use acpd_e2e::{Client, Http};
use serde_json::{Value, json};

/// A request and every line up to its answer.
fn asked(showing: &mut Showing, client: &mut Client, title: &str, method: &str, params: &Value) -> Value {
    let asked = client.request(method, params);
    let answer = client.answer(&asked);
    showing.section(title);
    showing.lines(client.since(&asked).iter().map(|message| message.raw.clone()).collect::<Vec<_>>());
    answer.json
}

/// All pages of `session/list`.
fn list(showing: &mut Showing, client: &mut Client, title: &str, params: &Value) {
    let mut params = params.clone();
    loop {
        let asked = client.request("session/list", &params);
        let answer = client.answer(&asked);
        showing.section(&format!("{title}: session/list {params}"));
        let result: std::collections::HashMap<String, &serde_json::value::RawValue> =
            serde_json::from_str(&answer.raw).expect("it is an object");
        let [before, entries, behind] = broken(result["result"].get(), "sessions");
        showing.lines(before);
        showing.entries(entries);
        showing.lines(behind);
        match answer.json["result"].get("nextCursor") {
            Some(next) => params["cursor"] = next.clone(),
            None => return,
        }
    }
}

fn taking_part(session: &str) -> Value {
    json!({"sessionId": session, "cwd": "/tmp", "mcpServers": []})
}

/// Replays of sessions that nothing can go on with, to a client that understands everything and to one that does not.
pub(crate) fn replays(showing: &mut Showing) {
    let mut daemon = showing.serve();
    let ids = ids(&daemon);
    for (who, versed) in [("versed", true), ("plain", false)] {
        let mut client = initialized(daemon.over_websocket(&showing.scratch, "/acp?agent=example"), versed);
        list(showing, &mut client, who, &json!({}));
        list(showing, &mut client, who, &json!({"cwd": "/tmp"}));
        list(showing, &mut client, who, &json!({"_meta": {"sandboxagent.dev": {"allAgents": true}}}));
        for id in &ids {
            for (method, params) in [
                ("session/status", json!({"sessionId": id})),
                ("session/load", taking_part(id)),
                ("session/resume", taking_part(id)),
            ] {
                asked(showing, &mut client, &format!("{who}: {method} {id}"), method, &params);
            }
        }
        client.close_input();
        client.read_to_end();
    }
    daemon.stop();
}

/// Every session goes on with an agent of its name, and so does what `fork` makes of it.
pub(crate) fn taken_up(showing: &mut Showing, forks: bool) {
    let (mut daemon, mut before) = (showing.serve(), Vec::new());
    for id in ids(&daemon) {
        let answer = Http::on(daemon.connect()).request("GET", &format!("/v1/sessions/{id}"), &[], "").json();
        let agent = answer["agent"].as_str().expect("it has one").to_owned();
        before.push((id, answer["eventCount"].as_u64().expect("it has some"), agent));
    }
    daemon.stop();
    for agent in AGENTS {
        let mut client = showing.stdio(agent);
        list(showing, &mut client, agent, &json!({}));
        for (id, _, _) in before.iter().filter(|(_, _, own)| own == agent) {
            goes_on(showing, &mut client, id);
            if forks {
                let title = format!("session/fork {id}");
                let answer = asked(showing, &mut client, &title, "session/fork", &taking_part(id));
                if let Some(fork) = answer["result"]["sessionId"].as_str() {
                    prompt(showing, &mut client, fork);
                    for method in ["session/close", "session/delete"] {
                        let title = format!("{method} {fork}");
                        asked(showing, &mut client, &title, method, &json!({"sessionId": fork}));
                    }
                }
            }
        }
        client.finish();
    }
    let before: Vec<(String, u64)> = before.into_iter().map(|(id, count, _)| (id, count)).collect();
    gained(showing, &before);
    if forks {
        told(showing);
    }
}

fn prompt(showing: &mut Showing, client: &mut Client, session: &str) {
    let words = json!({"sessionId": session, "prompt": [{"type": "text", "text": "golden words"}]});
    asked(showing, client, &format!("session/prompt {session}"), "session/prompt", &words);
}

fn goes_on(showing: &mut Showing, client: &mut Client, session: &str) {
    let one = json!({"sessionId": session});
    asked(showing, client, &format!("session/load {session}"), "session/load", &taking_part(session));
    prompt(showing, client, session);
    asked(showing, client, &format!("session/status {session}"), "session/status", &one);
    asked(showing, client, &format!("session/close {session}"), "session/close", &one);
    asked(showing, client, &format!("session/resume {session}"), "session/resume", &taking_part(session));
    asked(showing, client, &format!("session/close {session}"), "session/close", &one);
}

/// What agents were told with their prompts: the transcripts, as they keep them.
fn told(showing: &mut Showing) {
    let kept = std::fs::read_dir(showing.scratch.path("agent")).expect("a directory").flatten();
    let files = kept.filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
    let prompts = files.flat_map(|file| file.lines().map(str::to_owned).collect::<Vec<_>>());
    let mut prompts: Vec<String> = prompts.filter(|line| line.starts_with("{\"prompt\"")).collect();
    prompts.sort();
    showing.section("prompts that agents keep");
    showing.lines(prompts);
}
