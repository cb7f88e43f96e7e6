//! The environment of a command: the user's own, made fit to run unwatched.

use acpd_supervisor::program_environment;
use std::ffi::{OsStr, OsString};

/// Commands must not wait for a page to be turned or a password to be typed.
const UNATTENDED: &[(&str, &str)] = &[("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")];

/// What a pseudo-terminal calls itself, by default.
const PTY_TERM: (&str, &str) = ("TERM", "xterm-256color");

type Variables = Vec<(OsString, OsString)>;

/// `inherited` without acpd's own, what keeps commands from waiting for a person, and over all `own`.
pub(crate) fn command_environment(inherited: &Variables, own: &Variables, is_pty: bool) -> Variables {
    let has =
        |variables: &Variables, name: &str| variables.iter().any(|(known, _)| known == OsStr::new(name));
    let mut set = own.clone();
    for (name, value) in UNATTENDED.iter().filter(|(name, _)| !has(own, name)) {
        set.push((name.into(), value.into()));
    }
    if is_pty && !has(own, PTY_TERM.0) && !has(inherited, PTY_TERM.0) {
        set.push((PTY_TERM.0.into(), PTY_TERM.1.into()));
    }
    program_environment(inherited.iter().cloned(), &set)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Variables {
        list.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    // TE-1: env adds to inherited; SU-7: without what is acpd's own
    #[test]
    fn nobody_is_asked_unless_the_caller_says_so() {
        let inherited = pairs(&[("PATH", "/bin"), ("PAGER", "less"), ("ACPD_TOKEN", "secret"), ("A", "old")]);
        let own = pairs(&[("A", "new"), ("GIT_TERMINAL_PROMPT", "1")]);
        let expected = pairs(&[
            ("PATH", "/bin"),
            ("A", "new"),
            ("GIT_TERMINAL_PROMPT", "1"),
            ("PAGER", "cat"),
            ("GIT_PAGER", "cat"),
        ]);
        assert_eq!(command_environment(&inherited, &own, false), expected);
    }

    #[test]
    fn a_pseudo_terminal_has_a_kind() {
        let term = |inherited: &[(&str, &str)], own: &[(&str, &str)], is_pty| {
            let all = command_environment(&pairs(inherited), &pairs(own), is_pty);
            let term = all.into_iter().find(|(name, _)| name == "TERM");
            term.map(|(_, value)| value.into_string().expect("text"))
        };
        assert_eq!(term(&[], &[], true).as_deref(), Some("xterm-256color"));
        assert_eq!(term(&[("TERM", "vt100")], &[], true).as_deref(), Some("vt100"));
        assert_eq!(term(&[], &[("TERM", "dumb")], true).as_deref(), Some("dumb"));
        assert_eq!(term(&[], &[], false), None);
    }
}
