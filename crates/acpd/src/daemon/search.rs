//! Searching what was said in the sessions of a daemon.

use super::error::DaemonError;
use super::request::Daemon;
use super::sessions::plain;
use crate::address::encoded;
use crate::moment::Moment;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Turns a page: as many as a daemon gives at once.
const PAGE: usize = 100;

/// A turn that was found.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Hit {
    pub(crate) session_id: String,
    pub(crate) seq: u64,
    pub(crate) at: Moment,
    pub(crate) part: String,
    pub(crate) snippet: String,
    /// The object as the daemon wrote it.
    #[serde(skip)]
    pub(crate) raw: Option<Box<RawValue>>,
}

impl Hit {
    pub(crate) fn read(raw: Box<RawValue>) -> Result<Self, serde_json::Error> {
        let hit: Self = serde_json::from_str(raw.get())?;
        Ok(Self { raw: Some(raw), ..hit })
    }
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hits {
    /// The latest turn first.
    pub(crate) hits: Vec<Hit>,
    /// Some sessions are not indexed yet.
    pub(crate) incomplete: bool,
    /// There are more than were asked for.
    pub(crate) more: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    hits: Vec<Box<RawValue>>,
    #[serde(default)]
    incomplete: bool,
    next_cursor: Option<Value>,
}

impl Daemon {
    /// At most `most` turns in which the words of `text` stand.
    pub(crate) async fn search(&self, text: &str, most: usize) -> Result<Hits, DaemonError> {
        let mut found = Hits::default();
        let mut cursor: Option<String> = None;
        loop {
            let limit = PAGE.min(most.saturating_sub(found.hits.len())).max(1);
            let page: Page = self.get(&query(text, cursor.as_deref(), limit)).await?;
            let came = page.hits.len();
            for raw in page.hits {
                found.hits.push(Hit::read(raw).map_err(|error| self.unreadable(&error))?);
            }
            found.incomplete |= page.incomplete;
            let next = page.next_cursor.as_ref().and_then(plain);
            found.more = next.is_some();
            if found.hits.len() >= most || next.is_none() {
                return Ok(found);
            }
            if came == 0 || next == cursor {
                return Err(self.unreadable(&"a search that does not go on"));
            }
            cursor = next;
        }
    }
}

fn query(text: &str, cursor: Option<&str>, limit: usize) -> String {
    let cursor = cursor.map(|cursor| format!("&cursor={}", encoded(cursor))).unwrap_or_default();
    format!("/v1/search?text={}&limit={limit}{cursor}", encoded(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.3: the query of a search
    #[test]
    fn the_text_goes_into_the_query() {
        assert_eq!(query("a&b c*", Some("7b="), 7), "/v1/search?text=a%26b%20c%2A&limit=7&cursor=7b%3D");
        assert_eq!(query("a", None, 1), "/v1/search?text=a&limit=1");
    }
}
