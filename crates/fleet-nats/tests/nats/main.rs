//! The engine over NATS, against real servers: what every engine has to do, and what becomes of it when servers are killed, stand
//! still, or are not what they should be.
//!
//! The server is the program that `ACPD_NATS_SERVER` names, or the one that `cargo xtask test` fetches.

#[path = "../../../fleet/tests/shared/battery.rs"]
mod battery;
mod cluster;
mod every_engine;
mod losing;
mod payload;
mod server;
mod setting_up;
mod watching;
