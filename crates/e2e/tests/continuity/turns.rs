//! A turn goes on over the death of the daemon: the same agent, every line once, every question answered once.

use crate::session::{Session, counted, keeping, of_kind, post, said, summed, without_holes};
use acpd_e2e::{Daemon, Http, acpd};
use rustix::process::Signal;
use serde_json::json;

/// What an agent says in pieces, with pauses: as a prompt.
pub(crate) fn in_pieces(pieces: usize) -> String {
    vec!["stream 20 40\nsleep 10"; pieces].join("\n")
}

/// What it says then.
pub(crate) fn all_pieces(pieces: usize) -> String {
    // What the example agent fills its chunks with.
    let filler = " abcdefghijklmnopqrstuvwxyzabcde";
    let piece: String = (0..20).map(|number| format!("{number:08}{filler}")).collect();
    piece.repeat(pieces)
}

// contract 7.3: kill -9 in the middle of a turn, and the turn goes on
#[test]
fn a_turn_outlives_its_daemon() {
    let scratch = keeping("60s");
    let mut daemon = scratch.serve();
    let session = Session::begin(&daemon, &scratch, "example", &in_pieces(60));
    session.updates(&daemon, 100);
    let pid = session.pid(&daemon);
    daemon.kill();

    let mut daemon = scratch.serve();
    assert_eq!(session.pid(&daemon), pid, "the same agent");
    let ended = session.event(&daemon, "turn_ended");
    assert_eq!((&ended["turn"], &ended["stopReason"]), (&json!(1), &json!("end_turn")), "{ended}");
    let events = session.events(&daemon);
    without_holes(&events);
    assert_eq!(of_kind(&events, "reattached").len(), 1);
    assert_eq!((of_kind(&events, "prompt").len(), of_kind(&events, "run_started").len()), (1, 1));
    assert_eq!(said(&events), all_pieces(60));
    assert_eq!(counted(&daemon, "acpd_agents_taken_over_total{agent=\"example\"}"), 1);
    assert_eq!(counted(&daemon, "acpd_agents_handed_over_total{agent=\"example\"}"), 0);
    assert!(counted(&daemon, "acpd_agent_retained_bytes_total") > 0);
    // The session is as any other.
    assert_eq!(session.prompt(&daemon, "again").status, 202);
    session.event_after(&daemon, ended["seq"].as_u64().expect("a number"), "turn_ended");
    assert_eq!(session.pid(&daemon), pid);
    daemon.stop();
}

// contract 7.3: a question that is open stays open, under its number, and its answer reaches the agent
#[test]
fn a_question_outlives_its_daemon() {
    let scratch = keeping("60s");
    let mut daemon = scratch.serve();
    let session = Session::begin(&daemon, &scratch, "example", "ask edit\nstream 3 20");
    let question = session.event(&daemon, "permission_requested")["seq"].clone();
    daemon.kill();

    let mut daemon = scratch.serve();
    assert_eq!(session.info(&daemon)["state"], "waiting");
    let answer = session.answer(&daemon, &question, "allow-once");
    assert_eq!(answer.status, 204, "{}", String::from_utf8_lossy(&answer.body));
    session.event(&daemon, "turn_ended");
    let events = session.events(&daemon);
    assert_eq!(of_kind(&events, "permission_requested").len(), 1);
    assert_eq!(of_kind(&events, "permission_resolved").len(), 1);
    // Its time is that since its prompt, not since the take-over. Of the moments of events the parts of milliseconds are not known.
    let took = session.info(&daemon)["lastTurn"]["durationMs"].as_f64().expect("a number");
    let summed = summed(&daemon, "acpd_turn_seconds_sum");
    assert!(summed * 1000.0 > took - 2.0, "{summed} s of {took} ms");
    daemon.stop();
}

// contract 7.3: an answer that was given and did not reach the agent, reaches it; one that did, does not twice
#[test]
fn answers_reach_the_agent_once() {
    let scratch = keeping("60s");
    let mut daemon = scratch.serve();
    let asks = ["ask edit"; 8].join("\n");
    let session = Session::begin(&daemon, &scratch, "example", &asks);
    let mut seq = 0;
    for _ in 0..8 {
        let question = session.event_after(&daemon, seq, "permission_requested")["seq"].clone();
        seq = question.as_u64().expect("a number");
        assert_eq!(session.answer(&daemon, &question, "allow-once").status, 204);
        daemon.kill();
        daemon = scratch.serve();
    }
    session.event(&daemon, "turn_ended");
    let events = session.events(&daemon);
    without_holes(&events);
    assert_eq!(of_kind(&events, "permission_requested").len(), 8);
    assert_eq!(of_kind(&events, "permission_resolved").len(), 8);
    assert_eq!(of_kind(&events, "reattached").len(), 8);
    daemon.stop();
}

// contract 7.3: what acpd serves an agent is served over the death of the daemon, too
#[test]
fn a_file_request_is_answered_over_the_gap() {
    let scratch = keeping("60s");
    let mut daemon = scratch.serve();
    let file = scratch.work().join("notes");
    let writes: String =
        (0..40).map(|n| format!("write {} {n}\nread {}\n", file.display(), file.display())).collect();
    let session = Session::begin(&daemon, &scratch, "example", &format!("{}\n{writes}", in_pieces(3)));
    for updates in [20, 80, 100] {
        session.updates(&daemon, updates);
        daemon.kill();
        daemon = scratch.serve();
    }
    let ended = session.event(&daemon, "turn_ended");
    assert_eq!(ended["stopReason"], "end_turn", "{ended}");
    without_holes(&session.events(&daemon));
    assert_eq!(std::fs::read_to_string(file).expect("it was written"), "39");
    daemon.stop();
}

// contract 7.3: a message that the agent takes slowly reaches it whole, and once
#[test]
fn a_long_prompt_reaches_the_agent_whole() {
    let scratch = keeping("60s");
    let mut daemon = scratch.serve();
    let session = Session::begin(&daemon, &scratch, "example", "sleep 300");
    let text = "z".repeat(8 << 20);
    assert_eq!(session.prompt(&daemon, &text).status, 202);
    session.event(&daemon, "turn_ended");
    daemon.kill();

    let mut daemon = scratch.serve();
    let events = session.events_until_turn(&daemon, 2);
    without_holes(&events);
    assert!(said(&events).contains(&text), "the example agent says what it is told");
    daemon.stop();
}

// contract 7.3: prompts that wait for their turns wait on, in order, under their keys; one that was taken back does not
#[test]
fn prompts_that_wait_outlive_their_daemon() {
    let scratch = keeping("60s");
    let mut daemon = scratch.serve();
    let session = Session::begin(&daemon, &scratch, "example", "ask edit");
    let question = session.event(&daemon, "permission_requested")["seq"].clone();
    let keyed = |daemon: &Daemon, words: &str| {
        let path = format!("/v1/sessions/{}/prompt", session.id);
        let headers = [("Content-Type", "application/json"), ("Idempotency-Key", words)];
        let answer = Http::on(daemon.connect()).request(
            "POST",
            &path,
            &headers,
            &json!({"prompt": words}).to_string(),
        );
        assert_eq!(answer.status, 202, "{}", answer.json());
        answer.json()
    };
    for words in ["first", "second", "third"] {
        keyed(&daemon, words);
    }
    let back =
        post(&daemon, &format!("/v1/sessions/{}/cancel", session.id), &json!({"idempotencyKey": "second"}));
    assert_eq!(back.status, 202);
    for _ in 0..3 {
        daemon.kill();
        daemon = scratch.serve();
        assert_eq!(session.info(&daemon)["promptsWaiting"], 2);
    }
    // Sent again it is the same one.
    keyed(&daemon, "first");
    assert_eq!(session.info(&daemon)["promptsWaiting"], 2);
    assert_eq!(session.prompt(&daemon, "fourth").status, 202);
    assert_eq!(session.answer(&daemon, &question, "allow-once").status, 204);
    let events = session.events_until_turn(&daemon, 4);
    without_holes(&events);
    let prompts: Vec<_> =
        of_kind(&events, "prompt").iter().map(|event| event["prompt"][0]["text"].clone()).collect();
    assert_eq!(prompts, ["ask edit", "first", "third", "fourth"]);
    session.close(&daemon);
    daemon.stop();
}

// contract 7.3: two sessions on one process, each goes on
#[test]
fn sessions_on_a_shared_process_go_on() {
    let scratch = keeping("60s").example("shared", &[]).config("share_process = true");
    let mut daemon = scratch.serve();
    let one = Session::begin(&daemon, &scratch, "shared", &in_pieces(40));
    let other = Session::begin(&daemon, &scratch, "shared", &in_pieces(40));
    other.updates(&daemon, 60);
    let pid = one.pid(&daemon);
    daemon.kill();

    let mut daemon = scratch.serve();
    for session in [&one, &other] {
        assert_eq!(session.pid(&daemon), pid);
        session.event(&daemon, "turn_ended");
        let events = session.events(&daemon);
        without_holes(&events);
        assert_eq!(said(&events), all_pieces(40));
    }
    // A new session joins them there.
    let third = Session::begin(&daemon, &scratch, "shared", "hello");
    assert_eq!(third.pid(&daemon), pid);
    daemon.stop();
}

// SU-9: a shared process that can outlive its daemon ends with the last of its sessions, and its keeper does
#[test]
fn a_shared_process_ends_with_its_sessions() {
    let scratch = keeping("60s").example("one", &[]).config("share_process = true");
    let mut daemon = scratch.serve();
    let sessions = [(); 2].map(|()| Session::begin(&daemon, &scratch, "one", "hi"));
    for session in &sessions {
        session.events_until_turn(&daemon, 1);
        session.close(&daemon);
    }
    let said = daemon.stop();
    assert!(!said.contains("did not end in time"), "{said}");
}

// contract 7.2: a daemon that stands still is not dead: no other one takes its agents, and it goes on where it was
#[test]
fn a_daemon_that_stands_still_keeps_its_agents() {
    let scratch = keeping("60s");
    let mut daemon = scratch.serve();
    let session = Session::begin(&daemon, &scratch, "example", &in_pieces(60));
    for updates in [20, 60, 100] {
        session.updates(&daemon, updates);
        daemon.signal(Signal::STOP);
        let mut second = scratch.command(acpd());
        second.args(["serve", "--listen", "127.0.0.1:0", "--state-dir"]).arg(scratch.state());
        let refused = second.output().expect("it runs");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && said.contains("serves this state directory already"), "{said}");
        daemon.signal(Signal::CONT);
    }
    let events = session.events_until_turn(&daemon, 1);
    without_holes(&events);
    assert_eq!(said(&events), all_pieces(60));
    assert_eq!(of_kind(&events, "reattached").len(), 0);
    daemon.stop();
}
