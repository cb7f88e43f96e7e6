//! What agents say: every directive of the example agent that says something, and what only an odd agent says. Several
//! runs, forks, modes, options, and a transcript.

use super::{Skills, World, of};
use acpd_e2e::Daemon;
use serde_json::{Value, json};

/// An agent that says what no well-built one does: unknown kinds, its client's words, escapes of all sorts, words in
/// acpd's name, a request that nobody knows; a tool call that is never finished, and an end in the middle of it.
pub(super) const ODD: &str = r#"
take; answer '{"protocolVersion":1,"agentInfo":{"name":"odd","version":"0"},"agentCapabilities":{}}'
take; answer '{"sessionId":"shell-1","models":{"currentModelId":"m-1","availableModels":[{"modelId":"m-1","name":"One"},{"modelId":"m-2","name":"Two"}]},"modes":{"currentModeId":"a","availableModes":[{"id":"a","name":"A"},{"id":"b","name":"B"}]},"configOptions":[{"id":"loud","name":"Loud","type":"boolean","currentValue":true},{"id":"mode","name":"Mode","category":"mode","type":"select","currentValue":"a","options":[{"value":"a","name":"A"}]}],"_meta":{"tools":["t-1","t-2"],"vendor":{"x":1.0}}}'
take; answer '{}'
take; answer '{}'
take; prompt=$id
said() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"shell-1","update":%s}}\n' "$1"; }
said '{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"be odd"}}'
said '{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"words of nobody"}}'
said '{"sessionUpdate":"of_the_future","big":12345678901234567890,"tiny":1e-400,"one":1.0,"twice":1,"twice":2,"deep":[[[{}]]]}'
said '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\u0000 \u001b[31m \ud83d\ude00 \/ \"quoted\" \u00e9"}}'
said '{ "content" : {"type":"image","data":"AAAA","mimeType":"image/png"},  "sessionUpdate" : "agent_message_chunk" }'
said '{"sessionUpdate":"notice","level":"info","message":"a notice"}'
said '{"sessionUpdate":"compaction_update","status":"started"}'
said '{"sessionUpdate":"compaction_summary_chunk","content":{"type":"text","text":"in short"}}'
said '{"sessionUpdate":"config_option_update","configOptions":[{"id":"loud","name":"Loud","type":"boolean","currentValue":false},{"id":"model","name":"Model","category":"model","type":"select","currentValue":"m-9","options":[]}]}'
said '{"sessionUpdate":"session_info_update","title":"Odd","updatedAt":"2020-01-01T00:00:00Z"}'
said '{"sessionUpdate":"session_info_update","title":null}'
said '{"sessionUpdate":"usage_update","used":3,"size":9,"cost":{"amount":0.10,"currency":"EUR"}}'
said '{"sessionUpdate":"tool_call","toolCallId":"c-1","title":"half","kind":"edit","status":"pending","locations":[{"path":"/tmp/x","line":3}]}'
printf '{"jsonrpc":"2.0","method":"session/update","params":null}\n'
printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"shell-1"}}\n'
printf '{"jsonrpc":"2.0","method":"_odd/seen","params":{"sessionId":"shell-1","n":1}}\n'
printf '{"jsonrpc":"2.0","method":"session/started","params":{"sessionId":"shell-1","tools":[{"name":"t-3"}]}}\n'
printf '{"jsonrpc":"2.0","method":"_sandboxagent/session/ended","params":{"sessionId":"shell-1","session_id":"shell-1","data":{"reason":"completed"}}}\n'
printf '{"jsonrpc":"2.0","id":"q-1","method":"_odd/ask","params":{"sessionId":"shell-1","x":[1,2]}}\n'
take
printf '{"jsonrpc":"2.0","id":"q-2","method":"session/request_permission","params":{"sessionId":"shell-1","options":[]}}\n'
take
printf 'no JSON at all\n'
printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"shell-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"bad: \377 byte"}}}}\n'
id=$prompt; answer '{"stopReason":"max_tokens","usage":{"totalTokens":7},"_meta":{"vendor":true}}'
take
printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"cannot","data":{"why":["x"]}}}\n' "$id"
take
said '{"sessionUpdate":"tool_call_update","toolCallId":"c-1","status":"in_progress","title":"still half"}'
echo 'odd: last words' >&2
exit 9
"#;

/// Sessions that a later daemon goes on with.
pub(super) fn play(world: &World, daemon: &Daemon) -> [String; 2] {
    let (mut client, session) = world.session(daemon, "example");
    for text in [
        "think about it\nplan first,second\ntitle The title\ncommands do,undo\nusage 5 100\ntool look",
        "tools read,write\nmode plan\nstream 3 20\nbadutf8\ngarbage\nhello wörld \u{1f600}",
        "big 20000",
        "stderr 3\ncwd\nenv ACPD_NOT_SET",
        "exit",
    ] {
        let turn = client.prompt(&session, text);
        client.answer(&turn);
    }
    client.call("session/set_mode", &json!({"sessionId": session, "modeId": "default"}));
    for (option, value) in [("model", json!("example-large")), ("shout", json!(true))] {
        let params = json!({"sessionId": session, "configId": option, "value": value});
        client.call("session/set_config_option", &params);
    }
    client.refused("session/set_mode", &json!({"sessionId": session, "modeId": "no such mode"}));
    let blocks = json!([
        {"type": "text", "text": "with more"},
        {"type": "resource_link", "name": "a", "uri": "file:///a"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png", "_meta": {"x": 1}},
    ]);
    client.call("session/prompt", &json!({"sessionId": session, "prompt": blocks}));
    client.call("session/close", &of(&session));
    world.take_up(&mut client, "session/load", &session);
    client.turn(&session, "second run");
    fork(world, &mut client, &session);
    client.call("session/close", &of(&session));
    odd(world, daemon);
    shared(world, daemon);
    let plain = plain(world, daemon);
    [session, plain]
}

fn fork(world: &World, client: &mut acpd_e2e::Client, session: &str) {
    let fork = world.take_up(client, "session/fork", session);
    let fork = fork["sessionId"].as_str().expect("it has an id").to_owned();
    client.turn(&fork, "apart from here");
    let second = world.take_up(client, "session/fork", &fork);
    let second = second["sessionId"].as_str().expect("it has an id").to_owned();
    for session in [fork, second] {
        client.call("session/close", &of(&session));
    }
}

fn odd(world: &World, daemon: &Daemon) {
    let (mut client, session) = world.session(daemon, "odd");
    client.call("session/set_model", &json!({"sessionId": session, "modelId": "m-2"}));
    client.call("session/set_mode", &json!({"sessionId": session, "modeId": "b"}));
    client.turn(&session, "be odd");
    for text in ["fail", "leave in the middle"] {
        let prompt = client.prompt(&session, text);
        client.error(&prompt);
    }
}

/// Two sessions on one process, which goes on when one of them ends.
fn shared(world: &World, daemon: &Daemon) {
    let (mut client, first) = world.session(daemon, "shared");
    let second = world.new_session(&mut client, None);
    client.turn(&first, "one");
    client.turn(&second, "two");
    client.call("_sandboxagent/session/terminate", &of(&first));
    client.turn(&second, "two goes on");
    client.call("session/close", &of(&second));
    let gone = world.new_session(&mut client, None);
    client.call("session/delete", &of(&gone));
}

/// An agent that cannot take its sessions up, and is given transcripts.
fn plain(world: &World, daemon: &Daemon) -> String {
    let (mut client, session) = world.session(daemon, "plain");
    client.turn(&session, "first words\ntool look\nthink of it");
    client.call("session/close", &of(&session));
    for text in ["second words", "third words"] {
        world.take_up(&mut client, "session/resume", &session);
        client.turn(&session, text);
        client.call("session/close", &of(&session));
    }
    session
}

/// The last run of sessions, in another daemon than the first.
pub(super) fn go_on(world: &World, daemon: &Daemon, [session, plain]: &[String; 2]) {
    let mut client = world.client(daemon, "example", Skills::Few);
    let result: Value = world.take_up(&mut client, "session/load", session);
    assert_eq!(result["modes"]["currentModeId"], "default", "{result}");
    client.turn(session, "a last run");
    let mut client = world.client(daemon, "plain", Skills::Few);
    world.take_up(&mut client, "session/load", plain);
    client.turn(plain, "told again");
}
