//! The inspector: the pages that a browser is given, built from `web/` and packed into one committed file.
//!
//! Not here: HTTP, and who may ask.

mod media;
mod pages;

pub use pages::{FIRST, Page, Pages};
