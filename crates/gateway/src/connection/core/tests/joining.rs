//! Joining and leaving a session, and what is asked of it meanwhile.

use super::*;

/// One whose `session/load` (1) of the session t is being served, with a prompt (2) behind it.
fn joining() -> Client {
    let mut client = Client::open();
    assert_eq!(client.take(request(1, "session/load", "t")), "find session/load");
    assert_eq!(client.take(found(1, "session/load")), "start 1 Load");
    assert_eq!(client.take(request(2, "session/prompt", "t")), "find session/prompt");
    assert_eq!(client.take(found(2, "session/prompt")), "", "it waits");
    client
}

fn found(id: u32, method: &str) -> Input {
    Input::Found { call: call(id, method, "t"), session: Lookup::Of(None), is_live: true }
}

fn cancel() -> Input {
    line(r#"{"method":"session/cancel","params":{"sessionId":"t"}}"#)
}

fn withdraw(id: u32) -> Input {
    line(&format!(r#"{{"method":"$/cancel_request","params":{{"requestId":{id}}}}}"#))
}

// contract 7.3: what is asked behind a load waits for it, in its order, and nothing else does
#[test]
fn messages_wait_behind_a_load() {
    let mut client = joining();
    assert_eq!(client.take(cancel()), "", "in its order behind the prompt");
    let reached = Input::Reached { message: message(Some(3), "session/prompt", "s"), run: run(3) };
    assert_eq!(client.take(request(3, "session/prompt", "s")), "find session/prompt");
    assert_eq!(client.take(reached), "pass session/prompt", "another session");
    assert_eq!(client.take(done(3, Outcome::Answered)), "", "nothing of t is joined by that");
    assert_eq!(
        client.take(attached(1, "t", Some(7))),
        "attach t, reach session/prompt, reach session/cancel"
    );
    let reached = Input::Reached { message: message(Some(2), "session/prompt", "t"), run: run(7) };
    assert_eq!(client.take(reached), "pass session/prompt");
}

// contract 7.3: a notification is not held up where no request waits
#[test]
fn a_cancel_waits_behind_requests_only() {
    let mut client = Client::open();
    assert_eq!(client.take(request(1, "session/resume", "t")), "find session/resume");
    assert_eq!(client.take(found(1, "session/resume")), "start 1 Resume");
    assert_eq!(client.take(cancel()), "reach session/cancel");
}

// contract 7.3: a load that fails holds nothing up; what waited is told why
#[test]
fn what_waited_behind_a_failed_load_is_answered() {
    let mut client = joining();
    assert_eq!(client.take(done(1, Outcome::Answered)), "reach session/prompt");
    let reached = Input::Reached { message: message(Some(2), "session/prompt", "t"), run: run(7) };
    assert_eq!(client.take(reached), "=2 -32002");
}

// contract 7.3: two loads of a session: what is behind both waits for both
#[test]
fn the_last_load_counts() {
    let mut client = joining();
    assert_eq!(client.take(request(3, "session/load", "t")), "find session/load");
    assert_eq!(client.take(found(3, "session/load")), "start 3 Load");
    assert_eq!(client.take(attached(1, "t", Some(7))), "attach t");
    assert_eq!(client.take(Input::Over(vec![session("t")])), "", "its viewer is needed again");
    assert_eq!(client.take(attached(3, "t", Some(7))), "attach t, reach session/prompt");
}

// contract 7.3: what waits can be withdrawn: a prompt is cancelled, any other request has failed
#[test]
fn what_waits_can_be_withdrawn() {
    let mut client = joining();
    assert_eq!(client.take(request(3, "session/set_mode", "t")), "find session/set_mode");
    assert_eq!(client.take(found(3, "session/set_mode")), "");
    assert_eq!(client.take(withdraw(2)), r#"=2 {"stopReason":"cancelled"}"#);
    assert_eq!(client.take(withdraw(3)), "=3 -32800");
    assert_eq!(client.take(withdraw(1)), "withdraw 1", "the load itself may have reached its session");
    assert_eq!(client.take(attached(1, "t", Some(7))), "attach t");
}

// contract 7.3, PR-9: a prompt under a key may have begun on an earlier connection: one that is withdrawn while it waits is not
// answered here, but by its session, behind the load
#[test]
fn a_prompt_that_comes_again_is_withdrawn_by_its_session() {
    let keyed = r#"{"id":2,"method":"session/prompt","params":{"sessionId":"t","prompt":[],"_meta":{"sandboxagent.dev":{"idempotencyKey":"k"}}}}"#;
    let mut client = Client::open();
    client.take(request(1, "session/load", "t"));
    client.take(found(1, "session/load"));
    let Input::Request(prompt) = line(keyed) else { panic!("it is a request") };
    client.take(line(keyed));
    let found = Input::Found { call: prompt, session: Lookup::Of(None), is_live: true };
    assert_eq!(client.take(found), "", "it waits");
    assert_eq!((client.take(withdraw(2)), client.take(withdraw(2))), (String::new(), String::new()));
    let mut effects = Effects::default();
    client.0.handle(attached(1, "t", Some(7)), &mut effects);
    let reached = std::iter::from_fn(|| effects.next()).find_map(|effect| match effect {
        Effect::Reach(message) => Some((message.method.clone(), message.is_withdrawn)),
        _ => None,
    });
    assert_eq!(reached, Some(("session/prompt".to_owned(), true)));
}

// contract 1.1: what became of a prompt of an ended session stands behind its events, and in front of its end
#[test]
fn an_answer_of_an_ended_session_stands_behind_its_events() {
    let mut client = Client::open();
    client.take(attached(1, "s", None));
    let before = |message| {
        let body = Ok(Bytes::from_static(br#"{"stopReason":"end_turn"}"#));
        Input::AnsweredBefore { message, end: 9, body }
    };
    let prompt = || message(Some(2), "session/prompt", "s");
    assert_eq!(client.take(before(prompt())), r#"=2 {"stopReason":"end_turn"} behind 8"#);
    let mut info = match ended() {
        HostError::SessionEnded { info, .. } => TerminationInfo::clone(&info),
        error => panic!("{error}"),
    };
    info.last_event_seq = Some(8);
    let error = HostError::SessionEnded { id: "s".to_owned(), info: Arc::new(info) };
    let reached = Input::Reached { message: prompt(), run: Err(error) };
    assert_eq!(client.take(reached), "=2 -32603 behind 8");
}

// MC-4: a client that has left is attached to nothing; once it is back it is
#[test]
fn leave_and_join_again() {
    let mut client = Client::open();
    let detach = || Input::Found {
        call: call(1, "_sandboxagent/session/detach", "s"),
        session: Lookup::Of(None),
        is_live: true,
    };
    let prompt = || Input::Reached { message: message(Some(2), "session/prompt", "s"), run: run(3) };
    assert_eq!(client.take(detach()), "leave 1 s");
    assert_eq!(client.take(prompt()), "=2 -32002");
    assert_eq!(client.take(detach()), "leave 1 s", "again is no error");
    assert_eq!(client.take(attached(3, "s", Some(3))), "attach s");
    assert_eq!(client.take(prompt()), "pass session/prompt");
}

// SE-6: a session that can only be read says why, until it is joined live or deleted
#[test]
fn what_only_can_be_read_says_why() {
    let prompt = || Input::Reached { message: message(Some(2), "session/prompt", "t"), run: Err(ended()) };
    let mut client = Client::open();
    assert_eq!(client.take(attached(1, "t", None)), "attach t");
    assert_eq!(client.take(prompt()), "=2 -32603", "the reason that its load gave");
    assert_eq!(client.take(attached(1, "t", Some(7))), "attach t");
    assert_eq!(client.take(prompt()), "=2 -32002", "it has ended since");
    assert_eq!(client.take(attached(1, "t", None)), "attach t");
    assert_eq!(client.take(found(3, "session/delete")), "start 3 Delete");
    assert_eq!(client.take(prompt()), "=2 -32002");
}
