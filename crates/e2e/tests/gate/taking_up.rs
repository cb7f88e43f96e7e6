//! Taking sessions up and forking them over REST, and checking agents.

use crate::door::{JSON, ask, bearer, entry};
use acpd_e2e::{Answer, Daemon, Gate, Http, Scratch, connect, containment_here, taking_shell_agent, until};
use serde_json::{Value, json};

fn scratch() -> Scratch {
    let tokens = [
        entry("o", "scope = \"observe\"\nsees = \"all\""),
        entry("c", "scope = \"control\""),
        entry("few", "scope = \"control\"\nsessions = 1\nsees = \"all\""),
        entry("root", "scope = \"admin\""),
    ];
    let lesser = ["--without", "load,resume,fork"];
    Scratch::new().example("plain", &[]).example("lesser", &lesser).config(&tokens.join("\n"))
}

fn post(daemon: &Daemon, who: &str, path: &str, body: Option<&Value>) -> Answer {
    let (token, text) = (bearer(who), body.map(Value::to_string).unwrap_or_default());
    let headers = [("Authorization", &*token), JSON];
    let headers = if body.is_some() { &headers[..] } else { &headers[..1] };
    Http::on(daemon.connect()).request("POST", path, headers, &text)
}

fn id(info: &Value) -> String {
    info["sessionId"].as_str().expect("an id").to_owned()
}

fn create(daemon: &Daemon, scratch: &Scratch, agent: &str) -> String {
    let body = json!({"agent": agent, "cwd": scratch.work(), "prompt": "title Named\nhello"});
    let answer = post(daemon, "c", "/v1/sessions", Some(&body));
    assert_eq!(answer.status, 201, "{}", answer.json());
    let session = id(&answer.json());
    until("it is idle", || (show(daemon, &session)["state"] == "idle").then_some(()));
    session
}

fn path(session: &str, verb: &str) -> String {
    format!("/v1/sessions/{session}/{verb}")
}

fn show(daemon: &Daemon, session: &str) -> Value {
    ask(daemon, "root", "GET", &format!("/v1/sessions/{session}")).json()
}

fn close(daemon: &Daemon, session: &str) {
    assert_eq!(ask(daemon, "root", "POST", &path(session, "close")).status, 204);
}

fn is_refused(answer: &Answer, status: u16, kind: &str, words: &str) {
    assert_eq!((answer.status, &*answer.problem()), (status, kind), "{}", answer.json());
    assert!(answer.json()["detail"].as_str().expect("words").contains(words), "{}", answer.json());
}

// contract 7.3: an ended session goes on in a new run, a live one undisturbed; a terminated one never does
#[test]
fn a_session_is_taken_up() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let session = create(&daemon, &scratch, "plain");
    let resume = path(&session, "resume");
    let live = post(&daemon, "c", &resume, None);
    assert_eq!((live.status, &live.json()["metadata"]["runs"]), (200, &json!(1)));
    close(&daemon, &session);
    let deny = json!({"permissionMode": "deny", "cwd": scratch.work(), "mcpServers": []});
    for (body, mode) in [(None, "default"), (Some(&deny), "deny")] {
        let taken = post(&daemon, "c", &resume, body);
        assert_eq!((taken.status, &taken.json()["state"]), (200, &json!("idle")), "{}", taken.json());
        assert_eq!(taken.json()["metadata"]["permissionMode"], mode);
        close(&daemon, &session);
    }
    assert_eq!(show(&daemon, &session)["metadata"]["runs"], 3);
    // Also after a restart.
    daemon.kill();
    let mut daemon = scratch.serve();
    assert_eq!(post(&daemon, "c", &resume, None).json()["metadata"]["runs"], 4);
    let prompt = json!({"prompt": "again"});
    assert_eq!(post(&daemon, "c", &path(&session, "prompt"), Some(&prompt)).json()["turn"], 2);
    assert_eq!(ask(&daemon, "c", "POST", &path(&session, "terminate")).status, 204);
    let refused = post(&daemon, "c", &resume, None);
    is_refused(&refused, 409, "not_resumable", "it was terminated, which is final");
    assert_eq!(refused.json()["terminationInfo"]["reason"], "terminated");
    daemon.stop();
}

// contract 7.3: what cannot be leaves nothing running, and says why
#[test]
fn a_session_that_cannot_be_taken_up_stays() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let (lesser, plain) = (create(&daemon, &scratch, "lesser"), create(&daemon, &scratch, "plain"));
    let words = "agent lesser can neither resume nor load a session";
    let forked = post(&daemon, "c", &path(&lesser, "fork"), None);
    is_refused(&forked, 409, "not_supported", "session/fork");
    close(&daemon, &lesser);
    close(&daemon, &plain);
    is_refused(&post(&daemon, "c", &path(&lesser, "resume"), None), 409, "not_resumable", words);
    let resume = path(&plain, "resume");
    for (body, words) in [
        (json!({"cwd": "/no/such/dir"}), "cwd: \"/no/such/dir\" is not a directory"),
        (json!({"cwd": 7}), "cwd: "),
        (json!({"mode": "x"}), "unknown field `mode`, expected one of"),
        (json!({"permissionMode": "x"}), "permissionMode: unknown variant"),
    ] {
        for verb in ["resume", "fork"] {
            is_refused(&post(&daemon, "c", &path(&plain, verb), Some(&body)), 400, "bad_request", words);
        }
    }
    let headers = [("Authorization", &*bearer("c")), ("Content-Type", "text/plain")];
    let answer = Http::on(daemon.connect()).request("POST", &resume, &headers, "{}");
    is_refused(&answer, 415, "unsupported_media_type", "application/json");
    is_refused(&post(&daemon, "o", &resume, None), 403, "forbidden", "this needs control");
    is_refused(&post(&daemon, "c", &path("unknown", "resume"), None), 404, "session_not_found", "");
    is_refused(&post(&daemon, "c", &path("unknown", "fork"), None), 404, "session_not_found", "");
    for session in [&lesser, &plain] {
        let shown = show(&daemon, session);
        assert_eq!((&shown["ended"], &shown["metadata"]["runs"]), (&json!(true), &json!(1)));
    }
    // Whether an agent can resume is asked of a process, which ends a moment after the answer.
    until("no agent is left", || scratch.mark().running(" example-agent").is_empty().then_some(()));
    daemon.stop();
}

// contract 7.3: a fork is a session of the caller's own, with the history and the title
#[test]
fn a_session_is_forked() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let body =
        json!({"agent": "plain", "cwd": scratch.work(), "prompt": "title Agent's\nhello", "title": "Mine"});
    let session = id(&post(&daemon, "c", "/v1/sessions", Some(&body)).json());
    until("it is idle", || (show(&daemon, &session)["state"] == "idle").then_some(()));
    for is_live in [true, false] {
        if !is_live {
            close(&daemon, &session);
        }
        let forked = post(&daemon, "few", &path(&session, "fork"), None);
        assert_eq!(forked.status, 201, "{}", forked.json());
        let (info, fork) = (forked.json(), id(&forked.json()));
        assert_eq!(forked.header("location"), Some(&*format!("/v1/sessions/{fork}")));
        let known = &info["metadata"];
        assert_eq!((&known["forkedFrom"], &known["createdBy"]), (&json!(session), &json!("few")));
        assert_eq!((&info["title"], &info["state"]), (&json!("Mine"), &json!("idle")));
        // A title that was chosen stays in the fork too.
        let prompt = json!({"prompt": "title Another"});
        assert_eq!(post(&daemon, "few", &path(&fork, "prompt"), Some(&prompt)).json()["turn"], 2);
        until("it is idle", || (show(&daemon, &fork)["state"] == "idle").then_some(()));
        assert_eq!(show(&daemon, &fork)["title"], "Mine");
        let full = post(&daemon, "few", &path(&session, "fork"), None);
        is_refused(&full, 429, "too_many_sessions", "close one first");
        close(&daemon, &fork);
    }
    assert_eq!(show(&daemon, &session)["title"], "Mine");
    daemon.stop();
}

// contract 7.3: an agent that wants a login says so, with its ways
#[test]
fn a_login_is_asked_for() {
    let script = r#"take; answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true},"authMethods":[{"id":"key","name":"A key"}]}'
while take; do case $line in *session/load*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"Log in"}}\n' "$id" ;;
*) answer '{"sessionId":"shell-1"}' ;; esac; done"#;
    let scratch = scratch().shell("login", &taking_shell_agent(script));
    let mut daemon = scratch.serve();
    let body = json!({"agent": "login", "cwd": scratch.work()});
    let session = id(&post(&daemon, "c", "/v1/sessions", Some(&body)).json());
    close(&daemon, &session);
    let refused = post(&daemon, "c", &path(&session, "resume"), None);
    is_refused(&refused, 424, "authentication_required", "Log in");
    assert_eq!(refused.json()["authMethods"], json!([{"id": "key", "name": "A key"}]));
    assert_eq!(refused.json()["sessionId"], json!(session));
    daemon.stop();
}

// contract 7.3: a session is there while its agent is asked to go on with it: it is over until its run begins, and who takes it up
// as well waits for that
#[test]
fn a_session_that_is_being_taken_up_is_there() {
    let scratch = scratch();
    let gate = Gate::new(scratch.path("gate"));
    let script = format!(
        r#"take; answer '{{"protocolVersion":1,"agentCapabilities":{{"loadSession":true}}}}'
while take; do case $line in *session/load*) {}; answer '{{}}' ;; *) answer '{{"sessionId":"shell-1"}}' ;; esac; done"#,
        gate.line()
    );
    let scratch = scratch.shell("slow", &taking_shell_agent(&script));
    let mut daemon = scratch.serve();
    let body = json!({"agent": "slow", "cwd": scratch.work()});
    let session = id(&post(&daemon, "c", "/v1/sessions", Some(&body)).json());
    close(&daemon, &session);
    let (address, token, path_of) = (daemon.address(), bearer("c"), path(&session, "resume"));
    let resume = || Http::on(connect(address)).request("POST", &path_of, &[("Authorization", &token)], "");
    std::thread::scope(|scope| {
        let first = scope.spawn(resume);
        let arrival = gate.arrival();
        let hello = json!({"prompt": "hello"});
        is_refused(&post(&daemon, "c", &path(&session, "prompt"), Some(&hello)), 409, "session_ended", "");
        let second = scope.spawn(resume);
        arrival.go();
        for resumed in [first, second] {
            let resumed = resumed.join().expect("it is answered");
            assert_eq!((resumed.status, &resumed.json()["state"]), (200, &json!("idle")), "{resumed:?}");
        }
    });
    daemon.stop();
}

// contract 7.3: a session is over until its next run begins, and there from then on: in no moment between is there none
#[test]
fn a_session_whose_run_begins_is_over_or_there() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let session = create(&daemon, &scratch, "plain");
    let (address, token) = (daemon.address(), bearer("c"));
    let (resume, prompt) = (path(&session, "resume"), path(&session, "prompt"));
    let (headers, hello) = ([("Authorization", &*token), JSON], json!({"prompt": "hello"}).to_string());
    for round in 0..20 {
        close(&daemon, &session);
        let mut prompts = Http::on(connect(address));
        std::thread::scope(|scope| {
            let resumed =
                scope.spawn(|| Http::on(connect(address)).request("POST", &resume, &headers[..1], ""));
            loop {
                prompts.send("POST", &prompt, &headers, &hello);
                let prompted = prompts.answer();
                if prompted.status == 202 {
                    break;
                }
                assert_eq!(prompted.problem(), "session_ended", "{round}: {}", prompted.json());
            }
            assert_eq!(resumed.join().expect("it is answered").status, 200);
        });
    }
    daemon.stop();
}

// contract 7.3: the check of `acpd agents check`, of a daemon; it needs admin
#[test]
fn an_agent_is_checked() {
    let scratch = scratch().example("early", &["--exit-before-initialize", "4"]);
    let mut daemon = scratch.serve();
    let check = |who: &str, agent: &str| post(&daemon, who, &format!("/v1/agents/{agent}/check"), None);
    let works = check("root", "plain");
    assert_eq!(
        (works.status, &works.json()["ok"], &works.json()["name"]),
        (200, &json!(true), &json!("plain"))
    );
    assert_eq!(works.json()["initialize"]["protocolVersion"], 1);
    for checked in [&works, &check("root", "early")] {
        let told = checked.json();
        assert_eq!(told["containment"], containment_here(), "{told}");
        assert!(
            ["exact", "graceful", "none"].contains(&told["continuity"].as_str().expect("a word")),
            "{told}"
        );
    }
    let listed = ask(&daemon, "root", "GET", "/v1/agents").json();
    let agents = listed["agents"].as_array().expect("a list").iter();
    assert!(agents.clone().all(|agent| agent["containment"] == containment_here()), "{listed}");
    assert!(agents.clone().all(|agent| agent["continuity"] == works.json()["continuity"]), "{listed}");
    assert!(works.json()["startMs"].is_u64() && works.json()["end"].is_string(), "{}", works.json());
    let fails = check("root", "early");
    assert_eq!((fails.status, &fails.json()["ok"]), (200, &json!(false)));
    assert_eq!(fails.json()["terminationInfo"]["exitCode"], 4, "{}", fails.json());
    assert!(fails.json()["error"].as_str().expect("words").contains("initialize"), "{}", fails.json());
    is_refused(&check("root", "unknown"), 404, "agent_not_found", "(there are: ");
    is_refused(&check("c", "plain"), 403, "forbidden", "this needs admin");
    assert!(scratch.mark().running(" example-agent").is_empty());
    daemon.stop();
}
