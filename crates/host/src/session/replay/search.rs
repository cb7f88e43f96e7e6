//! Where in the held history an update stands.

use super::said::{Role, Said};
use super::window::{Follow, Item, WindowPosition};
use super::{Replay, Stage};

/// What came of a search.
pub(super) enum Search {
    Found(WindowPosition),
    /// It may be in what was not fed yet.
    Beyond,
    Nowhere,
}

impl Replay {
    pub(super) fn search(&mut self, said: &Said) -> Search {
        let (found, size) = match said {
            Said::Text(role, text) => (self.search_text(*role, text), text.len()),
            Said::Call(id) => {
                let is_it = |item: &Item| matches!(item, Item::Call(known) if known == id);
                let found = match self.window.items.iter().position(is_it) {
                    Some(index) => Search::Found(WindowPosition { index, at: None }),
                    // Behind a prompt only within a replay that goes on there, for the same reason.
                    None if self.window.knows_call(id) && (self.stage != Stage::Prompted || self.late) => {
                        Search::Found(WindowPosition { index: 0, at: Some(0) })
                    }
                    None => Search::Beyond,
                };
                (found, 0)
            }
            Said::Whole { by_user, value } => {
                let anywhere = *by_user || self.strayed || !self.by_turns;
                let (scope, open) =
                    if anywhere { (self.window.items.len(), true) } else { self.window.this_turn() };
                let is_it = |item: &Item| matches!(item, Item::Whole { by_user: user, value: known } if user == by_user && known == value);
                match self.window.items.iter().take(scope).position(is_it) {
                    Some(index) => (Search::Found(WindowPosition { index, at: None }), 0),
                    None if open => (Search::Beyond, 0),
                    None => (Search::Nowhere, 0),
                }
            }
            Said::Beside => (Search::Nowhere, 0),
        };
        match found {
            Search::Beyond if self.window.complete => Search::Nowhere,
            Search::Beyond if self.window.is_over_full(size) => match said {
                // The agent leaves out all that is held: it is not waited for any more.
                Said::Text(role, _) if *role != Role::User && !self.window.holds(*role) => {
                    self.window.forget(self.window.items.len());
                    Search::Beyond
                }
                _ => Search::Nowhere,
            },
            found => found,
        }
    }

    /// The first place from which on the text of this role says the same. The user's own words lead into a later turn;
    /// those of the agent only where nothing better does.
    fn search_text(&self, role: Role, said: &str) -> Search {
        let through = role != Role::User && !self.by_turns;
        let ahead = role == Role::User || self.strayed;
        let is_role = |item: &Item| matches!(item, Item::Text { role: known, .. } if *known == role);
        let mut from = 0;
        loop {
            let rest = || self.window.items.iter().enumerate().skip(from);
            let end = rest().find(|(_, item)| matches!(item, Item::Turn)).map(|(index, _)| index);
            let limit = if through { None } else { end };
            let upto = limit.unwrap_or(self.window.items.len());
            if let Some((first, _)) = rest().take(upto - from).find(|(_, item)| is_role(item)) {
                match self.window.follow(role, said, first, upto) {
                    Follow::To(position) => return Search::Found(position),
                    Follow::OutOfText if limit.is_none() && !self.window.complete => return Search::Beyond,
                    Follow::OutOfText | Follow::Elsewhere => {}
                }
            } else if limit.is_none() && !ahead {
                return Search::Beyond;
            }
            match end {
                Some(end) if ahead => from = end + 1,
                None if ahead => return Search::Beyond,
                _ => return Search::Nowhere,
            }
        }
    }
}
