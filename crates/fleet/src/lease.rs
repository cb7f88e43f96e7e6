//! How long a node may go on without the engine: a pure function of when it was last heard there, by its own monotonic clock.
//!
//! Another node claims a session when its owner has not been heard for a lease and a margin; the owner ends its turn at two
//! thirds of the lease, counted from before it last said that it was there. So between the two is a third of the lease and the margin, whatever the
//! clocks show.

use std::time::Duration;

/// The longest time that a node takes to begin.
const BEGIN: Duration = Duration::from_secs(2);

/// How long a lease is, and how often it is renewed (contract 7.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    heartbeat: Duration,
    lease: Duration,
}

/// How a node stands with the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It has been heard in time.
    Held,
    /// It has not been heard for so long that it is to be said.
    Stale,
    /// Sessions that others may take up are ended.
    Fenced,
}

impl Lease {
    /// None unless a lease is at least three heartbeats, of some length each.
    pub fn new(heartbeat: Duration, lease: Duration) -> Option<Self> {
        let is_long_enough = heartbeat.checked_mul(3).is_some_and(|three| three <= lease);
        (!heartbeat.is_zero() && is_long_enough).then_some(Self { heartbeat, lease })
    }

    /// How often a node says that it is there.
    pub fn heartbeat(&self) -> Duration {
        self.heartbeat
    }

    /// How long that counts.
    pub fn lease(&self) -> Duration {
        self.lease
    }

    /// How long another node waits behind the end of a lease before it claims: what clocks may differ by in their speed, and one heartbeat.
    pub fn margin(&self) -> Duration {
        self.heartbeat + self.lease / 10
    }

    /// How long a session that others may take up may take to end once its node is not heard in time: until another node claims it.
    pub fn to_end(&self) -> Duration {
        self.lease + self.margin() - self.fenced_after()
    }

    /// How long a node may take at its start until it knows that the sessions that its last life has left are its own.
    pub fn to_begin(&self) -> Duration {
        self.heartbeat.min(BEGIN)
    }

    /// How long a heartbeat that was taken lets sessions run that others may take up.
    pub fn fenced_after(&self) -> Duration {
        self.lease * 2 / 3
    }

    /// How a node stands whose last heartbeat that was taken was begun so long ago.
    pub fn standing(&self, since: Duration) -> Standing {
        if since >= self.fenced_after() {
            Standing::Fenced
        } else if since >= self.heartbeat * 2 {
            Standing::Stale
        } else {
            Standing::Held
        }
    }

    /// Whether a session may be claimed whose owner was last heard so long ago.
    pub fn is_over(&self, since: Duration) -> bool {
        since >= self.lease + self.margin()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // design fleet, partition: the owner has ended its turn before another node may claim
    #[test]
    fn the_owner_gives_up_first() {
        let seconds = Duration::from_secs;
        let lease = Lease::new(seconds(5), seconds(20)).expect("it is long enough");
        for (since, standing, is_over) in [
            (0, Standing::Held, false),
            (9, Standing::Held, false),
            (10, Standing::Stale, false),
            (13, Standing::Stale, false),
            (14, Standing::Fenced, false),
            (20, Standing::Fenced, false),
            (26, Standing::Fenced, false),
            (27, Standing::Fenced, true),
        ] {
            assert_eq!(
                (lease.standing(seconds(since)), lease.is_over(seconds(since))),
                (standing, is_over),
                "{since} s"
            );
        }
        assert!(lease.is_over(seconds(27)) && !lease.is_over(seconds(26)));
        // At 13.3 s, and that is 27 s.
        assert_eq!(lease.to_end().as_millis(), 13_666);
    }

    // contract 7.2: heartbeat and lease
    #[test]
    fn a_lease_has_room_for_lost_heartbeats() {
        let millis = Duration::from_millis;
        for (heartbeat, lease, is_one) in
            [(500, 2000, true), (500, 1500, true), (500, 1499, false), (0, 1000, false), (u64::MAX, 1, false)]
        {
            assert_eq!(Lease::new(millis(heartbeat), millis(lease)).is_some(), is_one, "{heartbeat} {lease}");
        }
    }
}
