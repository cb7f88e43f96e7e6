//! Scripts of inputs, and what the ladder does with them.

use super::*;
use proptest::prelude::*;

const GRACES: Graces = Graces { stdin: Duration::from_secs(1), term: Duration::from_secs(5) };

fn start() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "a test needs some point in time to count from")]
    Instant::now()
}

const LEFTOVERS: Leftovers = Leftovers { after_exit: Duration::ZERO, rest_of_grace: true };

/// Runs a script of (milliseconds, input) and gives what was done and when.
fn script_with(leftovers: Leftovers, steps: &[(u64, LadderInput)]) -> Vec<(u64, LadderStep)> {
    let zero = start();
    let mut ladder = Ladder::new(GRACES, leftovers);
    let mut done = Vec::new();
    for (at, input) in steps {
        if let Some(step) = ladder.handle(*input, zero + Duration::from_millis(*at)) {
            done.push((*at, step));
        }
    }
    let rungs = done.iter().filter_map(|(_, step)| match step {
        LadderStep::Climb(rung) => Some(*rung),
        LadderStep::EndLeftovers => None,
    });
    assert_eq!(rungs.collect::<Vec<_>>(), ladder.used());
    done
}

fn script(steps: &[(u64, LadderInput)]) -> Vec<(u64, LadderStep)> {
    script_with(LEFTOVERS, steps)
}

const CLOSE: LadderStep = LadderStep::Climb(Rung::StdinClosed);
const TERM: LadderStep = LadderStep::Climb(Rung::Terminated);
const KILL: LadderStep = LadderStep::Climb(Rung::Killed);
const END: LadderStep = LadderStep::EndLeftovers;

// contract 3.2, SU-2
#[test]
fn each_rung_waits_for_its_grace() {
    use LadderInput::{Stop, Tick};
    assert_eq!(
        script(&[
            (0, Stop),
            (999, Tick),
            (1000, Tick),
            (1001, Tick),
            (5999, Tick),
            (6000, Tick),
            (9000, Tick)
        ]),
        [(0, CLOSE), (1000, TERM), (6000, KILL)],
    );
}

// contract 7.2: what agents have by default to leave by themselves
#[test]
fn the_default_graces_are_those_of_the_contract() {
    let graces = Graces { stdin: Duration::from_secs(3), term: Duration::from_secs(5) };
    assert_eq!(Graces::default(), graces);
}

// contract 3.2: a second stop request jumps to SIGKILL
#[test]
fn a_second_stop_kills_at_once() {
    use LadderInput::{Stop, Tick};
    assert_eq!(script(&[(0, Stop), (10, Stop), (20, Stop)]), [(0, CLOSE), (10, KILL)]);
    assert_eq!(script(&[(0, Stop), (1000, Tick), (1010, Stop)]), [(0, CLOSE), (1000, TERM), (1010, KILL)],);
}

#[test]
fn kill_needs_no_earlier_rung() {
    assert_eq!(script(&[(0, LadderInput::Kill), (1, LadderInput::Kill)]), [(0, KILL)]);
}

// contract 1.2: `leaked` says that a descendant outlived the grace, so it has the rest of it, and no longer
#[test]
fn leftovers_of_a_stop_have_the_rest_of_the_grace() {
    use LadderInput::{Kill, LeaderExited, NothingLeft, Stop, Tick};
    for (name, steps, done) in [
        (
            "to the end of the first",
            vec![(0, Stop), (5, LeaderExited), (999, Tick), (1000, Tick)],
            vec![(0, CLOSE), (1000, END)],
        ),
        (
            "of the second",
            vec![(0, Stop), (1000, Tick), (1005, LeaderExited), (5999, Tick), (6000, Tick)],
            vec![(0, CLOSE), (1000, TERM), (6000, END)],
        ),
        (
            "no longer than they live",
            vec![(0, Stop), (5, LeaderExited), (6, NothingLeft), (1000, Tick)],
            vec![(0, CLOSE), (6, END)],
        ),
        (
            "not when it is asked again",
            vec![(0, Stop), (5, LeaderExited), (7, Stop), (8, Kill)],
            vec![(0, CLOSE), (7, END)],
        ),
        (
            "not after a kill",
            vec![(0, Stop), (3, Kill), (5, LeaderExited), (6, Tick)],
            vec![(0, CLOSE), (3, KILL), (5, END)],
        ),
        ("not after a kill alone", vec![(3, Kill), (5, LeaderExited)], vec![(3, KILL), (5, END)]),
        (
            "while the program lives it says nothing",
            vec![(0, Stop), (5, NothingLeft), (7, LeaderExited)],
            vec![(0, CLOSE)],
        ),
    ] {
        assert_eq!(script(&steps), done, "{name}");
    }
    let at_once = Leftovers { rest_of_grace: false, ..LEFTOVERS };
    assert_eq!(script_with(at_once, &[(0, Stop), (5, LeaderExited)]), [(0, CLOSE), (5, END)]);
}

// contract 3.2, TE-5: an exit that was not asked for ends what it leaves, at once or after the moment for last words
#[test]
fn leftovers_of_an_exit_have_their_own_time() {
    use LadderInput::{LeaderExited, NothingLeft, Stop, Tick};
    assert_eq!(script(&[(3, LeaderExited), (4, Stop)]), [(3, END)]);
    let moment = Leftovers { after_exit: Duration::from_millis(200), rest_of_grace: false };
    for (steps, done) in [
        (vec![(3, LeaderExited), (202, Tick), (203, Tick)], vec![(203, END)]),
        (vec![(3, LeaderExited), (9, NothingLeft)], vec![(9, END)]),
        (vec![(3, LeaderExited), (9, Stop)], vec![(9, END)]),
    ] {
        assert_eq!(script_with(moment, &steps), done);
    }
}

// contract 3.2: a wait ends as soon as the leader is dead and nothing of it lives
#[test]
fn nothing_happens_after_the_end() {
    use LadderInput::{Kill, LeaderExited, NothingLeft, Stop, Tick};
    assert_eq!(
        script(&[
            (0, Stop),
            (5, LeaderExited),
            (5, NothingLeft),
            (1000, Tick),
            (1001, Stop),
            (1002, Kill),
            (1003, LeaderExited)
        ]),
        [(0, CLOSE), (5, END)],
    );
}

proptest! {
    // Any order of inputs: rungs only go up, none twice, a stopped program is killed in the end, and after a dead
    // one its descendants end, never later than the graces allow.
    #[test]
    fn rungs_only_go_up(
        inputs in proptest::collection::vec((0u64..3000, 0u8..5), 0..40), after_exit in 0u64..3000, rest: bool,
    ) {
        let mut now = start();
        let leftovers = Leftovers { after_exit: Duration::from_millis(after_exit), rest_of_grace: rest };
        let mut ladder = Ladder::new(GRACES, leftovers);
        let (mut stopped_at, mut dead_at, mut ends) = (None, None, Vec::new());
        for (wait, input) in inputs {
            // What a keeper does: it wakes at every deadline.
            let next = now + Duration::from_millis(wait);
            while let Some(due) = ladder.deadline().filter(|due| *due <= next) {
                ends.extend((ladder.handle(LadderInput::Tick, due) == Some(END)).then_some(due));
            }
            now = next;
            let input = match input {
                0 => LadderInput::Stop,
                1 => LadderInput::Kill,
                2 => LadderInput::LeaderExited,
                3 => LadderInput::NothingLeft,
                _ => LadderInput::Tick,
            };
            if dead_at.is_none() && matches!(input, LadderInput::Stop | LadderInput::Kill) {
                stopped_at.get_or_insert(now);
            }
            if input == LadderInput::LeaderExited {
                dead_at.get_or_insert(now);
            }
            ends.extend((ladder.handle(input, now) == Some(END)).then_some(now));
        }
        prop_assert!(ladder.used().is_sorted_by(|a, b| a < b));
        while let Some(due) = ladder.deadline() {
            ends.extend((ladder.handle(LadderInput::Tick, due) == Some(END)).then_some(due));
        }
        prop_assert_eq!(ends.len(), usize::from(dead_at.is_some()));
        match (stopped_at, dead_at, ends.first()) {
            (Some(stopped), Some(dead), Some(ended)) => {
                prop_assert!(*ended <= dead.max(stopped + GRACES.stdin + GRACES.term));
            }
            (None, Some(dead), Some(ended)) => prop_assert!(*ended <= dead + leftovers.after_exit),
            (Some(_), None, _) => prop_assert_eq!(ladder.used().last(), Some(&Rung::Killed)),
            _ => prop_assert!(ladder.used().is_empty()),
        }
    }
}
