//! A connection with a host below it and the example agent below that, spoken to over channels instead of sockets.

mod client;

use client::Hosted;
use serde_json::json;
use std::time::Duration;

// contract 1: before `initialize` nothing else is served; IN-2: a second one is negotiated like the first, with the same agent
#[tokio::test]
async fn initialize_comes_first_and_may_come_again() {
    let hosted = Hosted::open().await;
    let mut client = hosted.connect();
    let early = client.call("session/new", hosted.setup()).await;
    assert_eq!(early["error"]["code"], -32600, "{early}");
    assert_eq!(client.call("initialize", json!({})).await["error"]["code"], -32602);
    let first = client.call("initialize", json!({"protocolVersion": 7})).await;
    let second = client.call("initialize", json!({"protocolVersion": 1})).await;
    assert_eq!(first["result"]["protocolVersion"], 1, "{first}");
    assert_eq!(second["result"], first["result"]);
    assert_eq!(client.call("initialize", json!([])).await["error"]["code"], -32602);
    let session = client.session(&hosted).await;
    assert_eq!(client.prompt(&session, "hello").await["result"]["stopReason"], "end_turn");
    hosted.close([client]).await;
}

// FR-3: every line is answered, also when the client has more open than it may and reads late
#[tokio::test]
async fn a_client_that_reads_late_gets_every_answer() {
    let hosted = Hosted::open().await;
    let mut client = hosted.initialized().await;
    let lines = client.lines();
    let sending = async {
        for id in 1000..1600 {
            lines.send(&json!({"jsonrpc": "2.0", "id": id, "method": "session/archive"})).await;
        }
    };
    let mut answered = Vec::new();
    let reading = async {
        while answered.len() < 600 {
            let answer = client.next().await;
            assert_eq!(answer["error"]["code"], -32601, "{answer}");
            answered.push(answer["id"].as_u64().expect("a number"));
        }
    };
    tokio::join!(sending, reading);
    answered.sort_unstable();
    assert!(answered.into_iter().eq(1000..1600));
    drop(lines);
    hosted.close([client]).await;
}

// MC-4: a session is used by clients that are attached to it: not before, not after they have left, and again when they are back
#[tokio::test]
async fn a_session_is_joined_left_and_joined_again() {
    let hosted = Hosted::open().await;
    let (mut first, mut second) = (hosted.initialized().await, hosted.initialized().await);
    let session = first.session(&hosted).await;
    assert_eq!(second.prompt(&session, "hello").await["error"]["code"], -32002);
    for _ in 0..2 {
        let loaded = second.call("session/load", hosted.of(&session)).await;
        assert_eq!(loaded["result"]["_meta"]["sandboxagent.dev"]["turnActive"], false, "{loaded}");
        assert_eq!(second.prompt(&session, "hello").await["result"]["stopReason"], "end_turn");
        let left = second.call("_sandboxagent/session/detach", json!({"sessionId": session})).await;
        assert_eq!(left["result"], json!({}));
        assert_eq!(second.prompt(&session, "hello").await["error"]["code"], -32002);
    }
    assert_eq!(first.prompt(&session, "hello").await["result"]["stopReason"], "end_turn");
    hosted.close([first, second]).await;
}

// contract 7.3: what is asked right behind a load waits for it, in its order, and can be withdrawn
#[tokio::test]
async fn prompts_wait_behind_a_load() {
    let hosted = Hosted::open().await;
    let mut first = hosted.initialized().await;
    let session = first.session(&hosted).await;
    assert_eq!(first.call("session/close", json!({"sessionId": session})).await["result"], json!({}));
    let mut second = hosted.initialized().await;
    let load = second.send("session/load", hosted.of(&session)).await;
    let prompt = second.send("session/prompt", client::prompt(&session, "stream 3")).await;
    let other = second.send("session/prompt", client::prompt(&session, "hang")).await;
    second.notify("$/cancel_request", json!({"requestId": other})).await;
    let withdrawn = second.answer(other).await;
    assert_eq!(withdrawn["result"]["stopReason"], "cancelled", "{withdrawn}");
    assert!(second.answer(load).await["result"].is_object());
    assert_eq!(second.answer(prompt).await["result"]["stopReason"], "end_turn");
    hosted.close([first, second]).await;
}

// PE-2, PE-3: both clients are asked; the first answer counts, and the other client is told that its own came too late
#[tokio::test]
async fn the_first_answer_to_a_question_counts() {
    let hosted = Hosted::open().await;
    let (mut first, mut second) = (hosted.initialized().await, hosted.initialized().await);
    let session = first.session(&hosted).await;
    second.call("session/load", hosted.of(&session)).await;
    let prompt = first.send("session/prompt", client::prompt(&session, "ask edit")).await;
    let asked = first.until("session/request_permission").await;
    let asked_too = second.until("session/request_permission").await;
    let allow = asked["params"]["options"][0]["optionId"].clone();
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": allow}});
    second.respond(&asked_too["id"], &outcome).await;
    let withdrawn = first.until("$/cancel_request").await;
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
    first.respond(&asked["id"], &outcome).await;
    let refused = first.until("_sandboxagent/answer_refused").await;
    assert_eq!(refused["params"]["requestId"], asked["id"], "{refused}");
    assert_eq!(first.answer(prompt).await["result"]["stopReason"], "end_turn");
    hosted.close([first, second]).await;
}

// contract 7.3: a request that its session has is withdrawn there, and answered once
#[tokio::test]
async fn a_running_prompt_is_withdrawn() {
    let hosted = Hosted::open().await;
    let mut client = hosted.initialized().await;
    let session = client.session(&hosted).await;
    let prompt = client.send("session/prompt", client::prompt(&session, "stream 1\nhang")).await;
    client.until("session/update").await;
    client.notify("$/cancel_request", json!({"requestId": prompt})).await;
    assert_eq!(client.answer(prompt).await["result"]["stopReason"], "cancelled");
    assert_eq!(client.prompt(&session, "hello").await["result"]["stopReason"], "end_turn");
    hosted.close([client]).await;
}

// MC-2: a client that is gone with open requests ends nothing; another one goes on with its turn
#[tokio::test]
async fn a_client_that_is_gone_ends_nothing() {
    let hosted = Hosted::open().await;
    let (mut first, mut second) = (hosted.initialized().await, hosted.initialized().await);
    let session = first.session(&hosted).await;
    second.call("session/load", hosted.of(&session)).await;
    first.send("session/prompt", client::prompt(&session, "stream 1\nhang")).await;
    first.send("session/load", hosted.of(&session)).await;
    first.until("session/update").await;
    first.leave().await;
    let loaded = second.call("session/load", hosted.of(&session)).await;
    assert_eq!(loaded["result"]["_meta"]["sandboxagent.dev"]["turnActive"], true, "{loaded}");
    second.notify("session/cancel", json!({"sessionId": session})).await;
    let next = second.prompt(&session, "hello").await;
    assert_eq!(next["result"]["stopReason"], "end_turn", "{next}");
    hosted.close([second]).await;
}

// PR-1, FR-3: a client that is behind when acpd ends gets one answer to each request, behind all events of the session, whether
// viewers have the time to write these or not
#[tokio::test]
async fn no_event_comes_behind_the_answers_of_the_end() {
    for (last_events, all) in [(client::PATIENCE, true), (Duration::ZERO, false)] {
        let hosted = Hosted::open().await;
        let mut client = hosted.connect_only(last_events);
        assert!(client.call("initialize", json!({"protocolVersion": 1})).await["result"].is_object());
        let session = client.session(&hosted).await;
        let mut watching = hosted.initialized().await;
        watching.call("session/load", hosted.of(&session)).await;
        let turn = client::prompt(&session, "stream 4000 4000\ntitle streamed\nhang");
        let prompt = client.send("session/prompt", turn).await;
        watching.until_update("session_info_update").await;
        // Its answer is given to the viewer, which has it until the history was shown.
        let load = client.send("session/load", hosted.of(&session)).await;
        // Its answer waits for room, and is that of no request.
        client.lines().send_text("{").await;
        let messages = client.read_late().await;
        let malformed = messages.iter().filter(|message| message["error"]["code"] == -32700).count();
        assert_eq!(malformed, 1, "of {} messages", messages.len());
        let is_update = |message: &&serde_json::Value| message["method"] == "session/update";
        for request in [prompt, load] {
            let is_answer =
                |message: &&serde_json::Value| message["id"] == request && message.get("method").is_none();
            assert_eq!(messages.iter().filter(is_answer).count(), 1, "of {} messages", messages.len());
        }
        let answer = messages.iter().position(|message| message["id"] == prompt).expect("there is one");
        assert_eq!(messages[answer..].iter().filter(is_update).count(), 0, "behind the answer to the prompt");
        let shown = messages.iter().filter(is_update).count();
        assert_eq!(shown > 4000, all, "{shown} updates");
        hosted.close([watching]).await;
    }
}

// SC-5: also a client that is owed no answer is written to for the transport's time and no longer
#[tokio::test]
async fn viewers_end_with_the_transports_time() {
    let hosted = Hosted::open().await;
    let mut prompting = hosted.initialized().await;
    let session = prompting.session(&hosted).await;
    let mut client = hosted.connect_only(Duration::ZERO);
    client.call("initialize", json!({"protocolVersion": 1})).await;
    client.call("session/load", hosted.of(&session)).await;
    prompting
        .send("session/prompt", client::prompt(&session, "stream 4000 4000\ntitle streamed\nhang"))
        .await;
    prompting.until_update("session_info_update").await;
    let messages = client.read_late().await;
    let shown = messages.iter().filter(|message| message["method"] == "session/update").count();
    assert!(shown < 4000, "{shown} updates");
    hosted.close([prompting]).await;
}
