//! `acpd chat` and `acpd attach` on a real terminal (contract 7.1), with a host inside and with a daemon.

use crate::cli::{both, done, fails, front_end, ids, json, leave, run, state};
use crate::reaching::{TOKEN, with_token};
use acpd_e2e::{Exit, LogForm, OnTerminal, PseudoTerminal, Scratch, run_lines};
use rustix::process::Signal;
use std::process::ExitStatus;

const INTERRUPT: &str = "\u{3}";
pub(crate) const END_OF_INPUT: &str = "\u{4}";

/// A chat that can be written in.
pub(crate) fn chat(scratch: &Scratch, words: &[&str]) -> OnTerminal {
    let mut chat = PseudoTerminal::new().start(scratch, &[&["chat"], words].concat());
    chat.wait_for("Ctrl-D leaves");
    chat.wait_for("› ");
    assert!(chat.is_asking(), "keys come one by one");
    chat
}

/// Says something, and waits for the end of the turn.
fn say(chat: &mut OnTerminal, text: &str) {
    chat.press(text);
    chat.press("\n");
    chat.wait_for("✓ end_turn");
}

/// Leaves; what was shown, without what moves the cursor, and how it ended.
pub(crate) fn end(chat: OnTerminal) -> (String, ExitStatus) {
    let (shown, status) = chat.end();
    let mut plain = String::new();
    let mut rest = shown.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        // The last byte of a sequence is a letter.
        rest = after.find(|c: char| c.is_ascii_alphabetic()).map_or("", |at| &after[at + 1..]);
    }
    (plain + rest, status)
}

/// Leaves an idle chat with Ctrl-D.
fn quit(chat: OnTerminal) -> String {
    chat.press(END_OF_INPUT);
    let (shown, status) = end(chat);
    assert_eq!(status.code(), Some(0), "{shown}");
    shown
}

/// The id of the session, as it is said at the end.
fn id_in(shown: &str) -> &str {
    let (_, rest) = shown.rsplit_once("to go on: acpd chat --session ").expect("it says how to go on");
    rest.split_whitespace().next().expect("an id")
}

// contract 7.1: many prompts in one session; it is said how to go on, and -c goes on and shows what was before
#[test]
fn prompts_follow_each_other_in_a_session() {
    let scratch = Scratch::new();
    both(&scratch, |place| {
        let mut first = chat(&scratch, place);
        say(&mut first, "the first words");
        say(&mut first, "the second words");
        let shown = quit(first);
        let session = id_in(&shown);
        let (_, out, err) = run(&scratch, &[&["run"], place, &["-c", "--json", "others"]].concat());
        let line = run_lines(&out).remove(0);
        assert!(line["sessionId"].as_str().is_some_and(|id| id.ends_with(session)), "{session} {out}{err}");
        let mut again = PseudoTerminal::new().start(&scratch, &[&["chat"], place, &["-c"]].concat());
        again.wait_for("the second words");
        again.wait_for(": others");
        again.wait_for("✓ end_turn");
        say(&mut again, "more");
        let shown = quit(again);
        assert_eq!(id_in(&shown), session);
    });
}

// contract 7.1: Ctrl-C discards the line, cancels the turn, and leaves when it is pressed again
#[test]
fn an_interrupt_cancels_and_then_leaves() {
    let scratch = Scratch::new();
    both(&scratch, |place| {
        let mut chat = chat(&scratch, place);
        chat.press("discarded");
        chat.press(INTERRUPT);
        // A backslash goes on in the next row.
        chat.press("hello\\\nhang\n");
        chat.wait_for("working...");
        chat.press(INTERRUPT);
        chat.wait_for("cancelling; Ctrl-C once more leaves at once");
        chat.wait_for("! cancelled");
        say(&mut chat, "still here");
        chat.press(INTERRUPT);
        chat.wait_for("Ctrl-D leaves, and so does Ctrl-C once more");
        chat.press(INTERRUPT);
        let (shown, status) = end(chat);
        assert_eq!(status.code(), Some(0), "{shown}");
        assert!(shown.contains("› hello\r\n  hang\r\n"), "{shown}");
        // In the middle of a turn.
        let mut chat = self::chat(&scratch, place);
        chat.press("ignore-cancel\\\nhang\n");
        chat.wait_for("working...");
        chat.press(INTERRUPT);
        chat.wait_for("cancelling");
        chat.press(INTERRUPT);
        let (shown, status) = end(chat);
        assert_eq!(status.code(), Some(130), "{shown}");
    });
}

// contract 7.1: questions and forms are answered in place, and the line is there again behind them
#[test]
fn questions_are_answered_in_place() {
    let scratch = Scratch::new();
    both(&scratch, |place| {
        let mut chat = chat(&scratch, place);
        for (key, outcome) in [("y\n", "selected allow-once"), ("\u{1b}[B\r", "selected allow-always")] {
            chat.press("ask edit Write it\n");
            chat.wait_for("esc cancels");
            chat.press(key);
            chat.wait_for(outcome);
            chat.wait_for("✓ end_turn");
        }
        chat.press("elicit Which one?\n");
        chat.wait_for("? Which one?");
        chat.wait_for("Answer: ");
        // It has to be there.
        chat.press("\n");
        chat.wait_for("answer: text is required");
        chat.press("the left\n");
        chat.wait_for("elicitation accept {\"answer\":\"the left\"}");
        chat.wait_for("✓ end_turn");
        chat.press("elicit Which one?\n");
        chat.wait_for("Answer: ");
        chat.press("\u{1b}");
        chat.wait_for("elicitation decline");
        chat.wait_for("✓ end_turn");
        chat.press("ask edit Write it\n");
        chat.wait_for("esc cancels");
        chat.press(INTERRUPT);
        chat.wait_for("not answered: the turn is cancelled");
        chat.wait_for("! cancelled");
        say(&mut chat, "still here");
        quit(chat);
    });
}

// contract 7.1: commands of the agent and files are completed; a file behind an @ is in the prompt
#[test]
fn words_are_completed() {
    let scratch = Scratch::new();
    std::fs::write(scratch.work().join("notes.txt"), "what the notes say").expect("a file");
    both(&scratch, |place| {
        let mut chat = chat(&scratch, place);
        say(&mut chat, "commands review,reset");
        chat.press("/r\t\t");
        chat.wait_for("reset review");
        chat.press("v\t");
        chat.wait_for("/review ");
        chat.press("see @no\t");
        chat.wait_for("@notes.txt ");
        say(&mut chat, "");
        let shown = quit(chat);
        let session = id_in(&shown);
        if place.is_empty() {
            let events = done(&scratch, &["sessions", "events", session, "--json"]);
            let prompt = events.lines().filter(|line| line.contains("\"kind\":\"prompt\"")).nth(1);
            assert!(prompt.is_some_and(|prompt| prompt.contains("/review see @notes.txt")), "{events}");
            assert!(prompt.is_some_and(|prompt| prompt.contains("what the notes say")), "{events}");
        }
    });
}

// contract 7.1: what is entered while a turn runs waits, and is said again when it begins; Ctrl-C takes it back
#[test]
fn prompts_wait_for_the_turn() {
    let scratch = Scratch::new();
    both(&scratch, |place| {
        let mut chat = chat(&scratch, place);
        chat.press("ask edit Write it\n");
        chat.wait_for("esc cancels");
        // Written at a question, a line answers nothing and is not lost either; a letter alone answers.
        chat.press("you may, or not\n");
        chat.wait_for("queued");
        chat.press("y\n");
        chat.wait_for("✓ end_turn");
        chat.wait_for("› you may, or not");
        chat.wait_for("✓ end_turn");
        chat.press("hang\n");
        chat.wait_for("working...");
        chat.press("the next\nthe last\n");
        chat.wait_for("queued: it is sent when the turn before it is over");
        chat.wait_for("queued: it is sent when the 2 turns before it are over");
        chat.press(INTERRUPT);
        chat.wait_for("not sent: the next");
        chat.wait_for("not sent: the last");
        chat.press("sleep 300\nthe next\n");
        chat.wait_for("queued");
        chat.wait_for("✓ end_turn");
        chat.wait_for("› the next");
        chat.wait_for("✓ end_turn");
        quit(chat);
    });
}

// contract 7.1: lines come back in the next chat, from a file that is its owner's alone
#[test]
fn lines_come_back_in_another_chat() {
    let scratch = Scratch::new();
    both(&scratch, |place| {
        let mut one = chat(&scratch, place);
        say(&mut one, "words to come back");
        quit(one);
        let mut other = chat(&scratch, place);
        say(&mut other, "what is behind it");
        // Ctrl-R looks for what is written.
        other.press("to come");
        other.wait_for("› to come");
        other.press("\u{12}");
        other.wait_for("› words to come back");
        other.press("\u{3}");
        say(&mut other, "words to come back");
        other.press("\u{1b}[A");
        other.wait_for("words to come back");
        other.press("\n");
        other.wait_for("✓ end_turn");
        quit(other);
        use std::os::unix::fs::PermissionsExt;
        let file = std::fs::metadata(scratch.state().join("chat_history")).expect("a history");
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
    });
}

// contract 7.1: an agent that dies ends the chat with its record and with the way to go on
#[test]
fn a_crash_is_told() {
    let scratch = Scratch::new();
    both(&scratch, |place| {
        let chat = chat(&scratch, place);
        chat.press("crash\n");
        let (shown, status) = end(chat);
        assert_eq!(status.code(), Some(1), "{shown}");
        assert!(shown.contains("crash line 250") && shown.contains("exit status: 1"), "{shown}");
        let session = id_in(&shown).to_owned();
        let mut again = self::chat(&scratch, &[place, &["--session", &session]].concat());
        say(&mut again, "here again");
        quit(again);
    });
}

// contract 7.1: a daemon that is killed ends the chat at once, with exit code 4 and the way to go on
#[test]
fn a_lost_daemon_ends_the_chat() {
    let scratch = Scratch::new().keep("0s").config("[client]\nreconnect = \"0s\"");
    for line in ["", "hello\\\nhang\n"] {
        let mut daemon = scratch.serve();
        let mut chat = chat(&scratch, &[]);
        if !line.is_empty() {
            chat.press(line);
            chat.wait_for("working...");
        }
        daemon.kill();
        let (shown, status) = end(chat);
        assert_eq!(status.code(), Some(4), "{shown}");
        let (_, rest) = shown.rsplit_once("`acpd chat --session ").expect("it says how to go on");
        let session = rest.split([' ', '`']).next().expect("an id").to_owned();
        let mut daemon = scratch.serve();
        let mut again = self::chat(&scratch, &["--session", &session]);
        say(&mut again, "here again");
        quit(again);
        daemon.stop();
    }
}

// contract 7.1: attach shows the end of the history, another client's turn as its own, and answers its question; what is
// said here is heard there; leaving leaves the session alone
#[test]
fn two_clients_share_a_session() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut client, session) = front_end(&scratch);
    assert_eq!(client.turn(&session, "what was before"), "end_turn");
    let short = &session[session.len() - 8..];
    let url = daemon.url();
    for connect in [&[][..], &["--connect", &url]] {
        let mut attached = PseudoTerminal::new().start(&scratch, &[&["attach"], connect, &[short]].concat());
        attached.wait_for("› ");
        attached.wait_for(": what was before");
        attached.wait_for("✓ end_turn");
        attached.wait_for("\u{1b}[?7h");
        let asked = client.prompt(&session, "ask edit Write it");
        attached.wait_for(": ask edit Write it");
        attached.wait_for("esc cancels");
        attached.press("n\n");
        assert_eq!(client.result(&asked)["stopReason"], "end_turn");
        attached.wait_for("selected reject-once");
        attached.wait_for("✓ end_turn");
        // The other way round: what is answered there is not asked here any more.
        attached.press("ask edit Mine\n");
        attached.wait_for("esc cancels");
        let request =
            client.until("the question", |message| message.method() == Some("session/request_permission"));
        let id = request.json["id"].clone();
        client.write_line(format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"outcome\":{{\"outcome\":\"selected\",\"optionId\":\"allow-once\"}}}}}}"
        ));
        attached.wait_for("answered by e2e");
        attached.wait_for("✓ end_turn");
        client.until_text("selected allow-once");
        attached.press(END_OF_INPUT);
        let (shown, status) = end(attached);
        assert_eq!(status.code(), Some(0), "{shown}");
        assert!(shown.contains("lives on") && shown.contains("to go on: acpd attach"), "{shown}");
        assert_eq!(state(&scratch, &session), "idle");
    }
    leave(client);
    daemon.stop();
}

// contract 7.1: a client that attaches in a turn sees it, and can cancel it
#[test]
fn a_turn_of_another_client_is_cancelled() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut client, session) = front_end(&scratch);
    let hanging = client.prompt(&session, "hello\nhang");
    client.until_text("hello");
    let mut attached = PseudoTerminal::new().start(&scratch, &["attach", &session]);
    attached.wait_for("working...");
    attached.press(INTERRUPT);
    assert_eq!(client.result(&hanging)["stopReason"], "cancelled");
    attached.wait_for("! cancelled");
    attached.press(END_OF_INPUT);
    assert_eq!(end(attached).1.code(), Some(0));
    leave(client);
    daemon.stop();
}

// contract 7.1, contract 1.7: a token that may only observe watches, and nothing that is typed does anything
#[test]
fn an_observer_watches() {
    let scratch = with_token("observe");
    let mut daemon = scratch.serve();
    let (mut client, session) = front_end(&scratch);
    client.turn(&session, "what was before");
    let file = scratch.path("token");
    std::fs::write(&file, TOKEN).expect("a file");
    let (url, file) = (daemon.url(), file.to_str().expect("text").to_owned());
    let words = ["attach", "--connect", &url, "--token-file", &file, &session];
    let mut watching = PseudoTerminal::new().start(&scratch, &words);
    watching.wait_for("this token may only watch; Ctrl-C leaves");
    watching.wait_for("what was before");
    client.turn(&session, "what is now");
    watching.wait_for("what is now");
    watching.wait_for("✓ end_turn");
    watching.signal(Signal::INT);
    let (shown, status) = end(watching);
    assert_eq!(status.code(), Some(0), "{shown}");
    leave(client);
    daemon.stop();
}

// contract 7.1: what cannot be chatted with or attached to is told, and starts nothing
#[test]
fn wrong_use_is_told() {
    let scratch = Scratch::new();
    scratch.config_file();
    let err = fails(&scratch, 2, &["chat"]);
    assert!(err.contains("stdin is none") && err.contains("acpd run"), "{err}");
    let err = fails(&scratch, 2, &["attach", "x"]);
    assert!(err.contains("stdin is none") && err.contains("acpd sessions events"), "{err}");
    assert_eq!(LogForm::of(&scratch.state()), None);
    let fails_on_terminal = |words: &[&str], code: i32, told: &str| {
        let (shown, status) = PseudoTerminal::new().start(&scratch, words).end();
        assert_eq!(status.code(), Some(code), "{words:?}: {shown}");
        assert!(shown.contains(told), "{words:?}: {shown}");
    };
    fails_on_terminal(&["attach", "x"], 4, "`acpd serve` starts one");
    fails_on_terminal(&["chat", "--session", "x"], 4, "no session has the id \"x\"");
    fails_on_terminal(&["chat", "--agent", "none"], 4, "none");
    fails_on_terminal(&["chat", "-c", "--session", "x"], 2, "--session");
    fails_on_terminal(&["attach", "x", "--lines", "2", "--all"], 2, "--all");
    let mut daemon = scratch.serve();
    fails_on_terminal(&["attach", "x"], 4, "no session has the id \"x\"");
    assert!(ids(&scratch, &[]).is_empty());
    daemon.stop();
}

// contract 7.1: the end of a session that has ended is shown, and how to go on with it; as much of it as is wanted
#[test]
fn an_ended_session_is_shown() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (exit, _, err) = run(&scratch, &["run", "one\ntwo\nthree"]);
    assert_eq!(exit, Exit::Code(0), "{err}");
    let session = ids(&scratch, &[]).remove(0);
    for (flags, whole) in [(&[][..], true), (&["--all"], true), (&["--lines", "2"], false)] {
        let words = [&["attach"], flags, &[&session]].concat();
        let (shown, status) = end(PseudoTerminal::new().start(&scratch, &words));
        assert_eq!(status.code(), Some(0), "{shown}");
        assert!(shown.contains("✓ end_turn") && shown.contains("has ended (completed)"), "{shown}");
        assert!(shown.contains("`acpd chat --session "), "{shown}");
        assert_eq!(shown.contains("acpd run: one"), whole, "{flags:?} {shown}");
        assert_eq!(shown.contains("what was before"), !whole, "{flags:?} {shown}");
    }
    assert_eq!(json(&scratch, &["sessions", "show", &session])["ended"], true, "nothing was taken up");
    daemon.stop();
}

// contract 7.1: where nothing on the screen can be changed, lines come and go, and questions are answered by a letter
#[test]
fn a_dumb_terminal_has_lines() {
    let scratch = Scratch::new();
    both(&scratch, |place| {
        let mut chat = PseudoTerminal::new().dumb().start(&scratch, &[&["chat"], place].concat());
        chat.wait_for("> ");
        assert!(!chat.is_asking(), "the terminal edits the line");
        chat.press("hello there\n");
        chat.wait_for("\nhello there");
        chat.wait_for("✓ end_turn");
        chat.wait_for("> ");
        chat.press("ask edit Write it\n");
        chat.wait_for("n Reject once");
        chat.wait_for("> ");
        chat.press("n\n");
        chat.wait_for("selected reject-once");
        chat.wait_for("> ");
        chat.press("elicit Which?\n");
        chat.wait_for("Answer: ");
        chat.press("this\n");
        chat.wait_for("{\"answer\":\"this\"}");
        chat.wait_for("> ");
        chat.press(END_OF_INPUT);
        let (shown, status) = chat.end();
        assert_eq!(status.code(), Some(0), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
    });
}

// issue 28, C9: so does `acpd run`: it asks in lines, and an answer is a letter or a word with Enter behind it
#[test]
fn a_dumb_terminal_is_asked_by_run() {
    let scratch = Scratch::new();
    both(&scratch, |place| {
        for (typed, told) in [("n\n", "refused: Reject once"), ("yes\n", "allowed: Allow once")] {
            let mut run = PseudoTerminal::new()
                .dumb()
                .start(&scratch, &[&["run"], place, &["ask edit Write it"]].concat());
            run.wait_for("n Reject once");
            run.wait_for("then Enter");
            run.press("what\n");
            run.wait_for("then Enter");
            run.press(typed);
            run.wait_for(told);
            let (shown, _) = run.end();
            assert!(!shown.contains('\u{1b}'), "{shown:?}");
        }
    });
}

// contract 7.1: a narrow screen; no row of the line is wider than it
#[test]
fn a_narrow_terminal_is_enough() {
    let scratch = Scratch::new();
    scratch.config_file();
    let mut chat = PseudoTerminal::new().with_columns(40).start(&scratch, &["chat", "--embedded"]);
    chat.wait_for("› ");
    chat.press("words that are longer than one row of it");
    // The line goes on below, behind the same margin.
    chat.wait_for("\r\n  ");
    chat.press("\n");
    chat.wait_for("✓ end_turn");
    quit(chat);
}

// contract 7.1: Ctrl-Z gives the terminal to the shell; the line is there again
#[test]
fn a_chat_survives_a_stop() {
    let scratch = Scratch::new();
    scratch.config_file();
    let mut chat = chat(&scratch, &["--embedded"]);
    chat.press("half a ");
    chat.wait_for("half a ");
    chat.press("\u{1a}");
    chat.wait_until_stopped();
    chat.signal(Signal::CONT);
    chat.wait_for("half a ");
    say(&mut chat, "line");
    quit(chat);
}
