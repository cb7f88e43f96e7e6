//! A client that is asked, and what it says.

use acpd_e2e::{Client, Message};
use serde_json::{Value, json};

/// Waits until the client is asked something by this method.
pub(crate) fn until_asked(client: &mut Client, method: &str) -> Message {
    client.until(method, |message| message.method() == Some(method) && message.json.get("id").is_some())
}

/// Waits until the client is asked for permission.
pub(crate) fn until_permission(client: &mut Client) -> Message {
    until_asked(client, "session/request_permission")
}

/// Waits until the client was asked for permission so often; gives the last of these.
pub(crate) fn until_permission_number(client: &mut Client, number: usize) -> Message {
    loop {
        let is_it = |message: &&Message| message.method() == Some("session/request_permission");
        if let Some(asked) = client.received().iter().filter(is_it).nth(number - 1) {
            return asked.clone();
        }
        client.next_message().expect("there is more");
    }
}

/// Answers a request.
pub(crate) fn answer(client: &mut Client, asked: &Message, result: &Value) {
    client.write_line(json!({"jsonrpc": "2.0", "id": asked.json["id"], "result": result}).to_string());
}

/// Answers a permission request with an option.
pub(crate) fn choose(client: &mut Client, asked: &Message, option: &str) {
    answer(client, asked, &json!({"outcome": {"outcome": "selected", "optionId": option}}));
}

/// Waits until the client is told that it need not answer a request.
pub(crate) fn until_withdrawn(client: &mut Client, asked: &Message) {
    let id = &asked.json["id"];
    client.until("the withdrawal", |message| {
        message.method() == Some("$/cancel_request") && message.json["params"]["requestId"] == *id
    });
}

/// Waits until the client is told that an answer of its does not count; gives the reason.
pub(crate) fn until_refused(client: &mut Client) -> String {
    let told =
        client.until("the refusal", |message| message.method() == Some("_sandboxagent/answer_refused"));
    told.json["params"]["reason"].as_str().expect("a reason").to_owned()
}

/// How often the client was asked by this method.
pub(crate) fn times_asked(client: &Client, method: &str) -> usize {
    let asked = |message: &&Message| message.method() == Some(method) && message.json.get("id").is_some();
    client.received().iter().filter(asked).count()
}
