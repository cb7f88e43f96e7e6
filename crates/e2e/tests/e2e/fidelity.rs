//! The same conversation with the agent itself and through acpd.

use acpd_e2e::{Client, Scratch, acpd};
use serde_json::json;

/// One of everything that needs nothing of the client.
const PROMPTS: [&str; 9] = [
    "hello wide world, \u{e9}\u{1f980} \"quoted\" \\ and </script>",
    "think deeply\nplan one,two,three\ntitle A title\ncommands a,b\nmode plan\nusage 12 200000",
    "tools read,write\ntool look around\ntool again",
    "stream 200 100\nstream 3 1",
    "params",
    "stream x",
    "sleep 5\nenv HOME\nstderr 3\nhello",
    "big 100000",
    "badly [] {} null 1.0",
];

/// Everything that a client sees from its session on, with the ids of sessions taken out.
fn conversation(mut client: Client, scratch: &Scratch) -> Vec<String> {
    client.initialize();
    let params = json!({"cwd": scratch.work(), "mcpServers": [], "_meta": {"z": 1.50, "a": [1e3, -0.0]}});
    let asked = client.request("session/new", &params);
    let session = client.result(&asked)["sessionId"].as_str().expect("an id").to_owned();
    for prompt in PROMPTS {
        let prompt = client.prompt(&session, prompt);
        client.answer(&prompt);
    }
    let prompt = client.prompt(&session, "begun\nhang");
    client.until_text("begun");
    client.notify("session/cancel", &json!({"sessionId": session}));
    client.answer(&prompt);
    for (method, params) in [
        ("session/set_mode", json!({"sessionId": session, "modeId": "plan"})),
        ("session/set_mode", json!({"sessionId": session, "modeId": "unheard of"})),
        (
            "session/set_config_option",
            json!({"sessionId": session, "configId": "model", "value": "example-large"}),
        ),
        ("_example/ping", json!({"n": [1.0, 1e5, 12345678901234567890_u64], "text": "\u{0}\u{7f}"})),
        ("unheard/of", json!({"a": 1})),
    ] {
        let asked = client.request(method, &params);
        client.answer(&asked);
    }
    let lines = client.since(&asked).iter().map(|m| m.raw.replace(&session, "SESSION")).collect();
    client.finish();
    lines
}

// issue: the same prompt over `acpd stdio` and directly gives the same messages, apart from session and request ids
#[test]
fn acpd_changes_nothing_but_ids() {
    let scratch = Scratch::new().example("hosted", &["--no-state"]);
    let mut direct = scratch.command(acpd());
    direct.args(["example-agent", "--no-state"]);
    let direct = conversation(scratch.client(direct), &scratch);
    let hosted = conversation(scratch.stdio("hosted"), &scratch);
    for (n, (direct, hosted)) in direct.iter().zip(&hosted).enumerate() {
        assert_eq!(hosted, direct, "message {n}");
    }
    // What acpd adds is its own word on the end of the session.
    let own: Vec<&String> = hosted[direct.len()..].iter().collect();
    assert!(own.iter().all(|line| line.contains("_sandboxagent/session/ended")), "{own:?}");
    assert!(direct.len() > 250);
}
