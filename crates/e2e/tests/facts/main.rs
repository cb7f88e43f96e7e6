//! What a host tells of its sessions and agents, and what it can be told while it runs: asked without a client.

mod agents;
mod creators;
mod fencing;
mod hosted;
mod moving;
mod reload;
mod sessions;
mod unrecorded;
