//! From samples to figures, and where they are taken.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::time::{Duration, Instant};

/// The value in the middle; 0 without samples. Sorts them.
pub(super) fn median(samples: &mut [f64]) -> f64 {
    percentile(samples, 50)
}

/// The smallest sample that `percent` of all do not exceed; 0 without samples. Sorts them.
pub(super) fn percentile(samples: &mut [f64], percent: usize) -> f64 {
    samples.sort_by(f64::total_cmp);
    let rank = (samples.len() * percent).div_ceil(100).max(1);
    samples.get(rank - 1).copied().unwrap_or(0.0)
}

pub(super) fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "this is a shell: measuring time is its purpose")]
    Instant::now()
}

pub(super) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

pub(super) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Measures with one processor for this thread and what it starts, which shows what acpd itself adds and what limits
/// are for, then wherever the system puts it, which on a virtual machine mostly shows what it costs there to wake a
/// processor that sleeps. `measure` gets the place's name and whether limits count; where processors cannot be given
/// up it measures once.
pub(super) fn in_both_places<T>(mut measure: impl FnMut(&str, bool) -> Vec<T>) -> Vec<T> {
    let Ok(before) = sched_getaffinity(None) else { return measure("", true) };
    let mut one = CpuSet::new();
    // The last one: interrupts prefer the first.
    (0..CpuSet::MAX_CPU).rev().filter(|cpu| before.is_set(*cpu)).take(1).for_each(|cpu| one.set(cpu));
    if sched_setaffinity(None, &one).is_err() {
        return measure("", true);
    }
    let mut all = measure(", one processor", true);
    sched_setaffinity(None, &before).expect("what was allowed once stays allowed");
    all.extend(measure(", any processor", false));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    // issue 2, 8: medians of rounds, p99 beside the median
    #[test]
    fn figures_are_of_the_samples() {
        let mut samples: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        for (percent, expected) in [(0, 1.0), (1, 2.0), (50, 100.0), (99, 198.0), (100, 200.0)] {
            assert!((percentile(&mut samples, percent) - expected).abs() < 1e-9, "{percent}");
        }
        for (samples, expected) in [(&mut [][..], 0.0), (&mut [9.0, 1.0, 5.0][..], 5.0)] {
            assert!((median(samples) - expected).abs() < 1e-9, "{samples:?}");
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
