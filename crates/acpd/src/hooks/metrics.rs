//! The metrics of hooks, for an installed recorder. No label names a hook: its URL may be a secret.

use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};

const TOLD: &str = "acpd_hook_deliveries_total";
const WAITING: &str = "acpd_hook_deliveries_waiting";

/// Says what each means.
pub(super) fn describe() {
    describe_counter!(
        TOLD,
        Unit::Count,
        "Tries to tell hooks of events, and events that were dropped, by outcome"
    );
    describe_gauge!(WAITING, Unit::Count, "Events that wait for hooks");
    for outcome in ["delivered", "failed", "dropped"] {
        counter!(TOLD, "outcome" => outcome).absolute(0);
    }
    gauge!(WAITING).increment(0.0);
}

pub(super) fn told() {
    counter!(TOLD, "outcome" => "delivered").increment(1);
}

pub(super) fn failed() {
    counter!(TOLD, "outcome" => "failed").increment(1);
}

pub(super) fn dropped() {
    counter!(TOLD, "outcome" => "dropped").increment(1);
}

/// What waits for one hook; taken back when it is dropped.
#[derive(Debug, Default)]
pub(super) struct WaitingShare(usize);

impl WaitingShare {
    pub(super) fn show(&mut self, waiting: usize) {
        if self.0 != waiting {
            gauge!(WAITING).increment(waiting as f64 - self.0 as f64);
            self.0 = waiting;
        }
    }
}

impl Drop for WaitingShare {
    fn drop(&mut self) {
        self.show(0);
    }
}
