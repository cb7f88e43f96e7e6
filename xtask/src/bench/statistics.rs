//! From samples to figures, and where they are taken. Invariant: the processors that were allowed before are allowed
//! again after [`in_both_places`], also after an error.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::time::Duration;

/// The value in the middle; the mean of the two when there is no single one; 0 without samples.
pub(super) fn median(samples: &mut [f64]) -> f64 {
    f64::midpoint(percentile(samples, 50), *samples.get(samples.len() / 2).unwrap_or(&0.0))
}

/// The smallest sample that `percent` of all do not exceed; 0 without samples. Sorts them.
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

/// Measures with one processor for this thread and what it starts, which shows what acpd itself adds and what limits
/// are for, then wherever the system puts it, which on a virtual machine mostly shows what it costs there to wake a
/// processor that sleeps. `measure` gets the place's name and whether limits count; where processors cannot be given
/// up it measures once.
pub(super) fn in_both_places<T>(mut measure: impl FnMut(&str, bool) -> Vec<T>) -> Vec<T> {
    let Some(on_one) = OnOne::enter() else { return measure("", true) };
    let mut all = measure(", one processor", true);
    drop(on_one);
    all.extend(measure(", any processor", false));
    all
}

/// While it lives, this thread and the processes that it starts have one processor.
struct OnOne {
    before: CpuSet,
}

impl OnOne {
    fn enter() -> Option<Self> {
        let before = sched_getaffinity(None).ok()?;
        // The last one: interrupts prefer the first.
        let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| before.is_set(*cpu))?;
        let mut one = CpuSet::new();
        one.set(last);
        sched_setaffinity(None, &one).ok()?;
        Some(Self { before })
    }
}

impl Drop for OnOne {
    fn drop(&mut self) {
        // What was allowed once stays allowed, unless the processor itself has gone.
        let _gone = sched_setaffinity(None, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // issue 2, 8: medians of rounds, p99 beside the median
    #[test]
    fn figures_are_of_the_samples() {
        for (samples, expected) in [
            (&mut [][..], 0.0),
            (&mut [3.0][..], 3.0),
            (&mut [9.0, 1.0, 5.0][..], 5.0),
            (&mut [4.0, 1.0, 2.0, 100.0][..], 3.0),
        ] {
            assert!((median(samples) - expected).abs() < 1e-9, "{samples:?}");
        }
        let mut samples: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        for (percent, expected) in [(0, 1.0), (1, 2.0), (50, 100.0), (99, 198.0), (100, 200.0)] {
            assert!((percentile(&mut samples, percent) - expected).abs() < 1e-9, "{percent}");
        }
        for (value, expected) in
            [(0.1234, "0.12"), (9.996, "10.0"), (-48.31, "-48.3"), (1_234_567.8, "1,234,568")]
        {
            assert_eq!(shown(value), expected);
        }
    }

    // issue 2, 8: what acpd adds is told from what waking a processor costs
    #[test]
    fn the_first_place_is_one_processor_and_then_all_is_as_before() {
        let count = || sched_getaffinity(None).expect("it is known").count();
        let before = count();
        assert_eq!(in_both_places(|_, _| vec![count()]), [1, before]);
    }
}
