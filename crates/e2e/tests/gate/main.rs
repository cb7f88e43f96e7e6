//! Who may do what at the front door: real daemons, raw sockets, the requests that no good client would send.

mod allowances;
mod answering;
mod creating;
mod door;
mod limits;
mod operations;
mod owners;
mod pages;
mod places;
mod prompting;
mod pruning;
mod readiness;
mod reading;
mod reloads;
mod scopes;
mod searching;
mod strangers;
mod taking_up;
mod tls;
mod token_files;
mod token_lives;
mod transfer;
mod usage;
