//! Requests in any order, without waiting: whatever happens, the promises hold.
//!
//! One client of `acpd stdio`, which has several sessions, joins them again and again, and leaves them; and several
//! clients of one host, that do so with each other's sessions.
//!
//! `ACPD_CHAOS_CASES` sets the number of cases, `ACPD_SEED` runs one of them:
//!
//! ```text
//! ACPD_CHAOS_CASES=2000 cargo test -p acpd-e2e --test chaos interleavings
//! ```

use crate::dice::{Dice, number_from, seeds};
use crate::drive::{DETACH, Driver};
use crate::history::{ENDED, PROMPT, Stored, TURN_ENDED, UPDATE, stored};
use crate::one_host::{Example, OneHost};
use acpd_e2e::Scratch;
use serde_json::json;
use std::collections::{BTreeMap, HashMap};

const CASES: usize = 16;

/// Agents that differ in what they can do and in who shares their process.
pub(crate) const AGENTS: [&str; 4] = ["example", "shared", "plain", "shared_plain"];

const PROMPTS: [&str; 11] = [
    "text of some words",
    "more text",
    "stream 400 64",
    "stream 3000 40",
    "hang",
    "hang",
    "tool look",
    "stream 50 5000",
    "crash",
    "exit 0",
    "exit 3",
];

const TERMINATE: &str = "_sandboxagent/session/terminate";

pub(crate) fn scratch() -> Scratch {
    Scratch::new()
        .example("shared", &[])
        .config("share_process = true")
        .example("plain", &["--without", "resume,close"])
        .example("shared_plain", &["--without", "close"])
        .config("share_process = true")
}

/// Does one thing at random with one of the sessions.
pub(crate) fn step(driver: &mut Driver, dice: &mut Dice, sessions: &[String]) {
    let session = &dice.pick(sessions);
    match dice.below(40) {
        0..10 => drop(driver.prompt(session, dice.pick(&PROMPTS))),
        10..15 => driver.client.notify("session/cancel", &json!({"sessionId": session})),
        15..17 => drop(driver.send(dice.pick(&["session/close", "session/stop"]), Some(session))),
        17 => drop(driver.send(TERMINATE, Some(session))),
        18..23 => drop(driver.send("session/load", Some(session))),
        23..27 => drop(driver.send("session/resume", Some(session))),
        27..29 => {
            // It ends the attachment that there is, not one that is still to come.
            driver.wait_for_joins(session);
            driver.send(DETACH, Some(session));
        }
        29 => drop(driver.send("session/list", None)),
        30 => drop(driver.send("session/status", Some(session))),
        31 => drop(driver.send("session/new", None)),
        _ => driver.wait_for_any(dice),
    }
}

/// Plays a case to the end of acpd.
fn play(scratch: &Scratch, seed: u64) -> Driver {
    let mut dice = Dice::new(seed);
    let agent = dice.pick(&AGENTS);
    let mut driver = Driver::new(scratch.stdio(agent), scratch);
    for _ in 0..=dice.below(3) {
        driver.send("session/new", None);
    }
    driver.wait_for_all_but_prompts();
    for _ in 0..10 + dice.below(60) {
        let sessions = driver.sessions();
        step(&mut driver, &mut dice, &sessions);
    }
    if dice.once_in(3) {
        // Gone in the middle of everything.
        driver.client.close_input();
        driver.client.expect_good_end();
        return driver;
    }
    driver.wait_for_all_but_prompts();
    for session in driver.sessions() {
        driver.send("session/close", Some(&session));
    }
    for place in 0..driver.sent.len() {
        driver.wait(place);
    }
    driver.client.finish();
    driver
}

/// Plays a case with several clients to the end of their host; some are gone before.
fn play_together(scratch: &Scratch, seed: u64) -> Vec<Driver> {
    let mut dice = Dice::new(seed);
    let agents = [
        Example { name: "example", without: "", shared: false, asks: false },
        Example { name: "shared", without: "", shared: true, asks: false },
        Example { name: "plain", without: "resume,close", shared: false, asks: false },
    ];
    let mut host = OneHost::open(scratch, &agents);
    let count = 2 + dice.below(3);
    let mut drivers: Vec<Driver> =
        (0..count).map(|_| Driver::new(host.client(scratch, dice.pick(&agents).name), scratch)).collect();
    for driver in &mut drivers {
        driver.send("session/new", None);
        driver.wait_for_all_but_prompts();
    }
    let mut gone = vec![false; count];
    for _ in 0..20 + dice.below(100) {
        let sessions: Vec<String> = drivers.iter().flat_map(Driver::sessions).collect();
        let who = dice.below(count);
        if !gone[who] && dice.once_in(100) {
            // It still reads what is on its way, as one whose last words are in the pipe.
            drivers[who].client.close_input();
            gone[who] = true;
        }
        if !gone[who] {
            step(&mut drivers[who], &mut dice, &sessions);
        }
    }
    let sessions: Vec<String> = drivers.iter().flat_map(Driver::sessions).collect();
    if let Some(last) = gone.iter().position(|gone| !gone).filter(|_| dice.once_in(2)) {
        for session in &sessions {
            drivers[last].send("session/close", Some(session));
        }
        drivers[last].wait_for_all_but_prompts();
    }
    // Each reads while the host waits for none of them.
    std::thread::scope(|scope| {
        for driver in &mut drivers {
            scope.spawn(|| driver.client.read_to_end());
        }
        host.shut_down();
    });
    drivers.iter().zip(gone).for_each(|(driver, gone)| driver.answered(!gone));
    drivers
}

/// PR-1: a prompt is answered after the updates of its turn.
fn answers_stand_behind_their_turns(driver: &Driver, sessions: &BTreeMap<String, Stored>) {
    let answers = driver.answers();
    let mut first_seen = HashMap::new();
    for (place, message) in driver.client.received().iter().enumerate() {
        first_seen.entry(message.raw.as_str()).or_insert(place);
    }
    for sent in driver.sent.iter().filter(|sent| sent.method == "session/prompt") {
        let Some(session) = sent.session.as_ref().and_then(|id| sessions.get(id)) else { continue };
        let answered = answers[&sent.id][0];
        let left = driver.sent.iter().any(|other| other.method == DETACH && other.session == sent.session);
        // Who left does not see the turn, or sees it later.
        if left {
            continue;
        }
        let mark = format!("\"{}\\n", driver.mark(sent.id));
        let is_its = |event: &&crate::history::Entry| event.kind == PROMPT && event.text.contains(&mark);
        let Some(prompt) = session.events.iter().find(is_its) else { continue };
        let place = usize::try_from(prompt.seq).expect("it is in memory");
        let turn =
            session.events[place..].iter().take_while(|event| ![TURN_ENDED, ENDED].contains(&event.kind));
        for event in turn.filter(|event| event.kind == UPDATE) {
            if let Some(seen) = first_seen.get(event.text.as_str()) {
                assert!(*seen < answered, "event {} came after the answer to {sent:?}", event.seq);
            }
        }
    }
}

fn holds(scratch: &Scratch, driver: &Driver) {
    driver.answered(true);
    let sessions = in_order(scratch);
    saw_what_is_stored(driver, &sessions, Driver::judge);
    answers_stand_behind_their_turns(driver, &sessions);
}

/// All sessions of a scratch, each in good order and over.
pub(crate) fn in_order(scratch: &Scratch) -> BTreeMap<String, Stored> {
    let sessions = stored(&scratch.state());
    sessions.values().for_each(Stored::is_in_order);
    sessions
}

/// What the client saw of each session is what the log has.
pub(crate) fn saw_what_is_stored(
    driver: &Driver,
    sessions: &BTreeMap<String, Stored>,
    judge: impl Fn(&Driver, &Stored),
) {
    for (id, session) in driver.known().iter().filter_map(|id| sessions.get_key_value(id)) {
        judge(driver, session);
        let told = driver.client.ends().iter().filter(|end| end.session() == Some(id)).count();
        assert!(told <= session.ends(), "{id}: {told} ends were told of {}", session.ends());
    }
}

// contract 1.1, contract 1.2, FR-3, PR-1, SE-5, SE-8, SE-14, UP-1, TM-4, SU-1
#[test]
fn whatever_is_asked_in_whatever_order() {
    for seed in seeds(number_from("ACPD_CHAOS_CASES", CASES)) {
        eprintln!("ACPD_SEED={seed}");
        let scratch = scratch();
        let driver = play(&scratch, seed);
        holds(&scratch, &driver);
    }
}

// contract 1.1, contract 1.2, MC-1, MC-2, UP-1, UP-2, FR-2, FR-3, SE-5, PR-12: several clients with each other's
// sessions; all see the one order of the log
#[test]
fn whatever_several_clients_ask() {
    for seed in seeds(number_from("ACPD_CHAOS_CASES", CASES)) {
        eprintln!("ACPD_SEED={seed}");
        let scratch = Scratch::new();
        let drivers = play_together(&scratch, seed);
        let sessions = in_order(&scratch);
        for driver in &drivers {
            // One that was gone did not wait for the end.
            saw_what_is_stored(driver, &sessions, Driver::judge_cut);
        }
    }
}
