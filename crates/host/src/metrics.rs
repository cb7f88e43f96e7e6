//! The metrics of a host, for an installed recorder (contract 6, `GET /metrics`); without one they cost next to
//! nothing.
//!
//! Labels are bounded: names of entries, causes, states and stop reasons of the protocol, never a session. Not here:
//! what the crates below count themselves.

use crate::agent::Gap;
use crate::clock;
use acpd_api::SessionState;
use acpd_record::{Cause, Usage};
use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use names::{COST, PROCESSES, RUNS_STARTED, SESSIONS, TURNS_ENDED, TURNS_STARTED};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The names of those that a daemon looks at itself.
pub mod names {
    pub use acpd_eventlog::metric_names::{BYTES, COMMITS, EVENTS, QUEUE_BYTES};

    /// Live sessions by state.
    pub const SESSIONS: &str = "acpd_sessions";
    /// Runs that began, by agent.
    pub const RUNS_STARTED: &str = "acpd_runs_started_total";
    /// Turns that began.
    pub const TURNS_STARTED: &str = "acpd_turns_started_total";
    /// Turns that ended, by stop reason.
    pub const TURNS_ENDED: &str = "acpd_turns_ended_total";
    /// Processes of each agent that run.
    pub const PROCESSES: &str = "acpd_agent_processes";
    /// What was paid, in billionths of each currency.
    pub const COST: &str = "acpd_cost_total";
}

const QUESTIONS: &str = "acpd_open_questions";
const TOKENS: &str = "acpd_tokens_total";
const COMMANDS: &str = "acpd_session_commands_waiting";
const INPUTS: &str = "acpd_session_inputs_waiting";
const RUNS_ENDED: &str = "acpd_runs_ended_total";
const TURNS_STALLED: &str = "acpd_turns_stalled_total";
const TAKEN_OVER: &str = "acpd_agents_taken_over_total";
const HANDED_OVER: &str = "acpd_agents_handed_over_total";
const EXPIRED: &str = "acpd_agents_expired_total";
const RETAINED: &str = "acpd_agent_retained_bytes_total";
const GAP: &str = "acpd_agent_gap_seconds";
const RESTARTS: &str = "acpd_agent_restarts_total";
const WAITING_SINCE: &str = "acpd_waiting_since_timestamp_seconds";
const TURN_SECONDS: &str = "acpd_turn_seconds";
const START_SECONDS: &str = "acpd_agent_start_seconds";
const PRUNED: &str = "acpd_sessions_pruned_total";
const PRUNED_BYTES: &str = "acpd_sessions_pruned_bytes_total";
const READY: &str = "acpd_ready";

/// Without a cause that has a name.
const ACPD_FAILED: &str = "acpd_failed";
/// The stop reasons of the protocol. An agent may say anything, and each label is kept for ever.
const STOP_REASONS: [&str; 5] = ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"];
/// The kinds of tokens of the protocol, likewise.
const TOKEN_KINDS: [&str; 6] = ["input", "output", "thought", "cachedRead", "cachedWrite", "total"];
const OTHER: &str = "other";
const ERROR: &str = "error";

/// Currencies that are told apart: those that agents name first.
const CURRENCIES: usize = 8;
static PAID_IN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Since when sessions of this process wait for an answer: milliseconds since 1970, and a number for each.
static WAITING: Mutex<BTreeSet<(i64, u64)>> = Mutex::new(BTreeSet::new());

/// Says what each metric of a host means, its event log, processes and terminals included. Once, after a recorder was
/// installed.
pub fn describe_metrics() {
    describe_gauge!(SESSIONS, Unit::Count, "Live sessions by state");
    describe_gauge!(
        QUESTIONS,
        Unit::Count,
        "Permission requests and elicitations of agents that wait for an answer"
    );
    describe_counter!(
        TOKENS,
        Unit::Count,
        "Tokens that agents told of at the end of turns, by agent and kind; total is the agent's own sum of the others"
    );
    describe_counter!(COST, "What agents told that their sessions cost, by agent and currency");
    describe_gauge!(COMMANDS, Unit::Count, "Commands of clients that wait for their sessions");
    describe_gauge!(INPUTS, Unit::Count, "Batches of agents' messages that wait for their sessions");
    describe_counter!(RUNS_STARTED, Unit::Count, "Runs that began, by agent");
    describe_counter!(RUNS_ENDED, Unit::Count, "Runs that ended, by cause");
    describe_counter!(TURNS_STARTED, Unit::Count, "Turns that began");
    describe_counter!(TURNS_ENDED, Unit::Count, "Turns that ended, by stop reason");
    describe_counter!(TURNS_STALLED, Unit::Count, "Times that nothing came from an agent for long in a turn");
    describe_gauge!(PROCESSES, Unit::Count, "Processes of each agent that run");
    describe_counter!(
        RESTARTS,
        Unit::Count,
        "Processes of each agent that were started after one that had ended unasked"
    );
    describe_continuity();
    describe_gauge!(
        WAITING_SINCE,
        Unit::Seconds,
        "Since when the session that has waited longest for an answer waits, in seconds since 1970; 0 when none does"
    );
    describe_gauge!(READY, "1 when new sessions can be taken, else 0; as GET /v1/ready says");
    describe_counter!(
        PRUNED,
        Unit::Count,
        "Ended sessions that were removed because they were old or too many"
    );
    describe_counter!(PRUNED_BYTES, Unit::Bytes, "Bytes that the stored blocks of those took");
    describe_histogram!(TURN_SECONDS, Unit::Seconds, "How long turns took");
    describe_histogram!(
        START_SECONDS,
        Unit::Seconds,
        "How long agents took from their start to being initialized"
    );
    begin();
    acpd_eventlog::describe_metrics();
    acpd_supervisor::describe_metrics();
    acpd_terminal::describe_metrics();
}

fn describe_continuity() {
    describe_counter!(
        TAKEN_OVER,
        Unit::Count,
        "Processes of each agent that were taken over from a daemon that was gone"
    );
    describe_counter!(HANDED_OVER, Unit::Count, "Those of them that the daemon before had handed over");
    describe_counter!(
        EXPIRED,
        Unit::Count,
        "Processes of each agent that were ended because no daemon came in time"
    );
    describe_counter!(RETAINED, Unit::Bytes, "Output that was held back while there was no daemon");
    describe_histogram!(GAP, Unit::Seconds, "How long a process that was taken over had no daemon");
}

/// Every family whose labels are known is there from the beginning: the first failure is an increase.
fn begin() {
    for state in [SessionState::Starting, SessionState::Idle, SessionState::Running, SessionState::Waiting] {
        gauge!(SESSIONS, "state" => state.as_str()).set(0.0);
    }
    for name in [QUESTIONS, COMMANDS, INPUTS, WAITING_SINCE, READY] {
        gauge!(name).set(0.0);
    }
    for cause in Cause::NAMES.iter().copied().chain([ACPD_FAILED]) {
        counter!(RUNS_ENDED, "cause" => cause).absolute(0);
    }
    for name in [TURNS_STARTED, TURNS_STALLED, PRUNED, PRUNED_BYTES, RETAINED] {
        counter!(name).absolute(0);
    }
    for reason in STOP_REASONS.into_iter().chain([OTHER, ERROR]) {
        counter!(TURNS_ENDED, "stop_reason" => reason).absolute(0);
    }
    drop(histogram!(TURN_SECONDS));
}

/// Whether the host could take on work when it was last looked.
pub(crate) fn ready(ready: bool) {
    gauge!(READY).set(f64::from(u8::from(ready)));
}

/// An agent is configured.
pub(crate) fn agent_known(agent: &str) {
    for name in [RUNS_STARTED, RESTARTS, TAKEN_OVER, HANDED_OVER, EXPIRED] {
        counter!(name, "agent" => agent.to_owned()).absolute(0);
    }
    for kind in TOKEN_KINDS {
        counter!(TOKENS, "agent" => agent.to_owned(), "kind" => kind).absolute(0);
    }
    gauge!(PROCESSES, "agent" => agent.to_owned()).increment(0.0);
    drop(histogram!(START_SECONDS, "agent" => agent.to_owned()));
}

/// An agent was started and has answered `initialize`.
pub(crate) fn agent_started(agent: &str, after: Duration) {
    histogram!(START_SECONDS, "agent" => agent.to_owned()).record(after);
}

pub(crate) fn run_started(agent: &str) {
    counter!(RUNS_STARTED, "agent" => agent.to_owned()).increment(1);
}

pub(crate) fn run_ended(cause: Option<Cause>) {
    counter!(RUNS_ENDED, "cause" => cause.map_or(ACPD_FAILED, Cause::as_str)).increment(1);
}

pub(crate) fn turn_started() {
    counter!(TURNS_STARTED).increment(1);
}

/// An agent told what was used.
pub(crate) fn used(agent: &str, usage: &Usage) {
    for (kind, count) in usage.tokens() {
        let kind = TOKEN_KINDS.into_iter().find(|known| *known == kind).unwrap_or(OTHER);
        counter!(TOKENS, "agent" => agent.to_owned(), "kind" => kind).increment(count);
    }
    for (currency, nanos) in usage.cost_nanos() {
        let currency = known_currency(&mut PAID_IN.lock(), currency).to_owned();
        counter!(COST, "agent" => agent.to_owned(), "currency" => currency).increment(nanos);
    }
}

/// A currency as a label: itself as long as there are few, and it looks like one.
fn known_currency<'a>(known: &mut BTreeSet<String>, currency: &'a str) -> &'a str {
    let is_short =
        (1..=16).contains(&currency.len()) && currency.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if known.contains(currency) {
        return currency;
    }
    if !is_short || known.len() == CURRENCIES {
        return OTHER;
    }
    known.insert(currency.to_owned());
    currency
}

/// Nothing came from the agent of a turn for long.
pub(crate) fn turn_stalled() {
    counter!(TURNS_STALLED).increment(1);
}

/// A turn that took so long ended with a stop reason, or without one.
pub(crate) fn turn_ended(stop_reason: Option<&str>, took: Duration) {
    let known = |said| STOP_REASONS.into_iter().find(|known| *known == said).unwrap_or(OTHER);
    counter!(TURNS_ENDED, "stop_reason" => stop_reason.map_or(ERROR, known)).increment(1);
    histogram!(TURN_SECONDS).record(took);
}

pub(crate) fn agent_processes(agent: &str, running: usize) {
    gauge!(PROCESSES, "agent" => agent.to_owned()).set(running as f64);
}

/// A process was taken over.
pub(crate) fn agent_taken_over(agent: &str, gap: Gap) {
    let Gap { time, retained, was_given_up, is_handed_over } = gap;
    for name in [(EXPIRED, was_given_up), (TAKEN_OVER, !was_given_up), (HANDED_OVER, is_handed_over)]
        .into_iter()
        .filter_map(|(name, holds)| holds.then_some(name))
    {
        counter!(name, "agent" => agent.to_owned()).increment(1);
    }
    histogram!(GAP).record(time.as_secs_f64());
    counter!(RETAINED).increment(retained);
}

pub(crate) fn agent_restarted(agent: &str) {
    counter!(RESTARTS, "agent" => agent.to_owned()).increment(1);
}

/// An ended session was removed, whose blocks took so many bytes.
pub(crate) fn pruned(bytes: u64) {
    counter!(PRUNED).increment(1);
    counter!(PRUNED_BYTES).increment(bytes);
}

/// One live session's share of the gauges; it takes it back when it is dropped.
#[derive(Debug)]
pub(crate) struct SessionShare {
    state: &'static str,
    inputs: usize,
    questions: u64,
    waits: Option<Waits>,
}

impl SessionShare {
    pub(crate) fn new(state: &'static str) -> Self {
        gauge!(SESSIONS, "state" => state).increment(1.0);
        Self { state, inputs: 0, questions: 0, waits: None }
    }

    /// What the session is doing. Costs nothing when nothing changed.
    pub(crate) fn show(&mut self, state: &'static str) {
        if self.state != state {
            gauge!(SESSIONS, "state" => self.state).decrement(1.0);
            gauge!(SESSIONS, "state" => state).increment(1.0);
            self.state = state;
            self.waits = (state == SessionState::Waiting.as_str()).then(Waits::new);
        }
    }

    /// How many questions of its agent are open.
    pub(crate) fn show_questions(&mut self, questions: u64) {
        if self.questions != questions {
            gauge!(QUESTIONS).increment(questions as f64 - self.questions as f64);
            self.questions = questions;
        }
    }

    /// How many inputs wait for it.
    pub(crate) fn show_inputs(&mut self, inputs: usize) {
        if self.inputs != inputs {
            gauge!(INPUTS).increment(inputs as f64 - self.inputs as f64);
            self.inputs = inputs;
        }
    }
}

impl Drop for SessionShare {
    fn drop(&mut self) {
        self.show_inputs(0);
        self.show_questions(0);
        gauge!(SESSIONS, "state" => self.state).decrement(1.0);
    }
}

/// A client's command that waits for its session's log, until it is dropped.
#[derive(Debug)]
pub(crate) struct WaitingCommand(());

impl WaitingCommand {
    pub(crate) fn new() -> Self {
        gauge!(COMMANDS).increment(1.0);
        Self(())
    }
}

impl Drop for WaitingCommand {
    fn drop(&mut self) {
        gauge!(COMMANDS).decrement(1.0);
    }
}

/// A session that waits for an answer, until it is dropped.
#[derive(Debug)]
struct Waits((i64, u64));

impl Waits {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let place = (clock::now_ms(), NEXT.fetch_add(1, Ordering::Relaxed));
        Self::change(|waiting| waiting.insert(place));
        Self(place)
    }

    fn change(change: impl FnOnce(&mut BTreeSet<(i64, u64)>) -> bool) {
        let mut waiting = WAITING.lock();
        change(&mut waiting);
        let first = waiting.first().map_or(0.0, |(since, _)| *since as f64 / 1000.0);
        gauge!(WAITING_SINCE).set(first);
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        Self::change(|waiting| waiting.remove(&self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.3: an agent may name any currency, and each label is kept for ever
    #[test]
    fn currencies_are_few() {
        let mut known = BTreeSet::new();
        assert_eq!(known_currency(&mut known, "USD"), "USD");
        for odd in ["", "two words", "\u{1b}[2J", "seventeen-letters", "aaaaaaaaaaaaaaaaa"] {
            assert_eq!(known_currency(&mut known, odd), OTHER, "{odd:?}");
        }
        let made_up: Vec<String> = (0..20).map(|number| format!("C{number}")).collect();
        let apart = made_up.iter().filter(|name| known_currency(&mut known, name) != OTHER).count();
        assert_eq!((apart, known.len()), (CURRENCIES - 1, CURRENCIES));
        assert_eq!(known_currency(&mut known, "USD"), "USD");
    }
}
