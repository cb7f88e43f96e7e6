//! The scan of a line, next to what it replaced.
//!
//! Measured by the example program of the crate that has it, which takes turns between the ways; here it is started, read
//! and judged. Not here: the lines, and the old ways.

use super::client::Peer;
use super::programs::{Programs, build};
use super::progress;
use super::report::Figure;
use anyhow::Result;
use serde::Deserialize;
use std::path::Path;

/// Nanoseconds for each 100 bytes that the scan, with the kind of the update, may take beyond the envelope alone.
const BEYOND_ENVELOPE: f64 = 5.0;
/// The share that the scan may take of what was read of an update.
const OF_UPDATE: f64 = 0.7;
/// Nanoseconds for each 100 bytes of a long string.
const IN_STRINGS: f64 = 20.0;
/// Lines of little but punctuation, escapes and short strings, where the grammar costs what it cost before: they have no
/// limit.
const PUNCTUATION: [&str; 3] = ["a tool call", "10,000 levels", "64 KiB of a diff with escapes"];
/// Kinds of lines that the program measures.
const KINDS: usize = 11;
const REMARK: &str = "scan: the best of several rounds, by turns in one process; `direct` is the envelope by serde_json, or that \
                      with looks for session and kind, as it was";

/// What the program says of a kind of lines; times are nanoseconds of a whole line.
#[derive(Deserialize)]
struct Measured {
    what: String,
    bytes: f64,
    parse: f64,
    update: f64,
    scan: f64,
}

pub(super) fn measure(programs: &Programs, root: &Path) -> Result<(Vec<Figure>, String)> {
    let program = build(root, "-p acpd-wire --example scan", "examples/scan")?;
    progress("scan: lines of many kinds, by turns with what it replaced");
    let scratch = programs.scratch();
    let mut peer = Peer::start(scratch.command(&program));
    let mut figures = Vec::new();
    for _ in 0..KINDS {
        figures.extend(serde_json::from_slice::<Measured>(peer.next_line())?.figures());
    }
    peer.finish();
    Ok((figures, REMARK.to_owned()))
}

impl Measured {
    fn figures(&self) -> Vec<Figure> {
        let Self { what, bytes, .. } = self;
        let [parse, update, scan] = [self.parse, self.update, self.scan].map(|ns| ns * 100.0 / bytes);
        let figure = |than: &str, before| Figure::new(format!("{what}{than}"), "ns/100 B", [before, scan]);
        if PUNCTUATION.contains(&what.as_str()) {
            return vec![figure(", envelope", parse), figure(", update", update)];
        }
        let mut figures = vec![
            figure(", envelope", parse).below(BEYOND_ENVELOPE),
            figure(", update", update).at_most(OF_UPDATE),
        ];
        if what.starts_with("a long string") {
            figures.push(figure("", 0.0).below(IN_STRINGS));
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // contract 2.3: times are judged by the size of the line
    #[test]
    fn a_line_is_judged_by_its_size() {
        let judged = |scan: f64| {
            let line =
                json!({"what": "a long string", "bytes": 200, "parse": 40.0, "update": 60.0, "scan": scan});
            let measured: Measured = serde_json::from_value(line).unwrap();
            measured.figures().iter().map(|figure| json!(figure)["ok"] == true).collect::<Vec<_>>()
        };
        assert_eq!(judged(41.0), [true, true, false]);
        assert_eq!(judged(39.0), [true, true, true]);
        assert_eq!(judged(51.0), [false, false, false]);
    }
}
