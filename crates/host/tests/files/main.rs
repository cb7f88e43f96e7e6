//! Files for agents, on real directories.

mod bench;
mod confinement;
#[path = "../../../testkit/src/database_locks.rs"]
mod database_locks;
mod meanwhile;
mod own;
mod permissions;
mod reading;
mod swapping;
mod writing;
