//! WebSockets, frame by frame.

use acpd_e2e::{Daemon, Opcode, Scratch, WebSocket, initialize, peak_memory, request};
use serde_json::json;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A WebSocket with a session.
pub(crate) fn with_session(daemon: &Daemon, scratch: &Scratch) -> (WebSocket, String) {
    let mut socket = WebSocket::initialized(daemon.connect());
    let new = json!({"cwd": scratch.work(), "mcpServers": []});
    socket.text(&request(2, "session/new", &new).to_string());
    let session = socket.answer(2)["result"]["sessionId"].as_str().expect("an id").to_owned();
    (socket, session)
}

// WS-1: the upgrade names the connection; the first message is initialize, or it is over
#[test]
fn the_first_message_is_initialize() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let open = || WebSocket::open(daemon.connect(), "/acp", &[]).expect("a WebSocket");
    let mut socket = open();
    let id = socket.head.header("acp-connection-id").expect("it is given").to_owned();
    assert_eq!(id.len(), 32);
    socket.text(&initialize().to_string());
    assert_eq!(socket.next_json().expect("an answer")["result"]["protocolVersion"], 1);
    // Malformed text is answered, and is no message.
    socket.text("{\"jsonrpc\":");
    let answer = socket.next_json().expect("an answer");
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(null), &json!(-32700)));
    socket.text("nonsense");
    assert_eq!(socket.next_json().expect("an answer")["error"]["code"], -32700);
    socket.text("[]");
    assert_eq!(socket.next_json().expect("an answer")["error"]["code"], -32600);
    socket.text(&request(7, "session/list", &json!({})).to_string());
    assert_eq!(socket.next_json().expect("an answer")["id"], 7);

    let list = request(1, "session/list", &json!({})).to_string();
    for first in [&*list, "{\"jsonrpc\":", "nonsense", "[]", "", "null"] {
        let mut rude = open();
        rude.text(first);
        let (code, reason) = rude.until_close();
        assert!(code == 1002 && reason.contains("initialize"), "{first:?}: {code} {reason}");
    }
    daemon.stop();
}

// WS-2, HT-12, UP-2: answers to pings are owed like anything else: a client that does not take them is read no further, and
// disconnected as stalled
#[test]
fn a_flood_of_pings_costs_bounded_memory() {
    let scratch = Scratch::new().timeout("viewer_stall", "1s");
    let mut daemon = scratch.serve();
    let mut socket = WebSocket::initialized(daemon.connect());
    let before = peak_memory(daemon.pid());
    // A mask of zeros changes nothing.
    let ping = [&[0x89, 0x80 | 125, 0, 0, 0, 0][..], &[b'x'; 125]].concat();
    let many = ping.repeat(1024);
    let taken = Arc::new(AtomicUsize::new(0));
    let flood = std::thread::spawn({
        let (socket, taken) = (socket.handle(), Arc::clone(&taken));
        move || {
            while socket.stream().write_all(&many).is_ok() {
                taken.fetch_add(many.len(), Ordering::SeqCst);
            }
        }
    });
    acpd_e2e::until_stalled(daemon.address(), "websocket");
    let (grown, taken) = (peak_memory(daemon.pid()) - before, taken.load(Ordering::SeqCst));
    assert!(grown < 16 << 20, "{grown} bytes after {taken} of pings");
    assert!(taken < 32 << 20, "{taken} bytes of pings were taken");
    // The kernel drops what was not taken yet when a socket is closed that is still written to: its close frame too.
    if let Some((code, reason)) = socket.until_end() {
        assert!(code == 1008 && reason.contains("stalled"), "{code} {reason}");
    }
    drop(socket);
    flood.join().expect("it ends with the socket");
    daemon.stop();
}

// WS-2: binary frames are ignored, text in pieces is put together, what is too long is refused with 1009
#[test]
fn frames_are_put_together_and_bounded() {
    let scratch = Scratch::new().config("[limits]\nline_bytes = 65536");
    let mut daemon = scratch.serve();
    let mut socket = WebSocket::open(daemon.connect(), "/acp", &[]).expect("a WebSocket");
    socket.try_frame(Opcode::Binary, true, &[0; 100]).expect("it is read");
    let text = initialize().to_string();
    let (start, end) = text.split_at(20);
    socket.try_frame(Opcode::Text, false, start.as_bytes()).expect("it is read");
    socket.try_frame(Opcode::Ping, true, b"between").expect("it is read");
    socket.try_frame(Opcode::Continuation, true, end.as_bytes()).expect("it is read");
    let pong = socket.next_frame().expect("an answer");
    assert_eq!((pong.opcode, &*pong.payload), (Opcode::Pong, &b"between"[..]));
    assert_eq!(socket.next_json().expect("an answer")["id"], 1);
    // Sent whole, so that there is more on the way than was read when it is refused.
    let long = request(2, "session/list", &json!({"x": "x".repeat(1_000_000)})).to_string();
    let _broke_off = socket.try_frame(Opcode::Text, true, long.as_bytes());
    assert_eq!(socket.until_close().0, 1009);
    let mut pieces = WebSocket::open(daemon.connect(), "/acp", &[]).expect("a WebSocket");
    pieces.try_frame(Opcode::Text, false, &vec![b'x'; 40_000]).expect("it is read");
    let _broke_off = pieces.try_frame(Opcode::Continuation, false, &vec![b'x'; 40_000]);
    assert_eq!(pieces.until_close().0, 1009);
    let mut garbled = WebSocket::open(daemon.connect(), "/acp", &[]).expect("a WebSocket");
    garbled.try_frame(Opcode::Text, true, b"\xff\xfe").expect("it is read");
    assert_eq!(garbled.until_close().0, 1007);
    daemon.stop();
}

// WS-2, SC-5: the daemon says goodbye with 1001, behind the ends of sessions; MC-2: a socket that breaks ends nothing
#[test]
fn a_websocket_ends_with_the_daemon() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (broken, session) = with_session(&daemon, &scratch);
    drop(broken);
    let mut socket = WebSocket::initialized(daemon.connect());
    let load = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
    socket.text(&request(3, "session/load", &load).to_string());
    let loaded = socket.answer(3);
    assert!(loaded["result"]["_meta"]["sandboxagent.dev"]["previousTerminationInfo"].is_null(), "{loaded}");
    daemon.signal(rustix::process::Signal::TERM);
    let mut ended = false;
    let close = loop {
        let frame = socket.next_frame().expect("a goodbye");
        if let Some(close) = frame.close() {
            break close;
        }
        ended |= String::from_utf8_lossy(&frame.payload).contains("_sandboxagent/session/ended");
    };
    assert!(ended && close.0 == 1001, "{close:?}");
    daemon.expect_good_end();
}
