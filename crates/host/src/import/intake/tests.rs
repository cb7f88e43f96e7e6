//! What may be taken over, and what is refused with which words.

use super::*;

const HEAD: &str = r#"{"type":"acpd-export","version":1,"sessionId":"s-1","agent":"example","cwd":"/w","createdMs":7,"events":N}"#;
const CREATED: &str = r#""created","payload":{"agent":"example","cwd":"/w","by":"c"}"#;
const RUN: &str = r#""run_started","payload":{"pid":7,"agentInfo":null}"#;
const PROMPT: &str = r#""prompt","payload":{"turn":1,"by":"c","prompt":[]}"#;
const UPDATE: &str = r#""update","payload":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"plan","entries":[]}}}"#;
const TURN_ENDED: &str = r#""turn_ended","payload":{"turn":1,"stopReason":"end_turn"}"#;
const ENDED: &str = r#""ended","payload":{"reason":"terminated","terminatedBy":"daemon","endedAt":"x","turnActive":false,"leaked":false,"lastEventSeq":5}"#;
const WHOLE: [&str; 6] = [CREATED, RUN, PROMPT, UPDATE, TURN_ENDED, ENDED];

fn line(seq: usize, event: &str) -> String {
    format!(r#"{{"seq":{seq},"atMs":{seq},"kind":{event}}}"#)
}

/// What becomes of a session of these events, and what is wrong with which line.
fn taken(head: &str, events: &[&str]) -> Result<Taken, (usize, WrongLine)> {
    let head = head.replace(":N}", &format!(":{}}}", events.len()));
    let mut intake = Intake::new(head.as_bytes()).map_err(|wrong| (1, wrong))?;
    for (at, event) in (1..).zip(events) {
        intake.take(line(at, event).as_bytes()).map_err(|wrong| (at + 1, wrong))?;
    }
    intake.finish(99).map_err(|wrong| (events.len() + 2, wrong))
}

fn refused(head: &str, events: &[&str]) -> String {
    let (line, wrong) = taken(head, events).expect_err("it is refused");
    format!("{line}: {wrong}")
}

// contract 7.3: what is whole and legal is taken over, with what the index says of such a session
#[test]
fn a_whole_export_is_taken() {
    let taken = taken(HEAD, &WHOLE).expect("it is legal");
    let meta = String::from_utf8(taken.meta.write()).expect("text");
    let end = r#"{"reason":"terminated","terminatedBy":"daemon","endedAt":"x","turnActive":false,"leaked":false,"lastEventSeq":5}"#;
    let tally = r#"{"lastTurn":{"stopReason":"end_turn","durationMs":2,"endedMs":5}}"#;
    assert_eq!(
        meta,
        format!(r#"{{"client":"c","runs":1,"terminationInfo":{end},"tally":{tally},"imported":true}}"#)
    );
    let events: Vec<_> = taken.batch.events(1).map(|event| (event.seq, event.kind, event.at_ms)).collect();
    assert_eq!(events, [(1, 1, 1), (2, 2, 2), (3, 3, 3), (4, 4, 4), (5, 6, 5), (6, 9, 6)]);
}

// contract 7.3, FR-8: what was recorded is taken over however deep it is nested, and with numbers of any size
// quirk unusual-meta
#[test]
fn what_no_value_can_hold_is_taken() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    for meta in [deep.as_str(), "1e400"] {
        let mut events = WHOLE.map(str::to_owned);
        events[3] =
            UPDATE.replacen("\"entries\":[]", &format!("\"entries\":[],\"_meta\":{{\"a\":{meta}}}"), 1);
        events[2] = PROMPT.replacen("[]", &format!("[{{\"_meta\":{meta}}}]"), 1);
        events[4] = TURN_ENDED.replacen(
            "\"end_turn\"",
            &format!("\"end_turn\",\"result\":{{\"stopReason\":\"end_turn\",\"_meta\":{meta}}}"),
            1,
        );
        let taken = taken(HEAD, &events.each_ref().map(String::as_str)).expect("it is legal");
        let payloads: Vec<_> = taken.batch.events(1).map(|event| event.payload.len()).collect();
        assert!(payloads[2..5].iter().all(|length| *length > meta.len()), "{payloads:?}");
    }
}

// contract 7.3: an imported session has ended, also one that was live when it was exported
#[test]
fn a_live_session_is_ended() {
    let taken = taken(HEAD, &WHOLE[..4]).expect("it is legal");
    assert_eq!((taken.batch.len(), taken.meta.added_end), (5, Some(5)));
    let end = taken.meta.termination().expect("it has ended");
    assert_eq!((end.turn_active, end.last_event_seq), (true, Some(4)));
    assert_eq!(end.message.as_deref(), Some("the session was live when it was exported"));
    assert!(!taken.projection.is_live());
}

// contract 7.3: untrusted input: strict legality, seq without holes, no other session, nothing that clients are not to be sent
#[test]
fn what_is_not_legal_is_refused_by_line_and_member() {
    let update = |from: &str, to: &str| UPDATE.replacen(from, to, 1);
    let deep = format!(r#""update","payload":{}{}"#, "[".repeat(10_000), "]".repeat(10_000));
    for (at, event, expected) in [
        (0, RUN.to_owned(), "2: kind: no such event may stand here: the first event is not that of the creation"),
        (1, UPDATE.to_owned(), "3: kind: no such event may stand here: it belongs to a run, and none is live"),
        (2, PROMPT.replace("\"turn\":1", "\"turn\":2"), "4: kind: no such event may stand here: turn 2 began after turn 0"),
        (4, TURN_ENDED.replace("\"turn\":1", "\"turn\":7"), "6: kind: no such event may stand here: turn 7 is not running"),
        (2, PROMPT.replace("\"prompt\":[]", "\"x\":[]"), "4: payload: a prompt event is not readable: prompt: it is missing"),
        (2, PROMPT.replace("\"turn\":1", "\"turn\":\"x\""), "4: payload: a prompt event is not readable: turn: a whole number from 0 is required, and it is \"x\""),
        (2, "\"prompt\",\"payload\":7".to_owned(), "4: payload: a prompt event is not readable: an object is required, and it is 7"),
        (2, "\"prompt\",\"payload\":[1,\"c\",null,null,[]]".to_owned(), "4: payload: an object is required, and it is an array"),
        (2, PROMPT.replace("\"turn\"", "\"seq\":9,\"turn\""), "4: payload: \"seq\" is no member that this version writes"),
        (0, CREATED.replace("/w", "/x"), "2: payload: agent and cwd of line 1 are required"),
        (0, CREATED.replace("\"by\":\"c\"", "\"forkedFrom\":\"s-0\""), "2: payload: forkedFrom of line 1 is required"),
        (3, update("\"sessionId\"", "\"sessionId\":\"s-2\",\"session\\u0049d\""), "5: payload: a message is not clear: params.sessionId: it is there twice"),
        (3, update("s-1", "s-2"), "5: payload: a message names another session than line 1 does"),
        (3, update("session/update", "fs/read_text_file"), "5: payload: session/update is an update, and another method is not"),
        (3, update("\"method\"", "\"id\":1,\"method\""), "5: payload: a notification of an agent is required"),
        (3, update("\"update\",\"payload\":{", "\"notification\",\"payload\":{"), "5: payload: session/update is an update"),
        (3, "\"update\",\"payload\":7".to_owned(), "5: payload: a notification of an agent is required"),
        (3, r#""permission_requested","payload":{"request":4,"message":{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s-2"}}}"#.to_owned(), "5: payload: a message names another session than line 1 does"),
        (3, r#""permission_requested","payload":{"request":4,"message":7}"#.to_owned(), "5: payload: a message is not clear: an object is required, and it is 7"),
        (3, "999,\"payload\":{}".to_owned(), "5: kind: 999 is of a later version; use that or a newer acpd"),
        (3, deep, "5: payload: a notification of an agent is required"),
        (5, ENDED.replace("\"lastEventSeq\":5", "\"lastEventSeq\":18446744073709551615"), "7: payload: lastEventSeq: the number of the event before is required"),
    ] {
        let mut events = WHOLE.map(str::to_owned);
        assert_ne!(events[at], event, "{expected}");
        events[at] = event;
        let error = refused(HEAD, &events.each_ref().map(String::as_str));
        assert!(error.starts_with(expected), "{error}\nand not\n{expected}");
    }
}

// contract 7.3: seq from 1 without holes, as many events as were announced, and times that can be shown
#[test]
fn holes_and_ends_that_are_missing_are_refused() {
    let head = HEAD.replace(":N}", ":2}");
    for (lines, expected) in [
        (vec![line(2, CREATED)], "seq: event 1 is required here, and it is 2"),
        (vec![line(1, CREATED), line(3, RUN)], "seq: event 2 is required here, and it is 3"),
        (vec![line(1, CREATED), line(1, CREATED)], "seq: event 2 is required here, and it is 1"),
        (
            vec![line(1, CREATED), line(2, RUN), line(3, PROMPT)],
            "seq: line 1 announces 2 events, and there are more",
        ),
        (vec![line(1, CREATED)], "line: line 1 announces 2 events, and there are 1: it was cut off"),
        (
            vec![line(1, CREATED).replace("\"atMs\":1", "\"atMs\":-1")],
            "atMs: a time from 1970 to 9999 is required",
        ),
    ] {
        let mut intake = Intake::new(head.as_bytes()).expect("a first line");
        let taken = lines.iter().try_for_each(|line| intake.take(line.as_bytes()));
        let error = taken.and_then(|()| intake.finish(99).map(drop)).expect_err(expected);
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!(refused(HEAD, &[CREATED]), "3: line: a session that has never run is none");
}

// contract 7.3: the first line is as untrusted as the others
#[test]
fn a_first_line_that_says_odd_things_is_refused() {
    let long = "x".repeat(LONGEST_HEAD);
    for (from, to, expected) in [
        ("s-1", "../../etc", "1: sessionId: an id of at most 128 ASCII letters"),
        ("example", "a\u{7f}b", "1: agent: the name of an agent is required"),
        ("example", "", "1: agent: the name of an agent is required"),
        ("/w", "w", "1: cwd: an absolute path is required"),
        (
            "\"createdMs\":7",
            "\"createdMs\":9223372036854775807",
            "1: createdMs: a time from 1970 to 9999 is required",
        ),
        ("/w", &long, "1: line: the first line has at most 65536 bytes"),
    ] {
        let error = refused(&HEAD.replacen(from, to, 1), &WHOLE);
        assert!(error.starts_with(expected), "{error}");
    }
}
