//! SIGKILL of the daemon at any moment of a turn, again and again.
//!
//! `ACPD_KILLS` sets the number of kills: 1,000 show what is promised.

use crate::session::{Session, keeping, of_kind, said, without_holes};
use crate::turns::{all_pieces, in_pieces};
use acpd_e2e::{Daemon, Deadline};
use serde_json::{Value, json};
use std::time::Duration;

const KILLS: usize = 20;
/// Pieces of one turn, which take about 10 ms each.
const PIECES: usize = 100;

/// What must be true of a session whose turn is over.
fn whole(events: &[Value], reattached: usize) {
    without_holes(events);
    assert_eq!(said(events), all_pieces(PIECES));
    assert_eq!((of_kind(events, "prompt").len(), of_kind(events, "run_started").len()), (1, 1));
    assert_eq!(of_kind(events, "reattached").len(), reattached);
    let ended = of_kind(events, "turn_ended");
    assert_eq!((ended.len(), &ended[0]["stopReason"]), (1, &json!("end_turn")), "{ended:?}");
}

fn has_ended(session: &Session, daemon: &Daemon) -> bool {
    session.info(daemon)["state"] == "idle"
}

// contract 7.3: 0 lost, 0 doubled, 0 agents restarted
#[test]
fn killed_at_any_moment_of_a_turn() {
    let kills = std::env::var("ACPD_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    let scratch = keeping("60s");
    let mut daemon = scratch.serve();
    let begin = |daemon: &Daemon| {
        let session = Session::begin(daemon, &scratch, "example", &in_pieces(PIECES));
        let pid = session.pid(daemon);
        (session, pid, 0)
    };
    let (mut session, mut pid, mut reattached) = begin(&daemon);
    for kill in 0..kills {
        // A moment that no event marks.
        let moment = Deadline::after(Duration::from_micros((kill as u64 * 7919) % 120_000));
        while !moment.is_over() {
            std::thread::yield_now();
        }
        daemon.kill();
        daemon = scratch.serve();
        reattached += 1;
        assert_eq!(session.pid(&daemon), pid, "kill {kill}");
        if has_ended(&session, &daemon) {
            whole(&session.events(&daemon), reattached);
            session.close(&daemon);
            (session, pid, reattached) = begin(&daemon);
        }
    }
    whole(&session.events_until_turn(&daemon, 1), reattached);
    daemon.stop();
}
