//! What a keeper holds for the daemons to come: names with values, in bounded memory.

use std::collections::BTreeMap;

/// Bytes of all names and values.
const MOST: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct Marks {
    values: BTreeMap<String, String>,
    bytes: usize,
}

impl Marks {
    /// Stores a value, or removes it; false when there is no room.
    #[must_use]
    pub(super) fn put(&mut self, key: String, value: Option<String>) -> bool {
        if let Some(old) = self.values.remove(&key) {
            self.bytes -= key.len() + old.len();
        }
        let Some(value) = value else { return true };
        if self.bytes + key.len() + value.len() > MOST {
            return false;
        }
        self.bytes += key.len() + value.len();
        self.values.insert(key, value);
        true
    }

    pub(super) fn all(&self) -> &BTreeMap<String, String> {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // KEEP: everything that is held is bounded
    #[test]
    fn there_is_room_for_so_much() {
        let mut marks = Marks::default();
        let half = || Some("x".repeat(MOST / 2));
        assert!(marks.put("a".into(), half()));
        assert!(!marks.put("b".into(), half()), "the names count too");
        assert!(marks.put("a".into(), half()), "what is replaced makes room");
        assert!(marks.put("a".into(), None) && marks.put("none".into(), None));
        assert!(marks.put("b".into(), half()));
        assert_eq!(marks.all().keys().collect::<Vec<_>>(), ["b"]);
        assert_eq!(marks.bytes, 1 + MOST / 2);
    }
}
