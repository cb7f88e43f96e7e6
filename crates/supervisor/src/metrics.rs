//! The metrics of the supervisor, for an installed recorder; without one they cost next to nothing.

use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};

const KEEPERS: &str = "acpd_keepers";
const ORPHANS: &str = "acpd_orphans_killed_total";

const BY_KEEPER: &str = "keeper";
const BY_SWEEP: &str = "sweep";

/// Says what each metric of the supervisor means. Once, after a recorder was installed.
pub fn describe_metrics() {
    describe_gauge!(KEEPERS, Unit::Count, "Keepers that run: one per agent process and per terminal");
    describe_counter!(
        ORPHANS,
        Unit::Count,
        "Processes that outlived their program and were killed, by whom: their keeper, or a sweep"
    );
    gauge!(KEEPERS).set(0.0);
    for by in [BY_KEEPER, BY_SWEEP] {
        counter!(ORPHANS, "by" => by).absolute(0);
    }
}

/// A keeper that runs; it counts until it is dropped.
#[derive(Debug)]
pub(crate) struct KeeperRuns(());

impl KeeperRuns {
    pub(crate) fn new() -> Self {
        gauge!(KEEPERS).increment(1.0);
        Self(())
    }
}

impl Drop for KeeperRuns {
    fn drop(&mut self) {
        gauge!(KEEPERS).decrement(1.0);
    }
}

/// A keeper killed what its program had left.
pub(crate) fn leaked(killed: u32) {
    orphans(BY_KEEPER, killed);
}

/// A sweep killed what no keeper had.
pub(crate) fn swept(killed: u32) {
    orphans(BY_SWEEP, killed);
}

fn orphans(by: &'static str, killed: u32) {
    if killed > 0 {
        counter!(ORPHANS, "by" => by).increment(killed.into());
    }
}
