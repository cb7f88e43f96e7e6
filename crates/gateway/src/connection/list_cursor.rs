//! The cursor of a list of sessions, over ACP and REST: opaque to clients, bound to the filter it was given for (SE-12).

use serde::{Deserialize, Serialize};

/// A place in a list, and the list it belongs to.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListCursor {
    /// The last entry of the page before. Its name in the cursor is that of earlier versions, whose cursors clients may hold.
    #[serde(rename = "place")]
    pub(crate) position: (i64, String),
    /// The filter.
    pub(crate) agent: Option<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) ended: Option<bool>,
}

impl ListCursor {
    /// Whether it was given for this filter.
    pub(crate) fn is_of(&self, agent: &Option<String>, cwd: &Option<String>, ended: Option<bool>) -> bool {
        (&self.agent, &self.cwd, self.ended) == (agent, cwd, ended)
    }

    pub(crate) fn encode(&self) -> String {
        let json = serde_json::to_vec(self).expect("strings and numbers are JSON");
        json.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(crate) fn decode(text: &str) -> Option<Self> {
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
        let cursor =
            ListCursor {
                position: (7, "s-é".into()), agent: Some("a".into()), cwd: None, ended: Some(true)
            };
        assert_eq!(ListCursor::decode(&cursor.encode()), Some(cursor));
        let earlier = r#"{"place":[7,"s"],"agent":null,"cwd":null,"ended":null}"#;
        let earlier =
            ListCursor::decode(&earlier.bytes().map(|byte| format!("{byte:02x}")).collect::<String>());
        assert_eq!(earlier.map(|cursor| cursor.position), Some((7, "s".into())));
        for garbage in ["", "x", "zz", "7b7", "7b7d", "é"] {
            assert_eq!(ListCursor::decode(garbage), None, "{garbage}");
        }
    }
}
