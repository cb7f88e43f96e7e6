//! What acpd is to its agents as their client: permissions, elicitation, files and terminals.

#[path = "../chaos/one_host.rs"]
mod one_host;
#[path = "../lifecycle/stored.rs"]
mod stored;

mod answering;
mod elicitation;
mod files;
mod permissions;
mod quirks;
mod terminals;
mod together;
