//! `acpd sessions search` and the filters of `acpd sessions list`, with a daemon and without, and the same over REST.

use crate::cli::{done, fails, front_end, ids, json, leave, run};
use acpd_e2e::{Exit, LogForm, Scratch, log_content, until};
use serde_json::Value;

fn hits(found: &Value) -> Vec<(&str, &str, &str)> {
    found["hits"]
        .as_array()
        .expect("hits")
        .iter()
        .map(|hit| {
            let text = |name: &str| hit[name].as_str().expect("text");
            (text("sessionId"), text("part"), text("snippet"))
        })
        .collect()
}

/// Searches until all is indexed: that happens behind the answer to a prompt.
fn searched(scratch: &Scratch, words: &[&str]) -> Value {
    until("all is indexed", || {
        Some(json(scratch, &[&["sessions", "search"], words].concat()))
            .filter(|found| found["incomplete"] == false)
    })
}

// contract 7.1: prompts, answers and titles of tools, with a daemon and without
#[test]
fn what_was_said_is_found() {
    let scratch = Scratch::new();
    scratch.config_file();
    // Nothing is made where nothing is.
    assert_eq!(
        run(&scratch, &["sessions", "search", "x"]),
        (Exit::Code(0), String::new(), "nothing found\n".into())
    );
    assert_eq!(LogForm::of(&scratch.state()), None);
    done(&scratch, &["run", "say the Größe of the parser"]);
    done(&scratch, &["run", "tool build"]);
    let all = ids(&scratch, &[]);
    let mut daemon = scratch.serve();
    let with = searched(&scratch, &["pars*", "größe"]);
    daemon.stop();
    let without = searched(&scratch, &["pars*", "größe"]);
    assert_eq!(with, without);
    assert_eq!(hits(&with), [(all[1].as_str(), "prompt", "say the Größe of the parser")]);
    assert_eq!(hits(&searched(&scratch, &["tool build"])).len(), 1);
    let (_, table, err) = run(&scratch, &["sessions", "search", "parser"]);
    let words: Vec<&str> = table.lines().next().expect("a head").split_whitespace().collect();
    assert_eq!((words, err.as_str()), (vec!["ID", "TURN", "AGE", "PART", "TEXT"], ""));
    // What it shows names the session.
    let id = table.lines().nth(1).and_then(|line| line.split(' ').next()).expect("an id");
    assert!(all[1].ends_with(id), "{table}");
    for wrong in [&["sessions", "search", "***"][..], &["sessions", "search"]] {
        fails(&scratch, 2, wrong);
    }
}

// issue 28: what is said while another program has the index locked is found once it has not, without a restart
#[test]
fn what_was_said_while_the_index_was_locked_is_found() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    done(&scratch, &["run", "before"]);
    assert_eq!(hits(&searched(&scratch, &["before"])).len(), 1);
    let lock = rusqlite::Connection::open(scratch.state().join("index-1.db")).expect("an index");
    lock.execute_batch("BEGIN IMMEDIATE").expect("nobody has it locked");
    done(&scratch, &["run", "meanwhile"]);
    let found = json(&scratch, &["sessions", "search", "meanwhile"]);
    assert_eq!(found["incomplete"], true, "{found}");
    drop(lock);
    assert_eq!(hits(&searched(&scratch, &["meanwhile"])).len(), 1);
    daemon.stop();
}

// contract 7.1: lists are filtered, with a daemon and without; without one, a log that is not there is not made
#[test]
fn lists_are_filtered() {
    let scratch = Scratch::new().example("other", &[]);
    scratch.config_file();
    assert_eq!(run(&scratch, &["sessions", "list"]), (Exit::Code(0), String::new(), "no sessions\n".into()));
    assert_eq!(LogForm::of(&scratch.state()), None);
    let mut daemon = scratch.serve();
    let (mut client, titled) = front_end(&scratch);
    client.turn(&titled, "title Fix the tests");
    leave(client);
    done(&scratch, &["run", "--agent", "other", "hello"]);
    let all = ids(&scratch, &[]);
    let other = all.iter().find(|id| **id != titled).expect("two").clone();
    let expected = [
        (&["--query", "FIX test"][..], vec![&titled]),
        (&["--query", "oth"], vec![&other]),
        (&["--agent", "other"], vec![&other]),
        (&["--cwd", "/"], vec![]),
        (&["--state", "ended", "--query", &other[26..]], vec![&other]),
        (&["--state", "waiting"], vec![]),
    ];
    let check = |ended: bool| {
        for (filter, expected) in &expected {
            assert_eq!(ids(&scratch, filter).iter().collect::<Vec<_>>(), *expected, "{filter:?}");
        }
        let of = if ended { &all[..] } else { std::slice::from_ref(&other) };
        assert_eq!(ids(&scratch, &["--state", "ended"]).len(), of.len());
    };
    check(false);
    let with = done(&scratch, &["sessions", "list", "--state", "ended"]);
    daemon.stop();
    check(true);
    // The same table, but for the session that has ended since, and the ages.
    let without = done(&scratch, &["sessions", "list"]);
    let row =
        |table: &str| table.lines().find(|line| line.contains("other")).map(|line| line[..22].to_owned());
    assert_eq!(row(&with), row(&without));
    assert!(without.contains("ended: completed") && without.contains("Fix the tests"), "{without}");
    let (_, table, err) = run(&scratch, &["sessions", "list", "--limit", "1"]);
    assert!(table.lines().count() == 2 && err.contains("there are more"), "{table}{err}");
    for wrong in [&["sessions", "list", "--query", " "][..], &["sessions", "list", "--state", "asleep"]] {
        fails(&scratch, 2, wrong);
    }
}

// contract 7.1: looking writes nothing, and a search that is turned off names the setting
#[test]
fn looking_writes_nothing() {
    let scratch = Scratch::new();
    scratch.config_file();
    done(&scratch, &["run", "needle"]);
    let before = log_content(&scratch.state());
    for words in [&["sessions", "list"][..], &["sessions", "search", "needle"]] {
        done(&scratch, words);
    }
    assert!(log_content(&scratch.state()) == before, "{:?}", before.keys());
    assert!(scratch.state().join("hosts").read_dir().expect("there").next().is_none());
    let off = scratch.config("[storage]\nsearch = false");
    off.config_file();
    let err = fails(&off, 1, &["sessions", "search", "needle"]);
    assert!(err.contains("search = true in [storage]"), "{err}");
    assert!(log_content(&off.state()) == before, "who looks drops no index");
}
