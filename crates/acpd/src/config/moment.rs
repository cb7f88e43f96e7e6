//! A moment as people write it: a date, which begins at midnight UTC, or a date with a time and its zone.

use super::amounts::Wait;
use super::values::text;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::de::Deserializer;

const EXPECTED: &str = r#"a date such as "2027-01-01", or one with a time such as "2027-01-01T12:00:00Z""#;

/// Reads a moment.
///
/// # Errors
/// What has to be written.
pub(crate) fn moment(text: &str) -> Result<Timestamp, String> {
    let date = if text.len() == 10 { text.parse::<Date>().ok() } else { None };
    let midnight = date.and_then(|date| date.to_zoned(TimeZone::UTC).ok()).map(|begins| begins.timestamp());
    let moment = midnight.or_else(|| text.parse().ok());
    moment.ok_or_else(|| format!("\"{}\" is not {EXPECTED}", text.escape_debug()))
}

/// For `deserialize_with`.
pub(super) fn some_moment<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
    text(from, EXPECTED, |text| moment(text).map(Some))
}

/// Until when a token is good, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// For ever.
    Never,
    /// For so long from now on.
    After(std::time::Duration),
    /// Until this moment.
    At(Timestamp),
}

impl std::str::FromStr for Expiry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<Wait>() {
            Ok(Wait::Never) => Ok(Self::Never),
            Ok(Wait::After(span)) => Ok(Self::After(span)),
            Err(_) => {
                moment(text).map(Self::At).map_err(|wrong| format!("{wrong}, or a span such as \"30d\""))
            }
        }
    }
}

impl Expiry {
    /// The moment; None for never.
    ///
    /// # Errors
    /// When it is not in the future.
    pub(crate) fn moment(self, now: Timestamp) -> Result<Option<Timestamp>, String> {
        let at = match self {
            Self::Never => return Ok(None),
            Self::At(at) => at,
            Self::After(span) => now.checked_add(span).map_err(|error| error.to_string())?,
        };
        match at > now {
            true => Ok(Some(at)),
            false => Err(format!("{} is past; name a moment in the future", written(at))),
        }
    }
}

/// As it stands in the file.
pub(crate) fn written(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.2: a date or RFC 3339; on the command line a span from now on as well
    #[test]
    fn moments_are_read() {
        for (text, at) in [
            ("2027-01-01", Some("2027-01-01T00:00:00Z")),
            ("2027-01-01T02:00:00+02:00", Some("2027-01-01T00:00:00Z")),
            ("2027-13-01", None),
            ("2027-01-01T00:00", None),
            ("tomorrow", None),
            ("", None),
        ] {
            assert_eq!(moment(text).ok().map(written), at.map(str::to_owned), "{text}");
        }
        let now = moment("2026-11-23").expect("a date");
        for (text, at) in [
            ("30d", Ok(Some("2026-12-23T00:00:00Z"))),
            ("never", Ok(None)),
            ("2027-01-01", Ok(Some("2027-01-01T00:00:00Z"))),
            ("2026-11-23", Err(())),
            ("0s", Err(())),
        ] {
            let expiry: Expiry = text.parse().expect("it is one");
            let shown = expiry.moment(now).map(|at| at.map(written)).map_err(drop);
            assert_eq!(shown, at.map(|at| at.map(str::to_owned)), "{text}");
        }
        assert!("soon".parse::<Expiry>().is_err_and(|wrong| wrong.contains("\"30d\"")));
    }
}
