//! A command in a terminal, next to the same command without one.
//!
//! Measured by the example program of the terminals' own crate, which takes turns between the sides; here it is
//! started, read and judged. On a busy machine, anywhere but on one processor shows most (seen, with two busy loops for
//! each processor: 3.6 and 7.5 ms more than directly, and 1.3 to 1.8 ms in either place without them). Not here: what a
//! session adds, which is round trips.

use super::client::Peer;
use super::programs::{Programs, build};
use super::progress;
use super::report::Figure;
use super::samples::{in_both_places, percentile};
use anyhow::Result;
use serde_json::Value;
use std::path::Path;

/// Milliseconds that a terminal may add to `true`, from before it is created until it is released.
const EXTRA: f64 = 5.0;
const REMARK: &str = "terminals: medians, by turns; `true` from before its terminal is created until that is released, a \
                      kill until who waited already is answered, and its 100 ms of grace before SIGKILL on both sides";

pub(super) fn measure(programs: &Programs, root: &Path) -> Result<(Vec<Figure>, String)> {
    // Not together with acpd, whose own build would then have what only tests and examples need.
    let program = build(root, "-p acpd-terminal --example cost", "examples/cost")?;
    let figures = in_both_places(|place, limited| {
        progress(format_args!("terminals{place}: `true` and kills, by turns with doing the same directly"));
        let scratch = programs.scratch();
        let mut command = scratch.command(&program);
        command.arg("--json").arg(&programs.acpd).arg("keeper");
        let mut peer = Peer::start(command);
        let figure = |name: &str, rest: &str, samples: &mut [Vec<f64>; 2], percent| {
            let sides = samples.each_mut().map(|samples| percentile(samples, percent));
            Figure::new(format!("{name} in a terminal{place}{rest}"), "ms", sides)
        };
        // How the program calls what it measures, in the order in which it says it.
        let mut runs = samples(peer.next_line(), "true");
        let median = figure("`true`", "", &mut runs, 50);
        let median = if limited { median.below(EXTRA) } else { median };
        let mut figures = vec![median, figure("`true`", ", p95", &mut runs, 95)];
        for what in ["kill by SIGTERM", "kill by SIGKILL"] {
            figures.push(figure(what, "", &mut samples(peer.next_line(), what), 50));
        }
        peer.finish();
        figures
    });
    Ok((figures, REMARK.to_owned()))
}

/// The milliseconds of both sides in what the program says; nothing would take no time, and keep every limit.
fn samples(line: &[u8], what: &str) -> [Vec<f64>; 2] {
    let said: Value = serde_json::from_slice(line).unwrap_or_default();
    ["direct", "terminal"].map(|side| {
        let samples = said["ms"][side].as_array().map(Vec::as_slice).unwrap_or_default();
        let samples: Option<Vec<f64>> = samples.iter().map(Value::as_f64).collect();
        let samples = samples.filter(|samples| said["what"] == what && !samples.is_empty());
        samples.unwrap_or_else(|| {
            panic!("it should have said the samples of {what}, not {}", String::from_utf8_lossy(line))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 2.3: what a terminal costs is told by what was measured of both sides
    #[test]
    fn samples_are_of_both_sides() {
        let line = br#"{"what":"true","ms":{"direct":[0.5,1],"create":[2],"terminal":[3.25]}}"#;
        assert_eq!(samples(line, "true"), [vec![0.5, 1.0], vec![3.25]]);
        assert!(std::panic::catch_unwind(|| samples(line, "kill")).is_err(), "of something else");
    }

    // nothing takes no time, and would keep every limit
    #[test]
    fn a_side_without_samples_is_not_measured() {
        for line in [
            r#"{"what":"true","ms":{"direct":[1],"terminal":[]}}"#,
            r#"{"what":"true","ms":{"direct":[1]}}"#,
            r#"{"what":"true","ms":{"direct":[1],"terminal":[1,null]}}"#,
            r#"{"what":"true"}"#,
            "true: direct 1 ms, terminal 1 ms",
        ] {
            assert!(std::panic::catch_unwind(|| samples(line.as_bytes(), "true")).is_err(), "{line}");
        }
    }
}
