//! How long an end takes: contract 1.1, rule 6.

use crate::ending::{DETACH, TERMINATE, ends_of, of};
use acpd_e2e::{Client, Deadline, GRACES, PATIENCE, Scratch};
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// One that takes the time must not run beside another that keeps all processors busy.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// What does nothing and does not leave either, up to the word that tells that it does.
const IDLE: [&str; 9] = [
    "ready\nhang",
    "ignore-cancel\nready\nhang",
    "ignore-sigterm\nready\nhang",
    "ignore-cancel\nignore-sigterm\nready\nhang",
    "fork\nready\nhang",
    "fork setsid\nready\nhang",
    "ignore-cancel\nignore-sigterm\nfork\nfork setsid\nready\nhang",
    "garbage\nready\nhang",
    "ignore-sigterm\nready\nclose-stdout\nhang",
];

/// What keeps a processor busy.
const BUSY: [&str; 5] = [
    "ready\nflood-stderr 100000000000",
    "ignore-cancel\nignore-sigterm\nready\nflood-stderr 100000000000",
    "ready\nstream 100000000 200",
    "ignore-cancel\nignore-sigterm\nready\nstream 100000000 200",
    "ready\nflood 60000000\nhang",
];

/// Sends a request and takes the time to its result.
fn timed(client: &mut Client, method: &str, params: &Value) -> (Value, Duration) {
    let clock = Deadline::after(PATIENCE);
    let result = client.call(method, params);
    (result, PATIENCE - clock.left())
}

/// Ends a session whose agent misbehaves: within the bound, nothing of it left. A machine that is busy with other things
/// may be the one that is late, so what took too long is tried again.
fn ends_in_time(method: &str, agent: &str) {
    let ends = |prompt: &str| {
        let bound = GRACES + Duration::from_secs(1);
        let took: Vec<Duration> = (0..3)
            .map(|_| time_of_end(method, agent, prompt))
            .scan(false, |done, took| (!std::mem::replace(done, took < bound)).then_some(took))
            .collect();
        assert!(took.iter().any(|took| *took < bound), "{prompt:?}: {took:?}");
    };
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        for prompt in IDLE {
            scope.spawn(move || ends(prompt));
        }
    });
    BUSY.into_iter().for_each(ends);
}

fn time_of_end(method: &str, agent: &str, prompt: &str) -> Duration {
    let scratch = Scratch::new().example("shared", &[]).config("share_process = true");
    let (mut client, session) = scratch.session(agent);
    let asked = client.prompt(&session, prompt);
    client.until_text("ready");
    // The answer comes behind all that was said, so who reads slower than the agent speaks must not watch.
    let watches = !prompt.contains("stream");
    if !watches {
        client.call(DETACH, &of(&session));
    }
    let (_, took) = timed(&mut client, method, &of(&session));
    client.answer(&asked);
    assert_eq!(ends_of(&client, &session), usize::from(watches), "{prompt:?}");
    client.is_alone();
    client.finish();
    took
}

// contract 1.1, SU-2: rule 6, whatever the agent does
#[test]
fn terminate_is_bounded() {
    ends_in_time(TERMINATE, "example");
}

// contract 1.1: rule 6, for the only session of a shared process
#[test]
fn terminate_is_bounded_on_a_shared_process() {
    ends_in_time(TERMINATE, "shared");
}

// SE-14, PR-6: a close is bounded by the same
#[test]
fn close_is_bounded() {
    ends_in_time("session/close", "example");
}

// contract 1.1: a cooperative agent ends at once, idle or in a turn
#[test]
fn a_cooperative_agent_ends_at_once() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = Scratch::with_default_graces();
    let mut client = scratch.stdio("example");
    client.initialize();
    let mut times: Vec<Duration> = (0..50)
        .map(|round| {
            let session = client.new_session();
            if round % 2 == 0 {
                client.prompt(&session, "ready\nhang");
                client.until_text("ready");
            }
            let (result, took) = timed(&mut client, TERMINATE, &of(&session));
            assert_eq!(result, json!({"terminated": true, "reason": "terminated", "terminatedBy": "daemon"}));
            took
        })
        .collect();
    times.sort();
    // Some milliseconds, and more on a busy machine; the first grace alone is three seconds.
    assert!(times[25] < Duration::from_secs(1), "median {:?}, worst {:?}", times[25], times[49]);
    client.is_alone();
    client.finish();
}
