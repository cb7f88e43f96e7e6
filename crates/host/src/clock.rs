//! The only place of this crate that reads the wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "the shell around the state machines reads the clock here")]
    let now = SystemTime::now();
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// ISO 8601 in UTC with milliseconds, as the contract wants times.
pub fn iso8601(ms: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    format!("{time:.3}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_have_milliseconds_and_a_z() {
        assert_eq!(super::iso8601(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(super::iso8601(1_763_665_200_123), "2025-11-20T19:00:00.123Z");
    }
}
