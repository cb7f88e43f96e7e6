//! One row for every input in every stage: the effects, and the stage behind it.

use super::*;

/// What an input leads to before `initialize`, while that is served, in an open connection and in one whose client is gone.
fn check(input: impl Fn() -> Input, expected: [(&str, &str); 4]) {
    let begin = [Client::uninitialized, Client::initializing, Client::open, Client::finishing];
    for (begin, (effects, stage)) in begin.into_iter().zip(expected) {
        let (mut client, input) = (begin(), input());
        let row = format!("{}: {input:?}", client.stage());
        assert_eq!(client.take(input), effects, "{row}");
        assert_eq!(client.stage(), stage, "{row}");
    }
}

/// The same effects in all stages, and no other stage.
fn check_all(input: impl Fn() -> Input, effects: &str) {
    let stages = ["uninitialized", "initializing", "open", "finishing"];
    check(input, stages.map(|stage| (effects, stage)));
}

/// The same effects, but none once the client is gone.
fn check_client(input: impl Fn() -> Input, effects: &str) {
    check(
        input,
        [(effects, "uninitialized"), (effects, "initializing"), (effects, "open"), ("", "finishing")],
    );
}

// IN-1, IN-2: a connection is initialized, and may be again
#[test]
fn a_first_request() {
    let starts = ("start 1 Initialize", "initializing");
    check(|| initialize(1), [starts, starts, starts, ("", "finishing")]);
}

// contract 1: before `initialize` nothing else is served
#[test]
fn a_request() {
    let early = |stage| ("=1 -32600", stage);
    check(
        || request(1, "session/prompt", "s"),
        [early("uninitialized"), early("initializing"), ("find session/prompt", "open"), ("", "finishing")],
    );
    check(
        || request(1, "session/new", ""),
        [early("uninitialized"), early("initializing"), ("start 1 Create", "open"), ("", "finishing")],
    );
}

// FR-3: what was read too late begins nothing, and is answered by the end; an id that is open names one request
#[test]
fn a_late_request() {
    let late = |id| match request(id, "session/new", "") {
        Input::Request(call) => Input::LateRequest(call),
        other => other,
    };
    check_all(|| late(1), "");
    let mut client = Client::initializing();
    assert_eq!(client.take(late(1)), "");
    assert_eq!(client.take(late(1)), "send -32600");
    assert!(client.0.open.find(&id("1")).is_some());
}

// IN-3: what is not served is refused at any time
#[test]
fn a_request_that_is_not_served() {
    check_client(|| request(1, "session/archive", "s"), "=1 -32601");
}

// contract 7.3: a cancel is passed on
#[test]
fn a_notification() {
    let cancel = r#"{"method":"session/cancel","params":{"sessionId":"s"}}"#;
    check(
        || line(cancel),
        [("", "uninitialized"), ("", "initializing"), ("reach session/cancel", "open"), ("", "finishing")],
    );
}

// contract 7.3: what names no open request withdraws none
#[test]
fn a_withdrawal() {
    let cancel = r#"{"method":"$/cancel_request","params":{"requestId":0}}"#;
    check(
        || line(cancel),
        [("", "uninitialized"), ("withdraw 0", "initializing"), ("", "open"), ("", "finishing")],
    );
}

// PE-2: an answer counts once; the client is told if it came too late
#[test]
fn an_answer() {
    check_client(|| line(r#"{"id":1,"result":{}}"#), "answer 1");
    check_client(|| line(r#"{"id":1,"error":{}}"#), "answer 1");
    check_client(|| line(r#"{"id":0,"result":{}}"#), "send refusal");
    check_client(|| line(r#"{"id":0,"error":{}}"#), "");
    check_client(|| line(r#"{"id":7,"result":{}}"#), "");
}

// FR-5: what is no message is answered, and what may not be answered is not
#[test]
fn a_line_that_is_no_message() {
    check_client(|| line("{"), "send -32700");
    check_client(|| line("[]"), "send -32600");
    check_client(|| Input::too_long(7), "send -32600");
    check_client(|| line(" "), "");
    check_client(|| line(r#"{"method":"$/unheard"}"#), "");
    check_client(|| line(r#"{"method":"session/cancel"}"#), "");
}

// contract 1.7: a session that was found is used by what was asked for
#[test]
fn a_session_that_was_found() {
    let early = |stage| ("=1 -32600", stage);
    check(
        || Input::Found { call: call(1, "session/prompt", "s"), session: Lookup::Of(None), is_live: true },
        [early("uninitialized"), early("initializing"), ("reach session/prompt", "open"), early("finishing")],
    );
}

// HT-12: what was counted begins, and what is one too many does not
#[test]
fn a_run_that_was_counted() {
    let counted = |is_granted| move || Input::Counted { call: call(1, "session/new", ""), is_granted };
    check_all(counted(true), "start 1 Create");
    check_all(counted(false), "refused session/new, =1 -32003");
}

// MC-4: only a client that is attached to a run uses it
#[test]
fn a_run_that_was_reached() {
    let reached = |began_after| {
        move || Input::Reached { message: message(Some(1), "session/prompt", "s"), run: run(began_after) }
    };
    check(
        reached(3),
        [
            ("=1 -32002", "uninitialized"),
            ("=1 -32002", "initializing"),
            ("pass session/prompt", "open"),
            ("pass session/prompt", "finishing"),
        ],
    );
    check_all(reached(9), "=1 -32002");
    check_all(
        || Input::Reached { message: message(None, "session/cancel", "s"), run: run(9) },
        "pass session/cancel",
    );
    check_all(|| Input::Reached { message: message(None, "session/cancel", "s"), run: Err(ended()) }, "");
    check_all(
        || Input::Reached { message: message(Some(1), "session/prompt", "s"), run: Err(ended()) },
        "=1 -32002",
    );
}

// FR-3: the end of work changes what it was for, and nothing else
#[test]
fn work_that_is_done() {
    check_all(|| done(5, Outcome::Answered), "");
    check(
        || done(0, Outcome::Initialized),
        [("", "uninitialized"), ("introduce", "open"), ("", "open"), ("", "finishing")],
    );
    let refused = "refused initialize";
    check(
        || done(0, Outcome::NotInitialized(wire_error(&HostError::Broken))),
        [(refused, "uninitialized"), (refused, "uninitialized"), (refused, "open"), (refused, "finishing")],
    );
    check_all(|| attached(5, "t", Some(4)), "attach t");
}

// FR-3: what was lost is answered, once
#[test]
fn work_that_was_lost() {
    check(
        || Input::lost(id("0")),
        [("", "uninitialized"), ("=0 -32603", "uninitialized"), ("", "open"), ("", "finishing")],
    );
}

// HT-12: viewers that have nothing to do are dropped
#[test]
fn sessions_that_are_watched_no_more() {
    check(
        || Input::Over(vec![session("s"), session("t")]),
        [("", "uninitialized"), ("", "initializing"), ("forget s", "open"), ("forget s", "finishing")],
    );
}

// MC-2: a client that leaves ends its connection, once, and no session
#[test]
fn a_client_that_is_gone() {
    let leaves = ("close left, EndViewers", "finishing");
    check(|| GONE, [leaves, leaves, leaves, ("", "finishing")]);
}

// FR-3: what is still open at the end is answered then
#[test]
fn the_end() {
    check_all(|| Input::Drained, "last");
}
