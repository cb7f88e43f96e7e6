//! A daemon whose log is read while it runs.

use acpd_e2e::{Daemon, Scratch, acpd, until};
use serde_json::Value;
use std::path::PathBuf;

/// The log of a daemon.
pub(crate) struct Journal(PathBuf);

/// A line that is expected: level, message, and what else stands in it. A value of null says that the key is there.
pub(crate) type Row<'a> = (&'a str, &'a str, Value);

/// A daemon that logs to a file, with these words behind its own and this script before it.
pub(crate) fn serve(
    scratch: &Scratch,
    before: &str,
    words: &str,
    variables: &[(&str, &str)],
) -> (Daemon, Journal) {
    let log = scratch.path("log");
    let mut command = scratch.command("sh");
    command.args(["-c", &format!("{before} exec \"$0\" \"$@\" {words} 2>\"$LOG\"")]).arg(acpd());
    command.env("LOG", &log).envs(variables.iter().copied());
    (scratch.serve_by(command, "127.0.0.1:0"), Journal(log))
}

impl Journal {
    /// What was logged up to now.
    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(&self.0).expect("it is there")
    }

    /// The same line by line, from a daemon that logs JSON.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let text = self.text();
        // A line may be on its way.
        let whole = text.lines().filter(|line| line.ends_with('}'));
        whole.map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"))).collect()
    }

    /// Waits for a line.
    pub(crate) fn wait_for(&self, row: &Row<'_>) -> Value {
        until(&format!("the line {row:?}"), || self.lines().into_iter().find(|line| is_like(line, row)))
    }
}

/// Whether a line is what is expected.
pub(crate) fn is_like(line: &Value, (level, message, fields): &Row<'_>) -> bool {
    let fields = fields.as_object().expect("fields are an object");
    line["level"] == *level
        && line["message"] == *message
        && fields.iter().all(|(name, value)| match value {
            Value::Null => !line[name].is_null(),
            value => line[name] == *value,
        })
}

/// Expects every row somewhere in the log.
pub(crate) fn has_all(lines: &[Value], rows: &[Row<'_>]) {
    let missing: Vec<&Row<'_>> =
        rows.iter().filter(|row| !lines.iter().any(|line| is_like(line, row))).collect();
    assert!(missing.is_empty(), "missing: {missing:#?}\nof: {lines:#?}");
}
