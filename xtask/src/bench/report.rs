//! What was measured, against its limits: as a table for people and as JSON for scripts. Pure.

use crate::{BAD, GOOD};
use serde::Serialize;

/// One line of the table: both sides, and how they compare.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figure {
    name: String,
    unit: &'static str,
    /// The agent, or the command, without acpd; 0 where there is nothing to compare with.
    direct: f64,
    /// The same through acpd.
    acpd: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    /// What comes on top of a time or a size.
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<f64>,
    #[serde(skip)]
    bound: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<f64>,
    /// Whether the limit is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<bool>,
}

impl Figure {
    /// Without a limit.
    pub(super) fn new(name: impl Into<String>, unit: &'static str, [direct, acpd]: [f64; 2]) -> Self {
        let ratio = Some(acpd / direct).filter(|_| direct != 0.0);
        let extra = Some(acpd - direct).filter(|_| !unit.ends_with("/s"));
        Self { name: name.into(), unit, direct, acpd, ratio, extra, bound: "", limit: None, ok: None }
    }

    /// At least this share of the direct figure must be left.
    pub(super) fn at_least(self, share: f64) -> Self {
        Self { bound: "at least x", limit: Some(share), ok: Some(self.acpd / self.direct >= share), ..self }
    }

    /// What comes on top must stay below this.
    pub(super) fn below(self, extra: f64) -> Self {
        Self { bound: "below +", limit: Some(extra), ok: Some(self.acpd - self.direct < extra), ..self }
    }

    /// At most so many times the direct figure.
    pub(super) fn at_most(self, times: f64) -> Self {
        Self { bound: "at most x", limit: Some(times), ok: Some(self.acpd / self.direct <= times), ..self }
    }

    fn row(&self) -> String {
        let Self { name, unit, direct, acpd, bound, .. } = self;
        let [direct, acpd] = [direct, acpd].map(|value| shown(*value));
        let [ratio, extra, limit] =
            [self.ratio, self.extra, self.limit].map(|it| it.map(shown).unwrap_or_default());
        let word = match self.ok {
            Some(true) => format!("{GOOD}ok{GOOD:#}"),
            Some(false) => format!("{BAD}over{BAD:#}"),
            None => String::new(),
        };
        let row = format!(
            "{name:<48} {direct:>9} {acpd:>9} {unit:<10} {ratio:>6} {extra:>8}  {bound}{limit}  {word}"
        );
        row.trim_end().to_owned() + "\n"
    }
}

/// All that was measured in one run, and what has to be said of it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Whether every limit is kept.
    pub(super) ok: bool,
    measurements: Vec<Figure>,
    remarks: Vec<String>,
}

impl Report {
    pub(super) fn new(measured: Vec<(Vec<Figure>, String)>) -> Self {
        let (measurements, remarks): (Vec<Vec<Figure>>, _) = measured.into_iter().unzip();
        let measurements = measurements.concat();
        Self { ok: measurements.iter().all(|figure| figure.ok != Some(false)), measurements, remarks }
    }

    /// With styles, for a stream that strips them where they do not belong.
    pub(super) fn table(&self) -> String {
        let mut text = format!(
            "{:<48} {:>9} {:>9} {:<10} {:>6} {:>8}  limit\n",
            "", "direct", "acpd", "", "ratio", "extra"
        );
        text.extend(self.measurements.iter().map(Figure::row));
        text + "\n" + &self.remarks.join("\n")
    }
}

/// Digits for people: about three that count.
pub(super) fn shown(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn figure(acpd: f64) -> Figure {
        Figure::new("it", "us", [100.0, acpd])
    }

    fn report(measurements: Vec<Figure>) -> Report {
        Report::new(vec![(measurements, "as it was".to_owned())])
    }

    // issue 2, 8: one tenth of the counter, 60 us extra
    #[test]
    fn limits_are_kept_or_not() {
        for (figure, kept) in [
            (figure(10.0).at_least(0.1), true),
            (figure(9.9).at_least(0.1), false),
            (figure(159.9).below(60.0), true),
            (figure(160.0).below(60.0), false),
            (figure(150.0).at_most(1.5), true),
            (figure(150.1).at_most(1.5), false),
            (figure(1e9), true),
            // A side that measured nothing is not good by accident.
            (Figure::new("it", "us", [0.0, 0.0]).at_least(0.1), false),
        ] {
            assert_eq!(report(vec![figure.clone()]).ok, kept, "{figure:?}");
        }
    }

    // issue 2, 8: a table with ratios
    #[test]
    fn the_table_says_what_was_compared_with_what() {
        let rate = Figure::new("rate", "messages/s", [100.0, 25.0]).at_least(0.1);
        let table = report(vec![rate, figure(400.0).below(60.0), figure(90.0)]).table();
        let plain = anstream::adapter::strip_str(&table).to_string();
        let lines: Vec<String> =
            plain.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            lines,
            [
                "direct acpd ratio extra limit",
                "rate 100 25.0 messages/s 0.25 at least x0.10 ok",
                "it 100 400 us 4.00 300 below +60.0 over",
                "it 100 90.0 us 0.90 -10.0",
                "",
                "as it was",
            ]
        );
    }

    // issue 2, 8
    #[test]
    fn scripts_get_the_same() {
        let rate = Figure::new("rate", "messages/s", [100.0, 25.0]).at_least(0.1);
        assert_eq!(
            json!(report(vec![rate, figure(200.0)])),
            json!({"ok": true, "remarks": ["as it was"], "measurements": [
                {"name": "rate", "unit": "messages/s", "direct": 100.0, "acpd": 25.0, "ratio": 0.25, "limit": 0.1, "ok": true},
                {"name": "it", "unit": "us", "direct": 100.0, "acpd": 200.0, "ratio": 2.0, "extra": 100.0},
            ]})
        );
    }

    #[test]
    fn digits_that_count_are_shown() {
        for (value, expected) in
            [(0.1234, "0.12"), (9.996, "10.0"), (-48.31, "-48.3"), (1_234_567.8, "1234568")]
        {
            assert_eq!(shown(value), expected);
        }
    }
}
