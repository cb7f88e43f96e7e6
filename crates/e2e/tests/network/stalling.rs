//! Clients that do not read.

use crate::frames::with_session;
use crate::raw::{Raw, answer, prompt, text_before};
use acpd_e2e::{Scratch, peak_memory, until_stalled};
use serde_json::json;

// UP-2: a reader that takes nothing is closed with a reason, delays nobody, and comes back to everything
#[test]
fn a_stalled_reader_comes_back_and_has_lost_nothing() {
    let scratch = Scratch::new().timeout("viewer_stall", "5s");
    let mut daemon = scratch.serve();
    let (mut one, _connection, session) = Raw::with_session(&daemon, &scratch);
    let mut own = one.open(Some(&session));
    let mut two = Raw::new(&daemon);
    let _elsewhere = two.open(None);
    let mut slow = two.open(Some(&session));
    let load = two.load(&scratch, &session);
    answer(&mut slow, load);
    // More than all buffers on the way take.
    one.post(&prompt(10, &session, "stream 24000 1000"));
    assert_eq!(text_before(&mut own, 10).len(), 24_000_000, "nobody waited for the other");
    until_stalled(daemon.address(), "acp_sse");
    let (mut last, mut chunks, mut reason) = (None, 0, None);
    while let Some(event) = slow.next_data() {
        match event.event.as_deref() {
            Some("closed") => reason = event.json()["params"]["reason"].as_str().map(str::to_owned),
            _ => {
                chunks += 1;
                last = event.id;
            }
        }
    }
    assert!(chunks < 24_000, "it had stalled");
    assert_eq!(reason.as_deref(), Some("stalled"));
    assert!(peak_memory(daemon.pid()) < 192 << 20, "what waits and what is kept is bounded");
    let mut back = two.try_open(Some(&session), last.as_deref()).expect("it is kept");
    two.post(&prompt(11, &session, "and on"));
    let mut rest = 0;
    loop {
        let message = back.next_data().expect("an answer comes").json();
        if message["id"] == 11 {
            break;
        }
        rest += usize::from(crate::raw::text(&message).is_some_and(|text| text.len() == 1000));
    }
    assert_eq!(chunks - 1 + rest, 24_000, "each once; one of the first was the prompt");
    daemon.stop();
}

// WS-4: one on a WebSocket that reads nothing is heard all the same
#[test]
fn a_websocket_that_reads_nothing_can_cancel() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut socket, session) = with_session(&daemon, &scratch);
    // More than fits on the way, then a turn that only a cancel ends.
    socket.text(&prompt(3, &session, "stream 24000 1000\nhang").to_string());
    let mut watcher = Raw::new(&daemon);
    let _connection = watcher.open(None);
    let mut events = watcher.open(Some(&session));
    watcher.load(&scratch, &session);
    let mut chunks = 0;
    while chunks < 24_000 {
        let message = events.next_data().expect("it goes on").json();
        chunks += usize::from(crate::raw::text(&message).is_some_and(|text| text.len() == 1000));
    }
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
    socket.text(&cancel.to_string());
    // A prompt waits for its turn: this one has it when the other is over.
    watcher.post(&prompt(12, &session, "it is over"));
    answer(&mut events, 12);
    assert_eq!(socket.answer(3)["result"]["stopReason"], "cancelled");
    daemon.stop();
}

// WS-2, UP-2: one that reads nothing for too long is closed with 1008, and loads again
#[test]
fn a_stalled_websocket_is_closed_with_a_reason() {
    let scratch = Scratch::new().timeout("viewer_stall", "1s");
    let mut daemon = scratch.serve();
    let (mut socket, session) = with_session(&daemon, &scratch);
    socket.text(&prompt(3, &session, "stream 24000 1000").to_string());
    until_stalled(daemon.address(), "websocket");
    let (code, reason) = socket.until_close();
    assert!(code == 1008 && reason.contains("stalled"), "{code} {reason}");
    daemon.stop();
}
