//! acpd under disorder: requests of many clients in any order, SIGKILL at any moment, several processes on one state
//! directory.
//!
//! What is random comes from a seed. A failing test names it (`ACPD_SEED=...`), and it can be set to run that one
//! case again; the timing of processes is not in it, so a rare failure may want several tries.

mod dice;
mod drive;
mod history;
mod interleavings;
mod kills;
mod neighbours;
mod one_host;
mod verdict;
