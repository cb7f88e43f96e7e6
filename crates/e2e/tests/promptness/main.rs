//! How soon things happen to sessions. In a program of its own, which runs alone, so that nothing else takes the time.

mod bounds;
#[path = "../lifecycle/ending.rs"]
mod ending;
