//! What a host counts, for whoever installs a recorder (contract 6, `GET /metrics`); without one it costs next to
//! nothing.
//!
//! Labels are bounded: names of entries, causes, states and stop reasons of the protocol, never a session. Not here:
//! what the crates below count themselves.

use crate::termination::Cause;
use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};

const SESSIONS: &str = "acpd_sessions";
const COMMANDS: &str = "acpd_session_commands_waiting";
const INPUTS: &str = "acpd_session_inputs_waiting";
const RUNS_STARTED: &str = "acpd_runs_started_total";
const RUNS_ENDED: &str = "acpd_runs_ended_total";
const TURNS_STARTED: &str = "acpd_turns_started_total";
const TURNS_ENDED: &str = "acpd_turns_ended_total";
const PROCESSES: &str = "acpd_agent_processes";
const RESTARTS: &str = "acpd_agent_restarts_total";

/// Says what each metric of a host means, its event log, processes and terminals included. Once, after a recorder was
/// installed.
pub fn describe_metrics() {
    describe_gauge!(SESSIONS, Unit::Count, "Live sessions by state");
    describe_gauge!(COMMANDS, Unit::Count, "Commands of clients that wait for their sessions");
    describe_gauge!(INPUTS, Unit::Count, "Batches of agents' messages that wait for their sessions");
    describe_counter!(RUNS_STARTED, Unit::Count, "Runs that began, by agent");
    describe_counter!(RUNS_ENDED, Unit::Count, "Runs that ended, by cause");
    describe_counter!(TURNS_STARTED, Unit::Count, "Turns that began");
    describe_counter!(TURNS_ENDED, Unit::Count, "Turns that ended, by stop reason");
    describe_gauge!(PROCESSES, Unit::Count, "Processes of each agent that run");
    describe_counter!(
        RESTARTS,
        Unit::Count,
        "Processes of each agent that were started after one had ended though nobody had asked it to"
    );
    acpd_eventlog::describe_metrics();
    acpd_supervisor::describe_metrics();
    acpd_terminal::describe_metrics();
}

pub(crate) fn run_started(agent: &str) {
    counter!(RUNS_STARTED, "agent" => agent.to_owned()).increment(1);
}

pub(crate) fn run_ended(cause: Option<Cause>) {
    counter!(RUNS_ENDED, "cause" => cause.map_or("acpd_failed", Cause::as_str)).increment(1);
}

pub(crate) fn turn_started() {
    counter!(TURNS_STARTED).increment(1);
}

/// A turn ended with a stop reason, or without one.
pub(crate) fn turn_ended(stop_reason: Option<&str>) {
    // An agent may say anything, and each label is kept for ever.
    let known = ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"];
    let reason =
        stop_reason.map_or("error", |said| known.into_iter().find(|known| *known == said).unwrap_or("other"));
    counter!(TURNS_ENDED, "stop_reason" => reason).increment(1);
}

pub(crate) fn agent_processes(agent: &str, running: usize) {
    gauge!(PROCESSES, "agent" => agent.to_owned()).set(running as f64);
}

pub(crate) fn agent_restarted(agent: &str) {
    counter!(RESTARTS, "agent" => agent.to_owned()).increment(1);
}

/// One live session's share of the gauges; it takes it back when it is dropped.
#[derive(Debug)]
pub(crate) struct SessionShare {
    state: &'static str,
    commands: usize,
    inputs: usize,
}

impl SessionShare {
    pub(crate) fn new(state: &'static str) -> Self {
        gauge!(SESSIONS, "state" => state).increment(1.0);
        Self { state, commands: 0, inputs: 0 }
    }

    /// What the session is doing, and what waits for it. Costs nothing when nothing changed.
    pub(crate) fn show(&mut self, state: &'static str, commands: usize, inputs: usize) {
        if self.state != state {
            gauge!(SESSIONS, "state" => self.state).decrement(1.0);
            gauge!(SESSIONS, "state" => state).increment(1.0);
            self.state = state;
        }
        for (name, shown, now) in
            [(COMMANDS, &mut self.commands, commands), (INPUTS, &mut self.inputs, inputs)]
        {
            if *shown != now {
                gauge!(name).increment(now as f64 - *shown as f64);
                *shown = now;
            }
        }
    }
}

impl Drop for SessionShare {
    fn drop(&mut self) {
        self.show(self.state, 0, 0);
        gauge!(SESSIONS, "state" => self.state).decrement(1.0);
    }
}
