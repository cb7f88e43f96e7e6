//! Sessions as files.

use serde::Deserialize;

/// In which form.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExportQuery {
    /// `jsonl`, which can be imported, or `markdown`, for people. Default `jsonl`.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["jsonl", "markdown"])))]
    pub format: Option<String>,
    /// Of `markdown`: also what tool calls changed, and what they and terminals wrote. Default false.
    #[cfg_attr(feature = "schema", schemars(with = "Option<bool>"))]
    pub details: Option<String>,
}
