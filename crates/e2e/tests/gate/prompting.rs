//! Prompts over REST: what is answered, and that a prompt under a key runs once, whatever happens meanwhile.

use crate::door::{JSON, ask, bearer, client, entry, plain};
use acpd_e2e::{Answer, Client, Daemon, Http, Scratch, connect, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::thread;

/// Prompts that are sent over the deaths of the daemon.
const PROMPTS: usize = 30;

/// An initialized client of a daemon without tokens.
fn local(daemon: &Daemon, scratch: &Scratch) -> Client {
    let mut client = daemon.over_websocket(scratch, "/acp");
    client.initialize();
    client
}

fn path(session: &str) -> String {
    format!("/v1/sessions/{session}/prompt")
}

fn post(daemon: &Daemon, session: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let headers: Vec<_> = [JSON].iter().chain(headers).copied().collect();
    Http::on(daemon.connect()).request("POST", &path(session), &headers, body)
}

/// A text under a key.
fn keyed(daemon: &Daemon, session: &str, key: &str, text: &str) -> Answer {
    post(daemon, session, &[("Idempotency-Key", key)], &json!({"prompt": text}).to_string())
}

fn accepted(answer: &Answer) -> Value {
    assert_eq!(answer.status, 202, "{}", answer.json());
    answer.json()
}

/// All events of a session.
fn events(daemon: &Daemon, session: &str) -> Vec<Value> {
    let path = format!("/v1/sessions/{session}/events?limit=1000");
    let (mut all, mut next) = (Vec::new(), Some(path.clone()));
    while let Some(page) = next {
        let page = plain(daemon, "GET", &page, &[]).json();
        all.extend_from_slice(page["events"].as_array().expect("events"));
        next = page["nextCursor"].as_str().map(|cursor| format!("{path}&after={cursor}"));
    }
    all
}

fn of_kind(daemon: &Daemon, session: &str, kind: &str) -> Vec<Value> {
    events(daemon, session).into_iter().filter(|event| event["kind"] == kind).collect()
}

/// Waits until a turn has ended.
fn turn_ended(daemon: &Daemon, session: &str, turn: &Value) {
    let path = format!("/v1/sessions/{session}/events");
    let mut events = Http::on(daemon.connect()).events(&path, &[]).expect("a stream");
    events.until("the end of the turn", |event| {
        event.event.as_deref() == Some("turn_ended") && event.json()["turn"] == *turn
    });
}

// contract 7.3: a 202 names the turn and its first event, which can be read then; a string is text, an array is content
#[test]
fn a_prompt_begins_a_turn() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut client = local(&daemon, &scratch);
    let session = client.new_session();
    let blocks = json!([{"type": "text", "text": "from REST"}]);
    for (turn, prompt) in [(1, json!("from REST")), (2, blocks.clone())] {
        let told = accepted(&post(&daemon, &session, &[], &json!({"prompt": prompt}).to_string()));
        assert_eq!(told["turn"], turn, "{told}");
        let after = told["seq"].as_u64().expect("a number") - 1;
        let page = format!("/v1/sessions/{session}/events?after={after}&limit=1");
        let event = &plain(&daemon, "GET", &page, &[]).json()["events"][0];
        assert_eq!((&event["kind"], &event["turn"]), (&json!("prompt"), &json!(turn)), "{event}");
        assert_eq!((&event["prompt"], &event["by"]), (&blocks, &json!("REST")));
        // Others see the prompt as they see that of any client.
        client.until("the prompt", |it| {
            let update = &it.json["params"]["update"];
            update["sessionUpdate"] == "user_message_chunk" && update["content"]["text"] == "from REST"
        });
        turn_ended(&daemon, &session, &told["turn"]);
    }
    daemon.stop();
}

// contract 1.6, contract 7.3: a client over REST may say who it is; what is no name says nothing
#[test]
fn a_client_names_itself() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut client = local(&daemon, &scratch);
    let session = client.new_session();
    let long = "n".repeat(41);
    for (seq, (name, by)) in [
        ("inspector 7f3a", "inspector 7f3a"),
        ("", "REST"),
        ("a  b", "REST"),
        ("a\tb", "REST"),
        (&long, "REST"),
    ]
    .iter()
    .enumerate()
    {
        let told = accepted(&post(&daemon, &session, &[("Acpd-Client", name)], r#"{"prompt":"hello"}"#));
        turn_ended(&daemon, &session, &told["turn"]);
        assert_eq!(of_kind(&daemon, &session, "prompt")[seq]["by"], **by, "{name}");
    }
    daemon.stop();
}

// contract 7.3: prompts wait in line, 16 of them; the next is refused; keys of those that wait count
#[test]
fn prompts_wait_in_line() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut client = local(&daemon, &scratch);
    let session = client.new_session();
    let running = accepted(&keyed(&daemon, &session, "runs", "hang"));
    for before in 1..=16 {
        let told = accepted(&keyed(&daemon, &session, &format!("waits-{before}"), "hello"));
        assert_eq!(told, json!({"waiting": before}));
    }
    let told = plain(&daemon, "GET", &format!("/v1/sessions/{session}"), &[]).json();
    assert_eq!(
        (&told["promptsWaiting"], &told["agentCapabilities"]["loadSession"]),
        (&json!(16), &json!(true))
    );
    let full = keyed(&daemon, &session, "one-more", "hello");
    assert_eq!((full.status, &*full.problem()), (429, "queue_full"));
    assert_eq!(accepted(&keyed(&daemon, &session, "waits-3", "hello")), json!({"waiting": 3}));
    assert_eq!(accepted(&keyed(&daemon, &session, "runs", "hang")), running);
    let other = keyed(&daemon, &session, "waits-3", "another");
    assert_eq!((other.status, &*other.problem()), (422, "idempotency_key_reused"));
    assert_eq!(of_kind(&daemon, &session, "prompt").len(), 1, "those that wait are no events");
    client.notify("session/cancel", &json!({"sessionId": session}));
    turn_ended(&daemon, &session, &json!(17));
    assert_eq!(accepted(&keyed(&daemon, &session, "waits-3", "hello"))["turn"], 4);
    assert_eq!(of_kind(&daemon, &session, "prompt").len(), 17);
    daemon.stop();
}

// contract 7.3: a prompt is taken back by its key, whether it waits or runs, from any client; one that is over is told so
#[test]
fn a_prompt_is_taken_back() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut client = local(&daemon, &scratch);
    let session = client.new_session();
    let cancel = |body: &str| {
        Http::on(daemon.connect()).request("POST", &format!("/v1/sessions/{session}/cancel"), &[JSON], body)
    };
    let take_back = |key: &str| {
        let answer = cancel(&json!({"idempotencyKey": key}).to_string());
        (answer.status, if answer.status == 202 { String::new() } else { answer.problem() })
    };
    accepted(&keyed(&daemon, &session, "runs", "hang"));
    assert_eq!(accepted(&keyed(&daemon, &session, "waits", "hello")), json!({"waiting": 1}));
    let over_acp = json!({"sessionId": session, "prompt": [{"type": "text", "text": "from ACP"}],
        "_meta": {"sandboxagent.dev": {"idempotencyKey": "acp"}}});
    let waits = client.request("session/prompt", &over_acp);
    until("both wait", || {
        let told = plain(&daemon, "GET", &format!("/v1/sessions/{session}"), &[]).json();
        (told["promptsWaiting"] == 2).then_some(())
    });
    let (gone, over) = ((202, String::new()), (409, "prompt_over".to_owned()));
    assert_eq!(take_back("waits"), gone);
    assert_eq!(take_back("waits"), over);
    assert_eq!(take_back("acp"), gone);
    assert_eq!(client.result(&waits)["stopReason"], "cancelled");
    for wrong in [r#"{"turn":1}"#, r#"{"idempotencyKey":7}"#, r#"{"idempotencyKey":null}"#, "[]"] {
        assert_eq!((cancel(wrong).status, &*cancel(wrong).problem()), (400, "bad_request"), "{wrong}");
    }
    assert_eq!(of_kind(&daemon, &session, "cancel_requested").len(), 0, "what runs was left alone");
    assert_eq!(take_back("runs"), gone);
    turn_ended(&daemon, &session, &json!(1));
    assert_eq!(take_back("runs"), over);
    // What was taken back has not run: its key is free, for another prompt too.
    assert_eq!(accepted(&keyed(&daemon, &session, "waits", "another"))["turn"], 2);
    turn_ended(&daemon, &session, &json!(2));
    assert_eq!(of_kind(&daemon, &session, "prompt").len(), 2);
    // Without a key it is the running turn.
    accepted(&keyed(&daemon, &session, "third", "hang"));
    assert_eq!(cancel("{}").status, 202);
    turn_ended(&daemon, &session, &json!(3));
    daemon.stop();
}

// contract 7.3: what is wrong is named with its fix and does nothing
#[test]
fn wrong_prompts_do_nothing() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut client = local(&daemon, &scratch);
    let session = client.new_session();
    let before = events(&daemon, &session).len();
    for (body, field) in [
        ("{", "the body"),
        ("{}", "`prompt`"),
        (r#"["x"]"#, "an object"),
        (r#"{"prompt":"x","then":"y"}"#, "`then`"),
        (r#"{"prompt":7}"#, "prompt: "),
        (r#"{"prompt":[{"text":"x"}]}"#, "prompt: "),
    ] {
        let answer = post(&daemon, &session, &[], body);
        assert_eq!((answer.status, &*answer.problem()), (400, "bad_request"), "{body}");
        assert!(answer.json()["detail"].as_str().expect("words").contains(field), "{}", answer.json());
    }
    let (good, long) = (json!({"prompt": "x"}).to_string(), "k".repeat(256));
    for keys in [vec![""], vec!["a b"], vec!["ä"], vec![&long], vec!["a", "b"]] {
        let headers: Vec<_> = keys.iter().map(|key| ("Idempotency-Key", *key)).collect();
        let answer = post(&daemon, &session, &headers, &good);
        assert_eq!((answer.status, &*answer.problem()), (400, "bad_request"), "{keys:?}");
        assert!(answer.json()["detail"].as_str().expect("words").starts_with("Idempotency-Key: "));
    }
    let headers = [("Content-Type", "text/plain")];
    let answer = Http::on(daemon.connect()).request("POST", &path(&session), &headers, &good);
    assert_eq!((answer.status, &*answer.problem()), (415, "unsupported_media_type"));
    assert_eq!(post(&daemon, "unknown", &[], &good).problem(), "session_not_found");
    assert_eq!(events(&daemon, &session).len(), before);
    // One that has ended stays so.
    client.call("session/close", &json!({"sessionId": session}));
    let ended = events(&daemon, &session).len();
    for answer in [post(&daemon, &session, &[], &good), keyed(&daemon, &session, "k", "x")] {
        assert_eq!((answer.status, &*answer.problem()), (409, "session_ended"));
    }
    assert_eq!(events(&daemon, &session).len(), ended);
    daemon.stop();
}

// contract 1.7, contract 7.3: prompting needs control, and the event names the token
#[test]
fn a_prompt_needs_control() {
    let tokens = [entry("o", "scope = \"observe\"\nsees = \"all\""), entry("c", "scope = \"control\"")];
    let scratch = Scratch::new().config(&tokens.join("\n"));
    let mut daemon = scratch.serve();
    let session = client(&daemon, &scratch, "c").new_session();
    let body = json!({"prompt": "x"}).to_string();
    for (who, status) in [("o", 403), ("c", 202)] {
        let answer = post(&daemon, &session, &[("Authorization", &bearer(who))], &body);
        assert_eq!(answer.status, status, "{}", answer.json());
    }
    let page = ask(&daemon, "c", "GET", &format!("/v1/sessions/{session}/events")).json();
    let prompts: Vec<_> =
        page["events"].as_array().expect("events").iter().filter(|e| e["kind"] == "prompt").collect();
    assert_eq!((prompts.len(), &prompts[0]["by"]), (1, &json!("REST (c)")));
    daemon.stop();
}

// contract 7.3: the same key means the same prompt, over REST and ACP, while it runs, when it is over, and in a new run
#[test]
fn a_key_means_one_prompt() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut client = local(&daemon, &scratch);
    let session = client.new_session();
    let over_acp = |key: &Value, text: &str| {
        let meta = json!({"sandboxagent.dev": {"idempotencyKey": key}});
        json!({"sessionId": session, "prompt": [{"type": "text", "text": text}], "_meta": meta})
    };
    let again = over_acp(&json!("k"), "ask edit");
    let first = client.request("session/prompt", &again);
    let question = client.until("a question", |it| it.method() == Some("session/request_permission"));
    // It runs: over REST it is found, over ACP its end is waited for.
    let told = accepted(&keyed(&daemon, &session, "k", "ask edit"));
    assert_eq!(told["turn"], 1);
    let mut other = local(&daemon, &scratch);
    other.call("session/resume", &json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []}));
    let repeated = other.request("session/prompt", &again);
    for (key, text, field) in [(json!("k"), "x", "idempotencyKey"), (json!(7), "x", "idempotencyKey")] {
        let error = other.refused("session/prompt", &over_acp(&key, text));
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().expect("words").contains(field), "{error}");
    }
    let result = json!({"outcome": {"outcome": "cancelled"}});
    client.write_line(json!({"jsonrpc": "2.0", "id": question.json["id"], "result": result}).to_string());
    let stop = client.result(&first)["stopReason"].clone();
    assert_eq!(other.result(&repeated)["stopReason"], stop);
    assert_eq!(other.call("session/prompt", &again)["stopReason"], stop, "it is over");
    // An error is an error again.
    let wrong = over_acp(&json!("wrong"), "stream x");
    let error = client.refused("session/prompt", &wrong);
    let repeated = other.refused("session/prompt", &wrong);
    assert_eq!((&error["code"], &error["message"]), (&repeated["code"], &repeated["message"]));
    // A new run knows it.
    client.call("session/close", &json!({"sessionId": session}));
    client.call("session/resume", &json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []}));
    assert_eq!(accepted(&keyed(&daemon, &session, "k", "ask edit")), told);
    assert_eq!(client.call("session/prompt", &again)["stopReason"], stop);
    assert_eq!(of_kind(&daemon, &session, "prompt").len(), 2);
    daemon.stop();
}

// contract 7.3: of clients that race with one key, one begins the turn, and all are told the same
#[test]
fn clients_race_with_one_key() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let session = local(&daemon, &scratch).new_session();
    for round in 1..=10 {
        let key = format!("k-{round}");
        let (address, path) = (daemon.address(), path(&session));
        let headers = [JSON, ("Idempotency-Key", key.as_str())];
        let body = json!({"prompt": "hello"}).to_string();
        let send = || accepted(&Http::on(connect(address)).request("POST", &path, &headers, &body));
        let told: Vec<Value> = thread::scope(|scope| {
            let clients: Vec<_> = (0..2).map(|_| scope.spawn(send)).collect();
            clients.into_iter().map(|client| client.join().expect("it is answered")).collect()
        });
        assert_eq!(told[0], told[1]);
        assert_eq!(told[0]["turn"], round);
        turn_ended(&daemon, &session, &told[0]["turn"]);
    }
    assert_eq!(of_kind(&daemon, &session, "prompt").len(), 10);
    daemon.stop();
}

/// How often the example agent was given each text.
fn turns_of_the_agent(scratch: &Scratch) -> BTreeMap<String, usize> {
    let mut turns = BTreeMap::new();
    let kept = std::fs::read_dir(scratch.path(".local/state/acpd-example")).expect("its sessions");
    for file in kept {
        let lines = std::fs::read_to_string(file.expect("readable").path()).expect("text");
        for record in lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            if let Some(text) = record["prompt"][0]["text"].as_str() {
                *turns.entry(text.to_owned()).or_default() += 1;
            }
        }
    }
    turns
}

// contract 7.3: each prompt is sent three times while daemons are killed, and runs once
#[test]
fn prompts_run_once_over_kills() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let session = local(&daemon, &scratch).new_session();
    for number in 0..PROMPTS {
        let (key, text) = (format!("key-{number}"), format!("text-{number}"));
        let mut first = None;
        if number % 3 == 0 {
            // It dies with the prompt, whether that was taken or not.
            let (body, headers) =
                (json!({"prompt": text}).to_string(), [JSON, ("Idempotency-Key", key.as_str())]);
            Http::on(daemon.connect()).send("POST", &path(&session), &headers, &body);
        } else {
            first = Some(accepted(&keyed(&daemon, &session, &key, &text)));
        }
        if number % 3 < 2 {
            daemon.kill();
            daemon = scratch.serve();
            // It has ended, and the key is known all the same, unless nothing was recorded.
            let second = keyed(&daemon, &session, &key, &text);
            match (second.status, first.take()) {
                (409, None) => assert_eq!(second.problem(), "session_ended"),
                (_, before) => {
                    let told = accepted(&second);
                    assert!(before.is_none_or(|before| before == told), "{told}");
                    first = Some(told);
                }
            }
            let setup = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
            local(&daemon, &scratch).call("session/resume", &setup);
        }
        let told = accepted(&keyed(&daemon, &session, &key, &text));
        assert_eq!(first.as_ref().unwrap_or(&told), &told);
        assert_eq!(accepted(&keyed(&daemon, &session, &key, &text)), told);
        until("the session is idle", || {
            let shown = plain(&daemon, "GET", &format!("/v1/sessions/{session}"), &[]).json();
            (shown["state"] == "idle").then_some(())
        });
    }
    let (prompts, ended) = (of_kind(&daemon, &session, "prompt"), of_kind(&daemon, &session, "turn_ended"));
    let keys: Vec<&str> =
        prompts.iter().map(|event| event["idempotencyKey"].as_str().expect("a key")).collect();
    let sent: Vec<String> = (0..PROMPTS).map(|number| format!("key-{number}")).collect();
    assert_eq!(keys, sent, "each began once");
    let turns = turns_of_the_agent(&scratch);
    for prompt in &prompts {
        let text = prompt["prompt"][0]["text"].as_str().expect("text");
        let ran = turns.get(text).copied().unwrap_or_default();
        // A daemon that dies right behind the commit has told the agent nothing.
        let must_run = ended.iter().any(|event| event["turn"] == prompt["turn"]);
        assert!(ran == 1 || (ran == 0 && !must_run), "{text} ran {ran} times");
    }
    daemon.stop();
}
