//! How fast the events of sessions come. Pure: looks and their times come in.

use crate::daemon::Session;
use std::collections::HashMap;
use tokio::time::Instant;

/// The last look at each session.
#[derive(Debug, Default)]
pub(super) struct Rates {
    last: HashMap<String, Seen>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    events: u64,
    at: Instant,
    /// Events a second between the last two looks.
    rate: Option<f64>,
}

impl Rates {
    /// Takes a look; sessions that are not in it any more are forgotten.
    pub(super) fn see(&mut self, sessions: &[Session], at: Instant) {
        let before = std::mem::take(&mut self.last);
        self.last = sessions
            .iter()
            .map(|session| {
                let rate = before.get(&session.session_id).and_then(|seen| {
                    let seconds = at.saturating_duration_since(seen.at).as_secs_f64();
                    let came = session.event_count.saturating_sub(seen.events);
                    #[expect(clippy::cast_precision_loss, reason = "a rate is shown with two digits")]
                    (seconds > 0.0).then_some(came as f64 / seconds)
                });
                (session.session_id.clone(), Seen { events: session.event_count, at, rate })
            })
            .collect();
    }

    /// Events a second; None before the second look.
    pub(super) fn of(&self, id: &str) -> Option<f64> {
        self.last.get(id)?.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    // contract 6: the rate of events in acpd top
    #[test]
    fn rates_are_between_two_looks() {
        let session =
            |id: &str, event_count| Session { session_id: id.to_owned(), event_count, ..Session::default() };
        let (mut rates, start) = (Rates::default(), Instant::now());
        rates.see(&[session("a", 10)], start);
        assert_eq!(rates.of("a"), None);
        rates.see(&[session("a", 30), session("b", 5)], start + Duration::from_secs(2));
        assert_eq!((rates.of("a"), rates.of("b")), (Some(10.0), None));
        // Deleted, and made anew under the same id: less than before is no rate.
        rates.see(&[session("a", 3)], start + Duration::from_secs(3));
        assert_eq!((rates.of("a"), rates.of("b")), (Some(0.0), None));
    }
}
