//! What a host tells of its sessions and agents, and what it can be told while it runs: asked without a client.

mod agents;
mod creators;
mod hosted;
mod reload;
mod sessions;
mod unrecorded;
