//! The cursor of `session/list`: opaque to clients, bound to the filter it was given for (SE-12).

use serde::{Deserialize, Serialize};

/// A place in a list, and the list it belongs to.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ListCursor {
    /// The last entry of the page before.
    pub(super) place: (i64, String),
    /// The filter.
    pub(super) agent: Option<String>,
    pub(super) cwd: Option<String>,
}

impl ListCursor {
    pub(super) fn encode(&self) -> String {
        let json = serde_json::to_vec(self).expect("strings and numbers are JSON");
        json.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(super) fn decode(text: &str) -> Option<Self> {
        let bytes: Option<Vec<u8>> =
            (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect();
        serde_json::from_slice(&bytes?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // SE-12
    #[test]
    fn cursors_come_back_and_garbage_does_not() {
        let cursor = ListCursor { place: (7, "s-é".into()), agent: Some("a".into()), cwd: None };
        assert_eq!(ListCursor::decode(&cursor.encode()), Some(cursor));
        for garbage in ["", "x", "zz", "7b7", "7b7d", "é"] {
            assert_eq!(ListCursor::decode(garbage), None, "{garbage}");
        }
    }
}
