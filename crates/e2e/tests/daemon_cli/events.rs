//! `acpd sessions events` without `--follow`: what is in the log.

use crate::cli::{done, fails, ids, run};
use acpd_e2e::{Exit, Scratch};
use serde_json::Value;

// contract 6, contract 1.6: all pages, every number once; from a number on; as lines for people
#[test]
fn all_events_are_printed_in_order() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    done(&scratch, &["run", "stream 1200\nhello \u{1b}]0;x\u{7}you"]);
    let session = ids(&scratch, &[]).remove(0);
    let out = done(&scratch, &["sessions", "events", &session, "--json"]);
    let events: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(events.len() > 1200);
    for (event, expected) in events.iter().zip(1_u64..) {
        assert_eq!(event["seq"], expected);
    }
    assert_eq!((&events[0]["kind"], &events[events.len() - 1]["kind"]), (&"created".into(), &"ended".into()));

    let out = done(&scratch, &["sessions", "events", &session]);
    assert_eq!(out.lines().count(), events.len());
    assert!(out.contains("hello") && out.contains("␛]0;x␇you") && !out.contains(['\u{1b}', '\u{7}']));
    let out = done(&scratch, &["sessions", "events", &session, "--after", "1200", "--json"]);
    assert_eq!(out.lines().count(), events.len() - 1200);
    assert!(out.starts_with("{\"seq\":1201,"), "{out}");
    let after = events.len().to_string();
    let nothing = run(&scratch, &["sessions", "events", &session, "--after", &after]);
    assert_eq!(nothing, (Exit::Code(0), String::new(), String::new()));

    // A cursor of the future is an error, never a silent stream.
    for follow in [&[][..], &["--follow"]] {
        let words = [&["sessions", "events", &session, "--after", "999999"], follow].concat();
        let err = fails(&scratch, 1, &words);
        assert!(err.contains("999999") && !err.contains("409"), "{err}");
    }
    daemon.stop();
}
