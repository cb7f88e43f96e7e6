//! Values that must not stand in a record: found by the names that they stand under, and taken out of text (TM-1).
//!
//! Pure. Known are the variables of an agent's environment and the `env` and `headers` of the MCP servers that its
//! sessions are given. A net with a mesh, not a wall: what an agent prints in another form, such as encoded, is not
//! recognised, and neither is a secret whose name does not say so.

use acpd_supervisor::{ExitReport, StderrExcerpt};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A name with one of these in it, in capitals or not, is that of a secret.
const NAMES: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "AUTH"];
/// Shorter values are words, numbers and switches; taking them out would only garble text.
const SHORTEST: usize = 8;
/// Of a secret that a line was cut in, this much is enough to be taken out.
const SHORTEST_PART: usize = 4;
/// How many are kept for one process, which may be shared by any number of sessions; the oldest go.
const MOST: usize = 1024;

const REDACTED: &str = "[redacted]";

/// Secrets of one agent process.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Secrets(VecDeque<String>);

impl Secrets {
    /// Those in the environment of an agent: `all` of it, of which `own` stands in its entry.
    pub(crate) fn of_environment(all: &[(OsString, OsString)], own: &[(OsString, OsString)]) -> Self {
        let mut secrets = Self::default();
        for (name, value) in all.iter().filter(|(name, _)| is_secret(&name.to_string_lossy())) {
            // Names such as SSH_AUTH_SOCK and XAUTHORITY, which every program inherits, stand for files.
            let is_path = value.as_encoded_bytes().starts_with(b"/");
            if !is_path || own.iter().any(|(own, _)| own == name) {
                secrets.add_value(value);
            }
        }
        secrets
    }

    /// Those in the parameters of a session: `env` and `headers` of its MCP servers.
    pub(crate) fn of_session(params: &[u8]) -> Self {
        let params = acpd_wire::value(params);
        let servers = params["mcpServers"].as_array().into_iter().flatten();
        let lists = servers.flat_map(|server| [&server["env"], &server["headers"]]);
        let mut secrets = Self::default();
        for pair in lists.flat_map(|list| list.as_array().into_iter().flatten()) {
            if let (Some(name), Some(value)) = (pair["name"].as_str(), pair["value"].as_str())
                && is_secret(name)
            {
                secrets.add_value(OsStr::new(value));
            }
        }
        secrets
    }

    fn add_value(&mut self, value: &OsStr) {
        let value = value.to_string_lossy();
        // A key in several lines is printed in several lines; of `Bearer x` the agent may print `x` alone.
        for line in value.lines().map(str::trim) {
            self.add(line);
            if let Some((_scheme, secret)) = line.split_once(' ')
                && !secret.contains(' ')
            {
                self.add(secret);
            }
        }
    }

    fn add(&mut self, secret: &str) {
        if secret.len() < SHORTEST || self.0.iter().any(|known| known == secret) {
            return;
        }
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(secret.to_owned());
    }

    /// Adds others; true when one was not known.
    pub(crate) fn extend(&mut self, others: Self) -> bool {
        let news: Vec<String> = others.0.into_iter().filter(|secret| !self.0.contains(secret)).collect();
        news.iter().for_each(|secret| self.add(secret));
        !news.is_empty()
    }

    /// Text without any of them, line for line.
    pub(crate) fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut found: Vec<Range<usize>> = self
            .0
            .iter()
            .flat_map(|secret| text.match_indices(secret.as_str()).map(|(at, _)| at..at + secret.len()))
            .collect();
        found.extend(self.cut_in(text));
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        found.sort_by_key(|range| range.start);
        let (mut out, mut copied) = (String::with_capacity(text.len()), 0);
        for range in found {
            // One secret may be part of another, or overlap it.
            if range.start >= copied {
                out.push_str(&text[copied..range.start]);
                out.push_str(REDACTED);
            }
            copied = copied.max(range.end);
        }
        out.push_str(&text[copied..]);
        Cow::Owned(out)
    }

    /// Beginnings of secrets at the ends of lines that were cut for their length.
    fn cut_in(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut end = 0;
        for line in text.split('\n') {
            end += line.len();
            if line.len() + 4 > StderrExcerpt::LINE_BYTES {
                let longest = self.0.iter().filter_map(|secret| {
                    let parts = (SHORTEST_PART..secret.len()).rev();
                    parts
                        .filter(|part| secret.is_char_boundary(*part))
                        .find(|part| line.ends_with(&secret[..*part]))
                });
                found.extend(longest.max().map(|part| end - part..end));
            }
            end += 1;
        }
        found
    }

    /// A report whose stderr has none of them.
    pub(crate) fn redact_report(&self, report: &ExitReport) -> Arc<ExitReport> {
        let mut redacted = report.clone();
        let stderr = &mut redacted.stderr;
        for text in std::iter::once(&mut stderr.head).chain(&mut stderr.tail) {
            *text = self.redact(text).into_owned();
        }
        Arc::new(redacted)
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    NAMES.iter().any(|part| name.contains(part))
}

/// Only how many there are.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpd_supervisor::{Containment, ExitStatus};
    use serde_json::json;

    fn secrets(values: &[&str]) -> Secrets {
        let mut secrets = Secrets::default();
        values.iter().for_each(|value| secrets.add_value(OsStr::new(value)));
        secrets
    }

    fn pairs(list: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        list.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    // TM-1: by name, in the entry and inherited; files and short values are none
    #[test]
    fn names_tell_what_is_secret() {
        let own = pairs(&[
            ("MY_ApiKey", "/own/secret"),
            ("MODE", "not-a-secret"),
            ("AUTH", "short"),
            ("SECRET", ""),
        ]);
        let mut all =
            pairs(&[("GH_TOKEN", "inherited"), ("SSH_AUTH_SOCK", "/run/agent.1"), ("PATH", "/bin:/usr")]);
        all.extend(own.clone());
        assert_eq!(Secrets::of_environment(&all, &own), secrets(&["inherited", "/own/secret"]));
    }

    // TM-1, SE-3: what MCP servers are given
    #[test]
    fn servers_have_secrets() {
        let params = json!({"cwd": "/", "mcpServers": [
            {"name": "a", "command": "x", "args": [], "env": [
                {"name": "DB_PASSWORD", "value": "hunter22"}, {"name": "LEVEL", "value": "verbose-level"}]},
            {"type": "http", "name": "b", "url": "u", "headers": [{"name": "Authorization", "value": "Bearer abcdefgh"}]},
            {"name": "c", "env": {"TOKEN": "of another shape"}}, 7,
        ]});
        let found = Secrets::of_session(params.to_string().as_bytes());
        assert_eq!(found, secrets(&["hunter22", "Bearer abcdefgh"]));
        assert_eq!(found.redact("got abcdefgh and Bearer abcdefgh"), "got [redacted] and [redacted]");
        assert_eq!(Secrets::of_session(b"{}"), Secrets::default());
    }

    // TM-1: everywhere in the text, also where they overlap, and nothing else
    #[test]
    fn text_has_none_of_them() {
        let all = secrets(&["12345678", "456789ab", "1234567812345678", "line one\nline two!"]);
        for (text, expected) in [
            ("nothing", "nothing"),
            ("x12345678y12345678", "x[redacted]y[redacted]"),
            ("123456789ab.", "[redacted]."),
            ("1234567812345678", "[redacted]"),
            ("a\nline one\nb line two!", "a\n[redacted]\nb [redacted]"),
            ("é12345678é", "é[redacted]é"),
        ] {
            assert_eq!(all.redact(text), expected);
        }
        let stderr = StderrExcerpt {
            head: "12345678".into(),
            tail: Some("456789ab".into()),
            truncated: true,
            total_lines: 200,
        };
        let (status, containment) = (ExitStatus::Code(1), Containment::Subreaper);
        let report =
            ExitReport { pid: 1, status, leaked: 0, rungs: Vec::new(), oom_kills: 0, stderr, containment };
        let redacted = all.redact_report(&report).stderr.clone();
        assert_eq!((redacted.head.as_str(), redacted.tail.as_deref()), (REDACTED, Some(REDACTED)));
        assert_eq!((redacted.truncated, redacted.total_lines), (true, 200));
        assert_eq!(format!("{all:?}"), "Secrets(5)");
    }

    // TM-1: a line is cut at 4 KiB, and what it was cut in is still a secret
    #[test]
    fn a_secret_that_was_cut_is_none_the_less() {
        let all = secrets(&["abcdefghijkl", "short-one"]);
        let line = |end: &str| format!("{}{end}", "x".repeat(StderrExcerpt::LINE_BYTES - end.len()));
        let cut = format!("{}\nnext abcdef", line("abcdef"));
        let redacted = all.redact(&cut);
        assert!(redacted.ends_with("x[redacted]\nnext abcdef"), "a short line was not cut");
        let whole = line("abc");
        assert_eq!(all.redact(&whole), whole);
    }

    #[test]
    fn the_oldest_go() {
        let mut all = Secrets::default();
        for number in 0..MOST + 5 {
            assert!(all.extend(secrets(&[&format!("secret-{number}")])));
        }
        assert!(!all.extend(secrets(&["secret-9"])));
        assert_eq!((all.0.len(), all.redact("secret-4 secret-5")), (MOST, "secret-4 [redacted]".into()));
    }
}
