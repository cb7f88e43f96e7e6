//! A daemon that runs out of something: threads, room on its disk, memory for what has ended.

mod endings;
mod small_disk;
mod threads;
