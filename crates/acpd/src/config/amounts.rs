//! Numbers with a unit: durations as people write them (`250ms`, `1s`, `5m`, `2h`, `never`) and byte counts (`64 MiB`).

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

use super::values::{Written, Wrong, text, written};

pub(super) const KIB: u64 = 1 << 10;
pub(super) const MIB: u64 = 1 << 20;
pub(super) const GIB: u64 = 1 << 30;

/// The largest first. A space in front of a unit may be left out, or be more than one.
type Units = [(&'static str, u64)];
const BYTES: &Units = &[(" GiB", GIB), (" MiB", MIB), (" KiB", KIB), ("", 1)];
const TIMES: &Units = &[("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Longer than any useful time, and short enough that adding it to a clock cannot overflow.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Longer than anything is kept.
const LONGEST_KEPT: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

const EXPECTED: &str = r#"a duration such as "250ms", "1s", "5m", "2h" or "never""#;
const EXPECTED_BOUNDED: &str = r#"a duration such as "250ms", "1s", "5m" or "2h""#;
const EXPECTED_AGE: &str = r#"a duration such as "12h", "30d" or "never""#;
const EXPECTED_MOST: &str = r#"a byte count such as "8 MiB", "1 GiB" or "never""#;
const EXPECTED_BYTES: &str = r#"a byte count such as 1048576 or "64 MiB""#;

/// One number and one unit; None when it is none, and None inside when it is too large.
fn amount(text: &str, units: &Units) -> Option<Option<u64>> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let is_unit = |name: &str| name.strip_prefix(' ').map_or(unit == name, |name| unit.trim_start() == name);
    let (_, factor) = units.iter().find(|(name, _)| is_unit(name))?;
    (!number.is_empty()).then(|| number.parse().ok().and_then(|number: u64| number.checked_mul(*factor)))
}

/// One number and the unit of a time; None when it is none, and None inside when it is longer than `longest`.
fn time(text: &str, longest: Duration) -> Option<Option<Duration>> {
    Some(amount(text, TIMES)?.map(Duration::from_millis).filter(|time| *time <= longest))
}

/// The value of `--older-than`: how old something may become.
///
/// # Errors
/// When it is not a duration.
pub fn age(text: &str) -> Result<Duration, String> {
    time(text, LONGEST_KEPT).flatten().ok_or_else(|| "not a duration such as 12h or 30d".to_owned())
}

/// The value of `--keep-bytes`: what something may take.
///
/// # Errors
/// When it is not a byte count.
pub fn byte_count(text: &str) -> Result<u64, String> {
    amount(text, BYTES).flatten().ok_or_else(|| "not a byte count such as 500MiB or 1GiB".to_owned())
}

/// A byte count with the largest unit that divides it.
fn shown(count: u64) -> String {
    let whole = BYTES.iter().find(|(_, size)| count.is_multiple_of(*size));
    whole.map_or_else(|| count.to_string(), |(unit, size)| format!("{}{unit}", count / size))
}

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

impl FromStr for Wait {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "never" {
            return Ok(Wait::Never);
        }
        time(text, LONGEST)
            .ok_or_else(|| format!("\"{}\" is not {EXPECTED}", text.escape_debug()))?
            .map(Wait::After)
            .ok_or_else(|| format!("\"{text}\" is longer than 366 days; write \"never\" for no limit"))
    }
}

impl<'de> Deserialize<'de> for Wait {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        text(from, EXPECTED, str::parse)
    }
}

impl Serialize for Wait {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// The duration as the configuration has it, in the largest unit that divides it.
impl fmt::Display for Wait {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wait::After(limit) = self else { return to.write_str("never") };
        let millis = limit.as_millis();
        let whole = TIMES.iter().find(|(_, unit)| millis > 0 && millis.is_multiple_of(u128::from(*unit)));
        let (unit, size) = whole.unwrap_or(&("s", 1));
        write!(to, "{}{unit}", millis / u128::from(*size))
    }
}

/// For `serialize_with`: as it can be written.
pub(super) fn span<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&Wait::After(*span))
}

/// For `serialize_with`: as it can be written.
pub(super) fn size<S: Serializer, N: Copy + TryInto<u64>>(count: &N, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&shown((*count).try_into().unwrap_or(u64::MAX)))
}

/// For `deserialize_with`: a duration that must end, because acpd promises to.
pub(super) fn bounded<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    text(from, EXPECTED_BOUNDED, |text| {
        let limit = text.parse::<Wait>()?.limit();
        limit.ok_or_else(|| format!("\"never\" is not possible here; write {EXPECTED_BOUNDED}"))
    })
}

/// For `deserialize_with`: how long something is kept, `never` for as long as there is room; not 0, which would not keep it
/// at all.
pub(super) fn kept_for<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    text(from, EXPECTED_AGE, |text| match text {
        "never" => Ok(None),
        text => {
            let said = text.escape_debug();
            let kept = time(text, LONGEST_KEPT).ok_or_else(|| format!("\"{said}\" is not {EXPECTED_AGE}"))?;
            let kept = kept.filter(|kept| !kept.is_zero()).map(Some);
            kept.ok_or_else(|| format!("\"{said}\" is out of range; write \"never\" to remove nothing"))
        }
    })
}

/// For `serialize_with`: the same as it can be written.
pub(super) fn kept_span<S: Serializer>(kept: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    match kept {
        None => to.serialize_str("never"),
        Some(kept) => span(kept, to),
    }
}

/// For `deserialize_with`: what all that is kept may take, `never` for as much as there is room for.
pub(super) fn kept_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    written(from, EXPECTED_MOST, |written| match written {
        Written::Text("never") => Ok(None),
        written => bytes_of(written, EXPECTED_MOST, MIB..=u64::MAX).map(Some),
    })
}

/// For `serialize_with`: the same as it can be written.
pub(super) fn kept_size<S: Serializer>(kept: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
    match kept {
        None => to.serialize_str("never"),
        Some(kept) => size(kept, to),
    }
}

/// For `deserialize_with`: the longest line, 4 KiB to 1 GiB.
pub(super) fn line_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    usize::try_from(bytes(from, 4 * KIB, GIB)?).map_err(D::Error::custom)
}

/// For `deserialize_with`: terminal output that is kept, or the longest content of a file; 1 byte to 256 MiB.
pub(super) fn content_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    bytes(from, 1, 256 * MIB)
}

fn bytes<'de, D: Deserializer<'de>>(from: D, least: u64, most: u64) -> Result<u64, D::Error> {
    written(from, EXPECTED_BYTES, |written| bytes_of(written, EXPECTED_BYTES, least..=most))
}

fn bytes_of(written: Written<'_>, expected: &str, allowed: RangeInclusive<u64>) -> Result<u64, Wrong> {
    let (count, said) = match written {
        Written::Number(number) => (u64::try_from(number).ok(), number.to_string()),
        Written::Text(text) => {
            let said = format!("\"{}\"", text.escape_debug());
            let count = amount(text, BYTES);
            (count.ok_or_else(|| Wrong::Value(format!("{said} is not {expected}")))?, said)
        }
    };
    count.filter(|count| allowed.contains(count)).ok_or_else(|| {
        let least = shown(*allowed.start());
        Wrong::Value(match *allowed.end() {
            u64::MAX => format!("{said} is out of range; the least is {least}"),
            most => format!("{said} is out of range; allowed are {least} to {}", shown(most)),
        })
    })
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
            assert_eq!(expected.map(|wait| wait.to_string()).as_deref(), Ok(text), "as it is said");
        }
        for (texts, wrong) in [
            (
                &["", "5", "s", "-1s", "1.5s", "1 s", "1m30s", "5 minutes", "Never", "1S"][..],
                "is not a duration",
            ),
            (&["367d", "18446744073709551615h", "99999999999999999999ms"], "is longer than 366 days"),
        ] {
            for text in texts {
                assert!(text.parse::<Wait>().is_err_and(|error| error.contains(wrong)), "{text}");
            }
        }
    }
}
