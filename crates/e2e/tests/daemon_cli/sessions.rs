//! `acpd sessions list|show|close|terminate|delete`.

use crate::cli::{done, fails, front_end, ids, json, leave, run, start, state, stdio};
use acpd_e2e::{Exit, Scratch};
use serde_json::{Value, json};

// contract 6, contract 1.3: list with its filters, pages and limit; show; for people and as JSON
#[test]
fn sessions_are_listed_and_shown() {
    let scratch = Scratch::new().example("other", &[]);
    let mut daemon = scratch.serve();
    assert_eq!(run(&scratch, &["sessions", "list"]), (Exit::Code(0), String::new(), "no sessions\n".into()));
    let (mut client, live) = front_end(&scratch);
    client.turn(&live, "title Fix \u{1b}[2Jthe tests");
    done(&scratch, &["run", "--agent", "other", "hello"]);
    done(&scratch, &["run", "hello"]);

    let all = ids(&scratch, &[]);
    assert_eq!(all.len(), 3);
    assert_eq!(ids(&scratch, &["--live"]), [live.as_str()]);
    assert_eq!(ids(&scratch, &["--ended"]).len(), 2);
    assert_eq!(ids(&scratch, &["--agent", "other"]).len(), 1);
    assert_eq!(ids(&scratch, &["--limit", "2"]), all[..2]);
    assert_eq!(ids(&scratch, &["--cwd", "."]).len(), 3);
    assert!(ids(&scratch, &["--cwd", "/"]).is_empty());

    let (_, table, err) = run(&scratch, &["sessions", "list", "--limit", "2"]);
    assert!(table.lines().count() == 3 && err.contains("there are more"), "{table}{err}");
    let table = done(&scratch, &["sessions", "list"]);
    let words: Vec<&str> = table.lines().next().expect("a head").split_whitespace().collect();
    assert_eq!(words, ["ID", "STATE", "AGE", "AGENT", "TITLE", "CWD"]);
    let line =
        table.lines().find(|line| live.ends_with(line.split(' ').next().unwrap())).expect("it is there");
    assert!(
        line.contains("idle") && line.contains("example") && line.contains("Fix \u{fffd}[2Jthe tests"),
        "{line}"
    );
    assert!(table.contains("ended: completed") && !table.contains('\u{1b}'), "{table}");

    let shown = json(&scratch, &["sessions", "show", &live]);
    assert_eq!((&shown["sessionId"], &shown["ended"]), (&live.as_str().into(), &false.into()));
    let shown = done(&scratch, &["sessions", "show", &live]);
    assert!(shown.contains(&live) && shown.contains("Fix \u{fffd}[2Jthe tests"), "{shown}");
    leave(client);
    daemon.stop();
}

// contract 7.1: ids may be shortened to what is unique of their end or beginning, and lists show the shortest unique end
// of at least 6 characters; else the candidates are listed
#[test]
fn an_end_or_a_beginning_of_an_id_is_enough() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    for _ in 0..2 {
        done(&scratch, &["run", "hello"]);
    }
    let all = ids(&scratch, &[]);
    let shared = all[0].chars().zip(all[1].chars()).take_while(|(one, other)| one == other).count();
    let table = done(&scratch, &["sessions", "list"]);
    let listed: Vec<&str> = table.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(listed.len(), 2);
    for (id, short) in all.iter().zip(listed) {
        // Two of random ends are rarely the same for longer than that.
        assert!(id.ends_with(short) && (6..=8).contains(&short.len()), "{short} of {id}");
        for part in [short, &short.to_uppercase(), &id[..=shared], &id[..=shared].to_uppercase()] {
            assert_eq!(json(&scratch, &["sessions", "show", part])["sessionId"], id.as_str(), "{part}");
        }
    }
    let err = fails(&scratch, 2, &["sessions", "show", &all[0][..shared]]);
    assert!(err.contains("2 sessions end or begin with") && all.iter().all(|id| err.contains(id)), "{err}");
    for command in ["show", "events", "close", "terminate", "delete"] {
        let err = fails(&scratch, 4, &["sessions", command, "nobody"]);
        assert!(err.contains("no session has the id \"nobody\""), "{err}");
    }
    // What means something in a URL means nothing in an id.
    fails(&scratch, 4, &["sessions", "delete", "../sessions/x?y#z"]);
    fails(&scratch, 2, &["sessions", "delete", ""]);
    assert_eq!(ids(&scratch, &[]), all);
    daemon.stop();
}

// contract 6, contract 1: the three ways to end a session, and what is said of one that has ended
#[test]
fn sessions_are_ended() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    for (command, state_after, reason) in [
        ("close", Some("ended"), "completed"),
        ("terminate", Some("ended"), "terminated"),
        ("delete", None, ""),
    ] {
        let (mut client, session) = front_end(&scratch);
        client.prompt(&session, "ignore-sigterm\nhello\nhang");
        client.until_text("hello");
        assert_eq!(state(&scratch, &session), "running");
        let out = done(&scratch, &["sessions", command, &session]);
        assert!(out.starts_with(&session), "{out}");
        match state_after {
            Some(after) => {
                let shown = json(&scratch, &["sessions", "show", &session]);
                assert_eq!(
                    (&shown["state"], &shown["terminationInfo"]["reason"]),
                    (&after.into(), &reason.into())
                );
                // contract 1.2: who asked for it
                assert_eq!(shown["terminationInfo"]["initiator"], "command line", "{shown}");
                let again = json(&scratch, &["sessions", command, &session]);
                assert_eq!(again["alreadyEnded"], true, "{again}");
            }
            None => drop(fails(&scratch, 4, &["sessions", "show", &session])),
        }
        leave(client);
    }
    daemon.stop();
}

// contract 1.2, contract 6: show tells the whole record of an end; no control character of an agent gets out
#[test]
fn the_record_of_an_end_is_shown() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    run(&scratch, &["run", "crash"]);
    let session = ids(&scratch, &[]).remove(0);
    let shown = done(&scratch, &["sessions", "show", &session]);
    for words in
        ["error by agent", "agent crash", "exit code   1", "250 lines", "150 lines left out", "next: "]
    {
        assert!(shown.contains(words), "{words:?} is not in {shown}");
    }
    for number in [1, 50, 201, 250] {
        assert!(shown.contains(&format!("  │ crash line {number}\n")), "{number} is not in {shown}");
    }
    daemon.stop();
}

// contract 6: without a daemon it is said how to start one, also when a killed one left its socket; 2 for usage
#[test]
fn without_a_daemon_there_is_help() {
    let scratch = Scratch::new();
    scratch.config_file();
    for words in [&["sessions", "cancel", "x"][..], &["sessions", "prompt", "x", "hello"], &["top", "--once"]]
    {
        let err = fails(&scratch, 4, words);
        assert!(err.contains("acpd serve") && err.contains("--connect"), "{words:?}: {err}");
    }
    let mut daemon = scratch.serve();
    let url = daemon.url();
    daemon.kill();
    let err = fails(&scratch, 4, &["sessions", "cancel", "x"]);
    assert!(err.contains("acpd serve"), "{err}");
    let err = fails(&scratch, 4, &["sessions", "list", "--connect", &url]);
    assert!(err.contains(&format!("no daemon answers at {url}")), "{err}");
    for url in ["localhost:2273", "ftp://x", "http://me:secret@x", "unix:"] {
        let err = fails(&scratch, 2, &["sessions", "list", "--connect", url]);
        assert!(err.contains("--connect") && !err.contains("secret"), "{err}");
    }
    // A socket that a daemon left is no reason not to host here.
    assert_eq!(done(&scratch, &["run", "hello"]), "hello\n");
    let mut client = stdio(&scratch, &[]);
    client.initialize();
    client.finish();
}

// contract 6: a reader that closes the pipe has read enough
#[test]
fn a_closed_pipe_is_no_failure() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    done(&scratch, &["run", "stream 2000 200"]);
    let session = ids(&scratch, &[]).remove(0);
    let mut events = start(&scratch, &["sessions", "events", &session, "--json", "--follow"]);
    assert!(events.next_line().is_some());
    assert_eq!(events.close_output(), (Exit::Code(0), String::new()));
    daemon.stop();
}

// contract 7.3: a session without a title is known by the words that it began with, and found by them, with and without a
// daemon; a title goes before
#[test]
fn a_session_is_known_by_what_it_began_with() {
    let scratch = Scratch::new();
    scratch.config_file();
    let mut daemon = scratch.serve();
    done(&scratch, &["run", "hello\n hello"]);
    done(&scratch, &["run", "--title", "Greeting", "hello"]);
    let check = || {
        let told = json(&scratch, &["sessions", "list"]);
        let first =
            |at: usize| (told["sessions"][at]["title"].clone(), told["sessions"][at]["firstPrompt"].clone());
        assert_eq!(first(0), (json!("Greeting"), json!("hello")));
        assert_eq!(first(1), (Value::Null, json!("hello hello")));
        let list = done(&scratch, &["sessions", "list", "-q", "hello"]);
        assert!(list.lines().count() == 2 && list.contains("hello hello"), "{list}");
        let id = told["sessions"][1]["sessionId"].as_str().expect("an id").to_owned();
        assert!(done(&scratch, &["sessions", "show", &id]).contains("hello hello"));
    };
    check();
    daemon.stop();
    check();
}
