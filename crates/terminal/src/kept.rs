//! Terminals that outlive their host: what the next host needs to go on with one, and how much of its output that is.
//!
//! The keeper of the command keeps the end of what the command wrote, as bytes. Positions in the text that these bytes decode
//! to are told beside them, as a mark, because the beginning that they would be counted from is not kept.

use crate::settings::OutputLimits;
use crate::spec::TerminalId;
use acpd_supervisor::{KeepFor, Process};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tokio_util::bytes::BytesMut;

/// Places are remembered, and the keeper is told, after so many bytes.
const STEP: u64 = 64 * 1024;

/// The name of the mark for a place.
const PLACE: &str = "text";

/// What the next host needs to find a terminal. It has the key of its keeper in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptTerminal {
    id: String,
    mark: String,
    key: String,
    shown: usize,
    kept: usize,
    /// Until when its command may run, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until_ms: Option<u64>,
}

/// Stores what the next host needs to find a terminal, or None when the terminal is gone; false when that did not work.
pub type Note = Box<dyn Fn(&TerminalId, Option<&KeptTerminal>) -> bool + Send + Sync>;

/// How a terminal outlives its host.
pub struct Keeping {
    /// How long its command waits for the next host.
    pub keep: Duration,
    /// Bytes of output that are taken meanwhile, beyond those that are kept anyway; then the command waits.
    pub detached_bytes: u64,
    /// Where its keeper listens.
    pub directory: PathBuf,
    /// Where the next host finds what it needs.
    pub note: Note,
}

/// What the log of the host before has of a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Bytes of text that its feed has told or left out.
    pub text: u64,
    /// Its end was told.
    pub end: bool,
}

impl KeptTerminal {
    /// A terminal whose command was just started, and may run for `timeout`.
    pub(crate) fn new(
        id: &TerminalId,
        process: &Process,
        limits: OutputLimits,
        timeout: Option<Duration>,
    ) -> Self {
        let until = timeout.and_then(|timeout| now().checked_add(timeout));
        Self {
            id: id.as_str().to_owned(),
            mark: process.handle.mark().as_str().to_owned(),
            key: KeepFor::fresh_key(),
            shown: limits.shown,
            kept: limits.kept,
            until_ms: until.map(millis_of),
        }
    }

    /// Its id.
    pub fn id(&self) -> TerminalId {
        TerminalId::from(self.id.as_str())
    }

    /// What names its keeper.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn limits(&self) -> OutputLimits {
        OutputLimits { shown: self.shown, kept: self.kept }
    }

    /// How much longer its command may run.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        self.until_ms.map(|until| Duration::from_millis(until.saturating_sub(millis_of(now()))))
    }
}

fn now() -> SystemTime {
    #[expect(clippy::disallowed_methods, reason = "a time that two hosts have to understand")]
    SystemTime::now()
}

fn millis_of(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A place in what a command wrote, between two characters: bytes and bytes of text before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) bytes: u64,
    pub(crate) text: u64,
}

impl Place {
    /// Where what a keeper has kept can be read from, which begins at byte `kept`.
    pub(crate) fn of_marks(marks: &BTreeMap<String, String>, kept: u64) -> Self {
        let told = marks.get(PLACE).and_then(|place| {
            let (bytes, text) = place.split_once(' ')?;
            Some(Self { bytes: bytes.parse().ok()?, text: text.parse().ok()? })
        });
        let place = told.unwrap_or_default();
        // The keeper was told first; it cannot be behind.
        let missing = kept.saturating_sub(place.bytes);
        Self { bytes: place.bytes + missing, text: place.text + missing }
    }
}

/// Which part of what a command wrote the next host needs.
#[derive(Debug)]
pub(crate) struct Needed {
    /// So many bytes from the end.
    keep: u64,
    places: VecDeque<Place>,
    told: u64,
}

impl Needed {
    /// Of a command that was read up to `begin`, where the last `keep` bytes are needed.
    pub(crate) fn new(keep: usize, begin: Place) -> Self {
        Self { keep: keep as u64, places: VecDeque::new(), told: begin.bytes }
    }

    /// It was read up to `place`. Gives a place before which nothing is needed, when there is a new one.
    pub(crate) fn read(&mut self, place: Place) -> Option<Place> {
        let last = self.places.back().map_or(self.told, |last| last.bytes);
        if place.bytes >= last + STEP {
            self.places.push_back(place);
        }
        let end = place.bytes.saturating_sub(self.keep);
        let needless = self.places.iter().take_while(|place| place.bytes <= end).count();
        let newest = self.places.drain(..needless).next_back()?;
        self.told = newest.bytes;
        Some(newest)
    }
}

/// A terminal that outlives its host.
pub(crate) struct Kept {
    pub(crate) needed: Needed,
    pub(crate) note: Note,
}

impl Kept {
    /// Has a command that was just started outlive this host, if the next one can find it.
    pub(crate) fn begin(terminal: &KeptTerminal, keeping: Keeping, process: &Process, held: usize) -> Self {
        let Keeping { keep, detached_bytes, directory, note } = keeping;
        let needed = terminal.kept.max(held);
        if note(&terminal.id(), Some(terminal)) {
            // What is needed is held in any case; there are no lines.
            let detached_bytes = detached_bytes.saturating_add(needed as u64 + STEP);
            let (line_bytes, key) = (0, terminal.key.clone());
            process.handle.keep(KeepFor { keep, detached_bytes, line_bytes, directory, key });
        }
        Self { needed: Needed::new(needed, Place::default()), note }
    }

    /// The command was read up to `place`.
    pub(crate) fn read(&mut self, process: &Process, place: Place) {
        let Some(Place { bytes, text }) = self.needed.read(place) else { return };
        let mut frame = BytesMut::new();
        process.stdin.framing().put(&mut frame, PLACE, Some(&format!("{bytes} {text}")));
        // In this order, so that the place is known whenever the bytes are not.
        if process.stdin.try_write(&frame).is_ok() {
            process.stdout.committed(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(bytes: u64) -> Place {
        Place { bytes, text: bytes + 1 }
    }

    // ADR 24: the end of the output is needed, and nothing before it
    #[test]
    fn what_is_before_the_end_is_not_needed() {
        let mut needed = Needed::new(100_000, Place::default());
        for (read, settled) in [
            (60_000, None),
            (70_000, None),
            (140_000, None),
            (170_001, Some(70_000)),
            (200_000, None),
            (500_000, Some(140_000)),
            (600_000, Some(500_000)),
        ] {
            assert_eq!(needed.read(place(read)), settled.map(place), "{read}");
        }
    }

    // ADR 24: what the keeper has begins at or before the place that it was told
    #[test]
    fn a_place_is_read_as_it_was_told() {
        let marks = |text: &str| BTreeMap::from([(PLACE.to_owned(), text.to_owned())]);
        assert_eq!(Place::of_marks(&BTreeMap::new(), 0), Place::default());
        assert_eq!(Place::of_marks(&marks("70 90"), 10), Place { bytes: 70, text: 90 });
        assert_eq!(Place::of_marks(&marks("70 90"), 80), Place { bytes: 80, text: 100 });
        assert_eq!(Place::of_marks(&marks("no"), 0), Place::default());
    }
}
