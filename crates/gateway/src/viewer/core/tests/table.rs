//! One row for every input in every state: the effects, and the state behind it.

use super::*;

/// The states that a table begins in.
const STATES: [fn() -> Stage; 5] =
    [Stage::replaying, Stage::live, Stage::awaiting, Stage::ended, Stage::detached];

/// What an input leads to in each state, in the order of [`STATES`]: effects, then the state.
fn check(input: fn() -> Input<'static, &'static str>, expected: [(&str, ViewerState); 5]) {
    for (at, (begin, (effects, state))) in STATES.into_iter().zip(expected).enumerate() {
        let mut stage = begin();
        let input = input();
        let row = format!("state {at}, {input:?}");
        assert_eq!(stage.take(input), effects, "{row}");
        assert_eq!(stage.core.state, state, "{row}");
    }
}

const REPLAYING: ViewerState = ViewerState::Replaying { read: 3 };
const LIVE: ViewerState = ViewerState::Live { read: 5, run: 2 };
const AWAITING: ViewerState = ViewerState::Ending { read: 5, end: End::Awaited };
const ENDED_AT_6: ViewerState = ViewerState::Ending { read: 6, end: End::Final };
const DETACHED: ViewerState = ViewerState::Detached { shown: 5, log: Log::Open { read: 5 } };

// contract 1.6, SE-4: events are shown in order, but none behind a history that is only read, none behind the end and none
// to a client that has left
#[test]
fn an_event() {
    check(
        || {
            let payload: &'static str = update(6).leak();
            let kind = EventKind::Update.number();
            Input::Event(StoredEvent { seq: 6, kind, at_ms: 0, payload: payload.as_bytes() })
        },
        [
            ("", ViewerState::Replaying { read: 6 }),
            ("6", ViewerState::Live { read: 6, run: 2 }),
            ("", AWAITING),
            ("", ENDED_AT_6),
            ("", ViewerState::Detached { shown: 5, log: Log::Open { read: 6 } }),
        ],
    );
}

// contract 1.6: a block that brings nothing that was waited for changes nothing
#[test]
fn a_block_read() {
    check(
        || Input::BlockRead,
        [("", REPLAYING), ("", LIVE), ("", AWAITING), ("", ENDED_AT_6), ("", DETACHED)],
    );
}

// contract 7.3: an answer is held back until what precedes it was shown; where nothing more is read, nothing precedes it
#[test]
fn an_answer() {
    check(
        || Input::Answer(answer("a", 6)),
        [("", REPLAYING), ("", LIVE), ("", AWAITING), ("=a", ENDED_AT_6), ("", DETACHED)],
    );
    check(
        || Input::Answer(answer("a", 3)),
        [("=a", REPLAYING), ("=a", LIVE), ("", AWAITING), ("=a", ENDED_AT_6), ("=a", DETACHED)],
    );
}

// contract 7.3: an answer that was queued before a block waits for that block
#[test]
fn an_answer_ahead() {
    check(
        || Input::Ahead(answer("a", 3)),
        [("", REPLAYING), ("", LIVE), ("", AWAITING), ("", ENDED_AT_6), ("", DETACHED)],
    );
}

// contract 7.3: an answer that stands in front of an end waits until that can be read
#[test]
fn an_answer_in_front_of_an_end() {
    check(
        || Input::Answer(Answer { before: Some(6), ..answer("a", 3) }),
        [("", REPLAYING), ("", LIVE), ("", AWAITING), ("=a", ENDED_AT_6), ("", DETACHED)],
    );
}

// contract 1.2, contract 7.3: the log's end is the end of the viewing, unless only the record says how the run ended
#[test]
fn the_logs_end() {
    let ending = |read, end| ViewerState::Ending { read, end };
    let detached = |log| ViewerState::Detached { shown: 5, log };
    check(
        || Input::LogEnded { whole: true },
        [
            ("DropCursor LeaveSeat Finished1 =j", ending(3, End::Final)),
            ("DropCursor LeaveSeat AwaitEnd", AWAITING),
            ("", AWAITING),
            ("", ENDED_AT_6),
            ("DropCursor LeaveSeat Finished1 !owed", detached(Log::Final { last: 5 })),
        ],
    );
    check(
        || Input::LogEnded { whole: false },
        [
            ("DropCursor LeaveSeat Finished1 =j", ending(3, End::Open)),
            ("DropCursor LeaveSeat AwaitEnd", AWAITING),
            ("", AWAITING),
            ("", ENDED_AT_6),
            ("DropCursor LeaveSeat Finished1 =owed", detached(Log::Closed)),
        ],
    );
}

// contract 1.2: the record is shown where it was asked for, and nowhere else: an end is shown once
#[test]
fn a_record_of_the_end() {
    check(
        || Input::RunEnded(Box::leak(Box::new(info()))),
        [
            ("", REPLAYING),
            ("", LIVE),
            ("end Finished1", ViewerState::Ending { read: 5, end: End::Final }),
            ("", ENDED_AT_6),
            ("", DETACHED),
        ],
    );
}

// SE-5, contract 1.1: a client goes on where it attaches anew, behind what it was watching
#[test]
fn following_again() {
    let again = ViewerState::Live { read: 6, run: 6 };
    check(
        || Input::Follow(Box::new(joining(Some(6), 6, 6, "k"))),
        [("", REPLAYING), ("", LIVE), ("", AWAITING), ("JoinOpen =k", again), ("", DETACHED)],
    );
    let replay = ViewerState::Live { read: 0, run: 2 };
    check(
        || Input::Follow(Box::new(joining(Some(2), 0, 5, "k"))),
        [("", REPLAYING), ("JoinOpen", replay), ("", AWAITING), ("JoinOpen", replay), ("JoinOpen", replay)],
    );
    // Without a replay, what is open goes on: neither a gap nor a duplicate.
    check(
        || Input::Follow(Box::new(joining(Some(2), 5, 5, "k"))),
        [("", REPLAYING), ("JoinOn =k", LIVE), ("", AWAITING), ("JoinOpen", LIVE), ("JoinOpen =k", LIVE)],
    );
}

// contract 1.1: a client that leaves gets its answer behind what it has seen, and watches no more
#[test]
fn leaving() {
    let left = |shown, log| ViewerState::Detached { shown, log };
    check(
        || Input::Leave(answer("l", 0)),
        [
            ("LeaveRun Finished1 =l", left(3, Log::Open { read: 3 })),
            ("LeaveRun Finished1 =l DropCursor", left(5, Log::Closed)),
            ("LeaveRun Finished1 =l", left(5, Log::Closed)),
            ("LeaveRun Finished1 =l", left(6, Log::Final { last: 6 })),
            ("LeaveRun Finished1 =l", DETACHED),
        ],
    );
}

// PE-1, PE-3: a question is put again to a client that watches
#[test]
fn asking() {
    check(
        || Input::Ask(question()),
        [("ask", REPLAYING), ("ask", LIVE), ("ask", AWAITING), ("ask", ENDED_AT_6), ("", DETACHED)],
    );
}

// MC-2: a connection's end is no end of a run: one that goes on is not watched any more, one that is over is to its end
#[test]
fn the_connections_end() {
    for (run_goes_on, done) in
        [(true, [false, true, false, true, true]), (false, [false, false, false, true, true])]
    {
        for (begin, done) in STATES.into_iter().zip(done) {
            let mut stage = begin();
            assert_eq!(stage.take(Input::Dropped { run_goes_on }), "");
            assert!(!stage.core.takes_commands());
            assert_eq!(stage.core.is_done(), done, "{:?}, {run_goes_on}", stage.core.state);
        }
    }
}

// contract 1.6: what is waited for in each state. Beginning is for the first step; later it changes nothing
#[test]
fn beginning_and_waiting() {
    check(|| Input::Begin, [("", REPLAYING), ("", LIVE), ("", AWAITING), ("", ENDED_AT_6), ("", DETACHED)]);
    for (begin, reads) in STATES.into_iter().zip([true, true, false, false, true]) {
        let stage = begin();
        assert_eq!(stage.core.reads(), reads, "{:?}", stage.core.state);
        assert!(stage.core.takes_commands() && !stage.core.is_done());
    }
}
