//! acpd as a whole: the real binary, real agents, the operating system.

mod client_ends;
mod descriptors;
mod endings;
mod extensions;
mod fidelity;
mod framing;
mod front_ends;
mod full_disk;
mod initialize;
mod keepers;
mod killed;
mod leaving;
mod leftovers;
mod misbehaving;
mod run_codes;
mod run_formats;
mod run_input;
mod sessions;
mod terminal_questions;
mod turns;
