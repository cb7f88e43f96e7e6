//! Leaving `acpd chat` and a closed terminal, in the middle of a turn (contract 7.1): nothing is lost without a word.

use crate::chat::{END_OF_INPUT, chat, end};
use crate::cli::{both, done, ids, state};
use acpd_e2e::{OnTerminal, PseudoTerminal, Scratch};
use rustix::process::Signal;

/// Answers what is asked from elsewhere; the turn ends with it, and the session lives on behind it.
fn answers_from_elsewhere(scratch: &Scratch) {
    let session = ids(scratch, &["--live"]).remove(0);
    assert_eq!(state(scratch, &session), "waiting");
    done(scratch, &["sessions", "answer", &session, "allow-once"]);
    // Behind the prompts before it.
    done(scratch, &["sessions", "prompt", &session, "and on"]);
    let events = done(scratch, &["sessions", "events", &session]);
    assert!(events.contains("allow-once") && !events.contains("cancelled"), "{events}");
    assert_eq!(state(scratch, &session), "idle");
    done(scratch, &["sessions", "close", &session]);
}

// contract 7.1: Ctrl-D in a turn says what it would do, and does it when it is pressed again
#[test]
fn a_turn_is_not_cancelled_without_a_word() {
    let scratch = Scratch::new();
    both(&scratch, |place| {
        let mut chat = chat(&scratch, place);
        chat.press("hello\\\nhang\n");
        chat.wait_for("working...");
        chat.press(END_OF_INPUT);
        chat.wait_for("a turn runs: Ctrl-D once more cancels it and closes the session");
        chat.press(END_OF_INPUT);
        let (shown, status) = end(chat);
        assert_eq!(status.code(), Some(130), "{shown}");
        assert_eq!(shown.contains("/detach leaves it running"), place.is_empty(), "{shown}");
        assert!(shown.contains("to go on: acpd chat --session "), "{shown}");
    });
    assert_eq!(ids(&scratch, &[]).len(), 2);
}

// contract 7.1: Ctrl-D at a question is no answer to it: it leaves another client's turn alone
#[test]
fn a_question_is_left_to_others() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let id = done(&scratch, &["run", "--detach", "--keep-open", "ask edit"]).trim_end().to_owned();
    let mut attached = PseudoTerminal::new().start(&scratch, &["attach", &id]);
    attached.wait_for("esc cancels");
    attached.press(END_OF_INPUT);
    let (shown, status) = end(attached);
    assert!(shown.contains("lives on"), "{status:?}: {shown}");
    answers_from_elsewhere(&scratch);
    daemon.stop();
}

// contract 7.1: what else can be typed is told, and /quit does what Ctrl-D does
#[test]
fn a_chat_says_what_can_be_typed() {
    let scratch = Scratch::new();
    both(&scratch, |place| {
        let mut chat = chat(&scratch, place);
        chat.press("/help\n");
        chat.wait_for("acpd's: /detach /help /quit /exit");
        chat.press("/qu\t");
        chat.wait_for("/quit ");
        chat.press("\n");
        let (shown, status) = end(chat);
        assert_eq!(status.code(), Some(0), "{shown}");
    });
    for id in ids(&scratch, &[]) {
        assert!(!done(&scratch, &["sessions", "events", &id]).contains("/help"), "none of it is a prompt");
    }
}

// contract 7.1: /detach leaves the session with its turn and what waits in line, and says how to come back
#[test]
fn a_chat_is_detached_from() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut first = chat(&scratch, &[]);
    first.press("ask edit Write it\nthe next\n");
    first.wait_for("esc cancels");
    first.press("n\n");
    first.wait_for("the next");
    first.wait_for("✓ end_turn");
    first.press("sleep 400\nlast\n");
    first.wait_for("queued");
    first.press("/detach\n");
    let (shown, status) = end(first);
    assert_eq!(status.code(), Some(0), "{shown}");
    assert!(shown.contains("lives on"), "{shown}");
    let (_, rest) = shown.rsplit_once("to go on: acpd attach ").expect("it says how to come back");
    let session = rest.split_whitespace().next().expect("an id").to_owned();
    let mut again = PseudoTerminal::new().start(&scratch, &["attach", &session]);
    again.wait_for("last");
    again.wait_for("✓ end_turn");
    again.press(END_OF_INPUT);
    let (shown, _) = end(again);
    assert!(!shown.contains("cancelled"), "{shown}");
    assert_eq!(ids(&scratch, &["--live"]).len(), 1);
    done(&scratch, &["sessions", "close", &session]);
    daemon.stop();
    // There is none to leave it to.
    let mut alone = chat(&scratch, &["--embedded"]);
    alone.press("/detach\n");
    alone.wait_for("no daemon has this session");
    alone.press(END_OF_INPUT);
    assert_eq!(end(alone).1.code(), Some(0));
}

// contract 7.1, MC-2: a closed terminal is a lost connection: the turn goes on in the daemon, and is answered from elsewhere
#[test]
fn a_closed_terminal_leaves_the_session_to_the_daemon() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let asks = |chats: bool| {
        let mut asking = match chats {
            true => {
                let chat = chat(&scratch, &[]);
                chat.press("ask edit Write it\n");
                chat
            }
            false => PseudoTerminal::new().start(&scratch, &["run", "ask edit Write it"]),
        };
        asking.wait_for("esc cancels");
        asking
    };
    let hung_up: fn(OnTerminal) = |asking| {
        asking.signal(Signal::HUP);
        let (shown, status) = end(asking);
        assert_eq!(status.code(), Some(130), "{shown}");
        assert!(shown.contains("lives on in the daemon"), "{shown}");
    };
    let closed: fn(OnTerminal) = |asking| assert!(!asking.close_window().success());
    for chats in [true, false] {
        for lose in [hung_up, closed] {
            lose(asks(chats));
            answers_from_elsewhere(&scratch);
        }
    }
    daemon.stop();
}

// contract 6: a terminal that is closed while nothing is asked and text comes; Ctrl-C and SIGTERM still close what they began
#[test]
fn a_run_that_loses_its_terminal_goes_on() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let runs = || {
        let mut running = PseudoTerminal::new().start(&scratch, &["run", "hello\nsleep 300\nmore\nhang"]);
        running.wait_for("hello");
        running
    };
    assert!(!runs().close_window().success());
    let session = ids(&scratch, &["--live"]).remove(0);
    assert_eq!(state(&scratch, &session), "running");
    done(&scratch, &["sessions", "terminate", &session]);
    let terminated = runs();
    terminated.signal(Signal::TERM);
    let (shown, status) = terminated.end();
    assert_eq!(status.code(), Some(130), "{shown}");
    assert!(ids(&scratch, &["--live"]).is_empty());
    daemon.stop();
}
