//! The metrics of terminals, for an installed recorder; without one they cost next to nothing.

use metrics::{Unit, describe_gauge, gauge};

const RUNNING: &str = "acpd_terminals_running";

/// Says what each metric of the terminals means. Once, after a recorder was installed.
pub fn describe_metrics() {
    describe_gauge!(RUNNING, Unit::Count, "Commands that run in terminals");
    gauge!(RUNNING).set(0.0);
}

/// A command that runs; it counts until it is dropped.
#[derive(Debug)]
pub(crate) struct CommandRuns(());

impl CommandRuns {
    pub(crate) fn new() -> Self {
        gauge!(RUNNING).increment(1.0);
        Self(())
    }
}

impl Drop for CommandRuns {
    fn drop(&mut self) {
        gauge!(RUNNING).decrement(1.0);
    }
}
