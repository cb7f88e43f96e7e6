//! Errors in words.

use std::error::Error;

/// An error with its sources, separated by colons.
pub fn chain(error: &dyn Error) -> String {
    let sources = std::iter::successors(error.source(), |&error| error.source());
    sources.fold(error.to_string(), |text, source| format!("{text}: {source}"))
}
