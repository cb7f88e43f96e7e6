//! What each scope may do, method by method and route by route.

use crate::door::{ask, client, entry, plain, stream};
use acpd_e2e::{Client, Daemon, Scratch, until};
use serde_json::{Value, json};
use std::path::Path;

const TERMINATE: &str = "_sandboxagent/session/terminate";

fn scratch() -> Scratch {
    let tokens = [
        entry("o", "scope = \"observe\"\nsees = \"all\""),
        entry("c", "scope = \"control\"\nsees = \"all\""),
        entry("own", "scope = \"control\""),
        entry("root", "scope = \"admin\""),
    ];
    Scratch::new().config(&tokens.join("\n"))
}

fn state(daemon: &Daemon, session: &str) -> String {
    let shown = ask(daemon, "root", "GET", &format!("/v1/sessions/{session}")).json();
    shown["state"].as_str().expect("a state").to_owned()
}

fn refused(client: &mut Client, method: &str, params: &Value) -> (Value, Value) {
    let error = client.refused(method, params);
    (error["code"].clone(), error["data"].clone())
}

// MC-3, contract 1.7: each method under each scope
#[test]
fn each_method_needs_its_scope() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let mut owner = client(&daemon, &scratch, "own");
    let session = owner.new_session();
    let named = json!({"sessionId": session});
    let setup = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "hello"}]});
    let mode = json!({"sessionId": session, "modeId": "code"});
    let new = json!({"cwd": scratch.work(), "mcpServers": []});
    let (observe, control, admin) = ("observe", "control", "admin");
    let methods = [
        ("session/list", &json!({}), observe),
        ("session/status", &named, observe),
        ("session/load", &setup, observe),
        ("session/resume", &setup, observe),
        ("session/new", &new, control),
        ("session/prompt", &prompt, control),
        ("session/set_mode", &mode, control),
        ("session/set_config_option", &named, control),
        ("_x/anything", &named, control),
        ("_x/anything", &json!({}), control),
        ("authenticate", &json!({"methodId": "x"}), control),
        ("logout", &json!({}), control),
        ("session/fork", &setup, control),
        ("_sandboxagent/session/detach", &named, observe),
        ("session/close", &named, control),
        ("session/stop", &named, control),
        (TERMINATE, &named, admin),
        ("session/delete", &named, admin),
    ];
    for (who, scope) in [("o", observe), ("c", control), ("root", admin)] {
        let mut client = client(&daemon, &scratch, who);
        let before = state(&daemon, &session);
        for (method, params, needed) in &methods {
            let may = [observe, control, admin].iter().position(|s| *s == scope)
                >= [observe, control, admin].iter().position(|s| s == needed);
            if may {
                let asked = client.request(method, params);
                let code = &client.answer(&asked).json["error"]["code"];
                assert_ne!(code, -32003, "{who}: {method}");
            } else {
                let (code, data) = refused(&mut client, method, params);
                assert_eq!(code, -32003, "{who}: {method}");
                // One's own may be terminated with less.
                let least = if (*method, scope) == (TERMINATE, observe) { &control } else { needed };
                assert_eq!(data, json!({"scope": scope, "required": least}), "{who}: {method}");
            }
        }
        match scope {
            "observe" => assert_eq!(state(&daemon, &session), before, "an observer changes nothing"),
            "control" => assert_eq!(state(&daemon, &session), "ended", "it was closed"),
            _ => {
                let gone = ask(&daemon, "root", "GET", &format!("/v1/sessions/{session}"));
                assert_eq!(gone.status, 404, "it was deleted");
            }
        }
    }
    // One's own may be terminated with control.
    let own = owner.new_session();
    let ended = owner.call(TERMINATE, &json!({"sessionId": own}));
    assert_eq!(ended["reason"], "terminated");
    daemon.stop();
}

// MC-3, contract 1.7: each route under each scope
#[test]
fn each_route_needs_its_scope() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let mut owner = client(&daemon, &scratch, "own");
    for version in ["/v1", "/v2"] {
        let [first, second, third] = [(); 3].map(|()| owner.new_session());
        let [first, second, third] = [first, second, third].map(|id| format!("{version}/sessions/{id}"));
        for (method, path, statuses) in [
            ("GET", format!("{version}/sessions"), [200, 200, 200]),
            ("GET", first.clone(), [200, 200, 200]),
            ("GET", format!("{first}/events"), [200, 200, 200]),
            ("GET", format!("{first}/export"), [200, 200, 200]),
            ("POST", format!("{version}/import"), [403, 403, 400]),
            ("GET", "/openapi.json".to_owned(), [200, 200, 200]),
            ("GET", format!("{version}/whoami"), [200, 200, 200]),
            ("GET", format!("{version}/agents"), [403, 403, 200]),
            ("GET", "/metrics".to_owned(), [403, 403, 200]),
            ("POST", format!("{first}/close"), [403, 204, 204]),
            ("POST", format!("{second}/terminate"), [403, 403, 204]),
            ("DELETE", third.clone(), [403, 403, 204]),
        ] {
            for (who, status) in ["o", "c", "root"].into_iter().zip(statuses) {
                let answer = ask(&daemon, who, method, &path);
                assert_eq!(answer.status, status, "{who}: {method} {path}");
                if status == 403 {
                    assert_eq!(answer.problem(), "forbidden");
                    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
                }
            }
        }
        let own = owner.new_session();
        assert_eq!(ask(&daemon, "own", "DELETE", &format!("{version}/sessions/{own}")).status, 403);
        for _ in 0..2 {
            let path = format!("{version}/sessions/{own}/terminate");
            assert_eq!(ask(&daemon, "own", "POST", &path).status, 204, "one's own, and again");
        }
    }
    daemon.stop();
}

// contract 7.3: each caller is told its name, scope and sight; without a token it has no name
#[test]
fn a_caller_is_told_what_it_may_do() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    for (who, scope, sees) in [
        ("o", "observe", "all"),
        ("c", "control", "all"),
        ("own", "control", "own"),
        ("root", "admin", "all"),
    ] {
        let mut told = ask(&daemon, who, "GET", "/v1/whoami").json();
        // What a new session may have, for those that may begin one.
        let (agents, cwd) = (told["agents"].take(), told["cwd"].take());
        assert_eq!(told, json!({"name": who, "scope": scope, "sees": sees, "agents": null, "cwd": null}));
        let begins = scope != "observe";
        assert_eq!(agents.as_array().is_some_and(|agents| !agents.is_empty()), begins, "{agents}");
        assert_eq!(cwd.as_str().is_some_and(|cwd| Path::new(cwd).is_dir()), begins, "{cwd}");
    }
    daemon.stop();
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let told = plain(&daemon, "GET", "/v1/whoami", &[]).json();
    let work = scratch.work();
    assert_eq!(told, json!({"scope": "admin", "sees": "all", "agents": ["example"], "cwd": work}));
    daemon.stop();
}

// MC-3, PE-2: who only observes sees all, is not asked, and has no say
#[test]
fn an_observer_watches_and_is_not_asked() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let mut owner = client(&daemon, &scratch, "own");
    let session = owner.new_session();
    let setup = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
    let mut observer = client(&daemon, &scratch, "o");
    observer.call("session/load", &setup);
    let asked = owner.prompt(&session, "ask edit");
    let question =
        owner.until("a question", |message| message.method() == Some("session/request_permission"));
    // One who comes while it is open is not asked either.
    let mut late = client(&daemon, &scratch, "o");
    late.call("session/load", &setup);
    for watching in [&mut observer, &mut late] {
        let options = question.json["params"]["options"].as_array().expect("options");
        for id in [question.json["id"].clone(), json!(1), json!("1")] {
            let result = json!({"outcome": {"outcome": "selected", "optionId": options[0]["optionId"]}});
            watching.write_line(json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
        }
        watching.notify("session/cancel", &json!({"sessionId": session}));
        watching.call("session/list", &json!({}));
    }
    assert_eq!(state(&daemon, &session), "waiting");
    let options = question.json["params"]["options"].as_array().expect("options");
    let reject = options.iter().find(|option| option["kind"] == "reject_once").expect("it is offered");
    let result = json!({"outcome": {"outcome": "selected", "optionId": reject["optionId"]}});
    owner.write_line(json!({"jsonrpc": "2.0", "id": question.json["id"], "result": result}).to_string());
    assert_eq!(owner.result(&asked)["stopReason"], "end_turn");
    let said = owner.text_since(&asked, &session);
    assert!(said.contains("reject"), "{said}");
    // It has seen the same turn live.
    let last = said.split_whitespace().last().expect("words").to_owned();
    for watching in [&mut observer, &mut late] {
        watching.until_text(&last);
        let asked = watching.received().iter().any(|m| m.method() == Some("session/request_permission"));
        assert!(!asked, "an observer was asked");
    }
    daemon.stop();
}

// MC-3, contract 1.7: an observer is told what acpd offers, and no process is started for that
#[test]
fn an_observer_costs_no_process() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let mut observer = client(&daemon, &scratch, "o");
    let listed = observer.call("session/list", &json!({}));
    assert_eq!(listed["sessions"], json!([]));
    assert_eq!(scratch.mark().running("example-agent").len(), 0);
    let mut owner = client(&daemon, &scratch, "own");
    let session = owner.new_session();
    observer.call("session/load", &json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []}));
    assert_eq!(owner.turn(&session, "seen by both"), "end_turn");
    observer.until("the turn", |message| message.raw.contains("both"));
    daemon.stop();
}

// MC-3, SE-6: what has ended is shown to an observer and not brought to life
#[test]
fn an_observer_starts_nothing() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let mut owner = client(&daemon, &scratch, "own");
    let session = owner.new_session();
    assert_eq!(owner.turn(&session, "remember this"), "end_turn");
    owner.call("session/close", &json!({"sessionId": session}));
    let mut observer = client(&daemon, &scratch, "o");
    let agents = || scratch.mark().running("example-agent").len();
    let before = until("the closed one's process is gone", || {
        let listed = ask(&daemon, "root", "GET", "/v1/agents").json();
        let counted =
            listed["agents"].as_array()?.iter().find(|a| a["name"] == "example")?["processes"].as_u64()?;
        (usize::try_from(counted).ok()? == agents()).then_some(agents())
    });
    let setup = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
    let loaded = observer.call("session/load", &setup);
    let meta = &loaded["_meta"]["sandboxagent.dev"];
    assert_eq!(meta["resumable"], false, "{loaded}");
    assert!(meta["reason"].as_str().expect("a reason").contains("observe"), "{meta}");
    assert_eq!(meta["terminationInfo"]["reason"], "completed");
    assert!(observer.received().iter().any(|message| message.raw.contains("remember")));
    let error = observer.refused("session/resume", &setup);
    assert!(error["message"].as_str().expect("a message").contains("observe"), "{error}");
    assert_eq!((agents(), &*state(&daemon, &session)), (before, "ended"));
    let mut events = stream(&daemon, "o", &format!("/v1/sessions/{session}/events")).expect("it may watch");
    events.until("the end", |event| event.event.as_deref() == Some("ended"));
    assert_eq!(events.next_data(), None);
    daemon.stop();
}
