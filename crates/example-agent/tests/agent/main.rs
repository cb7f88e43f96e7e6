//! The example agent over pipes, as a host sees it.

mod directives;
mod lifecycle;
mod peer;
mod processes;
mod protocol;
mod quirks;
mod services;
