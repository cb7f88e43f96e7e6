//! What was measured, against its limits: as a table for people and as JSON for scripts. Pure.

use super::statistics::shown;
use crate::{BAD, GOOD};
use serde_json::{Value, json};

/// How the two sides are compared, beside their ratio, and what is still good.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Comparison {
    /// What is left of the direct figure; at least this share must be.
    Share { at_least: f64 },
    /// What comes on top; it must stay below this.
    Extra { below: f64 },
    /// What comes on top, without a limit.
    ExtraOnly,
    /// How many times the direct figure; at most so many.
    AtMost { times: f64 },
    /// How many times the direct figure, without a limit.
    Times,
}

/// One line of the table.
#[derive(Clone, Debug)]
pub(super) struct Measurement {
    name: String,
    unit: &'static str,
    /// The agent, or the command, without acpd; 0 where there is nothing to compare with.
    direct: f64,
    /// The same through acpd.
    acpd: f64,
    comparison: Comparison,
}

/// What one subject gives: the measurements, and what has to be said of them.
pub(super) type Measured = (Vec<Measurement>, String);

impl Measurement {
    pub(super) fn new(
        name: impl Into<String>,
        unit: &'static str,
        [direct, acpd]: [f64; 2],
        comparison: Comparison,
    ) -> Self {
        Self { name: name.into(), unit, direct, acpd, comparison }
    }

    fn ratio(&self) -> f64 {
        self.acpd / self.direct
    }

    /// What comes on top, where that is what counts.
    fn extra(&self) -> Option<f64> {
        let counts = matches!(self.comparison, Comparison::Extra { .. } | Comparison::ExtraOnly);
        counts.then_some(self.acpd - self.direct)
    }

    /// The limit in words and as a number, and whether it is kept.
    fn limit(&self) -> Option<(String, f64, bool)> {
        match self.comparison {
            Comparison::Share { at_least: limit } => {
                Some((format!("at least x {}", shown(limit)), limit, self.ratio() >= limit))
            }
            Comparison::Extra { below: limit } => {
                Some((format!("below +{}", shown(limit)), limit, self.acpd - self.direct < limit))
            }
            Comparison::AtMost { times: limit } => {
                Some((format!("at most x {}", shown(limit)), limit, self.ratio() <= limit))
            }
            Comparison::ExtraOnly | Comparison::Times => None,
        }
    }

    fn row(&self) -> [String; 7] {
        let ratio = if self.direct == 0.0 { String::new() } else { format!("x {}", shown(self.ratio())) };
        let extra =
            self.extra().map(|extra| format!("{}{}", if extra < 0.0 { "" } else { "+" }, shown(extra)));
        [
            self.name.clone(),
            shown(self.direct),
            shown(self.acpd),
            self.unit.to_owned(),
            ratio,
            extra.unwrap_or_default(),
            self.limit().map(|(words, ..)| words).unwrap_or_default(),
        ]
    }

    fn to_json(&self) -> Value {
        let mut json =
            json!({"name": self.name, "unit": self.unit, "direct": self.direct, "acpd": self.acpd});
        if self.direct != 0.0 {
            json["ratio"] = json!(self.ratio());
        }
        if let Some(extra) = self.extra() {
            json["extra"] = json!(extra);
        }
        if let Some((_, limit, kept)) = self.limit() {
            json["limit"] = json!(limit);
            json["ok"] = json!(kept);
        }
        json
    }
}

/// All that was measured in one run.
#[derive(Debug, Default)]
pub(super) struct Report {
    measurements: Vec<Measurement>,
    remarks: Vec<String>,
}

impl Report {
    /// Adds measurements and what has to be said of them.
    pub(super) fn add(&mut self, (measurements, remark): Measured) {
        self.measurements.extend(measurements);
        self.remarks.push(remark);
    }

    /// Whether every limit is kept.
    pub(super) fn kept(&self) -> bool {
        self.measurements.iter().filter_map(Measurement::limit).all(|(_, _, kept)| kept)
    }

    /// With styles, for a stream that strips them where they do not belong.
    pub(super) fn table(&self) -> String {
        let mut rows = vec![["", "direct", "acpd", "", "ratio", "extra", "limit"].map(str::to_owned)];
        rows.extend(self.measurements.iter().map(Measurement::row));
        let width =
            |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
        let widths: [usize; 7] = std::array::from_fn(width);
        let mut text = String::new();
        for (place, row) in rows.iter().enumerate() {
            let [name, direct, acpd, unit, ratio, extra, limit] = row;
            let [w_name, w_direct, w_acpd, w_unit, w_ratio, w_extra, w_limit] = widths;
            text += &format!(
                "{name:<w_name$}  {direct:>w_direct$}  {acpd:>w_acpd$} {unit:<w_unit$}  \
                 {ratio:>w_ratio$}  {extra:>w_extra$}  {limit:<w_limit$}"
            );
            match place.checked_sub(1).and_then(|place| self.measurements[place].limit()) {
                Some((_, _, true)) => text += &format!("  {GOOD}ok{GOOD:#}"),
                Some((_, _, false)) => text += &format!("  {BAD}over{BAD:#}"),
                None => text.truncate(text.trim_end().len()),
            }
            text.push('\n');
        }
        for remark in &self.remarks {
            text += &format!("\n{remark}");
        }
        text
    }

    pub(super) fn to_json(&self) -> Value {
        let measurements: Vec<Value> = self.measurements.iter().map(Measurement::to_json).collect();
        json!({"ok": self.kept(), "measurements": measurements, "remarks": self.remarks})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measurement(acpd: f64, comparison: Comparison) -> Measurement {
        Measurement { name: "it".to_owned(), unit: "us", direct: 100.0, acpd, comparison }
    }

    fn report(measurements: Vec<Measurement>) -> Report {
        let mut report = Report::default();
        report.add((measurements, "as it was".to_owned()));
        report
    }

    // issue 2, 8: one tenth of the counter, 60 us extra
    #[test]
    fn limits_are_kept_or_not() {
        for (acpd, comparison, kept) in [
            (10.0, Comparison::Share { at_least: 0.1 }, Some(true)),
            (9.9, Comparison::Share { at_least: 0.1 }, Some(false)),
            (159.9, Comparison::Extra { below: 60.0 }, Some(true)),
            (160.0, Comparison::Extra { below: 60.0 }, Some(false)),
            (150.0, Comparison::AtMost { times: 1.5 }, Some(true)),
            (150.1, Comparison::AtMost { times: 1.5 }, Some(false)),
            (1e9, Comparison::ExtraOnly, None),
            (1e9, Comparison::Times, None),
        ] {
            let measurement = measurement(acpd, comparison);
            assert_eq!(measurement.limit().map(|(_, _, kept)| kept), kept, "{measurement:?}");
            assert_eq!(report(vec![measurement]).kept(), kept != Some(false));
        }
    }

    // a side that measured nothing is not good by accident
    #[test]
    fn a_ratio_to_nothing_keeps_no_limit() {
        let nothing = Measurement { direct: 0.0, ..measurement(0.0, Comparison::Share { at_least: 0.1 }) };
        assert!(!report(vec![nothing]).kept());
    }

    // issue 2, 8: a table with ratios
    #[test]
    fn the_table_says_what_was_compared_with_what() {
        let table = report(vec![
            measurement(25.0, Comparison::Share { at_least: 0.1 }),
            measurement(400.0, Comparison::Extra { below: 60.0 }),
            measurement(90.0, Comparison::ExtraOnly),
            measurement(200.0, Comparison::Times),
        ])
        .table();
        let plain = anstream::adapter::strip_str(&table).to_string();
        let lines: Vec<&str> = plain.lines().collect();
        assert_eq!(
            lines,
            [
                "    direct  acpd      ratio  extra  limit",
                "it     100  25.0 us  x 0.25         at least x 0.10  ok",
                "it     100   400 us  x 4.00   +300  below +60.0      over",
                "it     100  90.0 us  x 0.90  -10.0",
                "it     100   200 us  x 2.00",
                "",
                "as it was",
            ]
        );
    }

    // issue 2, 8
    #[test]
    fn scripts_get_the_same() {
        let json = report(vec![
            measurement(25.0, Comparison::Share { at_least: 0.1 }),
            measurement(200.0, Comparison::ExtraOnly),
        ])
        .to_json();
        assert_eq!(json["ok"], json!(true));
        assert_eq!(
            json["measurements"],
            json!([
                {"name": "it", "unit": "us", "direct": 100.0, "acpd": 25.0, "ratio": 0.25, "limit": 0.1, "ok": true},
                {"name": "it", "unit": "us", "direct": 100.0, "acpd": 200.0, "ratio": 2.0, "extra": 100.0},
            ])
        );
    }
}
