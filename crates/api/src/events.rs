//! Events of a session, page by page or as a stream.

use serde::Deserialize;

/// What can be asked for.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventsQuery {
    /// Only events behind this one: a sequence number, or the `nextCursor` of a page.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[0-9]+(@.+)?$")))]
    pub after: Option<String>,
    /// Events of a page at most, 1 to 1000. Default 100.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>", range(min = 1, max = 1000)))]
    pub limit: Option<String>,
}
