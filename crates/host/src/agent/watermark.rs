//! How far what an agent wrote is settled: a host that takes the agent over needs nothing before that.
//!
//! Pure. A line is settled when its session has committed what came of it, and when acpd has answered it, if it is a request
//! that acpd serves; a line that is for no session is settled at once. Invariant: the watermark is the end of the longest
//! prefix of settled lines, and never goes back.

use super::RouteId;
use acpd_wire::OwnedId;
use std::collections::VecDeque;

/// What a line waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Need {
    /// Its session takes it up.
    Handled,
    /// Its session commits this event.
    Commit(u64),
    /// The agent is sent the answer to this request.
    Answer(OwnedId),
}

#[derive(Debug)]
struct Line {
    start: u64,
    end: u64,
    route: RouteId,
    need: Need,
}

/// How far what an agent wrote is settled.
#[derive(Debug, Default)]
pub(super) struct Watermark {
    /// Those that are not settled, and those behind them, in order.
    lines: VecDeque<Line>,
    /// Where the last line begins and ends.
    start: u64,
    end: u64,
}

impl Watermark {
    /// All before `position` is settled.
    pub(super) fn starting_at(position: u64) -> Self {
        Self { lines: VecDeque::new(), start: position, end: position }
    }

    /// The agent wrote a line that ends at `end`.
    pub(super) fn line(&mut self, end: u64) {
        (self.start, self.end) = (self.end, end);
    }

    /// That line is for the session of a route.
    pub(super) fn is_for(&mut self, route: RouteId) {
        self.lines.push_back(Line { start: self.start, end: self.end, route, need: Need::Handled });
    }

    /// A session has taken up its lines up to `position`; what came of them are events up to `seq`.
    pub(super) fn handled(&mut self, route: RouteId, position: u64, seq: u64) {
        let newer = self.lines.partition_point(|line| line.end <= position);
        for line in self.lines.range_mut(..newer).rev().filter(|line| line.route == route) {
            match line.need {
                Need::Handled => line.need = Need::Commit(seq),
                Need::Answer(_) => {}
                // It was taken up before, and all that is older with it.
                Need::Commit(_) => break,
            }
        }
    }

    /// The line that ends at `position` is a request that waits for an answer.
    pub(super) fn asks(&mut self, route: RouteId, position: u64, id: &OwnedId) {
        let place = self.lines.binary_search_by_key(&position, |line| line.end);
        if let Some(line) = place.ok().and_then(|place| self.lines.get_mut(place))
            && line.route == route
        {
            line.need = Need::Answer(id.clone());
        }
    }

    /// The agent was sent an answer.
    pub(super) fn answered(&mut self, id: &OwnedId) {
        for line in &mut self.lines {
            if matches!(&line.need, Need::Answer(asked) if asked == id) {
                line.need = Need::Commit(0);
            }
        }
    }

    /// The session of a route has ended: its lines wait for nothing.
    pub(super) fn left(&mut self, route: RouteId) {
        for line in self.lines.iter_mut().filter(|line| line.route == route) {
            line.need = Need::Commit(0);
        }
    }

    /// How far all is settled, where `committed` says how far a session has committed.
    pub(super) fn settled(&mut self, committed: impl Fn(RouteId) -> u64) -> u64 {
        // Asked once for the lines of one session that follow one another.
        let mut known = (None, 0);
        while let Some(Line { need: Need::Commit(seq), route, .. }) = self.lines.front() {
            if *seq > 0 && known.0 != Some(*route) {
                known = (Some(*route), committed(*route));
            }
            if *seq > 0 && known.1 < *seq {
                break;
            }
            self.lines.pop_front();
        }
        if self.lines.is_empty() {
            self.lines = VecDeque::new();
        }
        self.lines.front().map_or(self.end, |line| line.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: RouteId = RouteId(1);
    const OTHER: RouteId = RouteId(2);

    fn say(lines: &mut Watermark, end: u64, routes: &[RouteId]) {
        lines.line(end);
        routes.iter().for_each(|route| lines.is_for(*route));
    }

    fn id(text: &str) -> OwnedId {
        OwnedId::parse(text).expect("an id")
    }

    // ADR 22: what is not in the log comes again to a host that takes over
    #[test]
    fn a_line_is_settled_when_its_events_are_committed() {
        let mut lines = Watermark::starting_at(10);
        assert_eq!(lines.settled(|_| 0), 10);
        lines.line(15);
        assert_eq!(lines.settled(|_| 0), 15, "noise");
        say(&mut lines, 20, &[ONE]);
        say(&mut lines, 30, &[OTHER]);
        say(&mut lines, 40, &[ONE]);
        say(&mut lines, 50, &[]);
        assert_eq!(lines.settled(|_| 99), 15, "not handled yet");
        lines.handled(ONE, 40, 7);
        assert_eq!(lines.settled(|_| 6), 15);
        assert_eq!(lines.settled(|_| 7), 20, "the other session is behind");
        lines.handled(OTHER, 30, 3);
        let committed = |route| if route == ONE { 7 } else { 2 };
        assert_eq!(lines.settled(committed), 20);
        assert_eq!(lines.settled(|_| 7), 50);
    }

    // ADR 22: lines that come while earlier ones wait for their commit wait for their own
    #[test]
    fn each_line_waits_for_its_own_events() {
        let mut lines = Watermark::default();
        say(&mut lines, 10, &[ONE]);
        lines.handled(ONE, 10, 4);
        say(&mut lines, 20, &[ONE]);
        lines.handled(ONE, 20, 5);
        say(&mut lines, 30, &[ONE]);
        assert_eq!(lines.settled(|_| 4), 10);
        assert_eq!(lines.settled(|_| 9), 20);
    }

    // ADR 22: a request that acpd serves comes again until its answer was sent
    #[test]
    fn a_request_is_settled_by_its_answer() {
        let mut lines = Watermark::default();
        say(&mut lines, 10, &[ONE]);
        say(&mut lines, 20, &[ONE]);
        lines.asks(ONE, 10, &id("5"));
        lines.handled(ONE, 20, 1);
        assert_eq!(lines.settled(|_| 9), 0);
        lines.answered(&id("\"5\""));
        assert_eq!(lines.settled(|_| 9), 0, "another");
        lines.answered(&id("5"));
        assert_eq!(lines.settled(|_| 9), 20);
    }

    // ADR 22: a session that has ended holds nothing up
    #[test]
    fn a_session_that_left_is_not_waited_for() {
        let mut lines = Watermark::default();
        say(&mut lines, 10, &[ONE]);
        say(&mut lines, 20, &[ONE, OTHER]);
        lines.left(ONE);
        assert_eq!(lines.settled(|_| 0), 10);
        lines.left(OTHER);
        assert_eq!(lines.settled(|_| 0), 20);
    }
}
