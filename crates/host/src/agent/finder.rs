//! Agents that have no entry: who knows of them is asked when one is wanted by its name.
//!
//! Not here: which there are, and how they are looked for.

use crate::spec::AgentSpec;
use std::fmt::Debug;

/// Finds agents that have no entry.
pub trait AgentFinder: Debug + Send + Sync {
    /// Looks for the agent of this name; `entries` are the names of those that have one. A look at some files: it waits for
    /// nothing.
    fn find(&self, name: &str, entries: &[String]) -> Sought;
}

/// What became of a search.
#[derive(Debug)]
pub enum Sought {
    /// It is there, and is as if it had this entry.
    Found(Box<AgentSpec>),
    /// It is known and not installed.
    NotInstalled {
        /// What is missing, and what installs it.
        why: String,
    },
    /// No agent is called so.
    Unknown {
        /// The name that was probably meant.
        meant: Option<String>,
    },
}
