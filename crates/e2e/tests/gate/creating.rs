//! Creating sessions over REST: what is answered, and that a request under a key makes one session, whatever happens meanwhile.

use crate::door::{JSON, ask, bearer, client, entry, plain};
use acpd_e2e::{Answer, Daemon, Gate, Http, Scratch, connect, taking_shell_agent, until};
use serde_json::{Value, json};
use std::thread;

/// Creations that are sent over the deaths of the daemon.
const CREATIONS: usize = 16;

fn post(daemon: &Daemon, headers: &[(&str, &str)], body: &Value) -> Answer {
    let headers: Vec<_> = [JSON].iter().chain(headers).copied().collect();
    Http::on(daemon.connect()).request("POST", "/v1/sessions", &headers, &body.to_string())
}

fn keyed(daemon: &Daemon, key: &str, body: &Value) -> Answer {
    post(daemon, &[("Idempotency-Key", key)], body)
}

fn created(answer: &Answer) -> Value {
    assert_eq!(answer.status, 201, "{}", answer.json());
    let info = answer.json();
    let place = format!("/v1/sessions/{}", info["sessionId"].as_str().expect("an id"));
    assert_eq!(answer.header("location"), Some(&*place));
    info
}

fn id(info: &Value) -> String {
    info["sessionId"].as_str().expect("an id").to_owned()
}

fn show(daemon: &Daemon, session: &str) -> Value {
    plain(daemon, "GET", &format!("/v1/sessions/{session}"), &[]).json()
}

fn all(daemon: &Daemon) -> Vec<Value> {
    plain(daemon, "GET", "/v1/sessions?limit=500", &[]).json()["sessions"].as_array().expect("a list").clone()
}

fn of_kind(daemon: &Daemon, session: &str, kind: &str) -> Vec<Value> {
    let page = plain(daemon, "GET", &format!("/v1/sessions/{session}/events?limit=1000"), &[]).json();
    let events = page["events"].as_array().expect("events").iter();
    events.filter(|event| event["kind"] == kind).cloned().collect()
}

fn until_idle(daemon: &Daemon, session: &str) -> Value {
    until("the session is idle", || Some(show(daemon, session)).filter(|shown| shown["state"] == "idle"))
}

// contract 7.3: all of it in one request; the prompt has begun when the session is there
#[test]
fn a_session_is_created_and_prompted() {
    let scratch = Scratch::new().example("other", &[]);
    let mut daemon = scratch.serve();
    let body = json!({
        "agent": "other", "cwd": scratch.work(), "prompt": "title The agent's own\nhello", "title": "Mine",
        "permissionMode": "deny", "mcpServers": [], "additionalDirectories": [scratch.path("more")],
    });
    let info = created(&post(&daemon, &[], &body));
    let session = id(&info);
    assert_eq!((&info["agent"], &info["cwd"]), (&json!("other"), &json!(scratch.work())));
    assert_eq!(info["metadata"]["permissionMode"], "deny");
    assert_eq!(info["metadata"]["client"], "REST");
    let prompts = of_kind(&daemon, &session, "prompt");
    assert_eq!(prompts.len(), 1);
    assert_eq!(prompts[0]["prompt"][0]["text"], body["prompt"]);
    // The title that the client chose stays, also for those who see the log only.
    assert_eq!(until_idle(&daemon, &session)["title"], "Mine");
    // It is idle a moment before that is in the log.
    let ended = until("the turn has ended", || of_kind(&daemon, &session, "turn_ended").first().cloned());
    assert_eq!(ended["stopReason"], "end_turn");
    daemon.kill();
    let mut daemon = scratch.serve();
    assert_eq!(show(&daemon, &session)["title"], "Mine");
    assert_eq!(all(&daemon)[0]["title"], "Mine");
    // Without anything but a directory.
    let info = created(&post(&daemon, &[], &json!({"cwd": scratch.work()})));
    assert_eq!((&info["agent"], &info["state"]), (&json!("example"), &json!("idle")));
    assert_eq!(info["title"], Value::Null);
    assert_eq!(of_kind(&daemon, &id(&info), "prompt").len(), 0);
    daemon.stop();
}

// contract 7.3: closed after its first turn, though its client has left before that ended
#[test]
fn a_session_is_closed_after_its_turn() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let body = json!({"cwd": scratch.work(), "prompt": "ask edit", "closeAfterTurn": true});
    let session = id(&created(&post(&daemon, &[], &body)));
    let asked = until("a question", || {
        of_kind(&daemon, &session, "permission_requested").first().map(|event| event["seq"].clone())
    });
    let outcome = json!({"question": asked, "outcome": {"outcome": "cancelled"}}).to_string();
    let path = format!("/v1/sessions/{session}/answer");
    assert_eq!(Http::on(daemon.connect()).request("POST", &path, &[JSON], &outcome).status, 204);
    let ended = until("its end", || Some(show(&daemon, &session)).filter(|shown| shown["ended"] == true));
    let end = &ended["terminationInfo"];
    assert_eq!((&end["reason"], &end["cause"]), (&json!("completed"), &json!("client_close")));
    assert_eq!((&end["terminatedBy"], &end["initiator"]), (&json!("daemon"), &json!("REST")));
    assert_eq!(of_kind(&daemon, &session, "turn_ended").len(), 1);
    assert_eq!(ended["metadata"]["runs"], 1);
    daemon.stop();
}

// contract 7.3: what is wrong is named with its fix, and nothing is created or started
#[test]
fn wrong_requests_create_nothing() {
    let body = r#"take; answer '{"protocolVersion":1,"agentCapabilities":{}}'; take"#;
    let scratch = Scratch::new().shell("plain", &taking_shell_agent(body));
    let mut daemon = scratch.serve();
    let work = scratch.work();
    for (body, words) in [
        (json!({}), "`cwd`"),
        (json!({"cwd": 7}), "cwd: "),
        (json!({"cwd": "here"}), "cwd: \"here\" is not absolute"),
        (json!({"cwd": "/no/such/dir"}), "cwd: \"/no/such/dir\" is not a directory"),
        (json!({"cwd": work, "promt": "x"}), "unknown field `promt`, expected one of"),
        (json!({"cwd": work, "agent": "x"}), "no agent named \"x\" is configured (there are: "),
        (json!({"cwd": work, "prompt": 7}), "prompt: an array of content blocks"),
        (json!({"cwd": work, "prompt": [{"text": "x"}]}), "prompt: an array of content blocks"),
        (json!({"cwd": work, "mcpServers": {}}), "mcpServers: an array is required"),
        (json!({"cwd": work, "additionalDirectories": ["/", "x"]}), "additionalDirectories[1]: \"x\" is not"),
        (json!({"cwd": work, "additionalDirectories": [7]}), "additionalDirectories[0]: "),
        (
            json!({"cwd": work, "permissionMode": "all"}),
            "permissionMode: unknown variant `all`, expected one of",
        ),
        (
            json!({"cwd": work, "partition": "both"}),
            "partition: unknown variant `both`, expected `local` or `failover`",
        ),
        (
            json!({"cwd": work, "partition": "failover"}),
            "partition: failover needs a fleet, and this daemon is in none",
        ),
        (json!({"cwd": work, "title": ""}), "title: one line of 1 to 200 characters"),
        (json!({"cwd": work, "title": "a\nb"}), "title: one line of 1 to 200 characters"),
        (json!({"cwd": work, "closeAfterTurn": "yes"}), "closeAfterTurn: "),
        (json!([work]), "an object is required"),
    ] {
        let answer = post(&daemon, &[], &body);
        assert_eq!((answer.status, &*answer.problem()), (400, "bad_request"), "{body}");
        let detail = answer.json()["detail"].as_str().expect("words").to_owned();
        assert!(detail.contains(words), "{body}: {detail}");
    }
    let body = json!({"cwd": work});
    let answer = keyed(&daemon, "a b", &body);
    assert_eq!((answer.status, &*answer.problem()), (400, "bad_request"));
    let headers = [("Content-Type", "text/plain")];
    let answer = Http::on(daemon.connect()).request("POST", "/v1/sessions", &headers, &body.to_string());
    assert_eq!((answer.status, &*answer.problem()), (415, "unsupported_media_type"));
    assert_eq!(all(&daemon).len(), 0);
    assert!(scratch.mark().running(" example-agent").is_empty());
    // What this agent does not take is known when it has started.
    let image =
        json!([{"type": "text", "text": "x"}, {"type": "image", "data": "", "mimeType": "image/png"}]);
    let answer = post(&daemon, &[], &json!({"agent": "plain", "cwd": work, "prompt": image}));
    assert_eq!((answer.status, &*answer.problem()), (400, "bad_request"));
    assert!(answer.json()["detail"].as_str().expect("words").starts_with("prompt[1]: "));
    assert_eq!(all(&daemon).len(), 0);
    until("its process is gone", || scratch.mark().running("agentCapabilities").is_empty().then_some(()));
    daemon.stop();
}

// contract 7.3: agents that want a login, do not start, die or refuse are told apart, and leave no session
#[test]
fn agents_that_fail_are_told() {
    let initialize = r#"take; answer '{"protocolVersion":1,"agentCapabilities":{},"authMethods":[{"id":"key","name":"A key"}]}'; take"#;
    let error = |error: &str| {
        let refuse = format!(r#"printf '{{"jsonrpc":"2.0","id":%s,"error":{error}}}\n' "$id"; take"#);
        taking_shell_agent(&format!("{initialize}; {refuse}"))
    };
    let scratch = Scratch::new()
        .shell("login", &error(r#"{"code":-32000,"message":"Authentication required"}"#))
        .shell("refuses", &error(r#"{"code":-32602,"message":"Bad","data":{"details":"No disk."}}"#))
        .shell("dies", &taking_shell_agent(&format!("{initialize}; echo broken >&2; exit 3")))
        .example("early", &["--exit-before-initialize", "4"]);
    let mut daemon = scratch.serve();
    let body = |agent: &str| json!({"cwd": scratch.work(), "agent": agent, "prompt": "hello"});
    for (agent, status, kind, words) in [
        ("login", 424, "authentication_required", "Authentication required"),
        ("refuses", 502, "agent_failed", "Bad: No disk."),
        ("dies", 502, "agent_failed", "the agent ended before it answered"),
        ("early", 502, "agent_failed", "agent early did not start"),
    ] {
        let answer = keyed(&daemon, agent, &body(agent));
        let told = answer.json();
        assert_eq!((answer.status, &*answer.problem()), (status, kind), "{told}");
        assert!(told["detail"].as_str().expect("words").contains(words), "{told}");
        let logins = if agent == "login" { json!([{"id": "key", "name": "A key"}]) } else { Value::Null };
        assert_eq!(told["authMethods"], logins, "{told}");
        let code = match agent {
            "dies" => json!(3),
            "early" => json!(4),
            _ => Value::Null,
        };
        assert_eq!(told["terminationInfo"]["exitCode"], code, "{told}");
    }
    assert_eq!(all(&daemon).len(), 0);
    daemon.stop();
}

// contract 7.3: the same request under a key is the same session, also when it has ended; another one is refused
#[test]
fn a_key_means_one_session() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let body = json!({"cwd": scratch.work(), "prompt": "hello", "title": "One"});
    let session = id(&created(&keyed(&daemon, "k", &body)));
    until_idle(&daemon, &session);
    // The same value is the same request, however it is written.
    let again = json!({"title": "One", "prompt": "hello", "cwd": scratch.work()});
    assert_eq!(id(&created(&keyed(&daemon, "k", &again))), session);
    for other in
        [json!({"cwd": scratch.work()}), json!({"cwd": scratch.work(), "prompt": "bye", "title": "One"})]
    {
        let answer = keyed(&daemon, "k", &other);
        assert_eq!((answer.status, &*answer.problem()), (422, "idempotency_key_reused"));
    }
    assert_ne!(id(&created(&keyed(&daemon, "another", &body))), session);
    let close = format!("/v1/sessions/{session}/close");
    assert_eq!(plain(&daemon, "POST", &close, &[]).status, 204);
    let info = created(&keyed(&daemon, "k", &body));
    assert_eq!((id(&info), &info["ended"]), (session.clone(), &json!(true)));
    daemon.stop();
    let mut daemon = scratch.serve();
    assert_eq!(id(&created(&keyed(&daemon, "k", &body))), session);
    assert_eq!(keyed(&daemon, "k", &json!({"cwd": "/"})).problem(), "idempotency_key_reused");
    assert_eq!(of_kind(&daemon, &session, "prompt").len(), 1);
    assert_eq!(all(&daemon).len(), 2);
    assert!(scratch.mark().running(" example-agent").is_empty(), "nothing was started for what is known");
    daemon.stop();
}

// contract 7.3: of clients that race with one key, one creates the session, and all are told of it
#[test]
fn clients_race_with_one_key() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let body = json!({"cwd": scratch.work(), "prompt": "hello"}).to_string();
    for round in 1..=5 {
        let (address, key) = (daemon.address(), format!("k-{round}"));
        let headers = [JSON, ("Idempotency-Key", key.as_str())];
        let send =
            || id(&created(&Http::on(connect(address)).request("POST", "/v1/sessions", &headers, &body)));
        let told: Vec<String> = thread::scope(|scope| {
            let clients: Vec<_> = (0..3).map(|_| scope.spawn(send)).collect();
            clients.into_iter().map(|client| client.join().expect("it is answered")).collect()
        });
        assert!(told.iter().all(|session| *session == told[0]), "{told:?}");
        assert_eq!(of_kind(&daemon, &told[0], "prompt").len(), 1);
        assert_eq!(all(&daemon).len(), round);
    }
    daemon.stop();
}

// contract 7.3: a client that leaves before it is answered has its session, with its prompt
#[test]
fn a_client_may_leave_before_the_answer() {
    let scratch = Scratch::new();
    let gate = Gate::new(scratch.path("gate"));
    let body = format!(
        "take; answer '{{\"protocolVersion\":1,\"agentCapabilities\":{{}}}}'\ntake; {}; answer '{{\"sessionId\":\"shell-1\"}}'\n\
         take; answer '{{\"stopReason\":\"end_turn\"}}'; take",
        gate.line()
    );
    let scratch = scratch.shell("slow", &taking_shell_agent(&body));
    let mut daemon = scratch.serve();
    let body = json!({"cwd": scratch.work(), "agent": "slow", "prompt": "hello", "closeAfterTurn": true});
    let headers = [JSON, ("Idempotency-Key", "k")];
    let mut http = Http::on(daemon.connect());
    http.send("POST", "/v1/sessions", &headers, &body.to_string());
    let arrival = gate.arrival();
    drop(http);
    arrival.go();
    let ended = until("its end", || all(&daemon).into_iter().find(|listed| listed["ended"] == true));
    assert_eq!(ended["terminationInfo"]["cause"], "client_close");
    assert_eq!(of_kind(&daemon, &id(&ended), "turn_ended").len(), 1);
    assert_eq!(id(&created(&keyed(&daemon, "k", &body))), id(&ended));
    daemon.stop();
}

// contract 7.3: each creation is sent again while daemons are killed, at any moment; it makes one session with one prompt and
// one process
#[test]
fn creations_happen_once_over_kills() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    for number in 0..CREATIONS {
        let (key, text) = (format!("key-{number}"), format!("text-{number}"));
        let body = json!({"cwd": scratch.work(), "prompt": text, "title": key});
        if number % 4 == 0 {
            created(&keyed(&daemon, &key, &body));
        } else {
            let headers = [JSON, ("Idempotency-Key", key.as_str())];
            Http::on(daemon.connect()).send("POST", "/v1/sessions", &headers, &body.to_string());
            // It dies when the request has come so far.
            match number % 4 {
                1 => {}
                2 => {
                    until("a process", || {
                        (!scratch.mark().running(" example-agent").is_empty()).then_some(())
                    });
                }
                _ => {
                    until("the session", || {
                        all(&daemon).iter().any(|listed| listed["title"] == key.as_str()).then_some(())
                    });
                }
            }
        }
        daemon.kill();
        daemon = scratch.serve();
        let first = id(&created(&keyed(&daemon, &key, &body)));
        assert_eq!(id(&created(&keyed(&daemon, &key, &body))), first);
        let titled = all(&daemon).into_iter().filter(|listed| listed["title"] == key.as_str());
        assert_eq!(titled.count(), 1, "{key}");
        let prompts = of_kind(&daemon, &first, "prompt");
        assert_eq!((prompts.len(), &prompts[0]["prompt"][0]["text"]), (1, &json!(text)), "{key}");
        let shown = show(&daemon, &first);
        let live = if shown["ended"] == true { 0 } else { 1 };
        until("one process of it at most", || {
            (scratch.mark().running(" example-agent").len() == live).then_some(())
        });
        let close = format!("/v1/sessions/{first}/close");
        assert_eq!(plain(&daemon, "POST", &close, &[]).status, 204);
    }
    assert_eq!(all(&daemon).len(), CREATIONS);
    daemon.stop();
}

// contract 1.7, contract 7.3: creating needs control; the session is the token's own, and so is its key
#[test]
fn a_session_belongs_to_its_token() {
    let tokens = [
        entry("o", "scope = \"observe\"\nsees = \"all\""),
        entry("a", "scope = \"control\""),
        entry("b", "scope = \"control\""),
        entry("few", "scope = \"control\"\nsessions = 1"),
    ];
    let scratch = Scratch::new().config(&tokens.join("\n"));
    let mut daemon = scratch.serve();
    let body = json!({"cwd": scratch.work()});
    let create = |who: &str, key: &str| {
        post(&daemon, &[("Authorization", &bearer(who)), ("Idempotency-Key", key)], &body)
    };
    assert_eq!((create("o", "k").status, &*create("o", "k").problem()), (403, "forbidden"));
    let own = created(&create("a", "k"));
    assert_eq!(
        (&own["metadata"]["createdBy"], &own["metadata"]["client"]),
        (&json!("a"), &json!("REST (a)"))
    );
    let other = created(&create("b", "k"));
    assert_ne!(id(&own), id(&other), "a key is of its token");
    let path = format!("/v1/sessions/{}", id(&own));
    for (who, status) in [("a", 200), ("o", 200), ("b", 404)] {
        assert_eq!(ask(&daemon, who, "GET", &path).status, status, "{who}");
    }
    client(&daemon, &scratch, "b")
        .refused("session/resume", &json!({"sessionId": id(&own), "cwd": scratch.work(), "mcpServers": []}));
    // The same request again is no session more.
    let only = created(&create("few", "k"));
    assert_eq!(id(&created(&create("few", "k"))), id(&only));
    let full = create("few", "l");
    assert_eq!((full.status, &*full.problem()), (429, "too_many_sessions"), "{}", full.json());
    assert!(full.json()["detail"].as_str().expect("words").contains("1 live sessions"), "{}", full.json());
    let close = format!("/v1/sessions/{}/close", id(&only));
    assert_eq!(ask(&daemon, "few", "POST", &close).status, 204);
    created(&create("few", "l"));
    daemon.stop();
}
