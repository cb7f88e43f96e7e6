//! The only place of the harness that reads the clock: bounds on waits for events.
//!
//! Not a way to wait: what is waited for is always an event.

use std::time::{Duration, Instant};

/// A point in time after which a wait has failed.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// A deadline `after` from now.
    pub fn after(after: Duration) -> Self {
        Self(now() + after)
    }

    /// What is left of it.
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(now())
    }

    /// Whether it is over.
    pub fn is_over(self) -> bool {
        self.left().is_zero()
    }
}

/// The time since a moment, for what is said of a test and what its judge compares with times in logs.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// From now on.
    pub fn start() -> Self {
        Self(now())
    }

    /// How long that is.
    pub fn passed(self) -> Duration {
        now().saturating_duration_since(self.0)
    }
}

/// Now, in milliseconds since 1970, as events have it.
///
/// # Panics
/// When the system has no such time.
pub fn unix_ms() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "a test is a shell: it compares with the times of a log")]
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).expect("it is later than 1970");
    i64::try_from(since.as_millis()).expect("it is long until then")
}

/// Pause between two looks: what looks all the time takes it from what is looked for.
const PACE: Duration = Duration::from_millis(2);

/// Looks until something is so; for what comes without a signal.
///
/// # Panics
/// When a test has waited long enough.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Deadline::after(crate::PATIENCE);
    loop {
        if let Some(found) = look() {
            return found;
        }
        if deadline.is_over() {
            panic!("it never came to this: {what}; there run:\n{}", crate::running().join("\n"));
        }
        #[expect(clippy::disallowed_methods, reason = "nothing tells when it is time for the next look")]
        // tidy: allow sleep, nothing tells when it is time for the next look
        std::thread::sleep(PACE);
    }
}

/// Runs what a time is to cut off, with more of it until it comes far enough before that: a busy machine needs longer. The time that it
/// had at last, and what came of it.
pub fn cut_off<T>(run: impl Fn(&'static str) -> T, is_far: impl Fn(&T) -> bool) -> (&'static str, T) {
    for time in ["300ms", "3s"] {
        let ran = run(time);
        if is_far(&ran) {
            return (time, ran);
        }
    }
    ("20s", run("20s"))
}

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "a test is a shell: it bounds its waits by the clock")]
    Instant::now()
}
