//! What becomes of nodes, links and servers, and when: made of a seed, before anything is started. Pure.
//!
//! Invariant: nothing is lost twice at a time, and of three servers one is not touched at a time.

use crate::dice::Dice;
use std::fmt;
use std::time::Duration;

/// Nodes, and servers.
pub(crate) const COUNT: usize = 3;
/// What the design gives beyond a lease until a lost node is shown.
const BEYOND_LEASE: Duration = Duration::from_secs(5);

/// How fast all goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) heartbeat: Duration,
    pub(crate) lease: Duration,
    /// How long things are disturbed.
    length: Duration,
}

impl Pace {
    /// As fast as the tests of the fleet.
    pub(crate) fn fast() -> Self {
        let millis = Duration::from_millis;
        Self { heartbeat: millis(500), lease: millis(2_000), length: millis(8_000) }
    }

    /// What a configuration has that says nothing.
    pub(crate) fn of_users() -> Self {
        let seconds = Duration::from_secs;
        Self { heartbeat: seconds(5), lease: seconds(20), length: seconds(60) }
    }

    /// Within that a lost node is shown by the others.
    pub(crate) fn shown_within(&self) -> Duration {
        self.lease + BEYOND_LEASE
    }
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The node is killed, and started again.
    NodeKilled,
    /// The node is stopped, and goes on.
    NodeStopped,
    /// The links of the node to all servers are cut.
    LinksCut,
    /// They carry nothing.
    LinksStill,
    /// They are slow.
    LinksSlow,
    /// The server is killed, and started again.
    ServerKilled,
}

/// What becomes of nodes, the more often the more it does.
const OF_NODES: [Loss; 7] = [
    Loss::NodeKilled,
    Loss::NodeKilled,
    Loss::NodeStopped,
    Loss::NodeStopped,
    Loss::LinksCut,
    Loss::LinksStill,
    Loss::LinksSlow,
];

impl Loss {
    /// Whether others hear nothing of the node.
    fn is_silence(self) -> bool {
        matches!(self, Self::NodeKilled | Self::NodeStopped | Self::LinksCut | Self::LinksStill)
    }
}

/// One of them is lost for a while.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disturbance {
    pub(crate) loss: Loss,
    /// Which node or server, from 0.
    pub(crate) which: usize,
    pub(crate) begins: Duration,
    pub(crate) ends: Duration,
}

impl Disturbance {
    fn overlaps(&self, from: Duration, to: Duration) -> bool {
        self.begins < to && from < self.ends
    }

    fn is_of_server(&self) -> bool {
        self.loss == Loss::ServerKilled
    }
}

/// A look at what others show of a lost node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) at: Duration,
    pub(crate) lost: usize,
    /// Nodes that nothing has happened to meanwhile.
    pub(crate) by: Vec<usize>,
}

/// A schedule.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) seed: u64,
    pub(crate) pace: Pace,
    pub(crate) disturbances: Vec<Disturbance>,
    pub(crate) length: Duration,
}

impl Schedule {
    /// The schedule of a seed.
    pub(crate) fn of(seed: u64, pace: Pace) -> Self {
        let mut dice = Dice::new(seed);
        // The first numbers of neighbouring seeds are alike.
        for _ in 0..8 {
            dice.below(2);
        }
        let mut schedule = Self { seed, pace, disturbances: Vec::new(), length: pace.length };
        // One in three has a node that is lost until it has to be shown, and a node that nothing happens to.
        let long = dice.once_in(3).then(|| dice.below(COUNT));
        let lasts =
            |dice: &mut Dice, from: usize, to: usize| pace.lease * (from + dice.below(to - from)) as u32 / 10;
        if let Some(which) = long {
            let loss = dice.pick(&[Loss::NodeKilled, Loss::NodeStopped, Loss::LinksCut, Loss::LinksStill]);
            let begins = lasts(&mut dice, 1, 4);
            let ends = begins + pace.shown_within() + pace.heartbeat;
            schedule.disturbances.push(Disturbance { loss, which, begins, ends });
            schedule.length = schedule.length.max(ends);
        }
        let mut begins = Duration::ZERO;
        loop {
            begins += lasts(&mut dice, 1, 6);
            if begins + pace.heartbeat >= pace.length {
                break;
            }
            let (loss, which) = match long {
                Some(lost) => (dice.pick(&OF_NODES), (lost + 1) % COUNT),
                None if dice.once_in(4) => (Loss::ServerKilled, dice.below(COUNT)),
                None => (dice.pick(&OF_NODES), dice.below(COUNT)),
            };
            let ends = (begins + lasts(&mut dice, 2, 25)).min(pace.length);
            let next = Disturbance { loss, which, begins, ends };
            if schedule.takes(&next) {
                schedule.disturbances.push(next);
            }
        }
        schedule
    }

    fn takes(&self, next: &Disturbance) -> bool {
        let mut meanwhile = self.disturbances.iter().filter(|other| other.overlaps(next.begins, next.ends));
        let servers = meanwhile.clone().filter(|other| other.is_of_server()).count();
        let is_same =
            |other: &Disturbance| other.is_of_server() == next.is_of_server() && other.which == next.which;
        !meanwhile.any(is_same) && (!next.is_of_server() || servers < COUNT - 1)
    }

    /// Where a node has been lost for so long that others have to show it, if the servers are all there meanwhile.
    pub(crate) fn looks(&self) -> Vec<Look> {
        let look = |lost: &Disturbance| {
            let at = lost.begins + self.pace.shown_within();
            if !lost.loss.is_silence() || at > lost.ends {
                return None;
            }
            let meanwhile = |of_server: bool, which: Option<usize>| {
                let mut all = self.disturbances.iter().filter(|other| other.is_of_server() == of_server);
                all.any(|other| {
                    which.is_none_or(|which| other.which == which)
                        && other.overlaps(lost.begins.saturating_sub(self.pace.lease), at)
                })
            };
            let by = (0..COUNT).filter(|node| !meanwhile(false, Some(*node)));
            let by = by.filter(|node| *node != lost.which).collect::<Vec<_>>();
            (!by.is_empty() && !meanwhile(true, None)).then_some(Look { at, lost: lost.which, by })
        };
        self.disturbances.iter().filter_map(look).collect()
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Disturbance { loss, which, begins, ends } in &self.disturbances {
            writeln!(
                f,
                "  {:6.2} s to {:6.2} s: {loss:?} {which}",
                begins.as_secs_f64(),
                ends.as_secs_f64()
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disturbance((loss, which, begins, ends): (Loss, usize, u64, u64)) -> Disturbance {
        let millis = Duration::from_millis;
        Disturbance { loss, which, begins: millis(begins), ends: millis(ends) }
    }

    // design fleet, tests: what a seed stands for is the same each time, and leaves a server
    #[test]
    fn a_seed_is_a_schedule() {
        let (mut of_servers, mut looked) = (0, 0);
        for seed in 0..200 {
            let schedule = Schedule::of(seed, Pace::fast());
            assert_eq!(schedule.to_string(), Schedule::of(seed, Pace::fast()).to_string());
            for (at, one) in schedule.disturbances.iter().enumerate() {
                assert!(one.begins < one.ends && one.ends <= schedule.length, "{seed}: {one:?}");
                let mut others = schedule.disturbances[..at].iter();
                let is_twice = |other: &Disturbance| {
                    other.is_of_server() == one.is_of_server()
                        && other.which == one.which
                        && other.overlaps(one.begins, one.ends)
                };
                assert!(!others.any(is_twice), "{seed}: {one:?}");
            }
            of_servers += schedule.disturbances.iter().filter(|one| one.is_of_server()).count();
            looked += schedule.looks().len();
        }
        assert!(of_servers > 100 && looked > 30, "{of_servers} {looked}");
    }

    // design fleet: a lost node is shown within its lease and 5 s, by nodes whose own links are whole
    #[test]
    fn what_is_lost_for_long_is_looked_at() {
        use Loss::{LinksSlow, LinksStill, NodeKilled, ServerKilled};
        let look = |by: &[usize]| vec![Look { at: Duration::from_secs(8), lost: 0, by: by.to_vec() }];
        let lost = (NodeKilled, 0, 1_000, 8_000);
        for (all, looks) in [
            (vec![lost], look(&[1, 2])),
            (vec![lost, (LinksSlow, 1, 3_000, 4_000)], look(&[2])),
            (vec![lost, (LinksSlow, 1, 3_000, 4_000), (NodeKilled, 2, 100, 200)], look(&[1])[..0].to_vec()),
            (vec![lost, (ServerKilled, 2, 3_000, 4_000)], vec![]),
            (vec![(LinksSlow, 0, 1_000, 9_000)], vec![]),
            (vec![(LinksStill, 0, 1_000, 7_999)], vec![]),
        ] {
            let disturbances = all.iter().copied().map(disturbance).collect();
            let schedule =
                Schedule { seed: 0, pace: Pace::fast(), disturbances, length: Duration::from_secs(9) };
            assert_eq!(schedule.looks(), looks, "{all:?}");
        }
    }
}
