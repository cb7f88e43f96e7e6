//! Durations as people write them: `250ms`, `1s`, `5m`, `2h`, `never`. One number, one unit.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use thiserror::Error as ThisError;

/// Longer than any useful time, and short enough that adding it to a clock cannot overflow.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

const EXPECTED: &str = r#"a duration such as "250ms", "1s", "5m", "2h" or "never""#;
const EXPECTED_BOUNDED: &str = r#"a duration such as "250ms", "1s", "5m" or "2h""#;

/// How long to wait for something, if not for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// No limit.
    Never,
    /// This long, at most 366 days.
    After(Duration),
}

impl Wait {
    /// The limit, or `None` for [`Wait::Never`].
    pub fn limit(self) -> Option<Duration> {
        match self {
            Wait::Never => None,
            Wait::After(limit) => Some(limit),
        }
    }
}

/// Why a text is no duration.
#[derive(Debug, Clone, PartialEq, Eq, ThisError)]
pub enum WaitError {
    /// No number and unit.
    #[error("\"{text}\" is not {EXPECTED}")]
    Unreadable {
        /// What was written.
        text: String,
    },
    /// More than 366 days.
    #[error("\"{text}\" is longer than 366 days; write \"never\" for no limit")]
    TooLong {
        /// What was written.
        text: String,
    },
    /// `never` where acpd must be able to go on.
    #[error("\"never\" is not possible here; write {EXPECTED_BOUNDED}")]
    Unbounded,
}

impl FromStr for Wait {
    type Err = WaitError;

    fn from_str(text: &str) -> Result<Self, WaitError> {
        if text == "never" {
            return Ok(Wait::Never);
        }
        let unreadable = || WaitError::Unreadable { text: text.escape_debug().to_string() };
        let unit_at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(unreadable)?;
        let (number, unit) = text.split_at(unit_at);
        let factor = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(unreadable()),
        };
        if number.is_empty() {
            return Err(unreadable());
        }
        number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(factor))
            .map(Duration::from_millis)
            .filter(|limit| *limit <= LONGEST)
            .map(Wait::After)
            .ok_or_else(|| WaitError::TooLong { text: text.to_owned() })
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wait::After(limit) = self else { return out.write_str("never") };
        let millis = limit.as_millis();
        match [(3_600_000, "h"), (60_000, "m"), (1_000, "s")]
            .into_iter()
            .find(|(size, _)| millis > 0 && millis % size == 0)
        {
            Some((size, unit)) => write!(out, "{}{unit}", millis / size),
            None => write!(out, "{millis}ms"),
        }
    }
}

impl<'de> Deserialize<'de> for Wait {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(WaitVisitor { expected: EXPECTED })
    }
}

/// For `deserialize_with`: a duration that must end, because acpd promises to.
pub(super) fn bounded<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let wait = from.deserialize_str(WaitVisitor { expected: EXPECTED_BOUNDED })?;
    wait.limit().ok_or_else(|| D::Error::custom(WaitError::Unbounded))
}

struct WaitVisitor {
    expected: &'static str,
}

impl Visitor<'_> for WaitVisitor {
    type Value = Wait;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Wait, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 6: durations are strings
    #[test]
    fn durations_are_one_number_and_one_unit() {
        let after = |millis| Ok(Wait::After(Duration::from_millis(millis)));
        for (text, expected) in [
            ("never", Ok(Wait::Never)),
            ("0s", after(0)),
            ("250ms", after(250)),
            ("1s", after(1_000)),
            ("5m", after(300_000)),
            ("2h", after(7_200_000)),
            ("1d", after(86_400_000)),
        ] {
            assert_eq!(text.parse(), expected, "{text}");
        }
        for text in ["", "5", "s", "-1s", "1.5s", "1 s", "1m30s", "5 minutes", "Never", "1S"] {
            assert!(matches!(text.parse::<Wait>(), Err(WaitError::Unreadable { .. })), "{text}");
        }
        for text in ["367d", "18446744073709551615h", "99999999999999999999ms"] {
            assert!(matches!(text.parse::<Wait>(), Err(WaitError::TooLong { .. })), "{text}");
        }
    }

    // contract 6: durations are strings
    #[test]
    fn a_duration_reads_back_as_it_is_shown() {
        for text in ["never", "0ms", "250ms", "1s", "90s", "5m", "2h"] {
            assert_eq!(text.parse::<Wait>().unwrap().to_string(), text);
        }
    }
}
