//! What the session's commands say, line by line, as they say it.
//!
//! Pure: what terminals tell comes in, lines come out. Bounded: of each command so many lines are shown, the rest is
//! counted; what comes while a question is on the screen waits, up to a bound of its own. Colours of a command stay where
//! acpd has colours, and end with their line; all other control characters are made visible.

use super::paint::Paint;
use crate::clean::{self, cut, styled};
use serde_json::Value;
use std::collections::HashMap;

/// Lines of one command that are shown.
const LINES: usize = 100;
/// Characters of a line that are shown.
const WIDTH: usize = 400;
/// Bytes of a line that are kept until there is more to show of it: colours take some.
const RAW: usize = 16 * 1024;
/// Lines that wait for a question to go away.
const HELD: usize = 200;

/// The commands that run.
#[derive(Default)]
pub(super) struct Outputs {
    running: HashMap<String, Output>,
    held: Vec<String>,
}

#[derive(Default)]
struct Output {
    /// The line that has no end yet, as it came.
    open: String,
    lines: usize,
}

impl Outputs {
    /// The lines that `params` of a `_sandboxagent/terminal` notification add.
    pub(super) fn take(&mut self, params: &Value, paint: Paint) -> Vec<String> {
        let Some(id) = params["terminalId"].as_str() else { return Vec::new() };
        let mut lines = Vec::new();
        let output = self.running.entry(id.to_owned()).or_default();
        if let Some(dropped) = params["droppedBytes"].as_u64() {
            lines.push(paint.dim(format_args!("  │ … {dropped} bytes left out")));
        }
        if let Some(text) = params["output"].as_str() {
            output.open.push_str(text);
            while let Some(end) = output.open.find('\n') {
                let line: String = output.open.drain(..=end).collect();
                let line = line.strip_suffix('\n').unwrap_or(&line);
                lines.extend(output.line(line.strip_suffix('\r').unwrap_or(line), paint));
            }
            // A line without end is shown as far as it would be anyway.
            if output.open.len() > RAW || styled(&output.open, false).chars().count() > WIDTH {
                let open = std::mem::take(&mut output.open);
                lines.extend(output.line(&open, paint));
            }
        }
        if params.get("finalOutput").is_some() {
            let mut output = self.running.remove(id).unwrap_or_default();
            let open = std::mem::take(&mut output.open);
            if !open.is_empty() {
                lines.extend(output.line(&open, paint));
            }
            if output.lines > LINES {
                lines.push(paint.dim(format_args!("  │ … {} more lines", output.lines - LINES)));
            }
            lines.extend(how_it_ended(params, paint));
        }
        lines
    }

    /// Keeps lines for later.
    pub(super) fn hold(&mut self, lines: Vec<String>) {
        let room = HELD.saturating_sub(self.held.len());
        self.held.extend(lines.into_iter().take(room));
    }

    /// What was kept.
    pub(super) fn held(&mut self) -> Vec<String> {
        std::mem::take(&mut self.held)
    }
}

impl Output {
    fn line(&mut self, text: &str, paint: Paint) -> Option<String> {
        self.lines += 1;
        if self.lines > LINES {
            return None;
        }
        let text = styled(text, paint.is_coloured());
        let text = cut(&text, WIDTH);
        Some(match text.contains('\u{1b}') {
            true => format!("{}{text}\u{1b}[0m", paint.dim("  │ ")),
            false => paint.dim(format_args!("  │ {text}")),
        })
    }
}

/// An end in good order needs no word.
fn how_it_ended(params: &Value, paint: Paint) -> Option<String> {
    let status = &params["exitStatus"];
    let how = match (params["state"].as_str(), status["exitCode"].as_i64(), status["signal"].as_str()) {
        (Some("timed_out"), ..) => "timed out".to_owned(),
        (Some("killed" | "released"), ..) => "killed".to_owned(),
        (_, Some(0), _) => return None,
        (_, Some(code), _) => format!("exit code {code}"),
        (_, None, Some(signal)) => clean::line(signal, 20),
        (_, None, None) => return None,
    };
    Some(paint.dim(format_args!("  ╵ {how}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PLAIN: fn() -> Paint = || Paint::new(false);

    fn said(outputs: &mut Outputs, params: Value) -> Vec<String> {
        outputs.take(&params, PLAIN())
    }

    // contract 6: live command output
    #[test]
    fn lines_are_shown_when_they_are_whole() {
        let mut outputs = Outputs::default();
        assert!(said(&mut outputs, json!({"terminalId": "t", "output": "on"})).is_empty());
        assert_eq!(
            said(&mut outputs, json!({"terminalId": "t", "output": "e\ntwo\nthr"})),
            ["  │ one", "  │ two"]
        );
        let end =
            json!({"terminalId": "t", "finalOutput": {}, "state": "finished", "exitStatus": {"exitCode": 3}});
        assert_eq!(said(&mut outputs, end), ["  │ thr", "  ╵ exit code 3"]);
        assert!(outputs.running.is_empty());
    }

    #[test]
    fn a_flood_is_counted() {
        let mut outputs = Outputs::default();
        let flood = "x\n".repeat(150);
        assert_eq!(said(&mut outputs, json!({"terminalId": "t", "output": flood})).len(), LINES);
        let end = json!({"terminalId": "t", "finalOutput": {}, "state": "timed_out", "exitStatus": {"signal": "SIGTERM"}});
        assert_eq!(said(&mut outputs, end), ["  │ … 50 more lines", "  ╵ timed out"]);
        let endless = json!({"terminalId": "t", "output": "y".repeat(1000)});
        assert_eq!(said(&mut outputs, endless)[0].chars().count(), WIDTH + 5);
        outputs.hold(vec![String::new(); 1000]);
        assert_eq!(outputs.held().len(), HELD);
    }

    // nothing of an agent's command reaches the terminal unfiltered
    #[test]
    fn control_characters_are_made_visible() {
        let mut outputs = Outputs::default();
        let lines = said(&mut outputs, json!({"terminalId": "t", "output": "a\u{1b}[2Jb\tc\n"}));
        assert_eq!(lines, ["  │ a␛[2Jb\tc"]);
    }

    // issue 28, C4: colours of a command pass to a terminal that has colours, and are dropped elsewhere; nothing else passes
    #[test]
    fn colours_of_a_command_pass() {
        let text = "\u{1b}[0m\u{1b}[01;34mdir\u{1b}[0m\u{1b}[2J\u{1b}]8;;x\u{7}\r\nplain\n";
        for (colour, shown) in [
            (false, vec!["  │ dir␛[2J␛]8;;x␇".to_owned(), "  │ plain".to_owned()]),
            (
                true,
                vec![
                    format!(
                        "{}\u{1b}[0m\u{1b}[01;34mdir\u{1b}[0m␛[2J␛]8;;x␇\u{1b}[0m",
                        Paint::new(true).dim("  │ ")
                    ),
                    Paint::new(true).dim("  │ plain"),
                ],
            ),
        ] {
            for size in [1, 5, 100] {
                let (mut outputs, mut lines) = (Outputs::default(), Vec::new());
                let chars: Vec<char> = text.chars().collect();
                for piece in chars.chunks(size) {
                    let params = json!({"terminalId": "t", "output": piece.iter().collect::<String>()});
                    lines.extend(outputs.take(&params, Paint::new(colour)));
                }
                assert_eq!(lines, shown, "in pieces of {size}");
            }
        }
        let long = format!("{}x\n", "\u{1b}[31my".repeat(500));
        let lines = Outputs::default().take(&json!({"terminalId": "t", "output": long}), Paint::new(true));
        assert!(lines[0].ends_with("y\u{1b}[31m…\u{1b}[0m"), "it is cut by what is seen of it");
    }
}
