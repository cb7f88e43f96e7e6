//! JSON-RPC as a client on stdio sees it (requirements FR).

use acpd_e2e::{Client, Message, Scratch, acpd, shell_agent};
use serde_json::{Value, json};

fn initialized(scratch: &Scratch) -> Client {
    let mut client = scratch.stdio("example");
    client.initialize();
    client
}

/// Answers what was sent before and is answered itself; gives what came between.
fn still_usable(client: &mut Client) -> Vec<Message> {
    let asked = client.request("_example/ping", &json!({"n": 1}));
    assert_eq!(client.result(&asked), json!({"n": 1}));
    let since = client.since(&asked);
    since[..since.len() - 1].to_vec()
}

// FR-2: type, value and spelling
#[test]
fn an_id_comes_back_as_it_went() {
    let scratch = Scratch::new();
    let mut client = initialized(&scratch);
    for id in [
        "0",
        "-1",
        "9007199254740993",
        "123456789012345678901234567890",
        "1.5",
        "\"a\"",
        "\"\"",
        r#""\u0041\"\\\n""#,
        "\"\u{1f980}\"",
        "null",
    ] {
        let asked = client.request_as(id, "_example/ping", &json!({"id": id}));
        assert_eq!(client.result(&asked), json!({"id": id}), "{id}");
    }
    client.finish();
}

// FR-2, FR-3: an id that is open is not opened again; the first request keeps it
#[test]
fn two_open_requests_with_one_id() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "begun\nhang"}]});
    client.request_as("\"x\"", "session/prompt", &prompt);
    client.until_text("begun");
    // The same id in another spelling.
    client.request_as("\"\\u0078\"", "_example/ping", &json!({}));
    let refused = client.until("the refusal", Message::is_answer);
    assert_eq!(refused.json["error"]["code"], -32600);
    client.notify("session/cancel", &json!({"sessionId": session}));
    let answer = client.until("the answer", Message::is_answer);
    assert_eq!(
        (&answer.json["id"], &answer.json["result"]["stopReason"]),
        (&json!("x"), &json!("cancelled"))
    );
    client.request_as("\"x\"", "_example/ping", &json!({}));
    client.until("the next answer", Message::is_answer);
    client.finish();
}

// FR-5
#[test]
fn broken_lines_are_answered_and_the_connection_goes_on() {
    let scratch = Scratch::new();
    let mut client = initialized(&scratch);
    let broken: [(&[u8], i64, Value); 10] = [
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,", -32700, Value::Null),
        (b"hello", -32700, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\xff\"}", -32700, Value::Null),
        (b"42", -32600, Value::Null),
        (b"{}", -32600, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":70}", -32600, json!(70)),
        (b"{\"jsonrpc\":\"1.0\",\"id\":71,\"method\":\"_example/ping\"}", -32600, json!(71)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"_example/ping\"}", -32600, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":72,\"method\":5}", -32600, json!(72)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":73,\"method\":\"_example/ping\",\"params\":5}", -32600, json!(73)),
    ];
    for (line, code, id) in broken {
        client.write_line(line);
        let answer = client.until("the error", Message::is_answer);
        assert_eq!(
            (&answer.json["error"]["code"], &answer.json["id"]),
            (&json!(code), &id),
            "{}",
            answer.raw
        );
        assert!(still_usable(&mut client).is_empty());
    }
    client.finish();
}

// FR-5: one error, and nothing of it is done
#[test]
fn a_batch_is_refused_as_a_whole() {
    let scratch = Scratch::new();
    let mut client = initialized(&scratch);
    let element = json!({"jsonrpc": "2.0", "id": 50, "method": "session/new",
        "params": {"cwd": scratch.work(), "mcpServers": []}});
    for batch in [json!([]), json!([element, element])] {
        client.write_line(batch.to_string());
        let answer = client.until("the error", Message::is_answer);
        assert_eq!((&answer.json["error"]["code"], &answer.json["id"]), (&json!(-32600), &Value::Null));
        assert!(still_usable(&mut client).is_empty());
    }
    client.finish();
    assert!(client.ends().is_empty(), "no session was created");
}

// FR-3, FR-4
#[test]
fn unknown_requests_are_answered_and_notifications_are_not() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    for method in ["foo", "foo/bar", "_unknown/x", "$/progress", "fs/read_text_file", "session/unheard_of"] {
        let error = client.refused(method, &json!({"sessionId": session}));
        assert_eq!(error["code"], -32601, "{method}: {error}");
    }
    for line in [
        r#"{"jsonrpc":"2.0","method":"foo"}"#,
        r#"{"jsonrpc":"2.0","method":"$/unknown","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"session/cancel"}"#,
        r#"{"jsonrpc":"2.0","method":"session/cancel","params":[]}"#,
        r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"broken","params":5}"#,
        r#"{"jsonrpc":"2.0","id":999,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":999,"error":{"code":1,"message":"?"}}"#,
        "",
        "   ",
    ] {
        client.write_line(line);
        let between = still_usable(&mut client);
        assert!(between.is_empty(), "{line}: {between:?}");
    }
    client.finish();
}

// FR-6: a line over the limit is refused by name, and skipped
#[test]
fn a_line_over_the_limit() {
    let scratch = Scratch::new().config("[limits]\nline_bytes = 8192");
    let mut client = initialized(&scratch);
    for _ in 0..2 {
        client.write_line("x".repeat(1_000_000));
        let answer = client.until("the error", Message::is_answer);
        assert_eq!((&answer.json["error"]["code"], &answer.json["id"]), (&json!(-32600), &Value::Null));
        assert!(answer.json["error"]["message"].as_str().unwrap().contains("8192 bytes"));
        assert!(still_usable(&mut client).is_empty());
    }
    client.finish();
}

// FR-1: only messages on stdout, however much is logged; lines may end as on Windows
#[test]
fn logs_go_to_stderr() {
    let scratch = Scratch::new();
    let mut command = scratch.command(acpd());
    command.args(["-vvv", "stdio", "--agent", "example", "--state-dir"]).arg(scratch.state());
    command.arg("--config").arg(scratch.config_file());
    let mut client = scratch.client(command);
    client.initialize();
    let session = client.new_session();
    assert_eq!(client.turn(&session, "garbage\nstderr 5\nhello"), "end_turn");
    client.write_line("{\"jsonrpc\":\"2.0\",\"id\":\"w\",\"method\":\"foo\"}\r");
    assert_eq!(client.until("its answer", Message::is_answer).json["error"]["code"], -32601);
    client.close_input();
    let (_, stderr) = client.ended();
    assert!(stderr.lines().count() > 3, "{stderr}");
}

// FR-8: what the schema does not know arrives byte for byte, spelling of numbers and blanks included
#[test]
fn what_is_unknown_passes_untouched() {
    let strange = [
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"shell-1","update":{"sessionUpdate":"brand_new","n":1.0,"big":123456789012345678901234567890,"e":1E+2}}}"#,
        r#"{"params":{ "x":[ 1 , 2 ],"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"hologram","_meta":{"a":null}},"later":-0.0},"_meta":{"z":1,"a":2},"sessionId" : "shell-1"},"method":"session/update","jsonrpc":"2.0","top":true}"#,
        r#"{"jsonrpc":"2.0","method":"_vendor/thing","params":{"sessionId":"shell-1","text":"\u0041\/\u00e9"}}"#,
    ];
    let body = "take; cat \"$0\"; answer '{\"stopReason\":\"a_new_reason\",\"usage\":{\"n\":1.10}}'; take";
    let scratch = Scratch::new();
    let lines = scratch.path("lines");
    std::fs::write(&lines, strange.join("\n") + "\n").unwrap();
    let mut args = shell_agent(body);
    args.push(lines.to_str().unwrap().to_owned());
    let scratch = scratch.shell("strange", &args);
    let mut client = scratch.stdio("strange");
    client.tolerant();
    client.initialize();
    let session = client.new_session();
    let asked = client.prompt(&session, "x");
    let answer = client.answer(&asked);
    assert!(
        answer.raw.ends_with(r#""result":{"stopReason":"a_new_reason","usage":{"n":1.10}}}"#),
        "{}",
        answer.raw
    );
    let got: Vec<&str> = client.since(&asked).iter().map(|m| m.raw.as_str()).take(3).collect();
    let expected = strange.map(|line| line.replace("shell-1", &session));
    assert_eq!(got, expected);
    client.finish();
}
