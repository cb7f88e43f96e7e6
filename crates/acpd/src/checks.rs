//! What was looked at before something is relied on: what it says, and what to do where it is not well.
//!
//! Not here: the looking, and what is well.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Something that was looked at.
#[derive(Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Check {
    pub(crate) about: Cow<'static, str>,
    pub(crate) ok: bool,
    pub(crate) says: String,
    /// There where it is not well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) remedy: Option<String>,
}

pub(crate) fn fine(about: &'static str, says: impl Into<String>) -> Check {
    Check { about: about.into(), ok: true, says: says.into(), remedy: None }
}

pub(crate) fn finding(about: &'static str, says: impl Into<String>, remedy: impl Into<String>) -> Check {
    Check { about: about.into(), ok: false, says: says.into(), remedy: Some(remedy.into()) }
}

/// A line for each check, and one for each remedy.
pub(crate) fn lines(checks: &[Check]) -> Vec<String> {
    let mut lines = Vec::new();
    for check in checks {
        let mark = if check.ok { "ok" } else { "!!" };
        lines.push(format!("{mark}  {}: {}", check.about, check.says));
        lines.extend(check.remedy.iter().map(|remedy| format!("    -> {remedy}")));
    }
    lines
}
