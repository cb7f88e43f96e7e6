//! Points in time and spans, as a person wants them. Pure: now comes in.

use crate::moment::Moment;
use jiff::Timestamp;

/// How long ago it was: `12s`, `5m`, `3h`, `40d`; `?` for an unknown time.
pub(crate) fn age(at: Moment, now: Timestamp) -> String {
    match at.0 {
        Some(at) => span(now.as_second() - at.as_second()),
        None => "?".to_owned(),
    }
}

/// A span in seconds; a negative one, by clocks that differ, is none.
pub(crate) fn span(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m", seconds / 60),
        seconds @ 3_600..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// A number of bytes: `512 B`, `3.0 MiB`.
pub(crate) fn byte_count(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let (mut shown, mut unit) = (bytes as f64, "B");
    for larger in units {
        if shown < 1024.0 {
            break;
        }
        (shown, unit) = (shown / 1024.0, larger);
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{shown:.1} {unit}") }
}

/// `2026-11-21 21:03:11`, in UTC; `?` for an unknown time.
pub(crate) fn date_and_time(at: Moment) -> String {
    match at.0 {
        Some(at) => at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        None => "?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 6: the age of a session
    #[test]
    fn ages_are_short() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().expect("a time");
        for (at, shown) in [
            ("2026-11-21T11:59:48.999Z", "12s"),
            ("2026-11-21T11:00:01Z", "59m"),
            ("2026-11-20T11:00:00Z", "25h"),
            ("2026-11-01T12:00:00+00:00", "20d"),
            ("2026-11-21T12:00:30Z", "0s"),
            ("soon", "?"),
            ("", "?"),
        ] {
            assert_eq!(age(at.into(), now), shown, "{at}");
        }
        for (bytes, shown) in [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 << 20, "3.0 MiB")] {
            assert_eq!(byte_count(bytes), shown);
        }
        assert_eq!(date_and_time("2026-11-21T23:30:00.5+02:00".into()), "2026-11-21 21:30:00");
    }
}
