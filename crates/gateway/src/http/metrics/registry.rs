//! What is counted, in memory, and told in Prometheus' text format: families in the order of their names, and the series
//! of each in the order of their labels, so that two answers can be compared line by line.
//!
//! A figure is an atomic number behind a name and labels. The lock is held for a look-up, never while a figure changes;
//! labels are bounded by those who count. Not here: what is counted.

use metrics::{
    Counter, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Label, Metadata, Recorder, SharedString,
    Unit,
};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// All families. A clone is of the same.
#[derive(Clone)]
pub(super) struct Registry {
    kinds: Arc<Mutex<Kinds>>,
    /// The upper bounds of a histogram of this name, in order.
    bounds: fn(&str) -> &'static [f64],
    /// How many of what a counter of this name counts are one of what it tells.
    divisor: fn(&str) -> u64,
}

/// The series of each kind of figure, by name and then by labels as they are written.
#[derive(Default)]
struct Kinds {
    help: BTreeMap<String, String>,
    counters: Families<AtomicU64>,
    /// The bits of floating-point numbers.
    gauges: Families<AtomicU64>,
    histograms: Families<Buckets>,
}

type Families<T> = BTreeMap<String, BTreeMap<String, Arc<T>>>;

struct Buckets {
    bounds: &'static [f64],
    /// One for each bound, and one for what is beyond the last.
    counts: Vec<AtomicU64>,
    /// Of all that was recorded: the bits of a floating-point number.
    sum: AtomicU64,
}

impl Buckets {
    fn new(bounds: &'static [f64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, sum: AtomicU64::new(0) }
    }
}

impl HistogramFn for Buckets {
    fn record(&self, value: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        GaugeFn::increment(&self.sum, value);
    }
}

impl Registry {
    /// With these bounds for histograms, and divisors for counters.
    pub(super) fn new(bounds: fn(&str) -> &'static [f64], divisor: fn(&str) -> u64) -> Self {
        Self { kinds: Arc::default(), bounds, divisor }
    }

    fn kinds(&self) -> MutexGuard<'_, Kinds> {
        self.kinds.lock()
    }

    fn describe(&self, name: &KeyName, help: &str) {
        self.kinds().help.insert(name.as_str().to_owned(), escaped(help, &[]));
    }

    /// The sum over the series of a counter or gauge, or the one with this label; 0 for what is not there.
    pub(super) fn sum(&self, name: &str, label: Option<(&'static str, &str)>) -> u64 {
        let label = label.map(|(key, value)| labels(std::iter::once(&Label::new(key, value.to_owned()))));
        let is_meant = |labels: &String| label.as_ref().is_none_or(|label| label == labels);
        let kinds = self.kinds();
        let counters = kinds.counters.get(name).into_iter().flatten();
        let counted: u64 = counters
            .filter(|(labels, _)| is_meant(labels))
            .map(|(_, count)| count.load(Ordering::Relaxed))
            .sum();
        let gauges = kinds.gauges.get(name).into_iter().flatten();
        let levels = gauges.filter(|(labels, _)| is_meant(labels));
        let level: f64 = levels.map(|(_, bits)| f64::from_bits(bits.load(Ordering::Relaxed))).sum();
        // Figures are whole and below 2^53; one that is below 0 for a moment is none.
        counted + level.max(0.0).round() as u64
    }

    /// How many values all series of a histogram have, and their sum.
    pub(super) fn recorded(&self, name: &str) -> (u64, f64) {
        let kinds = self.kinds();
        let series = kinds.histograms.get(name).into_iter().flatten();
        series.fold((0, 0.0), |(count, sum), (_, buckets)| {
            let own: u64 = buckets.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum();
            (count + own, sum + f64::from_bits(buckets.sum.load(Ordering::Relaxed)))
        })
    }

    /// All that is counted, as Prometheus reads it.
    pub(super) fn text(&self) -> String {
        let kinds = self.kinds();
        let mut families = BTreeMap::new();
        for (name, series) in &kinds.counters {
            let divisor = (self.divisor)(name);
            let lines = |(labels, count): (&String, &Arc<AtomicU64>)| {
                let count = count.load(Ordering::Relaxed);
                match divisor {
                    1 => line(name, "", labels, None, count),
                    _ => line(name, "", labels, None, count as f64 / divisor as f64),
                }
            };
            families.insert(name, ("counter", series.iter().map(lines).collect::<String>()));
        }
        for (name, series) in &kinds.gauges {
            let lines = |(labels, bits): (&String, &Arc<AtomicU64>)| {
                line(name, "", labels, None, f64::from_bits(bits.load(Ordering::Relaxed)))
            };
            families.insert(name, ("gauge", series.iter().map(lines).collect()));
        }
        for (name, series) in &kinds.histograms {
            let lines = |(labels, buckets): (&String, &Arc<Buckets>)| histogram(name, labels, buckets);
            families.insert(name, ("histogram", series.iter().map(lines).collect()));
        }
        let mut text = String::new();
        for (name, (kind, lines)) in families {
            if let Some(help) = kinds.help.get(name) {
                text += &format!("# HELP {name} {help}\n");
            }
            text += &format!("# TYPE {name} {kind}\n{lines}");
        }
        text
    }
}

impl Recorder for Registry {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.describe(&name, &help);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.describe(&name, &help);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.describe(&name, &help);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(series(&mut self.kinds().counters, key, || AtomicU64::new(0)))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(series(&mut self.kinds().gauges, key, || AtomicU64::new(0f64.to_bits())))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        let make = || Buckets::new((self.bounds)(key.name()));
        Histogram::from_arc(series(&mut self.kinds().histograms, key, make))
    }
}

/// The series of a key; made when it is not there.
fn series<T>(families: &mut Families<T>, key: &Key, make: impl FnOnce() -> T) -> Arc<T> {
    let labels = labels(key.labels());
    let known = families.get(key.name()).and_then(|family| family.get(&labels));
    if let Some(known) = known {
        return Arc::clone(known);
    }
    let made = Arc::new(make());
    families.entry(key.name().to_owned()).or_default().insert(labels, Arc::clone(&made));
    made
}

/// `name="value"`, with commas between.
fn labels<'a>(labels: impl Iterator<Item = &'a Label>) -> String {
    let mut written = String::new();
    for label in labels {
        let comma = if written.is_empty() { "" } else { "," };
        written += &format!("{comma}{}=\"{}\"", label.key(), escaped(label.value(), &['"']));
    }
    written
}

fn escaped(text: &str, also: &[char]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => escaped.push_str("\\n"),
            letter if letter == '\\' || also.contains(&letter) => escaped.extend(['\\', letter]),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// A line of a family: of the name with an ending, and with one more label, where there is one.
fn line(name: &str, ending: &str, labels: &str, le: Option<&str>, value: impl std::fmt::Display) -> String {
    let le = le.map(|le| format!("le=\"{le}\"")).unwrap_or_default();
    let comma = if labels.is_empty() || le.is_empty() { "" } else { "," };
    match labels.is_empty() && le.is_empty() {
        true => format!("{name}{ending} {value}\n"),
        false => format!("{name}{ending}{{{labels}{comma}{le}}} {value}\n"),
    }
}

fn histogram(name: &str, labels: &str, buckets: &Buckets) -> String {
    let mut text = String::new();
    let mut below = 0;
    let bounds = buckets.bounds.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
    for (bound, count) in bounds.zip(&buckets.counts) {
        below += count.load(Ordering::Relaxed);
        text += &line(name, "_bucket", labels, Some(&bound), below);
    }
    text += &line(name, "_sum", labels, None, f64::from_bits(buckets.sum.load(Ordering::Relaxed)));
    text += &line(name, "_count", labels, None, below);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use metrics::{counter, describe_counter, gauge, histogram, with_local_recorder};

    // contract 6: families and series have an order of their own, whatever was counted first
    #[test]
    fn what_was_counted_is_told_in_order() {
        let registry = Registry::new(|_| &[0.5, 2.0], |name| if name == "e_total" { 1000 } else { 1 });
        with_local_recorder(&registry, || {
            describe_counter!("b_total", "What \\ is\ncounted");
            counter!("b_total", "by" => "z").increment(2);
            counter!("b_total", "by" => "a\"b").increment(1);
            counter!("b_total", "by" => "z").increment(1);
            for value in [0.5, 1.0, 7.0] {
                histogram!("c_seconds", "of" => "x").record(value);
            }
            gauge!("a").increment(2.5);
            gauge!("a").decrement(1.0);
            counter!("d_total").increment(0);
            counter!("e_total").increment(1234);
        });
        let expected = [
            "# TYPE a gauge",
            "a 1.5",
            "# HELP b_total What \\\\ is\\ncounted",
            "# TYPE b_total counter",
            "b_total{by=\"a\\\"b\"} 1",
            "b_total{by=\"z\"} 3",
            "# TYPE c_seconds histogram",
            "c_seconds_bucket{of=\"x\",le=\"0.5\"} 1",
            "c_seconds_bucket{of=\"x\",le=\"2\"} 2",
            "c_seconds_bucket{of=\"x\",le=\"+Inf\"} 3",
            "c_seconds_sum{of=\"x\"} 8.5",
            "c_seconds_count{of=\"x\"} 3",
            "# TYPE d_total counter",
            "d_total 0",
            "# TYPE e_total counter",
            "e_total 1.234",
            "",
        ];
        let of = |value| Some(("by", value));
        for (name, label, sum) in [
            ("b_total", None, 4),
            ("b_total", of("z"), 3),
            ("b_total", of("y"), 0),
            ("a", None, 2),
            ("none", None, 0),
        ] {
            assert_eq!(registry.sum(name, label), sum, "{name} {label:?}");
        }
        assert_eq!(registry.text().split('\n').collect::<Vec<_>>(), expected);
    }
}
