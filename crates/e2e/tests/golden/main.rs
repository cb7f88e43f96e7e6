//! State directories that earlier versions wrote, and all that they showed of them: today's acpd shows the same, byte
//! for byte, but for what `rules.rs` lists.
//!
//! Each fixture is a state directory with that of its example agents (`NAME.tar.gz`) and what the version that wrote it
//! showed of a copy (`NAME.expected.gz`). CONTRIBUTING.md says how a version's fixtures are made.

mod archive;
mod difference;
mod events;
mod exported;
mod fixtures;
mod making;
mod migrated;
mod rules;
mod scenes;
mod show;
mod show_acp;
mod show_rest;
