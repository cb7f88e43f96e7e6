//! Agents that have outlived their daemon and wait for the next one: how many, and for how long.
//!
//! Pure. Not here: finding them.

use crate::daemon::Session;
use crate::view::span;
use jiff::Timestamp;

/// Sessions whose agents wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) sessions: usize,
    /// When the first of them ends.
    pub(crate) until: Option<Timestamp>,
}

impl Waiting {
    pub(crate) fn of(sessions: &[Session]) -> Self {
        let waiting = || sessions.iter().filter(|session| session.detached_since.is_some());
        let until = waiting().filter_map(|session| session.detached_until?.0).min();
        Self { sessions: waiting().count(), until }
    }

    /// In words, if there are some.
    pub(crate) fn told(self, now: Timestamp) -> Option<String> {
        let left = self.until.map(|until| until.as_second() - now.as_second());
        let left = left.map(|seconds| format!("{} more", span(seconds)));
        match (self.sessions, left) {
            (0, _) => None,
            (1, None) => Some("1 session waits for the next `acpd serve`".to_owned()),
            (1, Some(left)) => Some(format!("1 session waits for the next `acpd serve`, for {left}")),
            (some, None) => Some(format!("{some} sessions wait for the next `acpd serve`")),
            (some, Some(left)) => {
                Some(format!("{some} sessions wait for the next `acpd serve`, the first for {left}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.3: how many wait, and for how long the first one does
    #[test]
    fn those_that_wait_are_told() {
        let at = |text: &str| Some(text.into());
        let session =
            |since, until| Session { detached_since: since, detached_until: until, ..Session::default() };
        let waits = |until: &str| session(at("2026-11-21T12:00:00Z"), at(until));
        let now = "2026-11-21T12:01:00Z".parse().expect("a time");
        for (sessions, told) in [
            (vec![session(None, None)], None),
            (
                vec![waits("2026-11-21T12:10:00Z")],
                Some("1 session waits for the next `acpd serve`, for 9m more"),
            ),
            (
                vec![session(at("2026-11-21T12:00:00Z"), None)],
                Some("1 session waits for the next `acpd serve`"),
            ),
            (
                vec![waits("2026-11-21T12:10:00Z"), session(None, None), waits("2026-11-21T12:01:20Z")],
                Some("2 sessions wait for the next `acpd serve`, the first for 20s more"),
            ),
            (
                vec![waits("2026-11-21T12:00:30Z")],
                Some("1 session waits for the next `acpd serve`, for 0s more"),
            ),
        ] {
            assert_eq!(Waiting::of(&sessions).told(now).as_deref(), told);
        }
    }
}
