//! From samples to figures. Pure.

use std::time::Duration;

/// The value in the middle; the mean of the two when there is no single one; 0 without samples.
pub(super) fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    let middle = samples.len() / 2;
    match samples.len() {
        0 => 0.0,
        count if count % 2 == 1 => samples[middle],
        _ => f64::midpoint(samples[middle - 1], samples[middle]),
    }
}

/// The smallest sample that `percent` of all do not exceed; 0 without samples.
pub(super) fn percentile(samples: &mut [f64], percent: usize) -> f64 {
    samples.sort_by(f64::total_cmp);
    let rank = (samples.len() * percent).div_ceil(100).max(1);
    samples.get(rank - 1).copied().unwrap_or(0.0)
}

pub(super) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

pub(super) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Digits for people: about three that count, thousands apart from each other.
pub(super) fn shown(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    let whole = text.find('.').unwrap_or(text.len());
    let mut grouped = String::new();
    for (place, digit) in text.char_indices() {
        let left = whole.saturating_sub(place);
        if left > 0 && left % 3 == 0 && grouped.ends_with(|last: char| last.is_ascii_digit()) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    // issue 2, 8: medians of rounds
    #[test]
    fn the_median_is_in_the_middle() {
        for (samples, expected) in [
            (&mut [][..], 0.0),
            (&mut [3.0][..], 3.0),
            (&mut [9.0, 1.0, 5.0][..], 5.0),
            (&mut [4.0, 1.0, 2.0, 100.0][..], 3.0),
        ] {
            assert!((median(samples) - expected).abs() < 1e-9, "{samples:?}");
        }
    }

    // issue 2, 8: p99 beside the median
    #[test]
    fn a_percentile_is_a_sample_that_most_do_not_exceed() {
        let mut samples: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        for (percent, expected) in [(0, 1.0), (1, 2.0), (50, 100.0), (99, 198.0), (100, 200.0)] {
            assert!((percentile(&mut samples, percent) - expected).abs() < 1e-9, "{percent}");
        }
        assert!(percentile(&mut [], 99).abs() < 1e-9);
    }

    #[test]
    fn figures_are_short() {
        for (value, expected) in [
            (0.1234, "0.12"),
            (9.996, "10.0"),
            (48.31, "48.3"),
            (-48.31, "-48.3"),
            (999.4, "999"),
            (1_000.0, "1,000"),
            (1_234_567.8, "1,234,568"),
            (-123_456.0, "-123,456"),
        ] {
            assert_eq!(shown(value), expected);
        }
    }
}
