//! Nodes of a fleet and what each knows of the others, over an engine in memory whose links can be cut.

mod archive;
mod joining;
mod listing;
mod membership;
mod migration;
mod node;
mod ownership;
