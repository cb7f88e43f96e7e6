//! Where a turn is shown: to a person, or as JSON lines to a program.

use super::Words;
use crate::view::{Screen, View};
use std::io::{Stderr, Stdout};
use std::path::Path;

/// The view of a person.
pub(super) type PersonsView = View<Stdout, Stderr>;

/// Where things are shown.
pub(super) enum Show {
    View(Box<PersonsView>),
    Json(Stdout),
}

impl Show {
    pub(super) fn new(words: &Words, screen: Screen, cwd: &Path) -> Self {
        match words.json {
            true => Self::Json(std::io::stdout()),
            false => {
                let view = View::new(std::io::stdout(), std::io::stderr(), screen, Some(cwd.to_owned()));
                Self::View(Box::new(view))
            }
        }
    }

    /// What shows it to a person, if one is shown it.
    pub(super) fn view(&mut self) -> Option<&mut PersonsView> {
        match self {
            Self::View(view) => Some(view),
            Self::Json(_) => None,
        }
    }
}
