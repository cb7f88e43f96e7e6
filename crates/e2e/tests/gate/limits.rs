//! Tokens that are limited to agents, roots, permission modes and MCP servers: every way in is tried for each.

use crate::door::{JSON, ask, bearer, entry, plain};
use acpd_e2e::{Answer, Client, Daemon, Exit, Http, Scratch, acpd, until};
use serde_json::{Value, json};
use std::path::Path;

const TERMINATE: &str = "_sandboxagent/session/terminate";

/// A world with sessions in `work/in` and a way out of it, and a token for each limit.
fn scratch() -> Scratch {
    let scratch = Scratch::new();
    let (inside, out) = (scratch.work().join("in"), scratch.path("out"));
    std::fs::create_dir_all(inside.join("below")).expect("a directory");
    std::fs::create_dir(&out).expect("a directory");
    std::os::unix::fs::symlink(&out, inside.join("link")).expect("a link");
    std::os::unix::fs::symlink(&inside, scratch.path("way-in")).expect("a link");
    let limited =
        |name: &str, limit: &str| entry(name, &format!("scope = \"control\"\nsees = \"all\"\n{limit}"));
    let tokens = [
        entry("root", "scope = \"admin\""),
        limited("agents", "agents = [\"plain\", \"not-yet\"]"),
        limited("roots", &format!("roots = [{inside:?}]")),
        limited("permission_modes", "permission_modes = [\"default\", \"deny\"]"),
        limited("http", "mcp = \"http\""),
        limited("none", "mcp = \"none\""),
        limited("c", ""),
    ];
    let scratch = scratch.example("plain", &[]).example("other", &[]).example("bold", &[]);
    scratch.config("permission_mode = \"bypassPermissions\"").config(&tokens.join("\n"))
}

fn meta(mode: &str) -> Value {
    json!({"sandboxagent.dev": {"permissionMode": mode}})
}

fn stdio_server() -> Value {
    json!({"name": "x", "command": "/bin/sh", "args": ["-c", "exit"], "env": []})
}

fn http_server() -> Value {
    json!({"type": "http", "name": "x", "url": "http://127.0.0.1:9/", "headers": []})
}

/// For each token a connection's agent, and what is refused to it: members of the params, and the limit.
fn refusals(scratch: &Scratch) -> Vec<(&'static str, &'static str, Value, &'static str)> {
    let (inside, out) = (scratch.work().join("in"), scratch.path("out"));
    let roots = |cwd: &Path, more: &[&Path]| {
        ("roots", "plain", json!({"cwd": cwd, "additionalDirectories": more}), "roots")
    };
    vec![
        roots(&out, &[]),
        roots(&scratch.work(), &[]),
        roots(&inside.join("link"), &[]),
        roots(&inside.join("../../out"), &[]),
        roots(&inside.join("gone"), &[]),
        roots(&inside, &[&inside, &out]),
        roots(&inside, &[Path::new("relative")]),
        roots(&inside, &[&inside.join("link")]),
        ("agents", "other", json!({}), "agents"),
        ("permission_modes", "plain", json!({"_meta": meta("bypassPermissions")}), "permission_modes"),
        ("permission_modes", "plain", json!({"_meta": meta("acceptEdits")}), "permission_modes"),
        // That of the agent's entry, when none is asked for.
        ("permission_modes", "bold", json!({}), "permission_modes"),
        ("http", "plain", json!({"mcpServers": [http_server(), stdio_server()]}), "mcp"),
        ("none", "plain", json!({"mcpServers": [http_server()]}), "mcp"),
    ]
}

/// What a limited token's request gives, and what it does not know to be harmless.
fn unreadable() -> [Value; 4] {
    [
        json!({"_meta": {"claudeCode": {"options": {}}}}),
        json!({"mcp_servers": [stdio_server()]}),
        json!({"additionalDirectories": [7]}),
        json!({"mcpServers": [["http"]]}),
    ]
}

fn with(mut params: Value, more: &Value) -> Value {
    let more = more.as_object().expect("members").clone();
    params.as_object_mut().expect("members").extend(more);
    params
}

/// A client of each transport.
fn clients(daemon: &Daemon, scratch: &Scratch, token: &str, agent: &str) -> [Client; 3] {
    let (path, bearer) = (format!("/acp?agent={agent}"), bearer(token));
    let headers = [("Authorization", &*bearer)];
    let mut front_end = scratch.command(acpd());
    front_end.args(["stdio", "--agent", agent, "--connect", &daemon.url()]);
    front_end.env("ACPD_TOKEN", format!("{token}-secret"));
    let mut clients = [
        daemon.over_websocket_with(scratch, &path, &headers),
        daemon.over_http_with(scratch, &path, &headers),
        scratch.client(front_end),
    ];
    for client in &mut clients {
        client.tolerant();
        client.initialize();
    }
    clients
}

fn post(daemon: &Daemon, token: &str, path: &str, body: &Value) -> Answer {
    let headers = [JSON, ("Authorization", &*bearer(token))];
    Http::on(daemon.connect()).request("POST", path, &headers, &body.to_string())
}

fn create(daemon: &Daemon, token: &str, body: &Value) -> String {
    let answer = post(daemon, token, "/v1/sessions", body);
    assert_eq!(answer.status, 201, "{}", answer.json());
    answer.json()["sessionId"].as_str().expect("an id").to_owned()
}

/// An ended session of another token, in `work/in`.
fn ended(daemon: &Daemon, scratch: &Scratch, agent: &str) -> String {
    let body = json!({"agent": agent, "cwd": scratch.work().join("in")});
    let session = create(daemon, "root", &body);
    assert_eq!(ask(daemon, "root", "POST", &format!("/v1/sessions/{session}/close")).status, 204);
    session
}

/// What is recorded, without the times.
fn recorded(daemon: &Daemon) -> Vec<(String, u64, u64)> {
    let listed = ask(daemon, "root", "GET", "/v1/sessions?limit=500").json();
    let facts = |shown: &Value| {
        let id = shown["sessionId"].as_str().expect("an id").to_owned();
        let runs = shown["metadata"]["runs"].as_u64().expect("runs");
        (
            id,
            shown["history"]["eventCount"].as_u64().or(shown["eventCount"].as_u64()).unwrap_or_default(),
            runs,
        )
    };
    let mut sessions: Vec<_> = listed["sessions"].as_array().expect("a list").iter().map(facts).collect();
    sessions.sort();
    sessions
}

fn agents(scratch: &Scratch) -> Vec<u32> {
    let mut pids: Vec<u32> =
        scratch.mark().running(" example-agent").into_iter().map(|process| process.pid).collect();
    pids.sort_unstable();
    pids
}

/// The params of REST for what ACP is given.
fn over_rest(params: &Value) -> Value {
    let mut body = params.clone();
    let members = body.as_object_mut().expect("members");
    members.remove("sessionId");
    if let Some(meta) = members.remove("_meta") {
        members.insert("permissionMode".to_owned(), meta["sandboxagent.dev"]["permissionMode"].clone());
    }
    body
}

// contract 7.2: no transport and no method begins anything beyond a limit
#[test]
fn nothing_begins_beyond_a_limit() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let sessions = ["plain", "other", "bold"].map(|agent| (agent, ended(&daemon, &scratch, agent)));
    until("their processes are gone", || agents(&scratch).is_empty().then_some(()));
    let before = recorded(&daemon);
    for (token, agent, params, limit) in refusals(&scratch) {
        let session = &sessions.iter().find(|(name, _)| *name == agent).expect("it is there").1;
        let whole = with(json!({"cwd": scratch.work().join("in"), "mcpServers": []}), &params);
        let named = with(json!({"sessionId": session}), &whole);
        for mut client in clients(&daemon, &scratch, token, agent) {
            let running = agents(&scratch);
            assert!(token != "agents" || running.is_empty(), "nothing is started for another agent");
            for (method, params) in [
                ("session/new", &whole),
                ("session/load", &named),
                ("session/resume", &named),
                ("session/fork", &named),
            ] {
                let error = client.refused(method, params);
                let told = (&error["code"], &error["data"]["limit"]);
                assert_eq!(told, (&json!(-32003), &json!(limit)), "{token}: {method} {params}: {error}");
                assert!(error["data"]["allowed"].is_array(), "{error}");
            }
            let started = agents(&scratch).into_iter().find(|pid| !running.contains(pid));
            assert_eq!(started, None, "{token}: {params}");
            client.close_input();
        }
        until("those of connections are gone", || agents(&scratch).is_empty().then_some(()));
        let body = over_rest(&whole);
        let created = with(json!({"agent": agent, "prompt": "hello"}), &body);
        for (path, body) in [
            ("/v1/sessions".to_owned(), &created),
            (format!("/v1/sessions/{session}/resume"), &body),
            (format!("/v1/sessions/{session}/fork"), &body),
        ] {
            let answer = post(&daemon, token, &path, body);
            if body["additionalDirectories"] == json!(["relative"]) {
                assert_eq!(answer.status, 400, "it is wrong without limits too");
                continue;
            }
            assert_eq!((answer.status, &*answer.problem()), (403, "token_limit"), "{path} {body}");
            assert_eq!(answer.json()["limit"], limit, "{}", answer.json());
        }
        assert!(agents(&scratch).is_empty(), "{token}: {params}");
    }
    for params in unreadable() {
        let whole = with(json!({"cwd": scratch.work().join("in"), "mcpServers": []}), &params);
        let mut client =
            daemon.over_websocket_with(&scratch, "/acp?agent=plain", &[("Authorization", &bearer("none"))]);
        client.tolerant();
        client.initialize();
        assert_eq!(client.refused("session/new", &whole)["code"], -32602, "{whole}");
    }
    assert_eq!(recorded(&daemon), before);
    daemon.stop();
}

// contract 7.2: within its limits a token does all that its scope includes
#[test]
fn what_is_within_the_limits_is_served() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let (inside, way_in) = (scratch.work().join("in"), scratch.path("way-in"));
    for (token, params) in [
        ("agents", json!({"cwd": scratch.path("out")})),
        ("roots", json!({"cwd": inside})),
        ("roots", json!({"cwd": inside.join("below"), "additionalDirectories": [inside]})),
        ("roots", json!({"cwd": way_in})),
        ("roots", json!({"cwd": inside.join("../in/below")})),
        ("permission_modes", json!({"cwd": inside})),
        ("permission_modes", json!({"cwd": inside, "_meta": meta("deny")})),
        ("http", json!({"cwd": inside, "mcpServers": [http_server()]})),
        ("none", json!({"cwd": inside})),
    ] {
        let whole = with(json!({"mcpServers": []}), &params);
        for mut client in clients(&daemon, &scratch, token, "plain") {
            let session = client.call("session/new", &whole)["sessionId"].as_str().expect("an id").to_owned();
            assert_eq!(client.turn(&session, "hello"), "end_turn");
            client.call("session/close", &json!({"sessionId": session}));
            let named = with(json!({"sessionId": session}), &whole);
            client.call("session/resume", &named);
            assert_eq!(client.turn(&session, "again"), "end_turn");
            let fork = client.call("session/fork", &named);
            assert!(fork["sessionId"].is_string(), "{fork}");
        }
        let body = with(json!({"agent": "plain"}), &over_rest(&whole));
        let session = create(&daemon, token, &body);
        for (verb, status) in
            [("prompt", 202), ("fork", 201), ("cancel", 202), ("close", 204), ("resume", 200)]
        {
            let body = if verb == "prompt" { json!({"prompt": "hello"}) } else { json!({}) };
            let answer = post(&daemon, token, &format!("/v1/sessions/{session}/{verb}"), &body);
            assert_eq!(answer.status, status, "{token}: {verb}");
        }
    }
    // One that is set to an allowed mode is taken up, whatever the entry of its agent says now.
    let body = json!({"agent": "bold", "cwd": inside, "permissionMode": "deny"});
    let session = create(&daemon, "permission_modes", &body);
    assert_eq!(ask(&daemon, "root", "POST", &format!("/v1/sessions/{session}/close")).status, 204);
    let resumed = post(&daemon, "permission_modes", &format!("/v1/sessions/{session}/resume"), &json!({}));
    assert_eq!(resumed.status, 200, "{}", resumed.json());
    daemon.stop();
}

// contract 7.2: a session beyond a limit is read as `sees` says, and used in no way; its creator is no exception
#[test]
fn a_session_beyond_a_limit_is_only_read() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let (inside, out) = (scratch.work().join("in"), scratch.path("out"));
    let limited = |limit: &str| {
        let text = std::fs::read_to_string(scratch.path("config.toml")).expect("it is there");
        let head = text.find("[tokens.c]").expect("it is last");
        let entry = entry("c", &format!("scope = \"control\"\nsees = \"all\"\n{limit}\n"));
        std::fs::write(scratch.path("config.toml"), format!("{}{entry}", &text[..head])).expect("written");
        assert_eq!(ask(&daemon, "root", "POST", "/v1/reload").status, 200);
    };
    for (limit, name, body) in [
        ("agents = [\"plain\"]".to_owned(), "agents", json!({"agent": "other", "cwd": inside})),
        (format!("roots = [{inside:?}]"), "roots", json!({"agent": "plain", "cwd": out})),
        (
            format!("roots = [{inside:?}]"),
            "roots",
            json!({"agent": "plain", "cwd": inside, "additionalDirectories": [out]}),
        ),
        (
            "permission_modes = [\"deny\"]".to_owned(),
            "permission_modes",
            json!({"agent": "plain", "cwd": inside, "permissionMode": "default"}),
        ),
    ] {
        limited("");
        let mut before =
            daemon.over_websocket_with(&scratch, "/acp?agent=plain", &[("Authorization", &bearer("c"))]);
        before.initialize();
        let session = create(&daemon, "c", &with(body.clone(), &json!({"prompt": "ask edit"})));
        let path = format!("/v1/sessions/{session}");
        let state = || ask(&daemon, "root", "GET", &path).json()["state"].clone();
        until("a question", || (state() == "waiting").then_some(()));
        limited(&limit);
        // What was open before ends, as with another scope.
        before.read_to_end();
        let events = recorded(&daemon);
        let asked = ask(&daemon, "c", "GET", &format!("{path}/events?limit=1000")).json();
        let mut kinds = asked["events"].as_array().expect("events").iter();
        let question = kinds.rfind(|event| event["kind"] == "permission_requested").expect("one");
        let answer = json!({"question": question["seq"], "outcome": {"outcome": "cancelled"}});
        for (verb, body) in [
            ("prompt", json!({"prompt": "more"})),
            ("answer", answer),
            ("cancel", json!({})),
            ("close", json!({})),
            ("terminate", json!({})),
            ("resume", json!({"cwd": inside})),
            ("fork", json!({"cwd": inside, "permissionMode": "deny"})),
        ] {
            let answer = post(&daemon, "c", &format!("{path}/{verb}"), &body);
            assert_eq!((answer.status, &*answer.problem()), (403, "token_limit"), "{name}: {verb}");
            assert_eq!(answer.json()["limit"], name, "{verb}");
        }
        for part in ["", "/events", "/export"] {
            assert_eq!(ask(&daemon, "c", "GET", &format!("{path}{part}")).status, 200, "{part}");
        }
        let params = json!({"sessionId": session, "cwd": inside, "mcpServers": [], "_meta": meta("deny"),});
        let named = json!({"sessionId": session});
        let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "more"}]});
        for mut client in clients(&daemon, &scratch, "c", "plain") {
            for (method, params) in [
                ("session/load", &params),
                ("session/resume", &params),
                ("session/fork", &params),
                ("session/prompt", &prompt),
                ("session/set_mode", &json!({"sessionId": session, "modeId": "code"})),
                ("session/set_config_option", &json!({"sessionId": session, "configId": "x", "value": "y"})),
                ("_x/anything", &named),
                ("session/close", &named),
                (TERMINATE, &named),
            ] {
                let error = client.refused(method, params);
                let told = (&error["code"], &error["data"]["limit"]);
                assert_eq!(told, (&json!(-32003), &json!(name)), "{method}: {error}");
            }
            client.notify("session/cancel", &named);
            assert_eq!(client.call("session/status", &named)["status"], "open");
        }
        assert_eq!((state(), recorded(&daemon)), (json!("waiting"), events), "{name}");
        assert_eq!(ask(&daemon, "root", "POST", &format!("{path}/close")).status, 204);
        // Nor is one that has ended taken up.
        if name != "permission_modes" && body.get("additionalDirectories").is_none() {
            let answer = post(&daemon, "c", &format!("{path}/resume"), &json!({"cwd": inside}));
            assert_eq!((answer.status, &*answer.problem()), (403, "token_limit"), "{name}");
        }
    }
    daemon.stop();
}

// contract 7.2, contract 7.3: limits are told to those who manage tokens and to the caller; an unknown agent is a warning
#[test]
fn limits_are_told() {
    let scratch = scratch();
    let state = scratch.state();
    let scratch = scratch.config(&format!("[storage]\npath = {state:?}"));
    let mut daemon = scratch.serve();
    let told = ask(&daemon, "agents", "GET", "/v1/whoami").json();
    let limits = json!({"agents": ["plain", "not-yet"]});
    let (work, may) = (scratch.work(), ["plain"]);
    assert_eq!(
        told,
        json!({"name": "agents", "scope": "control", "sees": "all", "limits": limits, "agents": may, "cwd": work})
    );
    assert_eq!(ask(&daemon, "root", "GET", "/v1/whoami").json().get("limits"), None);
    let listed = ask(&daemon, "root", "GET", "/v1/tokens").json();
    let of = |name: &str| {
        let tokens = listed["tokens"].as_array().expect("a list").iter();
        tokens
            .filter(|token| token["name"] == name)
            .map(|token| token["limits"].clone())
            .next()
            .expect("it is there")
    };
    assert_eq!((of("agents"), of("none"), of("root")), (limits, json!({"mcp": "none"}), Value::Null));
    assert_eq!(of("permission_modes"), json!({"permissionModes": ["default", "deny"]}));
    let config = scratch.path("config.toml").to_string_lossy().into_owned();
    let run = |args: &[&str]| scratch.run(&[&["token"], args, &["--config", &config]].concat());
    let work = scratch.work().to_string_lossy().into_owned();
    let (exit, token, err) = run(&[
        "new",
        "made",
        "--scope",
        "control",
        "--agent",
        "plain",
        "--agent",
        "other",
        "--root",
        &work,
        "--permission-mode",
        "deny",
        "--mcp",
        "http",
    ]);
    assert_eq!(exit, Exit::Code(0), "{err}");
    let expected =
        json!({"agents": ["plain", "other"], "roots": [work], "permissionModes": ["deny"], "mcp": "http"});
    let authorization = format!("Bearer {}", token.trim());
    let told = plain(&daemon, "GET", "/v1/whoami", &[("Authorization", &authorization)]).json();
    assert_eq!(told["limits"], expected);
    let (_, out, _) = run(&["list", "--json"]);
    let listed: Value = serde_json::from_str(&out).expect("JSON");
    let made = listed["tokens"].as_array().expect("a list").iter().find(|token| token["name"] == "made");
    assert_eq!(made.expect("it is there")["limits"], expected);
    let (_, out, _) = run(&["list"]);
    assert!(out.contains("modes deny; mcp http"), "{out}");
    let before = std::fs::read_to_string(&config).expect("it is there");
    for (args, says) in [
        (
            &["new", "x", "--scope", "admin", "--agent", "plain"][..],
            "limit what a token with --scope control may do",
        ),
        (
            &["new", "x", "--scope", "control", "--root", "here"],
            "\"here\" is not absolute; give the whole path",
        ),
        (&["new", "x", "--scope", "control", "--mcp", "stdio"], "http"),
        (&["new", "x", "--scope", "control", "--permission-mode", "all"], "bypassPermissions"),
    ] {
        let (exit, out, err) = run(args);
        assert!(exit == Exit::Code(2) && out.is_empty() && err.contains(says), "{args:?}: {err}");
    }
    assert_eq!(std::fs::read_to_string(&config).expect("it is there"), before);
    let log = daemon.stop();
    assert!(log.contains("the token is limited to an agent that is not configured"), "{log}");
    assert!(log.contains("not-yet"), "{log}");
}
