//! The turns, by tables and by any order of inputs.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const BOUND: Duration = Duration::from_secs(10);

fn turns() -> (Turns, Instant) {
    (Turns::new(Some(BOUND)), tokio::time::Instant::now().into_std())
}

fn t(n: u64) -> ClientRequest {
    ClientRequest(n)
}

// PR-8: one at a time, in order
#[test]
fn a_second_prompt_waits_its_turn() {
    let (mut turns, _) = turns();
    assert_eq!(turns.prompt(t(1)), Some(Step::Begin(t(1))));
    assert_eq!(turns.prompt(t(2)), None);
    assert_eq!(turns.prompt(t(3)), None);
    assert_eq!(turns.answered(), [Some(Step::Finish(t(1))), Some(Step::Begin(t(2)))]);
    assert_eq!(turns.answered(), [Some(Step::Finish(t(2))), Some(Step::Begin(t(3)))]);
    assert_eq!(turns.answered(), [Some(Step::Finish(t(3))), None]);
    assert!(!turns.active());
}

// PR-8: at most 16 wait
#[test]
fn the_line_is_bounded() {
    let (mut turns, _) = turns();
    for n in 0..=16 {
        assert_ne!(turns.prompt(t(n)), Some(Step::Refuse(t(n))), "{n}");
    }
    assert_eq!(turns.prompt(t(17)), Some(Step::Refuse(t(17))));
    assert_eq!(turns.waiting(), QUEUE);
}

// PR-7: cancel with nothing running is a no-op and does not kill the next turn
#[test]
fn a_stray_cancel_does_nothing() {
    let (mut turns, now) = turns();
    assert_eq!(turns.cancel(now), None);
    turns.cancel_of_client(now);
    assert_eq!(turns.prompt(t(1)), Some(Step::Begin(t(1))));
    assert!(!turns.cancelling());
}

// contract 7.3: a client's cancel reaches the agent whether or not a turn is known to run, and once in a turn
#[test]
fn a_cancel_of_a_client_is_passed_on() {
    let (mut turns, now) = turns();
    assert_eq!(turns.cancel_of_client(now), [None, Some(Step::PassCancel)], "idle");
    turns.prompt(t(1));
    assert_eq!(turns.cancel_of_client(now), [Some(Step::SendCancel), None]);
    assert_eq!(turns.cancel_of_client(now), [None, None], "it has heard of it");
    turns.tick(now + BOUND);
    assert_eq!(turns.cancel_of_client(now), [None, Some(Step::PassCancel)], "given up");
    turns.prompt(t(2));
    assert_eq!(turns.cancel_of_client(now), [Some(Step::Drop(t(2))), Some(Step::PassCancel)]);
    turns.answered();
    assert_eq!(turns.cancel_of_client(now), [None, Some(Step::PassCancel)], "idle again");
}

// PR-8: cancel clears only the running turn
#[test]
fn cancel_leaves_the_line_alone() {
    let (mut turns, now) = turns();
    turns.prompt(t(1));
    turns.prompt(t(2));
    assert_eq!(turns.cancel(now), Some(Step::SendCancel));
    assert_eq!(turns.cancel(now), None, "once is enough");
    assert_eq!(turns.answered(), [Some(Step::Finish(t(1))), Some(Step::Begin(t(2)))]);
    assert!(turns.active() && !turns.cancelling());
}

// PR-6: an agent that ignores cancel loses its say, and turns still do not mix
#[test]
fn an_ignored_cancel_is_bounded() {
    let (mut turns, now) = turns();
    turns.prompt(t(1));
    turns.cancel(now);
    assert_eq!(turns.deadline(), Some(now + BOUND));
    assert_eq!(turns.tick(now + BOUND / 2), None);
    assert_eq!(turns.tick(now + BOUND), Some(Step::GiveUp(t(1))));
    assert_eq!(turns.prompt(t(2)), None, "the agent is not done with the first");
    assert_eq!(turns.answered(), [Some(Step::Ignore(t(1))), Some(Step::Begin(t(2)))]);
}

// PR-6: a prompt that waits behind a stuck agent can be cancelled
#[test]
fn cancel_after_giving_up_takes_the_first_in_line() {
    let (mut turns, now) = turns();
    turns.prompt(t(1));
    turns.cancel(now);
    turns.tick(now + BOUND);
    turns.prompt(t(2));
    assert_eq!(turns.cancel(now + BOUND), Some(Step::Drop(t(2))));
    assert_eq!(turns.cancel(now + BOUND), None);
}

// PR-9
#[test]
fn a_waiting_prompt_can_be_withdrawn() {
    let (mut turns, now) = turns();
    turns.prompt(t(1));
    turns.prompt(t(2));
    assert_eq!(turns.withdraw(t(2), now), Some(Step::Drop(t(2))));
    assert_eq!(turns.withdraw(t(2), now), None);
    assert_eq!(turns.withdraw(t(1), now), Some(Step::SendCancel));
    assert_eq!(turns.answered(), [Some(Step::Finish(t(1))), None]);
}

// an agent that answers though nothing was asked
#[test]
fn an_answer_to_nothing_is_nothing() {
    let (mut turns, _) = turns();
    assert_eq!(turns.answered(), [None, None]);
}

#[derive(Clone, Copy, Debug)]
enum Input {
    Prompt,
    Cancel,
    CancelOfClient,
    Withdraw(u64),
    Answer,
    Wait(u64),
}

fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        3 => Just(Input::Prompt),
        1 => Just(Input::Cancel),
        1 => Just(Input::CancelOfClient),
        1 => (0u64..40).prop_map(Input::Withdraw),
        3 => Just(Input::Answer),
        2 => (0u64..12).prop_map(Input::Wait),
    ]
}

proptest! {
    // FR-3, PR-8: in any order of inputs every prompt is answered exactly once and at most one is with the agent
    #[test]
    fn every_prompt_is_answered_once(inputs in proptest::collection::vec(input(), 0..120)) {
        let (mut turns, mut now) = turns();
        let (mut next, mut open, mut with_agent) = (0, BTreeSet::new(), None);
        let settle: Vec<Input> = std::iter::repeat_n(Input::Answer, 40).collect();
        for input in inputs.into_iter().chain(settle) {
            let steps = match input {
                Input::Prompt => {
                    next += 1;
                    open.insert(t(next));
                    [turns.prompt(t(next)), None]
                }
                Input::Cancel => [turns.cancel(now), None],
                Input::CancelOfClient => turns.cancel_of_client(now),
                Input::Withdraw(n) => [turns.withdraw(t(n), now), None],
                Input::Answer => match with_agent.take() {
                    Some(_) => turns.answered(),
                    None => [None, None],
                },
                Input::Wait(seconds) => {
                    now += Duration::from_secs(seconds);
                    [turns.tick(now), None]
                }
            };
            for step in steps.into_iter().flatten() {
                match step {
                    Step::Begin(request) => {
                        prop_assert!(open.contains(&request));
                        prop_assert_eq!(with_agent.replace(request), None, "two turns at once");
                    }
                    Step::Finish(request) | Step::GiveUp(request) | Step::Drop(request) | Step::Refuse(request) => {
                        prop_assert!(open.remove(&request), "answered twice");
                    }
                    Step::Ignore(request) => prop_assert!(!open.contains(&request)),
                    Step::SendCancel => prop_assert!(with_agent.is_some()),
                    Step::PassCancel => {}
                }
            }
        }
        prop_assert!(open.is_empty(), "never answered: {:?}", open);
    }
}
