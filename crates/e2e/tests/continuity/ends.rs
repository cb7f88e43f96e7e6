//! What a client had asked for, or been answered, when the daemon died: an end that was under way comes, and nothing is answered
//! twice.

use crate::session::{Session, keeping, of_kind, post};
use acpd_e2e::{Gate, Http, Scratch, shell_agent, taking_shell_agent};
use serde_json::{Value, json};
use std::path::Path;

/// How the session ended, by its record.
fn record(session: &Session, daemon: &acpd_e2e::Daemon) -> Value {
    session.info(daemon)["terminationInfo"].clone()
}

fn end(session: &Session, daemon: &acpd_e2e::Daemon, what: &str) -> u16 {
    post(daemon, &format!("/v1/sessions/{}/{what}", session.id), &json!({})).status
}

// contract 1.1: a terminate that finds a run that was lost with its daemon ends the session for good, once; the earlier record
// stays in the history, and a close changes nothing
#[test]
fn a_lost_session_is_terminated_for_good() {
    let scratch = keeping("0s");
    let mut daemon = scratch.serve();
    let [lost, closed] = ["hang", "hello"].map(|words| Session::begin(&daemon, &scratch, "example", words));
    closed.events_until_turn(&daemon, 1);
    closed.close(&daemon);
    daemon.kill();

    let mut daemon = scratch.serve();
    assert_eq!(end(&lost, &daemon, "close"), 204);
    assert_eq!(record(&lost, &daemon)["cause"], "daemon_lost");
    for _ in 0..2 {
        assert_eq!(end(&lost, &daemon, "terminate"), 204);
        let record = record(&lost, &daemon);
        let told = (&record["reason"], &record["cause"], &record["terminatedBy"], &record["turnActive"]);
        let expected = (&json!("terminated"), &json!("client_terminate"), &json!("daemon"), &json!(true));
        assert_eq!(told, expected, "{record}");
        assert_eq!(end(&lost, &daemon, "resume"), 409);
    }
    let events = lost.events(&daemon);
    let causes: Vec<_> =
        of_kind(&events, "ended").iter().map(|ended| ended["terminationInfo"]["cause"].clone()).collect();
    assert_eq!(causes, ["daemon_lost", "client_terminate"]);
    // What somebody else has ended stays as it is.
    assert_eq!(end(&closed, &daemon, "terminate"), 204);
    assert_eq!(record(&closed, &daemon)["cause"], "client_close");
    daemon.stop();
}

// contract 7.3: an end that a client asked for comes, and is recorded as asked, though the daemon is killed in the middle: the
// next one goes on with it, whether or not it is asked again
#[test]
fn an_end_outlives_its_daemon() {
    for (what, cause, again) in [
        ("terminate", "client_terminate", true),
        ("terminate", "client_terminate", false),
        ("close", "client_close", false),
    ] {
        let scratch = keeping("60s");
        let gate = Gate::new(scratch.path("gate"));
        let body = format!(
            "take; update here; take; {}; answer '{{\"stopReason\":\"cancelled\"}}'; take",
            gate.line()
        );
        let scratch = scratch.shell("slow", &shell_agent(&body));
        let mut daemon = scratch.serve();
        let session = Session::begin(&daemon, &scratch, "slow", "hello");
        session.updates(&daemon, 1);
        // The daemon dies before it answers.
        let mut http = Http::on(daemon.connect());
        let path = format!("/v1/sessions/{}/{what}", session.id);
        http.send("POST", &path, &[("Content-Type", "application/json")], "{}");
        // It has been told to cancel; what was decided before this is answered is stored.
        let arrival = gate.arrival();
        assert_eq!(end(&session, &daemon, "cancel"), 202);
        daemon.kill();
        let mut daemon = scratch.serve();
        drop(arrival);
        if again {
            assert_eq!(end(&session, &daemon, what), 204);
        }
        let ended = session.event(&daemon, "ended");
        assert_eq!(ended["terminationInfo"]["cause"], cause, "{ended}");
        let reason = if what == "terminate" { "terminated" } else { "completed" };
        assert_eq!(ended["terminationInfo"]["reason"], reason, "{ended}");
        daemon.stop();
    }
}

/// How often the agent was sent an answer to each of these requests.
fn answers(heard: &Path, ids: &[&str]) -> Vec<usize> {
    let heard = std::fs::read_to_string(heard).expect("it has heard something");
    ids.iter().map(|id| heard.matches(&format!("\"id\":{id},")).count()).collect()
}

/// An agent whose prompts ask for a file, for an option, and in the name of a session that does not exist, and that writes
/// down all it hears; it serves several sessions.
fn asking(scratch: &Scratch, heard: &Path) -> Vec<String> {
    let file = scratch.work().join("notes");
    std::fs::write(&file, "notes").expect("it is writable");
    let ask = |id: u32, method: &str, session: &str, more: &str| {
        format!(
            "printf '{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{{\"sessionId\":\"%s\",{more}}}}}\\n' {session}\n"
        )
    };
    let options =
        r#""toolCall":{"toolCallId":"t"},"options":[{"optionId":"y","name":"y","kind":"allow_once"}]"#;
    let path = format!("\"path\":\"{}\"", file.display());
    let asks = [
        ask(901, "fs/read_text_file", "$mine", &path),
        ask(902, "session/request_permission", "$mine", options),
        ask(903, "fs/read_text_file", "nobody", &path),
    ];
    taking_shell_agent(&format!(
        "hear() {{ take; printf '%s\\n' \"$line\" >> {heard}; }}\n\
         next=1; hear; answer '{{\"protocolVersion\":1,\"agentCapabilities\":{{\"sessionCapabilities\":{{\"close\":{{}}}}}}}}'\n\
         while hear; do case $line in\n\
         *'\"session/new\"'*) answer \"{{\\\"sessionId\\\":\\\"s$next\\\"}}\"; next=$((next+1));;\n\
         *'\"asks\"'*) mine=s2; prompt=$id; {asks} hear; hear; hear; id=$prompt; answer '{{\"stopReason\":\"end_turn\"}}';;\n\
         *'\"session/prompt\"'*|*'\"session/close\"'*) answer '{{\"stopReason\":\"end_turn\"}}';;\n\
         esac; done",
        heard = heard.display(),
        asks = asks.concat(),
    ))
}

// contract 7.3, FR-3: an agent is answered once, also what a session asked that was closed just before the daemon was killed
#[test]
fn a_closed_session_is_not_answered_again() {
    for _ in 0..3 {
        let scratch = keeping("60s");
        let heard = scratch.path("heard");
        let agent = asking(&scratch, &heard);
        let scratch = scratch.shell("shared", &agent);
        let scratch = scratch.config("share_process = true\npermission_mode = \"bypassPermissions\"");
        let mut daemon = scratch.serve();
        let other = Session::begin(&daemon, &scratch, "shared", "hello");
        other.events_until_turn(&daemon, 1);
        let asks = Session::begin(&daemon, &scratch, "shared", "asks");
        asks.events_until_turn(&daemon, 1);
        asks.close(&daemon);
        daemon.kill();

        let mut daemon = scratch.serve();
        // Its answer stands behind all that is read again.
        assert_eq!(other.prompt(&daemon, "again").status, 202);
        other.events_until_turn(&daemon, 2);
        assert_eq!(answers(&heard, &["901", "902", "903"]), [1, 1, 1]);
        daemon.stop();
    }
}

// contract 7.3, FR-3: a request that leaves no event is answered once too, though its daemon dies right behind the answer
#[test]
fn what_leaves_no_event_is_not_answered_again() {
    let scratch = keeping("60s");
    let (heard, gate) = (scratch.path("heard"), Gate::new(scratch.path("gate")));
    let ask = |id: u32, method: &str, more: &str| {
        format!(
            "printf '{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"terminal/{method}\",\"params\":{{\"sessionId\":\"shell-1\",{more}}}}}\\n'; hear\n"
        )
    };
    let terminal = "\"terminalId\":\"'\"$terminal\"'\"";
    let body = format!(
        "hear() {{ take; printf '%s\\n' \"$line\" >> {heard}; }}\n\
         take; prompt=$id; {create} terminal=${{line#*'\"terminalId\":\"'}}; terminal=${{terminal%%'\"'*}}\n\
         {output} {release} {gate}; id=$prompt; answer '{{\"stopReason\":\"end_turn\"}}'; hear",
        heard = heard.display(),
        create = ask(911, "create", "\"command\":\"true\""),
        output = ask(912, "output", terminal),
        release = ask(913, "release", terminal),
        gate = gate.line(),
    );
    let scratch = scratch.shell("asking", &shell_agent(&body));
    let mut daemon = scratch.serve();
    let session = Session::begin(&daemon, &scratch, "asking", "hello");
    let arrival = gate.arrival();
    daemon.kill();

    let mut daemon = scratch.serve();
    arrival.go();
    session.event(&daemon, "turn_ended");
    // A prompt behind it comes behind all that is read again.
    assert_eq!(session.prompt(&daemon, "again").status, 202);
    acpd_e2e::until("the prompt", || {
        (!answers(&heard, &["911"]).is_empty() && heard_prompt(&heard)).then_some(())
    });
    assert_eq!(answers(&heard, &["911", "912", "913"]), [1, 1, 1]);
    daemon.stop();
}

fn heard_prompt(heard: &Path) -> bool {
    std::fs::read_to_string(heard).is_ok_and(|heard| heard.contains("\"session/prompt\""))
}
