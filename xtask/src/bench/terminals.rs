//! A command in a terminal, next to the same command without one.
//!
//! Measured by the example program of the terminals' own crate, which takes turns between the sides; here it is
//! started, read and judged. Asked twice, as round trips are: on one processor, which the limit is for, and on any,
//! where a busy machine shows most (seen, with two busy loops for each processor: 3.6 and 7.5 ms more than directly, and
//! 1.3 to 1.8 ms in either place without them). Not here: what a session adds, which is round trips.

use super::figures::{median, percentile};
use super::peer::{Peer, PeerError};
use super::processor::OnOne;
use super::program::Programs;
use super::report::Comparison;
use super::{Measurement, progress};
use serde_json::Value;
use std::path::Path;

/// Milliseconds that a terminal may add to `true`, from before it is created until it is released.
const EXTRA: f64 = 5.0;
/// How the program calls what it measures, in the order in which it says it.
const RUN: &str = "true";
const KILLS: [&str; 2] = ["kill by SIGTERM", "kill by SIGKILL"];

/// What was measured of both sides, in milliseconds.
#[derive(Debug, PartialEq)]
struct Samples {
    direct: Vec<f64>,
    terminal: Vec<f64>,
}

impl Samples {
    /// None if the line says something else, or nothing of a side: nothing would take no time.
    fn of(line: &[u8], what: &str) -> Option<Self> {
        let line: Value = serde_json::from_slice(line).ok()?;
        if line["what"] != what {
            return None;
        }
        let side = |name: &str| -> Option<Vec<f64>> {
            let samples: Vec<f64> =
                line["ms"][name].as_array()?.iter().map(Value::as_f64).collect::<Option<_>>()?;
            (!samples.is_empty()).then_some(samples)
        };
        Some(Self { direct: side("direct")?, terminal: side("terminal")? })
    }

    fn next(peer: &mut Peer, what: &'static str) -> Result<Self, PeerError> {
        peer.next_line()?;
        let unmeasured =
            || PeerError::Unmeasured { what, line: String::from_utf8_lossy(peer.last_line()).into_owned() };
        Self::of(peer.last_line(), what).ok_or_else(unmeasured)
    }
}

/// `cost` is the program that measures.
pub(super) fn measure(programs: &Programs, cost: &Path) -> Result<(Vec<Measurement>, String), PeerError> {
    let mut measurements = Vec::new();
    match OnOne::enter() {
        Some(on_one) => {
            measurements.extend(measure_here(programs, cost, ", one processor", true)?);
            drop(on_one);
            measurements.extend(measure_here(programs, cost, ", any processor", false)?);
        }
        None => measurements.extend(measure_here(programs, cost, "", true)?),
    }
    let remark = "terminals: medians, by turns; `true` from before its terminal is created until that is released, a \
                  kill until who waited already is answered, and its 100 ms of grace before SIGKILL on both sides";
    Ok((measurements, remark.to_owned()))
}

fn measure_here(
    programs: &Programs,
    cost: &Path,
    place: &str,
    limited: bool,
) -> Result<Vec<Measurement>, PeerError> {
    progress(format_args!("terminals{place}: `true` and kills, by turns with doing the same directly"));
    let state = programs.state_dir()?;
    let mut peer = Peer::start(programs.terminals(cost, &state))?;
    let mut measurements = Vec::new();
    let Samples { mut direct, mut terminal } = Samples::next(&mut peer, RUN)?;
    let mut add = |name, direct, acpd, comparison| {
        measurements.push(Measurement { name, unit: "ms", direct, acpd, comparison });
    };
    let comparison = if limited { Comparison::Extra { below: EXTRA } } else { Comparison::ExtraOnly };
    add(format!("`true` in a terminal{place}"), median(&mut direct), median(&mut terminal), comparison);
    let slow = [&mut direct, &mut terminal].map(|samples| percentile(samples, 95));
    add(format!("`true` in a terminal{place}, p95"), slow[0], slow[1], Comparison::ExtraOnly);
    for what in KILLS {
        let Samples { mut direct, mut terminal } = Samples::next(&mut peer, what)?;
        let (direct, terminal) = (median(&mut direct), median(&mut terminal));
        add(format!("{what} in a terminal{place}"), direct, terminal, Comparison::ExtraOnly);
    }
    peer.finish()?;
    Ok(measurements)
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 2.3: what a terminal costs is told by what was measured of both sides
    #[test]
    fn samples_are_of_both_sides() {
        let line = br#"{"what":"true","ms":{"direct":[0.5,1],"create":[2],"terminal":[3.25]}}"#;
        let samples = Samples { direct: vec![0.5, 1.0], terminal: vec![3.25] };
        assert_eq!(Samples::of(line, "true"), Some(samples));
        assert_eq!(Samples::of(line, "kill"), None, "of something else");
    }

    // nothing takes no time, and would keep every limit
    #[test]
    fn a_side_without_samples_is_not_measured() {
        for line in [
            r#"{"what":"true","ms":{"direct":[1],"terminal":[]}}"#,
            r#"{"what":"true","ms":{"direct":[],"terminal":[1]}}"#,
            r#"{"what":"true","ms":{"direct":[1]}}"#,
            r#"{"what":"true","ms":{"direct":[1],"terminal":[1,null]}}"#,
            r#"{"what":"true","ms":{"direct":1,"terminal":1}}"#,
            r#"{"what":"true"}"#,
            "true: direct 1 ms, terminal 1 ms",
            "",
        ] {
            assert_eq!(Samples::of(line.as_bytes(), "true"), None, "{line}");
        }
    }

    // a program that says something else, or ends early, is an error with what it said
    #[test]
    fn a_program_that_measures_nothing_is_an_error() {
        let says = |script: &str| {
            let mut command = crate::child::command("sh");
            command.args(["-c", script]).stdout(std::process::Stdio::piped());
            Samples::next(&mut Peer::start(command).expect("a shell starts"), RUN)
        };
        let good = r#"echo '{"what":"true","ms":{"direct":[1],"terminal":[2]}}'"#;
        let samples = says(good).expect("a line");
        assert_eq!(samples, Samples { direct: vec![1.0], terminal: vec![2.0] });
        let other = says("echo panicked").expect_err("no samples");
        assert_eq!(other.to_string(), "it should have said the samples of true, not panicked");
        assert!(matches!(says("exit 0"), Err(PeerError::Ended)));
    }
}
