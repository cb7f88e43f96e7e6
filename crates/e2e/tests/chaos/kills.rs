//! SIGKILL of acpd at any moment, under load: what a client has seen is there at the next start, once.
//!
//! One state directory for all lives. Each life works on sessions of earlier ones too, and is killed while it starts,
//! creates, streams, ends or takes up. `ACPD_KILLS` sets the number of lives:
//!
//! ```text
//! ACPD_KILLS=200 cargo test -p acpd-e2e --test chaos kills
//! ```

use crate::dice::{Dice, number_from, seeds};
use crate::drive::Driver;
use crate::interleavings::{AGENTS, in_order, saw_what_is_stored, scratch, step};
use acpd_e2e::{Deadline, Scratch};
use rustix::process::Signal;
use std::time::Duration;

const KILLS: usize = 16;
/// Sessions that a life works with, at most.
const SESSIONS: usize = 2;

/// Lets a moment pass that no event marks.
fn pass(dice: &mut Dice, below_us: usize) {
    let moment = Deadline::after(Duration::from_micros(dice.below(below_us) as u64));
    while !moment.is_over() {
        std::thread::yield_now();
    }
}

/// One life of acpd, up to its violent end.
fn live(scratch: &Scratch, dice: &mut Dice, known: &[String]) -> Driver {
    let mut client = scratch.stdio(dice.pick(&AGENTS));
    // The schema is judged elsewhere; here there is too much to judge.
    client.tolerant();
    if dice.once_in(8) {
        // While it starts, which is also when it deals with the dead.
        pass(dice, 60_000);
        client.signal(Signal::KILL);
        return Driver::uninitialized(client, scratch);
    }
    let mut driver = Driver::new(client, scratch);
    let mut sessions: Vec<String> = (0..SESSIONS.min(known.len())).map(|_| dice.pick(known)).collect();
    for session in &sessions {
        driver.send(dice.pick(&["session/load", "session/resume"]), Some(session));
    }
    driver.send("session/new", None);
    if dice.once_in(2) {
        driver.wait_for_all_but_prompts();
    }
    sessions.extend(driver.sessions());
    for _ in 0..dice.below(25) {
        if sessions.is_empty() {
            driver.wait_for_all_but_prompts();
            sessions = driver.sessions();
        }
        step(&mut driver, dice, &sessions);
    }
    // Something that flows, so that there is always an event on its way.
    driver.send("session/new", None);
    driver.wait_for_all_but_prompts();
    if let Some(session) = driver.sessions().last() {
        let asked = driver.prompt(session, "stream 1500 60").id;
        driver.read_some(dice.below(1200), asked);
    }
    pass(dice, 20_000);
    driver.client.signal(Signal::KILL);
    driver
}

// TM-4, UP-5, SU-3, contract 1.2, contract 6: nothing that was seen is missing, nothing doubled, no hole; every run has
// its one end; nothing of a killed acpd lives on
#[test]
fn killed_at_any_moment() {
    let seed = seeds(1)[0];
    eprintln!("ACPD_SEED={seed}");
    let mut dice = Dice::new(seed);
    let scratch = scratch();
    let (mut lives, mut known) = (Vec::new(), Vec::new());
    for _ in 0..number_from("ACPD_KILLS", KILLS) {
        let mut driver = live(&scratch, &mut dice, &known);
        driver.client.ended();
        driver.answered(false);
        known.extend(driver.sessions());
        lives.push(driver);
    }
    // The next start finds them all, and each can be read to its end.
    let mut last = scratch.stdio("example");
    last.tolerant();
    let mut last = Driver::new(last, &scratch);
    for session in &known {
        last.send("session/load", Some(session));
        last.wait_for_all_but_prompts();
    }
    last.client.finish();
    last.answered(true);
    let sessions = in_order(&scratch);
    assert!(known.iter().all(|id| sessions.contains_key(id)), "every session that was told of is there");
    for driver in &lives {
        saw_what_is_stored(driver, &sessions, Driver::judge_cut);
    }
    saw_what_is_stored(&last, &sessions, Driver::judge);
}
