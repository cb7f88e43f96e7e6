//! Sessions and connections of one token do not exist for another.

use crate::door::{JSON, ask, bearer, client, entry, initialize, message, silent, stream};
use acpd_e2e::{Answer, Client, Daemon, Http, Scratch, taking_shell_agent};
use serde_json::{Value, json};

const NEVER: &str = "00000000-0000-4000-8000-000000000000";

fn scratch() -> Scratch {
    let tokens = [
        entry("a", "scope = \"control\""),
        entry("b", "scope = \"control\""),
        entry("few", "scope = \"control\"\nsessions = 1"),
        entry("watch", "scope = \"observe\"\nsees = \"all\""),
        entry("blind", "scope = \"observe\""),
        entry("root", "scope = \"admin\""),
    ];
    Scratch::new().config(&tokens.join("\n"))
}

/// The answers to one request about two sessions, with one name for both.
fn about(client: &mut Client, method: &str, params: &Value, ids: [&str; 2]) -> [Value; 2] {
    ids.map(|id| {
        let mut params = params.clone();
        params["sessionId"] = json!(id);
        let asked = client.request(method, &params);
        let mut answer = client.answer(&asked).json;
        answer["id"] = Value::Null;
        serde_json::from_str(&answer.to_string().replace(id, "ID")).expect("JSON")
    })
}

/// Whatever is asked of a session: by method, with what it needs and without.
fn questions(scratch: &Scratch) -> Vec<(&'static str, Value)> {
    let setup = json!({"cwd": scratch.work(), "mcpServers": []});
    let prompt = json!({"prompt": [{"type": "text", "text": "hello"}]});
    let mut all = Vec::new();
    for (method, params) in [
        ("session/load", setup.clone()),
        ("session/resume", setup.clone()),
        ("session/fork", setup),
        ("session/prompt", prompt),
        ("session/set_mode", json!({"modeId": "code"})),
        ("session/set_config_option", json!({"configId": "x", "value": "y"})),
    ] {
        all.extend([
            (method, params),
            (method, json!({})),
            (method, json!({"cwd": "relative", "prompt": 1})),
        ]);
    }
    all.extend(
        [
            "session/close",
            "session/stop",
            "session/status",
            "session/list",
            "session/delete",
            "session/archive",
            "session/new",
            "session/no-such-method",
            "_sandboxagent/session/terminate",
            "_sandboxagent/session/detach",
            "_x/anything",
            "authenticate",
            "initialize",
            "no/such/method",
        ]
        .map(|method| (method, json!({}))),
    );
    all
}

/// Every route about a session.
fn routes(id: &str) -> [(&'static str, String); 12] {
    [
        ("GET", format!("/v1/sessions/{id}")),
        ("GET", format!("/v2/sessions/{id}")),
        ("DELETE", format!("/v1/sessions/{id}")),
        ("PUT", format!("/v1/sessions/{id}")),
        ("POST", format!("/v1/sessions/{id}/close")),
        ("POST", format!("/v1/sessions/{id}/terminate")),
        ("GET", format!("/v1/sessions/{id}/events")),
        ("GET", format!("/v1/sessions/{id}/events?after=0&limit=1")),
        ("GET", format!("/v1/sessions/{id}/events?after=999999")),
        ("GET", format!("/v1/sessions/{id}/events?after=x")),
        ("GET", format!("/v1/sessions/{id}/events?limit=x&limit=y")),
        ("GET", format!("/v1/sessions?cursor={id}")),
    ]
}

/// An answer without its time, and with one name for every session.
fn bare(mut answer: Answer, id: &str) -> (u16, Vec<(String, String)>, String) {
    answer.headers.retain(|(name, _)| name != "date" && name != "content-length");
    (answer.status, answer.headers, String::from_utf8_lossy(&answer.body).replace(id, &"I".repeat(36)))
}

fn looks_unknown(daemon: &Daemon, scratch: &Scratch, session: &str, who: &str) {
    let ids = [session, NEVER];
    let mut other = client(daemon, scratch, who);
    for (method, params) in questions(scratch) {
        let [theirs, never] = about(&mut other, method, &params, ids);
        if method != "session/new" {
            assert_eq!(theirs, never, "{who}: {method} {params}");
        }
    }
    for ((method, theirs), (_, never)) in routes(session).iter().zip(&routes(NEVER)) {
        let [theirs, never] =
            [(theirs, session), (never, NEVER)].map(|(path, id)| bare(ask(daemon, who, method, path), id));
        assert_eq!(theirs, never, "{who}: {method}");
        let is_known = theirs.0 < 300 || theirs.0 == 410;
        assert!(!is_known, "{method}: {theirs:?}");
    }
    for id in ids {
        let refused = stream(daemon, who, &format!("/v1/sessions/{id}/events")).expect_err("it is unknown");
        assert_eq!((refused.status, &*refused.problem()), (404, "session_not_found"));
    }
    let listed = ask(daemon, who, "GET", "/v1/sessions?ended=false").json();
    let listed = listed["sessions"].as_array().expect("a list").clone();
    assert!(listed.iter().all(|listed| listed["sessionId"] != session), "{who}: {listed:?}");
    let all = json!({"_meta": {"sandboxagent.dev": {"allAgents": true}}});
    assert!(!other.call("session/list", &all).to_string().contains(session), "{who}");
    // Nor does one that was refused before it was initialized learn more.
    let mut early = silent(daemon, scratch, who);
    early.refused("initialize", &json!({"protocolVersion": "x"}));
    for method in ["session/prompt", "session/status", "session/load"] {
        let [theirs, never] = about(&mut early, method, &json!({}), ids);
        assert_eq!(theirs, never, "{who}: {method} before initialize");
    }
    let connection = initialize(daemon, who).header("acp-connection-id").expect("it is given").to_owned();
    let [theirs, never] = ids.map(|id| bare(post_about(daemon, who, &connection, id), id));
    assert_eq!(theirs, never);
    assert_eq!(theirs.0, 404);
}

/// Posts a notification with a session in the header.
fn post_about(daemon: &Daemon, who: &str, connection: &str, id: &str) -> Answer {
    let token = bearer(who);
    let headers =
        [JSON, ("Authorization", &*token), ("Acp-Session-Id", id), ("Acp-Connection-Id", connection)];
    let body = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": id}}).to_string();
    Http::on(daemon.connect()).request("POST", "/acp", &headers, &body)
}

// SC-3, SE-13, contract 1.7: live or ended, a session of another token answers exactly as one that never was
#[test]
fn anothers_session_is_as_unknown_as_one_that_never_was() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let mut a = client(&daemon, &scratch, "a");
    let session = a.new_session();
    assert_eq!(a.turn(&session, "hello"), "end_turn");
    for who in ["b", "blind"] {
        looks_unknown(&daemon, &scratch, &session, who);
    }
    assert_eq!(a.turn(&session, "nobody has harmed it"), "end_turn");
    a.call("session/close", &json!({"sessionId": session}));
    for who in ["b", "blind"] {
        looks_unknown(&daemon, &scratch, &session, who);
    }
    // Who sees all sees it, and whose it is.
    for who in ["a", "watch", "root"] {
        let shown = ask(&daemon, who, "GET", &format!("/v1/sessions/{session}"));
        assert_eq!((shown.status, &shown.json()["sessionId"]), (200, &json!(session)), "{who}");
        assert_eq!(ask(&daemon, who, "GET", &format!("/v1/sessions/{session}/events")).status, 200, "{who}");
        assert!(ask(&daemon, who, "GET", "/v1/sessions").json().to_string().contains(&session), "{who}");
        let mut client = client(&daemon, &scratch, who);
        assert!(client.call("session/list", &json!({})).to_string().contains(&session), "{who}");
        assert_eq!(client.call("session/status", &json!({"sessionId": session}))["status"], "saved");
    }
    daemon.stop();
}

// SC-3: a limit that is reached tells nothing of sessions either
#[test]
fn a_limit_does_not_tell_what_exists() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let mut a = client(&daemon, &scratch, "a");
    let session = a.new_session();
    let mut few = client(&daemon, &scratch, "few");
    few.new_session();
    let setup = json!({"cwd": scratch.work(), "mcpServers": []});
    for method in ["session/load", "session/resume", "session/fork"] {
        let [theirs, never] = about(&mut few, method, &setup, [&session, NEVER]);
        assert_eq!(theirs, never, "{method}");
        assert_eq!(theirs["error"]["code"], -32002);
    }
    daemon.stop();
}

// SC-3, PR-7: a notification or an answer of somebody else reaches nobody
#[test]
fn another_cannot_cancel_or_answer() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let mut a = client(&daemon, &scratch, "a");
    let session = a.new_session();
    let asked = a.prompt(&session, "ask edit");
    let question = a.until("a question", |message| message.method() == Some("session/request_permission"));
    let options = question.json["params"]["options"].as_array().expect("options").clone();
    let option = |kind: &str| {
        let found = options.iter().find(|option| option["kind"] == kind).expect("it is offered");
        json!({"jsonrpc": "2.0", "id": question.json["id"],
            "result": {"outcome": {"outcome": "selected", "optionId": found["optionId"]}}})
        .to_string()
    };
    for who in ["b", "blind", "watch"] {
        let mut other = client(&daemon, &scratch, who);
        other.notify("session/cancel", &json!({"sessionId": session}));
        other.notify("_x/anything", &json!({"sessionId": session}));
        other.notify("$/cancel_request", &json!({"requestId": 3}));
        other.write_line(option("allow_always"));
        other.call("session/list", &json!({}));
    }
    a.write_line(option("reject_once"));
    assert_eq!(a.result(&asked)["stopReason"], "end_turn");
    assert!(a.text_since(&asked, &session).contains("reject"), "{}", a.text_since(&asked, &session));
    daemon.stop();
}

// SC-3: ids of connections are in nothing that anybody else can read
#[test]
fn the_id_of_a_connection_stays_with_its_client() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let opened = initialize(&daemon, "a");
    let id = opened.header("acp-connection-id").expect("it is given").to_owned();
    let token = bearer("a");
    let headers = [("Authorization", &*token), ("Acp-Connection-Id", &*id)];
    let mut events = Http::on(daemon.connect()).events("/acp", &headers).expect("a stream");
    let post = |body: &str| {
        let headers = [JSON, headers[0], headers[1]];
        assert_eq!(Http::on(daemon.connect()).request("POST", "/acp", &headers, body).status, 202);
    };
    post(&message(2, "session/new", &json!({"cwd": scratch.work(), "mcpServers": []})));
    let created = events.until("the answer", |event| event.json()["id"] == 2).json();
    let session = created["result"]["sessionId"].as_str().expect("an id").to_owned();
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "tool x"}]});
    post(&message(3, "session/prompt", &prompt));
    events.until("the answer", |event| event.json()["id"] == 3);
    let mut root = client(&daemon, &scratch, "root");
    root.call("session/load", &json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []}));
    root.call("session/list", &json!({}));
    root.call("session/close", &json!({"sessionId": session}));
    let mut seen: String = root.received().iter().map(|message| message.raw.as_str()).collect();
    for path in [
        "/v1/sessions".to_owned(),
        format!("/v1/sessions/{session}"),
        format!("/v1/sessions/{session}/events"),
        "/v1/agents".to_owned(),
        "/metrics".to_owned(),
    ] {
        let answer = ask(&daemon, "root", "GET", &path);
        assert_eq!(answer.status, 200, "{path}");
        seen.push_str(&String::from_utf8_lossy(&answer.body));
    }
    assert!(seen.contains(&session) && !seen.contains(&id), "{id} in {seen}");
    daemon.stop();
}

// SC-3: a connection is of use to whom it was given only
#[test]
fn a_connection_belongs_to_its_identity() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let (one, two) = (bearer("a"), bearer("root"));
    let (one, two) = (("Authorization", &*one), ("Authorization", &*two));
    let opened = initialize(&daemon, "a");
    let id = opened.header("acp-connection-id").expect("it is given").to_owned();
    let connection = ("Acp-Connection-Id", &*id);
    let body = message(2, "session/list", &json!({}));
    let once = |method: &str, headers: &[(&str, &str)], body: &str| {
        Http::on(daemon.connect()).request(method, "/acp", headers, body)
    };
    for (method, accept) in [("POST", "application/json"), ("GET", "text/event-stream"), ("DELETE", "*/*")] {
        let headers = [JSON, connection, ("Accept", accept)];
        let foreign = once(method, &[&headers[..], &[two]].concat(), &body);
        let never = once(method, &[JSON, two, ("Acp-Connection-Id", "never"), ("Accept", accept)], &body);
        assert_eq!((foreign.status, &foreign.body), (404, &never.body), "{method}");
        assert_eq!(once(method, &headers, &body).status, 401);
    }
    assert_eq!(once("DELETE", &[connection, one], "").status, 202);
    daemon.stop();
}

/// An agent on one process for all that gives the same id to every session, and says back what it is told.
fn repeating(scratch: Scratch) -> Scratch {
    let body = r#"
take; answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}'
while take; do
    case $line in
    *'"session/new"'*) answer '{"sessionId":"shell-1"}' ;;
    *'"session/prompt"'*)
        text=${line#*'"text":"'}
        update "${text%%'"'*}"
        answer '{"stopReason":"end_turn"}' ;;
    *'"id":'*) answer '{}' ;;
    esac
done"#;
    let args = json!(taking_shell_agent(body));
    scratch.config(&format!("[agents.repeating]\ncommand = \"sh\"\nargs = {args}\nshare_process = true"))
}

// contract 1.7, SU-9: an agent that gives one session id twice on one process mixes no two sessions: the second is
// refused, and the first goes on
#[test]
fn one_id_for_two_sessions_mixes_no_two_owners() {
    let scratch = repeating(scratch());
    let mut daemon = scratch.serve();
    let over = |who: &str| {
        let headers = [("Authorization", &*bearer(who))];
        let mut client = daemon.over_websocket_with(&scratch, "/acp?agent=repeating", &headers);
        client.tolerant();
        client.initialize();
        client
    };
    let (mut alice, mut bob) = (over("a"), over("b"));
    let first = alice.new_session();
    let setup = json!({"cwd": scratch.work(), "mcpServers": []});
    for again in 0..2 {
        let refused = bob.refused("session/new", &setup);
        assert_eq!(refused["code"], -32603, "{again}: {refused}");
        let text = refused["message"].as_str().unwrap_or_default();
        assert!(text.contains("session/new") && text.contains("another live session"), "{text}");
        assert_eq!(alice.turn(&first, "secret-of-alice"), "end_turn");
    }
    assert!(alice.received().iter().any(|message| message.text() == Some("secret-of-alice")));
    assert!(bob.received().iter().all(|message| !message.raw.contains("secret-of-alice")));
    let listed = ask(&daemon, "b", "GET", "/v1/sessions").json();
    assert_eq!(listed["sessions"], json!([]), "nothing is left of what was refused");
    // The id is free again once its session has ended, and a session that has ended is not taken up into another.
    alice.call("session/close", &json!({"sessionId": first}));
    let second = bob.new_session();
    let mut params = setup.clone();
    params["sessionId"] = json!(first);
    let refused = alice.refused("session/resume", &params);
    assert!(refused["message"].as_str().unwrap_or_default().contains("another live session"), "{refused}");
    assert_eq!(bob.turn(&second, "secret-of-bob"), "end_turn");
    assert!(alice.received().iter().all(|message| !message.raw.contains("secret-of-bob")));
    daemon.stop();
}
