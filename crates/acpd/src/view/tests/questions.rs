//! Permission questions: on a terminal, and without a person to ask.

use super::*;
use crate::keyboard::Key;

const HINT: &str = "  up, down, enter, a letter; esc cancels";
const MENU: &str = "  ❯ y Yes\n    a Always\n    n No";

fn options() -> Value {
    json!([{"optionId": "1", "name": "Yes", "kind": "allow_once"},
        {"optionId": "2", "name": "Always", "kind": "allow_always"},
        {"optionId": "3", "name": "No", "kind": "reject_once"}])
}

fn question(call: &Value) -> Question {
    let params = json!({"sessionId": "s", "toolCall": call, "options": options()});
    Question::read(params.to_string().as_bytes()).expect("it offers something")
}

/// What a terminal of so many rows shows of a question, without the menu.
fn asked(call: &Value, rows: usize) -> String {
    let (terminal, mut view) = on_terminal();
    view.ask(question(call), rows).unwrap();
    let text = terminal.text();
    let menu = format!("\n{MENU}\n{HINT}");
    text.strip_suffix(menu.as_str()).unwrap_or_else(|| panic!("{text}")).to_owned()
}

// contract 6: run asks what the agent asks, with what a person decides by; what the title says is not said again
#[test]
fn a_question_says_what_it_is_about() {
    let edit = json!({"type": "diff", "path": "/src/a.txt", "oldText": "1\n2\n", "newText": "1\nb\n"});
    let plan = json!({"type": "content", "content": {"type": "text", "text": "1. look\n2. write"}});
    for (call, expected) in [
        (
            json!({"toolCallId": "a", "title": "Write a", "kind": "edit", "content": [edit],
                "locations": [{"path": "/src/a.txt", "line": 7}], "rawInput": {"old_string": "2", "x": "b"}}),
            "? edit   Write a  a.txt:7\n    a.txt +1 -1\n    - 2\n    + b",
        ),
        (
            json!({"toolCallId": "a", "title": "`ls  -l`", "kind": "execute",
                "rawInput": {"command": "ls  -l", "description": "List files", "timeout": 5, "cwd": "/src"}}),
            "? run    `ls -l`\n    description: List files\n    timeout: 5",
        ),
        (
            json!({"toolCallId": "a", "title": "Terminal", "kind": "execute",
                "rawInput": {"command": ["bash", "-lc", "a  'b'\n\tc"]}}),
            "? run    Terminal\n    $ bash -lc 'a  '\\''b'\\''\n       c'",
        ),
        (
            json!({"toolCallId": "a", "title": "Fetch", "kind": "fetch",
                "rawInput": {"url": "http://x", "headers": {"a": [1]}, "none": null}}),
            "? fetch  Fetch\n    url: http://x\n    headers: {\"a\":[1]}",
        ),
        (
            json!({"toolCallId": "a", "title": "Ready?", "kind": "switch_mode", "content": [plan]}),
            "? mode   Ready?\n    1. look\n    2. write",
        ),
        // Vibe sends nothing but the id.
        (json!({"toolCallId": "a"}), "? tool   a"),
        (json!({}), "? tool   a tool call"),
        (json!(7), "? tool   a tool call"),
    ] {
        assert_eq!(asked(&call, 24), expected, "{call}");
    }
}

// contract 6: what was announced before is known when it is asked for
#[test]
fn a_question_knows_the_call() {
    let (terminal, mut view) = on_terminal();
    let input = json!({"title": "Terminal", "kind": "execute", "rawInput": {"cmd": "make"}});
    view.update_value(&call("a", input)).unwrap();
    view.ask(question(&json!({"toolCallId": "a"})), 24).unwrap();
    assert_eq!(terminal.text(), format!("? run    Terminal\n    $ make\n{MENU}\n{HINT}"));
}

// contract 6: the menu moves in place, the answer stays, and the turn's last lines tell it
#[test]
fn a_question_is_answered() {
    let (terminal, mut view) = on_terminal();
    view.started(None, Duration::ZERO).unwrap();
    view.update_value(&text("I would.")).unwrap();
    let edit = json!({"toolCallId": "a", "title": "Write", "kind": "edit"});
    view.ask(question(&edit), 24).unwrap();
    view.tick(Duration::from_secs(9)).unwrap();
    let head = "the agent started in 0 ms\n\nI would.\n\n? edit   Write\n";
    assert_eq!(terminal.text(), format!("{head}{MENU}\n{HINT}"));
    assert_eq!(view.press(Key::Down).unwrap(), None);
    assert_eq!(terminal.text(), format!("{head}    y Yes\n  ❯ a Always\n    n No\n{HINT}"));
    assert_eq!(view.press(Key::Letter('x')).unwrap(), None);
    let choice = view.press(Key::Enter).unwrap().expect("that is an answer");
    assert_eq!(choice.id, "2");
    let answered = format!("{head}  ✓ allowed: Always");
    assert_eq!(terminal.text(), format!("{answered}\n\n⠋ working... 9 s"));
    assert_eq!(view.press(Key::Enter).unwrap(), None, "nothing is asked any more");
    for title in ["rm", "rm"] {
        view.ask(question(&json!({"toolCallId": "b", "title": title, "kind": "execute"})), 24).unwrap();
        assert_eq!(view.press(Key::Letter('n')).unwrap().expect("an answer").id, "3");
    }
    view.turn_ended("end_turn", Duration::from_secs(9)).unwrap();
    assert_eq!(
        terminal.text(),
        format!(
            "{answered}\n? run    rm\n  ✗ refused: No\n? run    rm\n  ✗ refused: No\n\n  \
             allowed  edit Write (Always)\n  refused  run rm (No) x2\n✓ end_turn · 9.0 s"
        )
    );
}

// contract 6: the screen holds still while a question is there; nothing that comes meanwhile is lost
#[test]
fn updates_wait_for_the_answer() {
    let (terminal, mut view) = on_terminal();
    let updates = [text("mean"), text("while"), call("a", json!({"title": "A", "status": "completed"}))];
    let ask = question(&json!({"toolCallId": "q", "title": "Q"}));
    view.ask(ask.clone(), 24).unwrap();
    let asked = terminal.text();
    for update in &updates {
        view.update(&update.to_string()).unwrap();
        assert_eq!(terminal.text(), asked);
    }
    view.press(Key::Letter('y')).unwrap();
    assert_eq!(terminal.text(), "? tool   Q\n  ✓ allowed: Yes\n\nmeanwhile\n\n✓ tool   A");
    // Too much to hold: it is shown, and the menu goes under it.
    view.ask(ask, 24).unwrap();
    view.update(&text(&"x".repeat(300_000)).to_string()).unwrap();
    assert!(terminal.text().ends_with(&format!("xxx\n\n{MENU}\n{HINT}")));
    view.press(Key::Letter('y')).unwrap();
    assert!(terminal.text().ends_with("xxx\n\n  ✓ allowed: Yes"));
}

// contract 6: a question that needs no answer any more goes away and says why
#[test]
fn a_question_is_taken_back() {
    let (terminal, mut view) = on_terminal();
    view.ask(question(&json!({"toolCallId": "q", "title": "Q"})), 24).unwrap();
    view.take_back("the agent\u{1b}[2J does not wait").unwrap();
    assert_eq!(terminal.text(), "? tool   Q\n  ○ the agent␛[2J does not wait");
    view.take_back("twice").unwrap();
    view.ask(question(&json!({"toolCallId": "q", "title": "Q"})), 24).unwrap();
    view.turn_ended("end_turn", Duration::ZERO).unwrap();
    assert!(
        terminal.text().ends_with("? tool   Q\n  ○ the turn is over\n\n✓ end_turn · 0 ms"),
        "{}",
        terminal.text()
    );
}

// contract 6: after a stop by the shell the menu is drawn anew, and nothing of the shell's is taken away
#[test]
fn the_menu_comes_back() {
    let (terminal, mut view) = on_terminal();
    view.ask(question(&json!({"toolCallId": "q", "title": "Q"})), 24).unwrap();
    view.leave_screen().unwrap();
    assert_eq!(terminal.text(), "? tool   Q");
    terminal.clone().write_all(b"[1]+ Stopped\n").unwrap();
    view.back_on_screen().unwrap();
    assert_eq!(terminal.text(), format!("? tool   Q\n[1]+ Stopped\n{MENU}\n{HINT}"));
}

// contract 6: a huge change fits a small screen; what a question did not show is shown when it is done
#[test]
fn a_question_fits_the_screen() {
    let numbers = |name: &str| (0..1_000).map(|n| format!("{name} {n}\n")).collect::<String>();
    let diff = |new: &str| json!([{"type": "diff", "path": "/src/a", "oldText": null, "newText": new}]);
    for (rows, lines) in [(24, 15), (12, 4), (8, 4)] {
        let shown = asked(
            &json!({"toolCallId": "a", "title": "E", "kind": "edit", "content": diff(&numbers("n"))}),
            rows,
        );
        assert_eq!(shown.lines().count(), lines + 3, "{shown}");
        let last = format!("    + n {}\n    ... {} more", lines - 1, 1_000 - lines);
        assert!(shown.ends_with(&last), "{shown}");
    }
    for (new, again) in [("1\n2\n", ""), (numbers("n").as_str(), "\n    + n 0")] {
        let (terminal, mut view) = on_terminal();
        let asked = json!({"toolCallId": "a", "title": "E", "kind": "edit", "content": diff(new)});
        view.ask(question(&asked), 24).unwrap();
        view.press(Key::Letter('y')).unwrap();
        let count = new.lines().count();
        view.update_value(&call("a", with(asked, json!({"status": "completed"})))).unwrap();
        let done = terminal.text();
        let (_, done) = done.split_once("✓ allowed: Yes\n\n").expect("it is answered");
        assert!(done.starts_with(&format!("✓ edit   E\n    a +{count} -0{again}")), "{done}");
        assert_eq!(done.lines().count() > 2, !again.is_empty(), "{done}");
    }
}

// contract 6: a command is there in full, however long; what is left out is said
#[test]
fn a_command_is_shown_in_full() {
    let command = |long: usize| {
        let command = format!("true; {}\nrm -rf x", "y".repeat(long));
        asked(&json!({"toolCallId": "a", "title": "Terminal", "rawInput": {"command": command}}), 10)
    };
    assert!(command(3_000).ends_with("yyy\n      rm -rf x"), "{}", command(3_000));
    let cut = command(4_100);
    assert!(cut.ends_with("yyy\n      ... 115 more characters are not shown"), "{cut}");
}

// PE-4: without a person to ask, what was refused is said once, and what would allow it
#[test]
fn a_refusal_without_a_person_is_told() {
    let edit = question(&json!({"toolCallId": "a", "title": "Write", "kind": "edit"}));
    let mut view = piped();
    view.not_asked(&edit, edit.rejection(), "stdin is not a terminal").unwrap();
    view.turn_ended("end_turn", Duration::ZERO).unwrap();
    let (said, why) = ("refused: edit Write (No)", "nobody could be asked: stdin is not a terminal");
    let hint = "`--permission-mode acceptEdits` would allow it";
    assert_eq!(
        texts(view),
        (
            String::new(),
            format!("✗ {said}\n  {why}; {hint}\n  refused  edit Write (No)\n✓ end_turn · 0 ms\n")
        )
    );
    assert_eq!(
        not_asked(&edit, None, "no\u{7}"),
        format!(
            "not allowed: edit Write (the agent offers no way to refuse): nobody could be asked: no\u{7}; {hint}"
        )
    );
}

// PE-4: without a person it is said which things were to be chosen from, and no mode that would do it
// quirk question-as-permission
#[test]
fn a_choice_without_a_person_is_told() {
    let days =
        ["Monday", "Tuesday\u{7}"].map(|day| json!({"optionId": day, "name": day, "kind": "allow_once"}));
    let params = json!({"toolCall": {"toolCallId": "a", "title": "Which day?"}, "options": days});
    let question = Question::read(params.to_string().as_bytes()).expect("it offers something");
    assert_eq!(
        not_asked(&question, question.rejection(), "stdin is not a terminal"),
        "not answered: tool Which day? (which of: Monday, Tuesday\u{2407}): nobody could be asked: stdin is not a terminal"
    );
}

// contract 6: no escape sequence of an agent reaches the terminal, also where it asks
#[test]
fn a_hostile_question_is_harmless() {
    const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\r\u{8}\u{202e}\n\tx";
    let call = json!({"toolCallId": HOSTILE, "title": HOSTILE, "kind": HOSTILE,
        "locations": [{"path": HOSTILE}], "rawInput": {"command": HOSTILE, HOSTILE: HOSTILE, "x": [HOSTILE]},
        "content": [{"type": "content", "content": {"type": "text", "text": format!("{HOSTILE} not the title")}}]});
    let option = json!({"optionId": HOSTILE, "name": HOSTILE, "kind": "allow_once"});
    let params = json!({"toolCall": call, "options": [option]});
    let question = Question::read(params.to_string().as_bytes()).expect("an option");
    for content in [None, Some(json!([{"type": "diff", "path": HOSTILE, "newText": HOSTILE}]))] {
        let mut question = question.clone();
        if let Some(content) = content {
            question.call["content"] = content;
        }
        let (terminal, mut view) = on_terminal();
        view.not_asked(&question, question.rejection(), "nobody").unwrap();
        view.ask(question, 24).unwrap();
        assert_eq!(view.press(Key::Enter).unwrap().expect("an answer").id, HOSTILE, "PE-1");
        view.turn_ended("end_turn", Duration::ZERO).unwrap();
        let raw = terminal.raw.borrow();
        let own = ["\r\u{1b}[1A", "\u{1b}[?7l", "\u{1b}[?7h", "\u{1b}[J"];
        let rest = own.iter().fold(raw.clone(), |rest, own| rest.replace(own, ""));
        let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!rest.contains(harmful), "{rest:?}");
    }
}
