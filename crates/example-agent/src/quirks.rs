//! The quirks that the agent can play: deviations and surprises that were seen in real agents. Pure, a list in a file.
//!
//! The file has a name and a description for each, and below it, indented, its steps: directives, and those of
//! [`Step`]. `docs/quirks.md` is made from the same file. Invariant: what a step sends is sent letter by letter, with
//! only `$S` (the session), `$C` (its directory), `$N` (a number that is new each time) and `$(TEXT*COUNT)` filled in.

const LIST: &str = include_str!("quirks.txt");

/// One quirk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quirk {
    pub(crate) name: &'static str,
    about: &'static str,
    steps: &'static str,
}

/// One thing that a quirk does.
#[derive(Debug, PartialEq)]
pub(crate) enum Step<'a> {
    /// Sends an update of the session, and keeps it for a replay.
    Update(&'a str),
    /// Writes a line.
    Line(&'a str),
    /// Writes bytes, with the escapes `\e`, `\r`, `\n` and `\xNN`, and no line end of its own.
    Raw(&'a str),
    /// Sends a request and reports the answer.
    Request { method: &'a str, params: &'a str, has_text_id: bool },
    /// Does a step if the last question was not answered with an option that allows.
    UnlessAllowed(Box<Self>),
    /// Waits for a cancel, and goes on after it.
    UntilCancelled,
    /// Answers the prompt with this result.
    Answer(&'a str),
    /// Answers the prompt with this error.
    Error(&'a str),
    /// Leaves the steps below it for the time after the answer to the prompt.
    Late,
    /// Is played by this option of the agent, from its start on.
    Option(&'a str),
    /// Does what a line of a prompt would.
    Directive(&'a str),
}

/// All quirks, in the order of the list.
fn quirks() -> impl Iterator<Item = Quirk> {
    let is_step = |line: &str| line.starts_with(' ');
    let mut rest = LIST;
    std::iter::from_fn(move || {
        loop {
            let (line, after) = rest.split_once('\n')?;
            let end: usize = after.split_inclusive('\n').take_while(|line| is_step(line)).map(str::len).sum();
            let (steps, after) = after.split_at(end);
            rest = after;
            if let Some((name, about)) = line.split_once(": ") {
                return Some(Quirk { name, about, steps });
            }
        }
    })
}

/// The quirk with this name.
pub(crate) fn quirk(name: &str) -> Option<Quirk> {
    quirks().find(|quirk| quirk.name == name)
}

/// One line for each quirk.
pub(crate) fn listing() -> String {
    quirks().map(|Quirk { name, about, .. }| format!("{name}: {about}\n")).collect::<String>()
}

impl Quirk {
    /// Whether it is played although the turn has been cancelled.
    pub(crate) fn expects_cancel(self) -> bool {
        self.steps().any(|step| step == Step::UntilCancelled)
    }

    pub(crate) fn steps(self) -> impl Iterator<Item = Step<'static>> {
        self.steps.lines().map(|line| Step::parse(line.trim_start()))
    }
}

impl<'a> Step<'a> {
    fn parse(line: &'a str) -> Self {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words = || rest.split_once(' ').unwrap_or((rest, ""));
        match name {
            "update" => Self::Update(rest),
            "line" => Self::Line(rest),
            "raw" => Self::Raw(rest),
            "question" => {
                Self::Request { method: "session/request_permission", params: rest, has_text_id: false }
            }
            "request" | "request-text-id" => {
                let (method, params) = words();
                Self::Request { method, params, has_text_id: name == "request-text-id" }
            }
            "unless-allowed" => Self::UnlessAllowed(Box::new(Self::parse(rest))),
            "until-cancelled" => Self::UntilCancelled,
            "answer" => Self::Answer(rest),
            "error" => Self::Error(rest),
            "late" => Self::Late,
            "option" => Self::Option(rest),
            _ => Self::Directive(line),
        }
    }
}

/// Writes out `$(TEXT*COUNT)`.
pub(crate) fn repeated(text: &str) -> String {
    let Some((before, (inner, after))) =
        text.split_once("$(").and_then(|(before, rest)| Some((before, rest.split_once(')')?)))
    else {
        return text.to_owned();
    };
    let (what, count) = inner.rsplit_once('*').unwrap_or((inner, "1"));
    format!("{before}{}{}", what.repeat(count.parse().unwrap_or(1)), repeated(after))
}

/// The bytes of a text with escapes.
pub(crate) fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escape)) = rest.split_once('\\') {
        bytes.extend(plain.bytes());
        let hex = || u8::from_str_radix(escape.get(1..3)?, 16).ok();
        let (byte, length) = match escape.as_bytes().first() {
            Some(b'e') => (0x1b, 1),
            Some(b'r') => (b'\r', 1),
            Some(b'n') => (b'\n', 1),
            Some(b'x') => hex().map_or((b'\\', 0), |byte| (byte, 3)),
            _ => (b'\\', 0),
        };
        bytes.push(byte);
        rest = &escape[length..];
    }
    bytes.extend(rest.bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directive::{Directive, parse};

    // contract 4
    #[test]
    fn every_quirk_is_named_once_described_and_can_be_read() {
        let mut names: Vec<&str> = quirks().map(|quirk| quirk.name).collect();
        assert_eq!(names.len(), listing().lines().count());
        for quirk in quirks() {
            assert!(quirk.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-' || byte == b'8'));
            assert!(!quirk.about.ends_with('.') && quirk.about.len() <= 100, "{}", quirk.about);
            for step in quirk.steps() {
                // A step whose name is misspelt would be text that is echoed.
                if let Step::Directive(line) = step {
                    assert!(
                        !matches!(parse(line), Ok(Directive::Echo(_)) | Err(_)),
                        "{}: {line}",
                        quirk.name
                    );
                }
            }
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), quirks().count());
    }

    // contract 4
    #[test]
    fn repetitions_and_escapes_are_written_out() {
        assert_eq!(repeated("a$(bc*3)d$(e*2)"), "abcbcbcdee");
        assert_eq!(repeated("$S and $N"), "$S and $N");
        assert_eq!(unescaped(r"\e[0m\x00\xef\r\n\q\x"), b"\x1b[0m\0\xef\r\n\\q\\x");
    }
}
