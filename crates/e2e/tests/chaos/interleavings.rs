//! Requests in any order, without waiting: whatever happens, the promises hold.
//!
//! Several clients on one host come with the network; until then there is one client per `acpd stdio`, so here one
//! connection plays all of them: it has several sessions, joins them again and again, and leaves them.
//!
//! `ACPD_CHAOS_CASES` sets the number of cases, `ACPD_SEED` runs one of them:
//!
//! ```text
//! ACPD_CHAOS_CASES=2000 cargo test -p acpd-e2e --test chaos interleavings
//! ```

use crate::dice::{Dice, number_from, seeds};
use crate::drive::Driver;
use crate::history::{ENDED, PROMPT, Stored, TURN_ENDED, UPDATE, stored};
use crate::verdict::judge;
use acpd_e2e::Scratch;
use serde_json::json;
use std::collections::{BTreeMap, HashMap};

const CASES: usize = 24;

/// Agents that differ in what they can do and in who shares their process.
const AGENTS: [&str; 4] = ["example", "shared", "plain", "shared_plain"];

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

const DETACH: &str = "_sandboxagent/session/detach";
const TERMINATE: &str = "_sandboxagent/session/terminate";

fn scratch() -> Scratch {
    Scratch::new()
        .example("shared", &[])
        .config("share_process = true")
        .example("plain", &["--without", "resume,close"])
        .example("shared_plain", &["--without", "close"])
        .config("share_process = true")
}

/// Does one thing at random.
fn step(driver: &mut Driver, dice: &mut Dice) {
    let sessions = driver.sessions();
    let session = &dice.pick(&sessions);
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
        step(&mut driver, &mut dice);
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

fn every_request_has_one_answer(driver: &Driver) {
    let answers = driver.answers();
    for sent in &driver.sent {
        let count = answers.get(&sent.id).map_or(0, Vec::len);
        assert_eq!(count, 1, "answers to {sent:?}");
    }
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
        let mark = format!("\"{}\\n", sent.mark());
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
    every_request_has_one_answer(driver);
    let sessions = stored(&scratch.state());
    for session in sessions.values() {
        session.is_in_order();
    }
    for id in driver.sessions() {
        let session = &sessions[&id];
        let seen = driver.seen(&id);
        judge(session, &seen);
        let told = driver.client.ends().iter().filter(|end| end.session() == Some(&id)).count();
        assert!(told <= session.ends(), "{id}: {told} ends were told of {}", session.ends());
    }
    answers_stand_behind_their_turns(driver, &sessions);
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
