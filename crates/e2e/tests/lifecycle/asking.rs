//! The lifecycle requests, and the answers that tests look at.

pub(crate) use crate::ending::{DETACH, TERMINATE, ends_of, of};
use acpd_e2e::{Asked, Client, Message, Scratch};
use serde_json::{Value, json};

/// Params of `session/load`, `session/resume` and `session/fork`.
pub(crate) fn taking(scratch: &Scratch, session: &str) -> Value {
    json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []})
}

/// What acpd says of itself in a `_meta`.
pub(crate) fn meta(holder: &Value) -> &Value {
    &holder["_meta"]["sandboxagent.dev"]
}

/// All entries of a list, page after page.
pub(crate) fn listed(client: &mut Client, params: &Value) -> Vec<Value> {
    let mut params = params.clone();
    let mut all = Vec::new();
    loop {
        let mut page = client.call("session/list", &params);
        all.extend(page["sessions"].as_array().expect("a list has sessions").iter().cloned());
        match page["nextCursor"].take() {
            Value::Null => return all,
            cursor => params["cursor"] = cursor,
        }
    }
}

/// The entry of one session in the list of all.
pub(crate) fn entry(client: &mut Client, session: &str) -> Value {
    let all = listed(client, &json!({"_meta": {"sandboxagent.dev": {"allAgents": true}}}));
    let own = all.into_iter().find(|entry| entry["sessionId"] == session);
    own.unwrap_or_else(|| panic!("{session} is listed"))
}

/// The record of a session's last end, with the stderr that lists leave out.
pub(crate) fn termination(client: &mut Client, session: &str) -> Value {
    meta(&client.call("session/status", &of(session)))["terminationInfo"].clone()
}

/// The ids of a list, in its order.
pub(crate) fn ids(entries: &[Value]) -> Vec<&str> {
    entries.iter().map(|entry| entry["sessionId"].as_str().expect("an entry has an id")).collect()
}

/// Waits until the end of a session was told `times` times; gives the last of them.
pub(crate) fn until_ended(client: &mut Client, session: &str, times: usize) -> Value {
    while ends_of(client, session) < times {
        client.until("the end", |m| m.method() == Some("_sandboxagent/session/ended"));
    }
    let ends = client.ends();
    let own = ends.iter().rfind(|end| end.session() == Some(session)).expect("it was told");
    own.json["params"]["data"].clone()
}

/// Closes a session and waits for the answer.
pub(crate) fn close(client: &mut Client, session: &str) {
    assert_eq!(client.call("session/close", &of(session)), json!({}));
}

/// The place of a request's answer in what came since.
pub(crate) fn answer_place(client: &mut Client, asked: &Asked) -> usize {
    let answer = client.answer(asked);
    let is_it = |message: &Message| message.is_answer() && message.raw == answer.raw;
    client.since(asked).iter().position(is_it).expect("it came")
}

/// The updates of a session among some messages, as they came.
pub(crate) fn updates<'a>(messages: &'a [Message], session: &str) -> Vec<&'a str> {
    let own = messages
        .iter()
        .filter(|message| message.session() == Some(session) && message.method() == Some("session/update"));
    own.map(|message| message.raw.as_str()).collect()
}

/// Loads or resumes; gives the result and the updates that came before it.
pub(crate) fn take_part(
    client: &mut Client,
    scratch: &Scratch,
    method: &str,
    session: &str,
) -> (Value, Vec<String>) {
    let asked = client.request(method, &taking(scratch, session));
    let result = client.result(&asked);
    let place = answer_place(client, &asked);
    let before = updates(&client.since(&asked)[..place], session);
    (result, before.into_iter().map(str::to_owned).collect())
}
