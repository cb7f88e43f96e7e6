//! What it costs that agents outlive their daemon: throughput with `[continuity] keep`, next to the same without it.
//!
//! Two daemons, one of either kind, each with one session, take turns in short pieces, so that a slow moment of the machine
//! meets both. Not here: round trips, which are in `kept_roundtrips.rs`, and taking over, which is in `takeover.rs`.

use super::programs::Programs;
use super::progress;
use super::report::{Figure, shown};
use super::samples::{median, now};
use acpd_testkit::{Daemon, Http, PATIENCE, Scratch};
use serde_json::{Value, json};
use std::time::Duration;

/// What the agents of the second daemon outlive it by.
pub(super) const KEEP: &str = "10m";
/// Bytes of a line, and those of them that are around the text of its message. The shortest has a word.
const LINES: [u64; 5] = [220, 270, 400, 600, 16 * 1024];
const AROUND: u64 = 210;
/// What must be left of the plain figure, with lines up to so many bytes.
const SHARE: f64 = 0.95;
const SHORT: u64 = 400;
/// One measurement of one side has so many messages, or so many bytes, whichever is less.
const PIECE: u64 = 100_000;
const PIECE_BYTES: u64 = 256 << 20;
/// How often a session is looked at.
const LOOK: Duration = Duration::from_millis(1);

/// A daemon and a session on it.
struct Side {
    session: Session,
    daemon: Daemon,
    _scratch: Scratch,
}

/// A session over REST, without a viewer.
pub(super) struct Session {
    pub(super) http: Http,
    pub(super) path: String,
}

impl Session {
    /// A new session of `agent` that is given a prompt.
    pub(super) fn begin(daemon: &Daemon, agent: &str, prompt: &str) -> Self {
        let mut http = Http::on(daemon.connect());
        let begin = json!({"agent": agent, "cwd": "/", "prompt": prompt});
        let answer = post(&mut http, "/v1/sessions", &begin);
        assert_eq!(answer.status, 201, "{}", answer.json());
        let path = format!("/v1/sessions/{}", answer.json()["sessionId"].as_str().expect("an id"));
        Self { http, path }
    }

    pub(super) fn prompt(&mut self, text: &str) {
        let answer = post(&mut self.http, &format!("{}/prompt", self.path), &json!({"prompt": text}));
        assert_eq!(answer.status, 202, "to {text}");
    }

    /// Waits until what is told of it is so.
    pub(super) fn until(&mut self, is_so: impl Fn(&Value) -> bool) {
        let begun = now();
        loop {
            let info = self.http.request("GET", &self.path, &[], "").json();
            if is_so(&info) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "it stays {info}");
            #[expect(
                clippy::disallowed_methods,
                reason = "a viewer that waits for the event would be measured too"
            )]
            std::thread::sleep(LOOK);
        }
    }
}

pub(super) fn post(http: &mut Http, path: &str, body: &Value) -> acpd_testkit::Answer {
    http.request("POST", path, &[("Content-Type", "application/json")], &body.to_string())
}

/// A world without, and one with agents that outlive their daemon.
pub(super) fn scratches(programs: &Programs) -> [Scratch; 2] {
    ["0s", KEEP].map(|keep| programs.scratch().keep(keep))
}

/// Messages a second from an agent into the log, nobody watching.
pub(super) fn throughput(programs: &Programs, messages: u64, rounds: u64) -> (Vec<Figure>, String) {
    let mut sides = scratches(programs).map(|scratch| {
        let daemon = programs.serve(&scratch);
        Side { session: Session::begin(&daemon, "example", "hi"), daemon, _scratch: scratch }
    });
    let figures = LINES.map(|line| {
        let text = line - AROUND;
        let piece = PIECE.min(PIECE_BYTES / line).min(messages);
        let turns = (messages * rounds).div_ceil(PIECE);
        let mut speeds = [Vec::new(), Vec::new()];
        for turn in 0..=turns {
            // Now the one first, now the other.
            let order = if turn % 2 == 0 { [0, 1] } else { [1, 0] };
            for side in order {
                let speed = stream(&mut sides[side].session, piece, text);
                // The first is to warm up.
                speeds[side].extend(Some(speed).filter(|_| turn > 0));
            }
        }
        let [plain, kept] = speeds.each_mut().map(|samples| median(samples));
        progress(format_args!(
            "kept throughput, lines of {line} bytes: {} and {} messages/s",
            shown(plain),
            shown(kept)
        ));
        let figure = Figure::new(format!("kept: lines of {line} bytes"), "messages/s", [plain, kept]);
        if line <= SHORT { figure.at_least(SHARE) } else { figure }
    });
    for mut side in sides {
        side.daemon.stop();
    }
    let remark = format!(
        "kept: keep = \"{KEEP}\" next to \"0s\", medians of turns of up to {PIECE} messages of an agent, from the prompt \
         until the turn is over, nobody watching"
    );
    (figures.into(), remark)
}

/// Messages a second in one turn.
pub(super) fn stream(session: &mut Session, messages: u64, text: u64) -> f64 {
    session.until(|info| info["state"] == "idle");
    let begun = now();
    session.prompt(&format!("stream {messages} {text}"));
    session.until(|info| info["state"] == "idle");
    messages as f64 / begun.elapsed().as_secs_f64()
}
