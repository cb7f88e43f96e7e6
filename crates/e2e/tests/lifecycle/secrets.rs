//! Secrets that an agent prints on its stderr are in no record of its end (TM-1).

use crate::asking::{taking, termination, until_ended};
use crate::stored::{ENDED, of_kind, stored};
use acpd_e2e::{Scratch, taking_shell_agent};
use serde_json::json;

const ENV: &str =
    r#"env = { MY_API_KEY = "sk-entry-0123456789", PLAIN = "plain-0123456789", PASSWORD = "short" }"#;

// TM-1, SE-3: what the agent's entry and the client's MCP servers give it, whoever is told of the end, and the log
#[test]
fn no_record_tells_a_secret() {
    // It prints what it was given, and leaves when it is prompted.
    let script = "take; answer '{\"protocolVersion\":1,\"agentCapabilities\":{\"sessionCapabilities\":{\"resume\":{}}}}'\n\
         echo \"$MY_API_KEY $PLAIN $PASSWORD\" >&2\n\
         while take; do echo \"$line\" >&2; case $line in\n\
         *'\"session/new\"'*) answer '{\"sessionId\":\"shell-1\"}';;\n\
         *'\"session/resume\"'*) answer '{}';;\n\
         *) exit 1;;\n\
         esac; done";
    let scratch = Scratch::new().shell("talker", &taking_shell_agent(script)).config(ENV);
    let mut client = scratch.stdio("talker");
    client.initialize();
    let servers = json!([
        {"name": "stdio", "command": "x", "args": [], "env": [
            {"name": "DB_SECRET", "value": "db-0123456789"}, {"name": "LEVEL", "value": "level-0123456789"}]},
        {"type": "http", "name": "web", "url": "http://localhost/", "headers": [
            {"name": "Authorization", "value": "Bearer web-0123456789"}]},
    ]);
    let params = json!({"cwd": scratch.work(), "mcpServers": servers});
    let session = client.call("session/new", &params)["sessionId"].as_str().expect("an id").to_owned();
    let asked = client.prompt(&session, "x");
    let error = client.error(&asked);
    let told = until_ended(&mut client, &session, 1);
    let listed = termination(&mut client, &session);

    // The next run is given others.
    let mut again = taking(&scratch, &session);
    again["mcpServers"] = json!([{"name": "stdio", "command": "x", "args": [], "env": [
        {"name": "TOKEN", "value": "again-0123456789"}]}]);
    client.call("session/resume", &again);
    client.prompt(&session, "x");
    let second = until_ended(&mut client, &session, 2);
    let head = second["stderr"]["head"].as_str().expect("it printed");
    assert!(head.contains(r#""value":"[redacted]""#) && !head.contains("again-"), "{head}");
    client.finish();

    let recorded = stored(&scratch, &session);
    let recorded = of_kind(&recorded, ENDED)[0].to_owned();
    for text in [error.to_string(), told.to_string(), listed.to_string(), recorded] {
        for secret in ["sk-entry-", "db-0123", "web-0123"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        assert_eq!(text.matches("[redacted]").count(), 3, "{text}");
        for shown in ["plain-0123456789 short", "level-0123456789"] {
            assert!(text.contains(shown), "{shown} not in {text}");
        }
    }
}

// TM-1: an agent that does not start tells none either
#[test]
fn a_failed_start_tells_no_secret() {
    let script = taking_shell_agent("echo \"key: $MY_API_KEY\" >&2; exit 4");
    let scratch = Scratch::new().shell("talker", &script).config(ENV);
    let mut client = scratch.stdio("talker");
    let error = client.refused("initialize", &json!({"protocolVersion": 1}));
    assert_eq!(error["data"]["terminationInfo"]["stderr"]["head"], "key: [redacted]", "{error}");
    client.finish();
}

// TM-1: of a process that serves several sessions, what any of them was given
#[test]
fn a_shared_process_has_the_secrets_of_all() {
    let script = "take; answer '{\"protocolVersion\":1,\"agentCapabilities\":{}}'\n\
         while take; do echo \"$line\" >&2; case $line in\n\
         *'\"session/new\"'*) answer \"{\\\"sessionId\\\":\\\"shell-$id\\\"}\";;\n\
         *'\"session/prompt\"'*) exit 1;;\n\
         esac; done";
    let scratch = Scratch::new().shell("shared", &taking_shell_agent(script)).config("share_process = true");
    let mut client = scratch.stdio("shared");
    client.initialize();
    let sessions = ["first", "second"].map(|which| {
        let env = json!([{"name": "TOKEN", "value": format!("{which}-0123456789")}]);
        let servers = json!([{"name": "a", "command": "x", "args": [], "env": env}]);
        let params = json!({"cwd": scratch.work(), "mcpServers": servers});
        client.call("session/new", &params)["sessionId"].as_str().expect("an id").to_owned()
    });
    client.prompt(&sessions[0], "x");
    for session in &sessions {
        let told = until_ended(&mut client, session, 1).to_string();
        assert!(told.contains("[redacted]") && !told.contains("-0123456789"), "{told}");
    }
    client.finish();
}
