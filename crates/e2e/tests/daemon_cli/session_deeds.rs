//! What `acpd sessions` does with sessions (contract 7.1): prompt, cancel, answer, several at once.

use crate::cli::{done, fails, front_end, ids, json, leave, run, start};
use acpd_e2e::{Exit, Scratch};
use serde_json::json;

// contract 7.1: prompt ID TEXT, and --no-wait; cancel ID; 1 and the way on for a session that has ended
#[test]
fn a_live_session_is_prompted_and_cancelled() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (client, id) = front_end(&scratch);
    assert_eq!(
        done(&scratch, &["sessions", "prompt", &id[id.len() - 8..], "hello", "there"]),
        "hello there\n"
    );
    let lines = done(&scratch, &["sessions", "prompt", &id, "--json", "hello"]);
    assert!(lines.contains("\"stopReason\":\"end_turn\""), "{lines}");
    assert_eq!(
        done(&scratch, &["sessions", "prompt", &id, "--no-wait", "begun\nhang"]),
        "turn 3 has begun\n"
    );
    let waits = json(&scratch, &["sessions", "prompt", &id, "--no-wait", "one more"]);
    assert_eq!(waits, json!({"waiting": 1}));
    assert_eq!(done(&scratch, &["sessions", "cancel", &id]), format!("{id} cancelled\n"));
    let mut events = start(&scratch, &["sessions", "events", &id, "--follow", "--json"]);
    let mut ends = 0;
    while let Some(line) = events.next_line() {
        ends += usize::from(line.contains("\"kind\":\"turn_ended\""));
        if ends == 4 {
            break;
        }
    }
    leave(client);
    done(&scratch, &["sessions", "close", &id]);
    assert_eq!(events.end().0, Exit::Code(0));
    let told = fails(&scratch, 1, &["sessions", "prompt", &id, "hello"]);
    let short = &id[id.len() - 8..];
    assert!(told.contains(&format!("has ended; `acpd run --session {short}` goes on with it")), "{told}");
    let told = fails(&scratch, 2, &["sessions", "prompt", &id, "--no-wait", " "]);
    assert!(told.contains("the prompt is empty") && told.contains("acpd sessions prompt"), "{told}");
    daemon.stop();
}

// contract 7.1: answer ID shows what is asked, and answers by an option, a field or --decline; 2 for what is not offered
#[test]
fn what_is_asked_is_answered() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut client, id) = front_end(&scratch);
    let (exit, out, err) = run(&scratch, &["sessions", "answer", &id]);
    assert_eq!((exit, out.as_str(), err.as_str()), (Exit::Code(0), "", "nothing is asked\n"));
    assert!(
        fails(&scratch, 1, &["sessions", "answer", &id, "allow-once"]).contains("the session asks nothing")
    );

    let prompt = client.prompt(&id, "ask edit Write it");
    client.until("the question", |message| message.method() == Some("session/request_permission"));
    let (_, out, err) = run(&scratch, &["sessions", "answer", &id]);
    assert!(out.starts_with("question ") && out.contains("Write it") && out.contains("allow-once"), "{out}");
    assert!(err.contains("` answers it"), "{err}");
    let asked = json(&scratch, &["sessions", "answer", &id]);
    let number = asked["questions"][0]["question"].as_u64().expect("a number").to_string();
    let told = fails(&scratch, 2, &["sessions", "answer", &id, "allow-onze"]);
    assert!(told.contains("has no option allow-onze") && told.contains("did you mean allow-once?"), "{told}");
    let told = fails(&scratch, 1, &["sessions", "answer", &id, "--question", "1", "allow-once"]);
    assert!(
        told.contains(&format!("question 1 is not open: it was answered, or never asked; open: {number}")),
        "{told}"
    );
    fails(&scratch, 2, &["sessions", "answer", &id, "allow-once", "--decline"]);
    let answered = done(&scratch, &["sessions", "answer", &id, "--question", &number, "allow-once"]);
    assert_eq!(answered, format!("question {number} is answered\n"));
    client.answer(&prompt);

    let prompt = client.prompt(&id, "ask edit Write it");
    client.until("the question", |message| message.method() == Some("session/request_permission"));
    done(&scratch, &["sessions", "answer", &id, "--decline"]);
    let events = done(&scratch, &["sessions", "events", &id, "--json"]);
    assert!(events.contains("reject-once"), "{events}");
    client.answer(&prompt);
    leave(client);
    daemon.stop();
}

// contract 7.3: a form that a turn started over REST asks for waits until it is filled in, or declined
#[test]
fn a_form_is_filled_in_from_the_command_line() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let prompt = ["run", "--detach", "--keep-open", "elicit Which one?\nelicit And now?"];
    let id = done(&scratch, &prompt).trim_end().to_owned();
    let mut events = start(&scratch, &["sessions", "events", &id, "--follow", "--json"]);
    let mut until = |kind: &str| {
        let kind = format!("\"kind\":\"{kind}\"");
        std::iter::from_fn(|| events.next_line()).find(|line| line.contains(&kind)).expect("it comes")
    };
    until("elicitation_requested");
    let (_, out, err) = run(&scratch, &["sessions", "answer", &id]);
    assert!(out.contains("Which one?") && out.contains("    answer"), "{out}");
    assert!(err.contains("--field answer="), "{err}");
    let told = fails(&scratch, 2, &["sessions", "answer", &id, "--field", "reply=left"]);
    assert!(told.contains("reply") && told.contains("answer"), "{told}");
    done(&scratch, &["sessions", "answer", &id, "--field", "answer=left"]);
    assert!(until("elicitation_resolved").contains(r#"{"action":"accept","content":{"answer":"left"}}"#));
    until("elicitation_requested");
    done(&scratch, &["sessions", "answer", &id, "--decline"]);
    assert!(until("elicitation_resolved").contains(r#"{"action":"decline"}"#));
    until("turn_ended");
    let told = done(&scratch, &["sessions", "cancel", &id]);
    assert_eq!(told, format!("{id} was told to cancel; no turn was running\n"));
    done(&scratch, &["sessions", "close", &id]);
    drop(events);
    daemon.stop();
}

// contract 7.1: with several ids all are tried, the first failure's code counts; each is told
#[test]
fn several_sessions_are_ended_at_once() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (client, one) = front_end(&scratch);
    let (other, two) = front_end(&scratch);
    let (exit, out, err) = run(&scratch, &["sessions", "close", &one, "zzz", &two]);
    assert_eq!((exit, out), (Exit::Code(4), format!("{one} closed\n{two} closed\n")), "{err}");
    assert_eq!(err.matches("error: no session has the id \"zzz\"").count(), 1, "{err}");
    let out = done(&scratch, &["sessions", "close", &one, &two, "--json"]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines.iter().all(|line| line.contains("\"alreadyEnded\":true")), "{out}");
    assert_eq!(json(&scratch, &["sessions", "show", &two])["terminationInfo"]["cause"], "client_close");
    leave(client);
    leave(other);
    daemon.stop();
}

// contract 7.1: fork ID prints the new session's id: one of its own, with the history, which can be prompted
#[test]
fn a_session_is_forked() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut client, id) = front_end(&scratch);
    assert_eq!(client.turn(&id, "common words"), "end_turn");
    let short = &id[id.len() - 8..];
    let out = done(&scratch, &["sessions", "fork", short]);
    let fork = out.strip_suffix('\n').expect("a line");
    let shown = json(&scratch, &["sessions", "show", fork]);
    assert_eq!((&shown["metadata"]["forkedFrom"], &shown["state"]), (&json!(id), &json!("idle")), "{shown}");
    let history = done(&scratch, &["sessions", "export", fork, "--format", "markdown"]);
    assert!(history.contains("common words"), "{history}");
    assert_eq!(done(&scratch, &["sessions", "prompt", fork, "on"]), "on\n");
    let other = scratch.path("other");
    std::fs::create_dir(&other).expect("a directory");
    let dir = other.to_str().expect("text");
    let told = json(&scratch, &["sessions", "fork", &id, "--cwd", dir, "--permission-mode", "deny"]);
    assert_eq!((&told["cwd"], &told["metadata"]["permissionMode"]), (&json!(dir), &json!("deny")), "{told}");
    assert_eq!(ids(&scratch, &["--live"]).len(), 3);
    leave(client);
    // One that has ended is forked as well.
    done(&scratch, &["sessions", "close", &id]);
    assert_eq!(done(&scratch, &["sessions", "fork", &id]).lines().count(), 1);
    daemon.stop();
}

// contract 7.1: wrong use of fork says what to do, and makes nothing: 1 where the agent cannot, 2, 4 without a session or daemon
#[test]
fn what_cannot_be_forked_is_told() {
    let scratch = Scratch::new().example("lesser", &["--without", "fork"]);
    scratch.config_file();
    let err = fails(&scratch, 4, &["sessions", "fork", "5f0c9e"]);
    assert!(err.contains("no daemon serves") && err.contains("`acpd serve` starts one"), "{err}");
    let mut daemon = scratch.serve();
    let out = done(&scratch, &["run", "--agent", "lesser", "--detach", "--keep-open", "hello"]);
    let id = out.trim_end();
    for (code, words, told) in [
        (1, &["sessions", "fork", id][..], "the agent lesser cannot fork a session; `acpd run --session "),
        (4, &["sessions", "fork", "nothing-such"], "no session has the id"),
        (2, &["sessions", "fork", id, "--cwd", "/no/such/dir"], "--cwd /no/such/dir: "),
    ] {
        let err = fails(&scratch, code, words);
        assert!(err.contains(told) && err.lines().count() == 1, "{words:?}: {err}");
    }
    assert!(matches!(run(&scratch, &["sessions", "fork", id, id]), (Exit::Code(2), _, _)));
    assert_eq!(ids(&scratch, &[]), [id]);
    daemon.stop();
}
