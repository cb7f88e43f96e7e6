//! Files for agents, on real directories.

mod bench;
mod confinement;
mod meanwhile;
mod own;
mod permissions;
mod reading;
mod swapping;
mod writing;
