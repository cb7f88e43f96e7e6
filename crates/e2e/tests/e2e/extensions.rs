//! What acpd has no word for passes through it, over every transport: trace contexts and extension methods.

use acpd_e2e::{Client, Scratch, shell_agent};
use serde_json::{Value, json};

/// Repeats the trace context of a prompt in everything it says, and asks for something that nobody knows.
const AGENT: &str = r#"
while take; do
    case $line in
    *'"session/prompt"'*)
        prompt=$id
        meta=${line#*'"_meta":'}; meta=${meta%%\}*}'}'
        printf '{"jsonrpc":"2.0","method":"_x/seen","params":{"sessionId":"shell-1","_meta":%s,"n":1.50}}\n' "$meta"
        printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"shell-1","_meta":%s,' "$meta"
        printf '"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"}}}}\n'
        printf '{"jsonrpc":"2.0","id":77,"method":"_x/unheard","params":{"sessionId":"shell-1","_meta":%s}}\n' "$meta"
        take
        case $line in *'"id":77'*-32601*) update refused ;; *) update "$id" ;; esac
        id=$prompt
        answer "{\"stopReason\":\"end_turn\",\"_meta\":$meta}" ;;
    *'"_x/echo"'*)
        params=${line#*'"_meta":'}; params=${params%%\}*}'}'
        answer "{\"_meta\":$params,\"of\":\"_x/echo\"}" ;;
    *'"_x/told"'*) update told ;;
    esac
done
"#;

fn meta() -> Value {
    json!({
        "traceparent": "00-80e1afed08e019fc1110464cfa66635c-7a085853722dc6d2-01",
        "tracestate": "vendor=a:b",
        "baggage": "user=1,x=%20",
    })
}

// SC-4, FR-8: trace contexts and extension methods pass both ways, on stdio, over a WebSocket and over HTTP; what an
// agent asks for and nobody knows is refused
#[test]
fn trace_contexts_and_extensions_pass_both_ways() {
    let scratch = Scratch::new().shell("tracing", &shell_agent(AGENT));
    // What belongs to no session is the agent's to answer or to refuse.
    let (mut client, _) = scratch.session("example");
    client.call("_example/ping", &json!({"n": 1}));
    assert_eq!(client.refused("_nobody/knows", &json!({}))["code"], -32601);
    client.finish();

    let mut client = scratch.stdio("tracing");
    passes(&mut client);
    client.finish();
    let mut daemon = scratch.serve();
    let path = "/acp?agent=tracing";
    for mut client in [daemon.over_websocket(&scratch, path), daemon.over_http(&scratch, path)] {
        passes(&mut client);
        client.close_input();
        client.read_to_end();
    }
    daemon.stop();
}

fn passes(client: &mut Client) {
    client.initialize();
    let session = client.new_session();
    let prompt = json!([{"type": "text", "text": "hello"}]);
    let asked =
        client.request("session/prompt", &json!({"sessionId": session, "prompt": prompt, "_meta": meta()}));
    assert_eq!(client.result(&asked), json!({"stopReason": "end_turn", "_meta": meta()}));
    let said = client.since(&asked);
    let extension = said.iter().find(|message| message.method() == Some("_x/seen")).expect("it is passed on");
    assert_eq!(extension.json["params"], json!({"sessionId": session, "_meta": meta(), "n": 1.5}));
    assert!(extension.raw.contains("\"n\":1.50"), "as it was written: {}", extension.raw);
    let update = said.iter().find(|message| message.text() == Some("hello")).expect("it is passed on");
    assert_eq!(update.json["params"]["_meta"], meta());
    assert!(!said.iter().any(|message| message.method() == Some("_x/unheard")), "nobody else is asked");
    assert_eq!(client.text_since(&asked, &session), "hellorefused", "the agent is answered -32601");

    let echo = client.call("_x/echo", &json!({"sessionId": session, "_meta": meta()}));
    assert_eq!(echo, json!({"_meta": meta(), "of": "_x/echo"}));
    client.notify("_x/told", &json!({"sessionId": session, "_meta": meta()}));
    client.until_text("told");
}

/// Says, in each turn, what only acpd says, and an update of no session; and asks for what only acpd's clients serve.
const FORGER: &str = r#"
while take; do
    prompt=$id
    for method in session/ended closed terminal answer_refused; do
        printf '{"jsonrpc":"2.0","method":"_sandboxagent/%s","params":{"sessionId":"shell-1","session_id":"other","data":{}}}\n' $method
        printf '{"jsonrpc":"2.0","method":"_sandboxagent/%s","params":{"session_id":"other"}}\n' $method
    done
    printf '{"jsonrpc":"2.0","method":"_acpd/anything","params":{"sessionId":"shell-1"}}\n'
    printf '{"jsonrpc":"2.0","method":"session/update","params":null}\n'
    for method in _sandboxagent/session/terminate _acpd/anything; do
        printf '{"jsonrpc":"2.0","id":77,"method":"%s","params":{"sessionId":"shell-1"}}\n' $method
        take
        case $line in *'"id":77'*-32601*) update refused ;; *) update answered ;; esac
    done
    id=$prompt
    answer '{"stopReason":"end_turn"}'
done
"#;

// contract 7.3: what an agent says and asks in acpd's own namespace never reaches a client, over any transport, live or
// replayed, and nor does an update of no session
#[test]
fn an_agent_does_not_speak_as_acpd() {
    let scratch = Scratch::new().shell("forger", &shell_agent(FORGER));
    let mut client = scratch.stdio("forger");
    hears_nothing_forged(&mut client, &scratch);
    client.finish();
    let mut daemon = scratch.serve();
    let path = "/acp?agent=forger";
    for mut client in [daemon.over_websocket(&scratch, path), daemon.over_http(&scratch, path)] {
        hears_nothing_forged(&mut client, &scratch);
        client.close_input();
        client.read_to_end();
    }
    daemon.stop();
}

fn hears_nothing_forged(client: &mut Client, scratch: &Scratch) {
    client.initialize();
    let session = client.new_session();
    let asked = client.prompt(&session, "go");
    assert_eq!(client.result(&asked), json!({"stopReason": "end_turn"}));
    assert_eq!(client.text_since(&asked, &session), "refusedrefused", "the agent is answered -32601");
    let params = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
    let replay = client.request("session/load", &params);
    client.result(&replay);
    assert_eq!(client.text_since(&replay, &session), "refusedrefused");
    for message in client.received().iter().filter(|message| !message.is_answer()) {
        assert_eq!(message.method(), Some("session/update"), "{}", message.raw);
        assert_eq!(message.session(), Some(&*session), "{}", message.raw);
    }
}
