//! A projection as bytes, so that a long log need not be folded from its beginning again (ADR 0012).
//!
//! Disposable: without it the log tells the same. So whatever is not as this fold wrote it, for this session, counts as
//! absent. Not here: where checkpoints are kept, and when one is made.

use crate::ids::SessionId;
use crate::projection::Projection;

/// The sources of this crate, which are what the fold is: a checkpoint of another fold is not used, and no version has to be
/// thought of when one of them is changed.
macro_rules! sources {
    ($($file:literal),* $(,)?) => {
        #[cfg(test)]
        const FILES: &[&str] = &[$($file),*];

        /// Which fold this is. The version stands for the other crates that it uses.
        const FOLD: u64 = {
            let fold = hash(START, env!("CARGO_PKG_VERSION").as_bytes());
            $(let fold = hash(fold, include_bytes!($file));)*
            fold
        };
    };
}

sources![
    "checkpoint.rs",
    "event.rs",
    "export.rs",
    "first_prompt.rs",
    "ids.rs",
    "json.rs",
    "keys.rs",
    "kind.rs",
    "last_turn.rs",
    "legality.rs",
    "lib.rs",
    "message.rs",
    "meta.rs",
    "partition.rs",
    "payload.rs",
    "permission_mode.rs",
    "projection.rs",
    "questions.rs",
    "reach.rs",
    "readdress.rs",
    "schema.rs",
    "shape.rs",
    "snapshot.rs",
    "state.rs",
    "tally.rs",
    "termination.rs",
    "title.rs",
    "usage.rs",
];

/// Of FNV-1a, whose purpose is to tell accidents: those that can write a checkpoint can write the log.
pub(crate) const START: u64 = 0xcbf2_9ce4_8422_2325;

pub(crate) const fn hash(mut state: u64, bytes: &[u8]) -> u64 {
    let mut at = 0;
    while at < bytes.len() {
        state = (state ^ bytes[at] as u64).wrapping_mul(0x100_0000_01b3);
        at += 1;
    }
    state
}

/// What stands before the JSON: a hash of the fold, the session and the JSON.
type Seal = [u8; 8];

fn seal(session: &SessionId, json: &[u8]) -> Seal {
    hash(hash(FOLD, session.as_json().as_bytes()), json).to_le_bytes()
}

impl Projection {
    /// A checkpoint of session `session` at its last event; `None` when it would be larger than `at_most` bytes, or could not
    /// be read as the same again, as with numbers of more digits than are kept.
    pub fn to_checkpoint(&self, session: &SessionId, at_most: usize) -> Option<Vec<u8>> {
        let json = serde_json::to_vec(self).ok()?;
        let bytes = [&seal(session, &json)[..], &json].concat();
        if bytes.len() > at_most {
            return None;
        }
        (Self::of_checkpoint(session, &bytes).as_ref() == Some(self)).then_some(bytes)
    }

    /// What a checkpoint of session `session` holds; `None` for one of another fold or session, and for one that is damaged.
    pub fn of_checkpoint(session: &SessionId, bytes: &[u8]) -> Option<Self> {
        let (head, json) = bytes.split_first_chunk::<{ size_of::<Seal>() }>()?;
        (*head == seal(session, json)).then(|| serde_json::from_slice(json).ok()).flatten()
    }
}

#[cfg(test)]
mod tests;
