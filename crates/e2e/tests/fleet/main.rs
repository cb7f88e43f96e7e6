//! Daemons as nodes of a fleet, on a real server of NATS: one list, any door, and what is said when something is lost.

mod access;
mod acp;
mod archive;
mod believing;
mod commands;
mod doors;
mod failover;
mod keys;
mod losing;
mod nodes;
mod placing;
mod unheard;
mod upgrading;
