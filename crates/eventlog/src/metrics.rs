//! The metrics of the event log, for an installed recorder; without one they cost next to nothing. Counted once per
//! commit, never per event.

use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use names::{BYTES, COMMITS, EVENTS, QUEUE_BYTES};

/// The names of those that a daemon looks at itself.
pub mod names {
    /// Events that were committed.
    pub const EVENTS: &str = "acpd_events_appended_total";
    /// Their bytes.
    pub const BYTES: &str = "acpd_events_appended_bytes_total";
    /// Bytes that wait for the writer.
    pub const QUEUE_BYTES: &str = "acpd_log_queue_bytes";
    /// How long commits took.
    pub const COMMITS: &str = "acpd_log_commit_seconds";
}

/// Sessions that were compressed, and by how many bytes they became smaller.
const SEALED: &str = "acpd_log_sessions_compressed_total";
const SAVED: &str = "acpd_log_bytes_saved_total";
const SYNC_FAILURES: &str = "acpd_log_sync_failures_total";
const FAILURES: &str = "acpd_log_commit_failures_total";
const QUEUE_ENTRIES: &str = "acpd_log_queue_entries";

/// Says what each metric of the event log means. Once, after a recorder was installed.
pub fn describe_metrics() {
    describe_counter!(EVENTS, Unit::Count, "Events that were committed");
    describe_counter!(BYTES, Unit::Bytes, "Bytes of the events that were committed, before they were packed");
    describe_histogram!(COMMITS, Unit::Seconds, "How long a commit took");
    describe_counter!(FAILURES, Unit::Count, "Commits that failed, each of one session");
    describe_gauge!(QUEUE_BYTES, Unit::Bytes, "Bytes that wait for the writer of the event log");
    describe_gauge!(
        QUEUE_ENTRIES,
        Unit::Count,
        "Batches and other work that wait for the writer of the event log"
    );
    describe_counter!(SEALED, Unit::Count, "Compressions of sessions that rest");
    describe_counter!(SAVED, Unit::Bytes, "Bytes that these have given back");
    describe_counter!(
        SYNC_FAILURES,
        Unit::Count,
        "Sessions of which the disk has not taken what was written, which ends them"
    );
    // From the beginning, so that the first failure is an increase.
    for name in [EVENTS, BYTES, FAILURES, SEALED, SAVED, SYNC_FAILURES] {
        counter!(name).absolute(0);
    }
    drop(histogram!(COMMITS));
    queue(0, 0);
}

pub(crate) fn commit_took(time: Duration) {
    histogram!(COMMITS).record(time);
}

pub(crate) fn appended(events: u64, bytes: u64) {
    counter!(EVENTS).increment(events);
    counter!(BYTES).increment(bytes);
}

pub(crate) fn commit_failed() {
    counter!(FAILURES).increment(1);
}

pub(crate) fn sealed(before: u64, after: u64) {
    counter!(SEALED).increment(1);
    counter!(SAVED).increment(before.saturating_sub(after));
}

pub(crate) fn sync_failed() {
    counter!(SYNC_FAILURES).increment(1);
}

pub(crate) fn queue(entries: usize, bytes: usize) {
    gauge!(QUEUE_ENTRIES).set(entries as f64);
    gauge!(QUEUE_BYTES).set(bytes as f64);
}
