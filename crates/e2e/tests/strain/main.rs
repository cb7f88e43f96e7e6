//! A daemon that runs out of something: threads, room on its disk, memory for what has ended or was answered.

mod endings;
mod requests;
mod small_disk;
mod threads;
