//! How a run ends for a client, and what becomes of the answers of a run.

use super::*;

// PR-11, contract 7.3: an answer behind events that were not recorded is the end of its run instead, in front of that end
#[test]
fn an_answer_that_was_not_recorded_is_the_end_instead() {
    let mut stage = Stage::live();
    for held in [of_run("lost", 2, 8), of_run("kept", 2, 6), answer("other", 7)] {
        assert_eq!(stage.take(Input::Answer(held)), "");
    }
    assert_eq!(stage.read(6..=6), "6 =kept");
    assert_eq!(stage.end(7), "!lost end =other");
}

// PR-11, contract 7.3: the same where the log itself was lost: then the record is the end
#[test]
fn an_answer_behind_a_lost_log_is_the_end_instead() {
    let mut stage = Stage::live();
    for held in [of_run("lost", 2, 6), Answer { before: Some(9), ..of_run("kept", 2, 5) }, answer("other", 6)]
    {
        assert_eq!(stage.take(Input::Answer(held)), "");
    }
    assert_eq!(stage.take(Input::LogEnded { whole: true }), "DropCursor LeaveSeat AwaitEnd");
    assert_eq!(stage.take(Input::RunEnded(&info())), "=kept !lost end Finished1 =other");
}

// contract 7.3: a log that cannot be read does not say what was recorded, but the record says that the run is over
#[test]
fn an_unreadable_log_ends_with_the_record() {
    let mut stage = Stage::live();
    assert_eq!(stage.take(Input::LogEnded { whole: false }), "DropCursor LeaveSeat AwaitEnd");
    assert_eq!(stage.take(Input::Answer(of_run("a", 2, 9))), "", "it is not known yet");
    assert_eq!(stage.take(Input::RunEnded(&info())), "!a end Finished1");
}

// contract 7.3: an answer of a run that stands behind that run's end is its end
#[test]
fn an_answer_behind_the_end_is_the_end() {
    let mut stage = Stage::ended();
    assert_eq!(stage.take(Input::Answer(of_run("a", 2, 6))), "!a");
    assert_eq!(stage.take(Input::Answer(of_run("b", 2, 5))), "=b");
}

// SE-4, contract 1.2: the end of an earlier run in the history is not the end of the run that is followed
#[test]
fn an_earlier_end_is_history() {
    let mut stage = Stage::joining(Some(3), 0, 3);
    stage.take(Input::Begin);
    assert_eq!(stage.read(1..=1), "1");
    assert_eq!(stage.end(2), "");
    assert_eq!(stage.read(3..=4), "3 =j 4");
    assert_eq!(stage.take(Input::LogEnded { whole: true }), "DropCursor LeaveSeat AwaitEnd");
    assert_eq!(stage.take(Input::RunEnded(&info())), "end Finished1");
}

// contract 1: a session's next run is followed behind the end of the one before
#[test]
fn the_next_run_is_followed_behind_the_end() {
    let mut stage = Stage::live();
    assert_eq!(stage.take(Input::Follow(Box::new(joining(Some(6), 7, 7, "k")))), "");
    assert_eq!(stage.end(6), "end");
    assert_eq!(stage.take(Input::LogEnded { whole: true }), "DropCursor LeaveSeat Finished1 JoinOpen =k");
    assert_eq!(stage.core.state, ViewerState::Live { read: 7, run: 6 });
    assert_eq!(stage.end(8), "end");
    assert_eq!(stage.take(Input::LogEnded { whole: true }), "DropCursor LeaveSeat Finished2");
}

// MC-2, contract 1.2: the end of a run that is over is shown although the connection has let go
#[test]
fn the_end_is_shown_to_a_client_that_reads_on() {
    let mut stage = Stage::live();
    assert_eq!(stage.take(Input::Dropped { run_goes_on: false }), "");
    assert_eq!(stage.end(6), "end");
    assert!(!stage.core.is_done());
    stage.take(Input::LogEnded { whole: true });
    assert!(stage.core.is_done());
    let mut awaiting = Stage::awaiting();
    awaiting.take(Input::Dropped { run_goes_on: false });
    assert_eq!(awaiting.take(Input::RunEnded(&info())), "end Finished1");
    assert!(awaiting.core.is_done());
}
