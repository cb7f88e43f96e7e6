//! All tests over sessions that survive the death of every process.

/// What is so where appenders write themselves.
macro_rules! without_power {
    ($($item:item)*) => { $($item)* };
}

tests_with!(Process);

#[path = "copied_sessions.rs"]
mod copied_sessions;
#[path = "index_lag.rs"]
mod index_lag;
#[path = "lost_ends.rs"]
mod lost_ends;
