//! How a client comes to a session, leaves it and comes back.

use super::*;

// SE-4, SE-6: the whole history, then the answer, and nothing behind it
#[test]
fn a_history_comes_before_the_answer() {
    let mut stage = Stage::replaying();
    assert_eq!(stage.read(4..=7), "4 5 =j DropCursor Finished1");
    assert!(!stage.core.reads());
    let mut nothing = Stage::joining(None, 5, 5);
    assert_eq!(nothing.take(Input::Begin), "DropCursor Finished1 =j");
}

// SE-5: a replay up to a cut, the answer, then updates, with neither gap nor duplicate
#[test]
fn a_live_session_is_joined_at_a_cut() {
    let mut stage = Stage::joining(Some(2), 0, 4);
    assert_eq!(stage.take(Input::Begin), "");
    assert_eq!(stage.read(1..=6), "1 2 3 4 =j 5 6");
}

// PR-3: the prompter gets its answer behind its turn, and not its own message
#[test]
fn a_turn_is_shown_before_its_answer() {
    let mut stage = Stage::live();
    let prompt =
        |via| format!(r#"{{"turn":1,"by":"x","via":"{via}","prompt":[{{"type":"text","text":"hi"}}]}}"#);
    assert_eq!(stage.event(6, EventKind::Prompt, &prompt("me")), "");
    assert_eq!(stage.take(Input::Answer(of_run("turn", 2, 8))), "");
    assert_eq!(stage.read(7..=9), "7 8 =turn 9");
    assert!(stage.event(10, EventKind::Prompt, &prompt("other")).contains("user_message_chunk"));
}

// PE-3: what is open is asked behind the answer, once, and withdrawn when the client leaves
#[test]
fn open_questions_come_behind_the_answer() {
    let mut stage = Stage::joining(Some(2), 5, 5);
    stage.core.waiting[0].questions = vec![question()];
    assert_eq!(stage.take(Input::Begin), "=j ask");
    assert_eq!(stage.take(Input::Ask(question())), "", "it is open there");
    assert_eq!(stage.take(Input::Leave(answer("l", 0))), "LeaveRun Finished1 withdraw =l DropCursor");
}

// contract 7.3: answers are in the order of their events, and those of one event in the order in which they came
#[test]
fn answers_keep_their_order() {
    let mut stage = Stage::live();
    for (name, after) in [("d", 8), ("b", 6), ("c", 6), ("a", 5)] {
        stage.take(Input::Ahead(answer(name, after)));
    }
    assert_eq!(stage.read(6..=7), "=a 6 =b =c 7");
    assert_eq!(stage.read(8..=9), "8 =d 9");
}

// contract 7.3: what stands in front of an end is written when that can be read, before it is shown; it holds up no other
// answer, or a second replay would come before the answer to the first
#[test]
fn an_answer_in_front_of_an_end_is_written_there() {
    let mut stage = Stage::live();
    stage.take(Input::Answer(Answer { before: Some(6), ..of_run("a", 2, 5) }));
    assert_eq!(stage.take(Input::Answer(answer("later", 5))), "=later");
    assert_eq!(stage.end(6), "=a end");
}

// contract 1.1: a client that left is still answered, in order, and shown nothing
#[test]
fn what_a_client_that_left_is_owed_is_written() {
    let mut stage = Stage::detached();
    assert_eq!(stage.read(6..=6), "");
    stage.is_idle = true;
    assert_eq!(stage.read(7..=7), "=owed DropCursor");
    assert_eq!(stage.core.state, ViewerState::Detached { shown: 5, log: Log::Closed });
}

// contract 1.1, SE-5: a client that comes back sees what it missed as history, or not at all
#[test]
fn a_client_comes_back() {
    let mut stage = Stage::detached();
    assert_eq!(stage.read(6..=7), "=owed");
    // A resume: from event 9 on.
    assert_eq!(stage.take(Input::Follow(Box::new(joining(Some(2), 9, 9, "k")))), "");
    assert!(!stage.core.takes_commands(), "first what comes before");
    assert_eq!(stage.read(8..=9), "JoinOpen =k");
    assert_eq!(stage.read(10..=10), "10");
    assert_eq!(stage.take(Input::Leave(answer("l", 0))), "LeaveRun Finished2 =l");
    // A load: all of it, then the answer.
    assert_eq!(stage.take(Input::Follow(Box::new(joining(Some(2), 0, 2, "m")))), "JoinOpen");
    assert_eq!(stage.core.attachments, 3);
    assert_eq!(stage.read(1..=11), "1 2 3 4 5 6 7 8 9 10 =m 11");
}

// SE-5: a client that attaches again sees what it was watching first, and no event twice
#[test]
fn attaching_again_shows_nothing_twice() {
    let mut stage = Stage::live();
    assert_eq!(stage.take(Input::Follow(Box::new(joining(Some(2), 7, 7, "k")))), "");
    assert_eq!(stage.read(6..=8), "6 7 8 JoinOn =k");
    assert_eq!(stage.read(9..=9), "9");
}

// SE-8: a client that left and resumes gets nothing of what came meanwhile
#[test]
fn a_resume_skips_what_was_missed() {
    let mut stage = Stage::live();
    stage.take(Input::Leave(answer("l", 0)));
    assert_eq!(stage.take(Input::Follow(Box::new(joining(Some(2), 7, 7, "k")))), "JoinOpen =k");
    // The cursor gives nothing before event 8; if it did, it would not be shown.
    assert_eq!(stage.read(7..=8), "8");
}

// SE-4: a history that is being shown is shown to its end before another begins
#[test]
fn a_replay_is_not_cut_short() {
    let mut stage = Stage::replaying();
    assert_eq!(stage.take(Input::Follow(Box::new(joining(Some(5), 5, 5, "k")))), "");
    assert_eq!(stage.read(4..=5), "4 5 =j DropCursor Finished1 JoinOpen =k");
    assert_eq!(stage.core.state, ViewerState::Live { read: 5, run: 5 });
}
