//! `acpd run` asks what an agent asks (contract 6): on a real terminal, and where there is none.

use acpd_e2e::{OnTerminal, PseudoTerminal, Scratch, shell_agent};
use rustix::process::Signal;
use serde_json::Value;

/// An agent that asks twice at once, and ends its turn when it has two answers, which it writes to `answers`.
fn asks_twice(scratch: Scratch, options: &str) -> Scratch {
    let answers = scratch.path("answers");
    let ask = |number: u32| {
        format!(
            "printf '{{\"jsonrpc\":\"2.0\",\"id\":\"q{number}\",\"method\":\"session/request_permission\",\"params\":\
             {{\"sessionId\":\"shell-1\",\"toolCall\":{{\"toolCallId\":\"c{number}\",\"title\":\"call {number}\",\
             \"kind\":\"execute\"}},\"options\":[{options}]}}}}\\n'"
        )
    };
    let body = format!(
        "take; prompt=$id\n{}\n{}\nfor answer in 1 2; do take; printf '%s\\n' \"$line\" >> '{}'; done\n\
         id=$prompt; answer '{{\"stopReason\":\"end_turn\"}}'\nwhile take; do :; done",
        ask(1),
        ask(2),
        answers.display()
    );
    scratch.shell("twice", &shell_agent(&body))
}

/// The outcomes that the agent was given, by the ids of its questions.
fn answers(scratch: &Scratch) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(scratch.path("answers")).expect("the agent got answers");
    let mut answers: Vec<(String, String)> = text
        .lines()
        .map(|line| {
            let answer: Value = serde_json::from_str(line).expect("JSON");
            let outcome = &answer["result"]["outcome"];
            let words = [&outcome["outcome"], &outcome["optionId"]].map(|word| word.as_str().unwrap_or("-"));
            (answer["id"].as_str().expect("its own id").to_owned(), words.join(" "))
        })
        .collect();
    answers.sort();
    answers
}

const YES_NO: &str =
    r#"{"optionId":"1","name":"Yes","kind":"allow_once"},{"optionId":"0","name":"No","kind":"reject_once"}"#;

fn asking(scratch: &Scratch, args: &[&str]) -> OnTerminal {
    let mut running = PseudoTerminal::new().run(scratch, args);
    running.wait_for("esc cancels");
    assert!(running.is_asking());
    running
}

// contract 6: permission questions on the terminal; contract 2.1, PE-1: the answer is the option that was chosen
#[test]
fn a_person_answers_with_keys() {
    let scratch = Scratch::new();
    for (keys, said, outcome) in [
        ("\r", "allowed: Allow once", "permission selected allow-once"),
        ("\u{1b}[B\r", "allowed: Allow always", "permission selected allow-always"),
        ("\u{1b}OA\u{1b}OA\r", "refused: Reject once", "permission selected reject-once"),
        ("N", "refused: Reject once", "permission selected reject-once"),
        ("d", "refused: Reject always", "permission selected reject-always"),
    ] {
        let mut running = PseudoTerminal::new().run(&scratch, &["ask edit Write it"]);
        running.wait_for("edit   Write it");
        running.wait_for("y Allow once");
        running.wait_for("esc cancels");
        assert!(running.is_asking());
        running.press(keys);
        running.wait_for(said);
        running.wait_for(outcome);
        running.wait_for("end_turn");
        let (shown, status) = running.end();
        assert_eq!(status.code(), Some(0), "{keys:?}: {shown}");
    }
}

// contract 6: what was typed before a question does not answer it
#[test]
fn keys_from_before_answer_nothing() {
    let scratch = Scratch::new();
    let terminal = PseudoTerminal::new();
    terminal.press("y\ny\r");
    let mut running = terminal.run(&scratch, &["ask edit Write it"]);
    running.wait_for("esc cancels");
    running.press("n");
    running.wait_for("permission selected reject-once");
    assert_eq!(running.end().1.code(), Some(0));
}

// contract 6, PR-4: Ctrl-C and escape at a question cancel the turn
#[test]
fn a_person_cancels_at_a_question() {
    let scratch = Scratch::new();
    for key in ["\u{3}", "\u{1b}"] {
        let running = asking(&scratch, &["ask edit Write it"]);
        running.press(key);
        let (shown, status) = running.end();
        assert_eq!(status.code(), Some(130), "{key:?}: {shown}");
        for words in
            ["not answered: the turn is cancelled", "cancelling; Ctrl-C stops at once", "! cancelled"]
        {
            assert!(shown.contains(words), "{key:?}: {words:?} is not in {shown}");
        }
    }
}

// contract 6: the terminal is as it was on every way out; SIGTERM cancels, as without a question
#[test]
fn a_signal_at_a_question_gives_the_terminal_back() {
    let scratch = Scratch::new();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let running = asking(&scratch, &["ask edit Write it"]);
        running.signal(signal);
        let (shown, status) = running.end();
        assert!(status.code() == Some(130) && shown.contains("! cancelled"), "{signal:?}: {shown}");
    }
}

// contract 6: Ctrl-Z gives the terminal back to the shell; the question is there again when the shell goes on with it,
// and also when somebody else stopped it, and left the terminal in another mode
#[test]
fn a_question_survives_a_stop() {
    let scratch = Scratch::new();
    let mut running = asking(&scratch, &["ask edit Write it"]);
    running.press("\u{1a}");
    running.wait_until_stopped();
    for again in [true, false] {
        running.signal(Signal::CONT);
        running.wait_for("esc cancels");
        assert!(running.is_asking());
        if again {
            running.signal(Signal::STOP);
            running.give_back();
            running.wait_until_stopped();
        }
    }
    running.press("n");
    running.wait_for("permission selected reject-once");
    assert_eq!(running.end().1.code(), Some(0));
}

// contract 6, SU-1: a window that is closed at a question ends the run, and nothing spins or stays
#[test]
fn a_closed_window_at_a_question_is_the_end() {
    let scratch = Scratch::new();
    let running = asking(&scratch, &["ask edit Write it"]);
    assert_eq!(running.close_window().code(), Some(1));
}

// contract 6: an agent that dies at a question takes it with it, and is told as ever
#[test]
fn an_agent_dies_at_a_question() {
    let scratch = asks_twice(Scratch::new(), YES_NO);
    let mut running = asking(&scratch, &["--agent", "twice", "hello"]);
    // The agent is in the line of its script, not in acpd's.
    for agent in scratch.mark().running("session/request_permission") {
        let pid = i32::try_from(agent.pid).ok().and_then(rustix::process::Pid::from_raw).expect("an id");
        rustix::process::kill_process(pid, Signal::KILL).expect("it lives");
    }
    running.wait_for("the turn failed");
    let (shown, status) = running.end();
    assert!(status.code() == Some(1) && shown.contains("killed by SIGKILL"), "{shown}");
}

// contract 6: several questions are asked one after the other
#[test]
fn questions_wait_for_each_other() {
    let scratch = asks_twice(Scratch::new(), YES_NO);
    let mut running = asking(&scratch, &["--agent", "twice", "hello"]);
    running.press("y");
    running.wait_for("allowed: Yes");
    running.wait_for("call 2");
    running.wait_for("esc cancels");
    running.press("n");
    let (shown, status) = running.end();
    assert_eq!(status.code(), Some(0), "{shown}");
    assert!(shown.find("call 1") < shown.find("call 2"), "{shown}");
    let expected = [("q1", "selected 1"), ("q2", "selected 0")];
    assert_eq!(answers(&scratch), expected.map(|(id, answer)| (id.to_owned(), answer.to_owned())));
}

// contract 6, PE-4: a question that is over goes away and says so
#[test]
fn a_question_that_is_over_goes_away() {
    let scratch = Scratch::new().timeout("permission", "300ms");
    let mut running = asking(&scratch, &["ask edit Write it"]);
    running.wait_for("taken back");
    running.wait_for("permission selected reject-once");
    assert_eq!(running.end().1.code(), Some(0));
}

// contract 2.1, PE-4: where nobody can be asked the agent's own refusal is the answer; it is said once, and what allows
#[test]
fn without_a_terminal_questions_are_refused() {
    let scratch = asks_twice(Scratch::new(), r#"{"optionId":"1","name":"Yes","kind":"allow_once"}"#);
    let (state, config) = (scratch.state(), scratch.config_file());
    let places = ["--state-dir", state.to_str().unwrap(), "--config", config.to_str().unwrap()];
    let run = |args: &[&str]| scratch.run(&[&["run"], &places[..], args].concat());

    let (exit, out, err) = run(&["ask edit Write it\nask execute Do it"]);
    assert_eq!(exit, acpd_e2e::Exit::Code(0), "{err}");
    assert_eq!(out.matches("permission selected reject-once\n").count(), 2, "{out}");
    for words in [
        "refused: edit Write it (Reject once)\n  nobody could be asked: stdin is not a terminal; \
         `--permission-mode acceptEdits` would allow it\n",
        "refused: run Do it (Reject once)\n  nobody could be asked: stdin is not a terminal; \
         `--permission-mode bypassPermissions` would allow it\n",
    ] {
        assert_eq!(err.matches(words).count(), 1, "{words:?} is not once in {err}");
    }

    // With a mode that allows, nobody needs to be asked.
    let (_, out, err) = run(&["--permission-mode", "acceptEdits", "ask edit Write it"]);
    assert!(out == "permission selected allow-once\n" && !err.contains("refused"), "{out}{err}");

    // For programs: stdout has lines of JSON only.
    let (exit, out, err) = run(&["--json", "ask edit Write it"]);
    assert_eq!(exit, acpd_e2e::Exit::Code(0));
    assert!(acpd_e2e::run_lines(&out).iter().any(|line| line["type"] == "permission"), "{out}");
    let said = "refused: edit Write it (Reject once): nobody could be asked: --format quiet and json do not ask; \
                `--permission-mode acceptEdits` would allow it\n";
    assert_eq!(err, said);

    // What the agent has taken back was not refused, whenever its answer was sent.
    for words in [&["withdraw edit"][..], &["--json", "withdraw edit"]] {
        let (exit, out, err) = run(words);
        assert!(exit == acpd_e2e::Exit::Code(0) && out.contains("permission cancelled"), "{out}{err}");
        let said = "taken back: the agent does not wait for an answer any more\n";
        assert!(err.matches(said).count() == 1 && !err.contains("refused"), "{err}");
    }

    // An agent that offers no way to refuse.
    let (exit, _, err) = run(&["--agent", "twice", "hello"]);
    assert_eq!(exit, acpd_e2e::Exit::Code(0), "{err}");
    assert!(err.contains("not allowed: run call 2 (the agent offers no way to refuse)"), "{err}");
    assert_eq!(answers(&scratch), ["q1", "q2"].map(|id| (id.to_owned(), "cancelled -".to_owned())));
}

// contract 6: with --json, also a terminal is not asked
#[test]
fn json_on_a_terminal_asks_nobody() {
    let scratch = Scratch::new();
    let mut running = PseudoTerminal::new().run(&scratch, &["--json", "ask edit Write it"]);
    running.wait_for("refused: edit Write it");
    let (shown, status) = running.end();
    assert!(status.code() == Some(0) && !shown.contains("esc cancels"), "{shown}");
}

// contract 6: what acpd run does not have is refused, and the turn goes on
#[test]
fn a_form_is_declined() {
    let scratch = Scratch::new();
    let mut running = PseudoTerminal::new().run(&scratch, &["elicit What?"]);
    running.wait_for("elicitation decline");
    assert_eq!(running.end().1.code(), Some(0));
}
