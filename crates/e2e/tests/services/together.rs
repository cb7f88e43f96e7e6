//! Several clients of one session, and what the log has of it.

use crate::answering::{
    choose, times_asked, until_permission, until_permission_number, until_refused, until_withdrawn,
};
use crate::one_host::{Example, OneHost};
use crate::stored::stored;
use acpd_e2e::{Client, Scratch};
use serde_json::{Value, json};

const EXAMPLE: Example = Example { name: "example", without: "", shared: false, asks: true };

/// The events of a session, as kind and payload, once no acpd is at work on it.
pub(crate) fn events(scratch: &Scratch, session: &str) -> Vec<(u16, Value)> {
    stored(scratch, session).into_iter().map(|event| (event.kind, event.json())).collect()
}

fn joined(host: &OneHost, scratch: &Scratch, session: Option<&str>) -> (Client, String) {
    let mut client = host.client(scratch, "example");
    client.initialize();
    let session = match session {
        None => client.new_session(),
        Some(session) => {
            let params = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
            client.call("session/resume", &params);
            session.to_owned()
        }
    };
    (client, session)
}

// PE-2, FR-2: all are asked, each under an id of its own; the first valid answer wins, the others are told, late and
// invalid answers are their sender's alone
#[test]
fn the_first_valid_answer_wins() {
    let scratch = Scratch::new();
    let mut host = OneHost::open(&scratch, &[EXAMPLE]);
    let (mut first, session) = joined(&host, &scratch, None);
    let (mut second, _) = joined(&host, &scratch, Some(&session));
    let (mut third, _) = joined(&host, &scratch, Some(&session));
    // Ids of requests to the first are ahead.
    let prompt = first.prompt(&session, "ask edit\nask execute");
    let at_first = until_permission(&mut first);
    let (at_second, at_third) = (until_permission(&mut second), until_permission(&mut third));
    assert_eq!(at_first.json["params"], at_second.json["params"]);
    choose(&mut third, &at_third, "nonsense");
    assert!(until_refused(&mut third).contains("was not offered"));
    let at_third = until_permission(&mut third);
    choose(&mut second, &at_second, "reject-always");
    until_withdrawn(&mut first, &at_first);
    until_withdrawn(&mut third, &at_third);
    choose(&mut third, &at_third, "allow-once");
    assert_eq!(until_refused(&mut third), "it needs no answer any more");
    // The next question is for all again; it may have come already.
    let (at_first, at_third) =
        (until_permission_number(&mut first, 2), until_permission_number(&mut third, 3));
    until_permission_number(&mut second, 2);
    choose(&mut first, &at_first, "allow-once");
    until_withdrawn(&mut third, &at_third);
    assert_eq!(first.result(&prompt)["stopReason"], "end_turn");
    let text = first.text_since(&prompt, &session);
    assert!(text.contains("permission selected reject-always"), "{text}");
    assert!(text.contains("permission selected allow-once"), "{text}");
    host.shut_down();
    let resolved: Vec<Value> =
        events(&scratch, &session).into_iter().filter(|event| event.0 == 13).map(|event| event.1).collect();
    assert_eq!(resolved.len(), 2, "one answer each");
}

// PE-3, MC-2: who was gone while it was asked is asked when it comes; who goes while it is asked answers nothing
#[test]
fn coming_and_going_answers_nothing() {
    let scratch = Scratch::new();
    let mut host = OneHost::open(&scratch, &[EXAMPLE]);
    let (mut first, session) = joined(&host, &scratch, None);
    first.prompt(&session, "ask edit");
    until_permission(&mut first);
    first.close_input();
    first.read_to_end();
    let (mut second, _) = joined(&host, &scratch, Some(&session));
    until_permission(&mut second);
    second.close_input();
    second.read_to_end();
    let (mut third, _) = joined(&host, &scratch, Some(&session));
    let asked = until_permission(&mut third);
    assert_eq!(times_asked(&third, "session/request_permission"), 1);
    choose(&mut third, &asked, "allow-once");
    third.until_text("permission selected allow-once");
    host.shut_down();
}
