//! The part of a history that is held while an agent replays it.
//!
//! Bounded: the history comes in piece by piece, and what was told again goes.

use super::said::{Along, Role, Said, along};
use acpd_record::Event;
use serde_json::Value;
use std::collections::{HashSet, VecDeque};

/// How much of the history is held: what the agent may leave out and still be followed.
pub(super) const WINDOW: usize = 1024 * 1024;

/// Text of one role that is held in one piece.
const PIECE: usize = 64 * 1024;

/// Ids of tool calls that are remembered. Over it they are forgotten: one that comes back later ends the replay.
const CALLS: usize = 8192;

#[derive(Debug)]
pub(super) enum Item {
    /// A prompt; its content follows.
    Turn,
    /// `at` is how much of it was told again.
    Text {
        role: Role,
        text: String,
        at: usize,
    },
    Call(String),
    Whole {
        by_user: bool,
        value: Value,
    },
}

/// Where an update was found in the window.
pub(super) struct WindowPosition {
    pub(super) index: usize,
    /// How much of that text was told; None for all of the item.
    pub(super) at: Option<usize>,
}

pub(super) enum Follow {
    To(WindowPosition),
    /// As far as there is text, it is the same.
    OutOfText,
    Elsewhere,
}

/// The history from the turn on that the replay is in, without what was told again.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub(super) items: VecDeque<Item>,
    /// About what they take.
    pub(super) bytes: usize,
    /// The end of the history is among them.
    pub(super) complete: bool,
    /// Items at the front that lie before the farthest place reached.
    pub(super) passed: usize,
    calls: HashSet<String>,
}

impl Window {
    /// The next event of the history.
    pub(crate) fn feed(&mut self, event: &Event<'_>) {
        match event {
            Event::Prompt(prompt) => {
                self.push(Item::Turn);
                let blocks: Vec<Value> = acpd_wire::read(prompt.prompt.get().as_bytes()).unwrap_or_default();
                for block in &blocks {
                    self.push_said(Said::of_content(Role::User, block));
                }
            }
            Event::Update(message) => self.push_said(Said::of_line(message.line())),
            _ => {}
        }
    }

    pub(super) fn push_said(&mut self, said: Said) {
        match said {
            Said::Text(role, more) => match self.items.back_mut() {
                Some(Item::Text { role: last, text, .. }) if *last == role && text.len() < PIECE => {
                    self.bytes += more.len();
                    text.push_str(&more);
                }
                _ => self.push(Item::Text { role, text: more, at: 0 }),
            },
            Said::Call(id) => {
                if !matches!(self.items.back(), Some(Item::Call(last)) if *last == id) {
                    if self.calls.len() >= CALLS {
                        self.calls.clear();
                    }
                    self.calls.insert(id.clone());
                    self.push(Item::Call(id));
                }
            }
            Said::Whole { by_user, value } => self.push(Item::Whole { by_user, value }),
            Said::Beside => {}
        }
    }

    pub(super) fn push(&mut self, item: Item) {
        self.bytes += item.weight();
        self.items.push_back(item);
    }

    /// Drops the first items.
    pub(super) fn forget(&mut self, count: usize) {
        let count = count.min(self.items.len());
        for item in self.items.drain(..count) {
            self.bytes = self.bytes.saturating_sub(item.weight());
        }
        self.passed = self.passed.saturating_sub(count);
    }

    /// Whether a tool call was ever in it.
    pub(super) fn knows_call(&self, id: &str) -> bool {
        self.calls.contains(id)
    }

    /// More is held than the agent may leave out, by `size`.
    pub(super) fn is_over_full(&self, size: usize) -> bool {
        self.bytes >= WINDOW + 2 * size
    }

    pub(super) fn holds(&self, wanted: Role) -> bool {
        self.items.iter().any(|item| match item {
            Item::Turn => true,
            Item::Text { role, .. } => *role == wanted,
            _ => false,
        })
    }

    /// How many items are of the turn that the replay is in, and whether there may be more.
    pub(super) fn this_turn(&self) -> (usize, bool) {
        match self.items.iter().position(|item| matches!(item, Item::Turn)) {
            Some(end) => (end, false),
            None => (self.items.len(), true),
        }
    }

    /// Follows a text over the items of its role from `first` on.
    pub(super) fn follow(&self, role: Role, said: &str, first: usize, upto: usize) -> Follow {
        let mut rest = said;
        for (index, item) in self.items.iter().enumerate().take(upto).skip(first) {
            let Item::Text { role: known, text, at } = item else { continue };
            if *known != role {
                continue;
            }
            match along(&text[*at..], rest) {
                Along::Within(told) => {
                    let at = at + told;
                    let at = Some(at).filter(|at| !text[*at..].trim().is_empty());
                    return Follow::To(WindowPosition { index, at });
                }
                Along::Past(told) => rest = &rest[told..],
                Along::Differs => return Follow::Elsewhere,
            }
        }
        Follow::OutOfText
    }

    pub(super) fn take_out(&mut self, index: usize) {
        if let Some(item) = self.items.remove(index) {
            self.bytes = self.bytes.saturating_sub(item.weight());
        }
        if index < self.passed {
            self.passed -= 1;
        }
    }

    /// All that is left lies before the place that was reached.
    pub(super) fn is_at_the_end(&self) -> bool {
        self.complete && self.passed >= self.items.len()
    }

    /// As [`Self::is_at_the_end`], with what is left of the turn.
    pub(super) fn is_at_the_end_of_the_turn(&self) -> bool {
        matches!(self.items.get(self.passed), Some(Item::Turn)) || self.is_at_the_end()
    }
}

impl Item {
    fn weight(&self) -> usize {
        let text = match self {
            Self::Turn => 0,
            Self::Text { text, .. } | Self::Call(text) => text.len(),
            Self::Whole { value, .. } => value.to_string().len(),
        };
        text + size_of::<Self>()
    }
}
