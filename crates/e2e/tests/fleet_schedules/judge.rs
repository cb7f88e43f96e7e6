//! What has to be so of what is left of a schedule. Pure.

pub(crate) mod committed;
pub(crate) mod completeness;
pub(crate) mod epochs;
pub(crate) mod runs;

use acpd_fleet::Piece;
use acpd_record::Cause;

/// What an event is, as far as the judge looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    RunStarted,
    Ended(Option<Cause>),
    Other,
}

/// An event of a log, or of the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) seq: u64,
    pub(crate) at_ms: i64,
    pub(crate) kind: u16,
    pub(crate) payload: Vec<u8>,
    pub(crate) what: What,
}

/// A log of a session at a node.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    pub(crate) node: usize,
    /// The id that it has.
    pub(crate) id: String,
    /// The session that it is of: another id where it was set aside.
    pub(crate) of: String,
    pub(crate) events: Vec<Recorded>,
    /// Its events as its node shows them, under the id of the session.
    pub(crate) shown: Vec<String>,
}

/// All that is left of a session.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    pub(crate) session: String,
    /// The node that has it, as the directory says.
    pub(crate) owner: Option<usize>,
    pub(crate) logs: Vec<Log>,
    pub(crate) pieces: Vec<Piece>,
    /// The events of the pieces.
    pub(crate) archive: Vec<Recorded>,
}

impl Evidence {
    /// The owner's log: the only one that has the id of the session.
    ///
    /// # Errors
    /// When it is otherwise.
    pub(crate) fn log(&self) -> Result<&Log, String> {
        let all: Vec<_> = self.logs.iter().filter(|log| log.id == self.session).collect();
        let nodes: Vec<_> = all.iter().map(|log| log.node).collect();
        match (&all[..], self.owner) {
            ([log], Some(owner)) if log.node == owner => Ok(log),
            (_, owner) => Err(format!("nodes {nodes:?} have it, and the directory says {owner:?}")),
        }
    }
}

/// Events for tables: number and time, and what it is.
#[cfg(test)]
pub(crate) fn events(of: &[(u64, i64, What)]) -> Vec<Recorded> {
    let event = |(seq, at_ms, what): &(u64, i64, What)| Recorded {
        seq: *seq,
        at_ms: *at_ms,
        kind: 1,
        payload: format!("{seq} {at_ms}").into_bytes(),
        what: *what,
    };
    of.iter().map(event).collect()
}
