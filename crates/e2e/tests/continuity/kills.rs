//! SIGKILL of the daemon at any moment of a turn, again and again, in turns of every kind.
//!
//! `ACPD_KILLS` sets the number of kills of each test; with 1,000, which show what is promised, lines and prompts are long:
//!
//! ```text
//! ACPD_KILLS=1000 cargo test --release -p acpd-e2e --test continuity kills
//! ```

use crate::foreign_files::remove_index;
use crate::session::{Session, keeping, of_kind, said, without_holes};
use crate::turns::{all_pieces, in_pieces};
use acpd_e2e::{Daemon, Deadline, Scratch};
use serde_json::Value;
use std::time::Duration;

const KILLS: usize = 50;
/// From so many kills on, lines and prompts are as long as is promised.
const LONG: usize = 1_000;

/// What agent and daemon are at when the daemon dies.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Numbered updates, in pieces that take about 10 ms each.
    Updates,
    /// Lines of so many bytes.
    Lines(usize),
    /// A prompt of so many bytes, which is said again, behind one that the agent is busy with.
    Prompt(usize),
    /// Files that are written and read through the daemon.
    Files,
    /// Commands in terminals.
    Commands,
    /// Questions, each of which is answered while a daemon is there.
    Questions,
    /// Two sessions on one process.
    Shared,
}

/// Of everything but updates, there is so much in a turn.
const MANY: usize = 12;

impl Kind {
    fn all(long: bool) -> [Self; 7] {
        let (line, prompt) = if long { (50 << 20, 16_000_000) } else { (2 << 20, 4 << 20) };
        [
            Self::Updates,
            Self::Lines(line),
            Self::Prompt(prompt),
            Self::Files,
            Self::Commands,
            Self::Questions,
            Self::Shared,
        ]
    }

    fn agent(self) -> &'static str {
        if matches!(self, Self::Shared) { "shared" } else { "example" }
    }

    /// What each of its sessions is told first, and then.
    fn prompts(self, scratch: &Scratch) -> (String, Option<String>) {
        let notes = scratch.work().join("notes").display().to_string();
        let many =
            |directive: &dyn Fn(usize) -> String| (0..MANY).map(directive).collect::<Vec<_>>().join("\n");
        let first = match self {
            Self::Updates | Self::Shared => in_pieces(100),
            Self::Lines(bytes) => format!("{}\nsleep 100\n{}", Self::big(bytes), in_pieces(30)),
            Self::Prompt(bytes) => {
                return ("hello\nsleep 300".to_owned(), Some("z".repeat(bytes)));
            }
            Self::Files => many(&|n| format!("write {notes} {n}\nread {notes}\nsleep 20")),
            Self::Commands => many(&|n| format!("run sh -c 'echo {n} >> ran; sleep 0.05; echo said {n}.'")),
            Self::Questions => many(&|n| format!("ask edit {n}\nsleep 20")),
        };
        (first, None)
    }

    /// A few lines of which the longest has so many bytes.
    fn big(bytes: usize) -> String {
        format!("big {}\nbig {bytes}\nbig {}", bytes / 8, bytes / 4)
    }

    fn sessions(self) -> usize {
        if matches!(self, Self::Shared) { 2 } else { 1 }
    }

    /// What must be true of what came of it.
    fn judge(self, scratch: &Scratch, events: &[Value]) {
        let said = said(events);
        match self {
            Self::Updates | Self::Shared => assert_eq!(said, all_pieces(100)),
            Self::Lines(bytes) => {
                let lengths =
                    of_kind(events, "update").into_iter().map(|event| event["message"].to_string().len());
                let lines: Vec<usize> = lengths.filter(|length| *length > 10_000).collect();
                // The session has another id in the log.
                let is_of = |(line, bytes): (&usize, usize)| (bytes..bytes + 64).contains(line);
                let are_whole = lines.iter().zip([bytes / 8, bytes, bytes / 4]).all(is_of);
                assert!(lines.len() == 3 && are_whole, "{lines:?}");
                assert!(said.ends_with(&all_pieces(30)));
            }
            Self::Prompt(bytes) => assert!(said.starts_with("hello") && said.ends_with(&"z".repeat(bytes))),
            Self::Files => {
                let words = (0..MANY).map(|n| format!("wrote {} bytes\n{n}", n.to_string().len()));
                assert_eq!(said, words.collect::<Vec<_>>().join("\n"));
            }
            Self::Commands => {
                let path = scratch.work().join("ran");
                let ran = std::fs::read_to_string(&path).unwrap_or_default();
                std::fs::remove_file(path).expect("some ran");
                let mut ran: Vec<usize> = ran.lines().map(|line| line.parse().expect("a number")).collect();
                // One that is being ended may do something yet.
                ran.sort_unstable();
                assert!(ran.windows(2).all(|two| two[0] < two[1]), "once each: {ran:?}");
                for n in 0..MANY {
                    let is_told = said.matches(&format!("said {n}.")).count();
                    assert!(is_told <= 1, "{n} is told {is_told} times: {said}");
                    assert!(is_told == 0 || ran.contains(&n), "{n} is told and did not run: {said}");
                }
                let told = said.matches("said ").count();
                let interrupted = said.matches("acpd was restarted").count();
                assert_eq!(told + interrupted, MANY, "each has one answer: {said}");
            }
            Self::Questions => {
                for kind in ["permission_requested", "permission_resolved"] {
                    assert_eq!(of_kind(events, kind).len(), MANY, "{kind}");
                }
                let updates = of_kind(events, "update");
                let told = updates.iter().filter(|event| event.to_string().contains("selected allow-once"));
                assert_eq!(told.count(), MANY);
            }
        }
    }
}

/// Sessions of one kind, from their begin until their turns are over.
struct Work {
    kind: Kind,
    sessions: Vec<(Session, u64)>,
    turns: u64,
    reattached: usize,
}

impl Work {
    fn begin(kind: Kind, daemon: &Daemon, scratch: &Scratch) -> Self {
        let (first, second) = kind.prompts(scratch);
        let begin = |_| {
            let session = Session::begin(daemon, scratch, kind.agent(), &first);
            if let Some(text) = &second {
                assert_eq!(session.prompt(daemon, text).status, 202);
            }
            let pid = session.pid(daemon);
            (session, pid)
        };
        let sessions = (0..kind.sessions()).map(begin).collect();
        Self { kind, sessions, turns: 1 + u64::from(second.is_some()), reattached: 0 }
    }

    /// The next daemon is there.
    fn go_on(&mut self, daemon: &Daemon, kill: usize) {
        self.reattached += 1;
        for (session, pid) in &self.sessions {
            assert_eq!(session.pid(daemon), *pid, "kill {kill}, {:?}", self.kind);
        }
    }

    /// Answers what is open.
    fn answer(&self, daemon: &Daemon) {
        for (session, _) in self.sessions.iter().filter(|_| matches!(self.kind, Kind::Questions)) {
            let events = session.events(daemon);
            let resolved: Vec<_> =
                of_kind(&events, "permission_resolved").iter().map(|event| &event["request"]).collect();
            for open in of_kind(&events, "permission_requested") {
                if !resolved.contains(&&open["request"]) {
                    let answer = session.answer(daemon, &open["request"], "allow-once");
                    assert_eq!(answer.status, 204, "{open}");
                }
            }
        }
    }

    fn is_over(&self, daemon: &Daemon) -> bool {
        self.sessions.iter().all(|(session, _)| {
            session.info(daemon)["state"] == "idle"
                && of_kind(&session.events(daemon), "turn_ended").len() as u64 == self.turns
        })
    }

    /// Waits for the ends of its turns, looks at what came of it, and closes its sessions.
    fn end(self, daemon: &Daemon, scratch: &Scratch) {
        while matches!(self.kind, Kind::Questions) && !self.is_over(daemon) {
            self.answer(daemon);
        }
        for (session, _) in &self.sessions {
            let events = session.events_until_turn(daemon, self.turns);
            without_holes(&events);
            self.kind.judge(scratch, &events);
            let turns = usize::try_from(self.turns).expect("there are few");
            assert_eq!((of_kind(&events, "prompt").len(), of_kind(&events, "run_started").len()), (turns, 1));
            assert_eq!(of_kind(&events, "reattached").len(), self.reattached);
            let ended = of_kind(&events, "turn_ended");
            assert!(ended.iter().all(|event| event["stopReason"] == "end_turn"), "{ended:?}");
            assert_eq!(ended.len(), turns);
            session.close(daemon);
        }
    }
}

/// Kills as many daemons as are asked for, or so many, each in the middle of turns, and has `meanwhile` done before each next one.
fn kill_again_and_again(kills: usize, meanwhile: impl Fn(&Scratch)) {
    let kills = std::env::var("ACPD_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(kills);
    let scratch = keeping("60s").example("shared", &[]).config("share_process = true");
    let mut daemon = scratch.serve();
    let mut kinds = Kind::all(kills >= LONG).into_iter().cycle();
    let mut next = || kinds.next().expect("they go round");
    let mut work = Work::begin(next(), &daemon, &scratch);
    for kill in 0..kills {
        // A moment that no event marks.
        let moment = Deadline::after(Duration::from_micros((kill as u64 * 7919) % 120_000));
        while !moment.is_over() {
            std::thread::yield_now();
        }
        daemon.kill();
        meanwhile(&scratch);
        daemon = scratch.serve();
        work.go_on(&daemon, kill);
        work.answer(&daemon);
        if work.is_over(&daemon) {
            work.end(&daemon, &scratch);
            work = Work::begin(next(), &daemon, &scratch);
        }
    }
    work.end(&daemon, &scratch);
    daemon.stop();
    let left: Vec<_> = std::fs::read_dir(scratch.state().join("keepers")).expect("it is there").collect();
    assert!(left.is_empty(), "no keeper and no end is left: {left:?}");
}

// contract 7.3: 0 lost, 0 doubled, 0 requests unanswered, 0 agents restarted, 0 left behind
#[test]
fn killed_at_any_moment_of_a_turn() {
    kill_again_and_again(KILLS, |_| {});
}

// issue 29: the same with the index of sessions deleted at each restart
#[test]
fn killed_at_any_moment_and_without_its_index() {
    kill_again_and_again(KILLS / 2, |scratch| remove_index(&scratch.state()));
}
