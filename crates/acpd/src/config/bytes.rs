//! Byte counts: a whole number, or a text with a unit such as `64 MiB`. Ranges are checked where they are read.

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};

pub(super) const KIB: u64 = 1 << 10;
pub(super) const MIB: u64 = 1 << 20;
pub(super) const GIB: u64 = 1 << 30;

/// For `deserialize_with`: the longest line, 4 KiB to 1 GiB.
pub(super) fn line_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    let count = from.deserialize_any(ByteCount { least: 4 * KIB, most: GIB })?;
    usize::try_from(count).map_err(D::Error::custom)
}

/// For `deserialize_with`: how much terminal output is kept, 1 byte to 256 MiB.
pub(super) fn output_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    from.deserialize_any(ByteCount { least: 1, most: 256 * MIB })
}

/// For `deserialize_with`: the longest content of a file that is read or written, 1 byte to 256 MiB.
pub(super) fn file_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    from.deserialize_any(ByteCount { least: 1, most: 256 * MIB })
}

struct ByteCount {
    least: u64,
    most: u64,
}

impl ByteCount {
    fn check<E: Error>(&self, count: Option<u64>, shown: impl fmt::Display) -> Result<u64, E> {
        count.filter(|count| (self.least..=self.most).contains(count)).ok_or_else(|| {
            let (least, most) = (Shown(self.least), Shown(self.most));
            E::custom(format_args!("{shown} is out of range; allowed are {least} to {most}"))
        })
    }
}

impl Visitor<'_> for ByteCount {
    type Value = u64;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(r#"a byte count such as 1048576 or "64 MiB""#)
    }

    fn visit_i64<E: Error>(self, count: i64) -> Result<u64, E> {
        self.check(u64::try_from(count).ok(), count)
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<u64, E> {
        self.check(Some(count), count)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let factor = match unit.trim_start() {
            "" => 1,
            "KiB" => KIB,
            "MiB" => MIB,
            "GiB" => GIB,
            _ => 0,
        };
        if factor == 0 || number.is_empty() {
            let text = text.escape_debug();
            return Err(E::custom(format_args!(
                "\"{text}\" is not a byte count such as 1048576 or \"64 MiB\""
            )));
        }
        self.check(number.parse().ok().and_then(|n: u64| n.checked_mul(factor)), format_args!("\"{text}\""))
    }
}

/// A byte count with the largest unit that divides it.
struct Shown(u64);

impl fmt::Display for Shown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match [(GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")]
            .into_iter()
            .find(|(size, _)| self.0.is_multiple_of(*size))
        {
            Some((size, unit)) if self.0 > 0 => write!(out, "{} {unit}", self.0 / size),
            _ => write!(out, "{}", self.0),
        }
    }
}
