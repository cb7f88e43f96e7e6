//! A daemon that is used for long and by many: thousands of messages, dozens of viewers, hundreds of sessions, and
//! SIGKILL in the middle of it. Nobody misses anything, nobody gets anything twice, nobody waits for anybody else.

mod acp;
mod company;
mod crowd;
mod flow;
mod killed;
mod rest;
mod sluggish;
mod stalled;
