//! Endings on one daemon: what has ended costs no memory.
//!
//! `ACPD_ENDINGS` sessions (default 1,200) are made, prompted and ended, a few at a time over a few WebSockets. The full
//! count of the project is a command, on a release build:
//!
//! ```text
//! cargo build --release -p acpd
//! ACPD_ENDINGS=50000 cargo test --release -p acpd-e2e --test strain endings -- --nocapture
//! ```

use crate::requests::GIVEN_BACK;
use acpd_e2e::{Daemon, Scratch, WebSocket, acpd, anonymous_memory, noise, request};
use serde_json::{Value, json};

/// Clients that make sessions side by side.
const CLIENTS: usize = 8;
/// After so many endings, or half of them if that is less, pools and the file's own caches have their size.
const SETTLED: usize = 10_000;
/// By how much memory may grow from there to the end, in bytes.
const GROWTH: u64 = 4 * 1024 * 1024;
/// What a first version kept was more than that for each ending, in bytes.
const EACH: u64 = 4 * 1024;
/// MiB that are recorded first: more than the cache of recent events holds.
const RECORDED: u64 = 10;

/// A client that keeps nothing of what it reads.
struct Caller {
    socket: WebSocket,
    next: u64,
}

impl Caller {
    fn new(daemon: &Daemon) -> Self {
        Self { socket: WebSocket::initialized(daemon.connect()), next: 1000 }
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        self.socket.text(&request(self.next, method, params).to_string());
        self.socket.answer(self.next)
    }

    fn session(&mut self, scratch: &Scratch) -> String {
        let created = self.call("session/new", &json!({"cwd": scratch.work(), "mcpServers": []}));
        created["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned()
    }

    fn prompt(&mut self, session: &str, text: &str) -> Value {
        let prompt = json!([{"type": "text", "text": text}]);
        self.call("session/prompt", &json!({"sessionId": session, "prompt": prompt}))
    }

    /// One session from its beginning to its end, in one of several ways.
    fn cycle(&mut self, scratch: &Scratch, n: usize) {
        let session = self.session(scratch);
        let turn = self.prompt(&session, "one\ntwo\nthree\nfour\nfive\nsix");
        assert_eq!(turn["result"]["stopReason"], "end_turn", "{turn}");
        let about = json!({"sessionId": session});
        match n % 5 {
            0 => drop(self.prompt(&session, "crash")),
            1 => drop(self.prompt(&session, "exit 0")),
            2 => drop(self.call("_sandboxagent/session/terminate", &about)),
            _ => drop(self.call("session/close", &about)),
        }
    }
}

/// So many endings, by all callers side by side.
fn cycles(callers: &mut [Caller], scratch: &Scratch, count: usize) {
    std::thread::scope(|scope| {
        for (first, caller) in callers.iter_mut().enumerate() {
            scope.spawn(move || (first..count).step_by(CLIENTS).for_each(|n| caller.cycle(scratch, n)));
        }
    });
}

// SU-6: memory does not grow with what has ended: 50,000 endings take 4 MiB more than 10,000 at most
#[test]
fn what_has_ended_costs_no_memory() {
    let endings =
        std::env::var("ACPD_ENDINGS").map_or(1200, |n| n.parse().expect("ACPD_ENDINGS is a number"));
    let scratch = Scratch::new();
    let mut command = scratch.command(acpd());
    command.envs(GIVEN_BACK);
    let mut daemon = scratch.serve_by(command, "127.0.0.1:0");
    let mut callers: Vec<Caller> = (0..CLIENTS).map(|_| Caller::new(&daemon)).collect();
    let session = callers[0].session(&scratch);
    for seed in 0..RECORDED {
        let turn = callers[0].prompt(&session, &noise(seed + 1));
        assert_eq!(turn["result"]["stopReason"], "end_turn", "{turn}");
    }
    let settled = SETTLED.min(endings / 2);
    let mut memory = Vec::new();
    // In steps, so that a failure shows how it grew.
    let steps =
        [settled / 2, settled - settled / 2, (endings - settled) / 2, (endings - settled).div_ceil(2)];
    for step in steps {
        cycles(&mut callers, &scratch, step);
        // Its own alone: on a slow machine code runs for the first time in the middle of it.
        memory.push(anonymous_memory(daemon.pid()));
        eprintln!("{} endings: {} KiB", memory.len(), memory[memory.len() - 1] / 1024);
    }
    let bound = GROWTH.min(EACH * (endings - settled) as u64 / 2);
    let grown = memory[3].saturating_sub(memory[1]);
    assert!(grown <= bound, "{grown} bytes more, {bound} at most; after the steps {steps:?}: {memory:?}");
    drop(callers);
    daemon.stop();
}
