//! Tool calls as the page has them: what is known of each from its updates.
//!
//! Pure. Not here: when one is written.

use super::details::{Details, contents};
use super::{code, line};
use crate::spoken::ToolCall;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A tool call that is not on the page yet.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: String,
    title: String,
    status: String,
    /// Its command, else its path, as far as the agent says them.
    about: Option<String>,
    /// Where the page is to have them.
    details: Option<Details>,
}

impl Call {
    pub(super) fn new(id: &str, has_details: bool) -> Self {
        let (title, status) = ("without a title".to_owned(), "pending".to_owned());
        Self { id: id.to_owned(), title, status, about: None, details: has_details.then(Details::default) }
    }

    /// Takes over what an update has; what it does not have stays.
    pub(super) fn update(&mut self, update: &ToolCall<'_>) {
        if let Some(title) = update.title.as_deref() {
            self.title = line(title);
        }
        self.about = about(update).or(self.about.take());
        if let Some(status) = update.status.as_deref() {
            self.status = line(status);
        }
        if let Some(details) = &mut self.details {
            details.update(update.content.map(contents), update.raw_output);
        }
    }

    /// Returns true if nothing more is expected of it.
    pub(super) fn is_over(&self) -> bool {
        matches!(&*self.status, "completed" | "failed")
    }

    /// Bytes that are held of its details.
    pub(super) fn held(&self) -> usize {
        self.details.as_ref().map_or(0, Details::held)
    }

    /// Its line on the page, and what the page has below it.
    pub(super) fn write(self) -> (String, Details) {
        let Self { title, status, about, details, .. } = self;
        let about = about.filter(|about| !title.contains(about.as_str()));
        let about = about.map(|about| format!(" ({})", code(&about))).unwrap_or_default();
        (format!("Tool call: {title}{about}: {status}"), details.unwrap_or_default())
    }
}

/// What a tool call is about: its command, or the first path.
fn about(update: &ToolCall<'_>) -> Option<String> {
    #[derive(Deserialize)]
    struct Input<'a> {
        #[serde(borrow, default, alias = "cmd")]
        command: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Location<'a> {
        #[serde(borrow)]
        path: Cow<'a, str>,
    }
    let input = update.raw_input.and_then(|input| serde_json::from_str::<Input<'_>>(input.get()).ok());
    let command = input.and_then(|input| input.command).and_then(|command| {
        let one = serde_json::from_str::<String>(command.get()).ok();
        one.or_else(|| Some(serde_json::from_str::<Vec<String>>(command.get()).ok()?.join(" ")))
    });
    let places = || serde_json::from_str::<Vec<Location<'_>>>(update.locations?.get()).ok();
    let path = || places()?.into_iter().next().map(|location| location.path.into_owned());
    command.or_else(path).map(|about| line(&about)).filter(|about| !about.is_empty())
}
