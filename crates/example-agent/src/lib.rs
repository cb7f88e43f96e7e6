//! The deterministic ACP agent that ships with acpd, on standard input and output.
//!
//! Each line of a prompt is a directive: echo, stream, ask, crash, hang, leave children behind. Everything a
//! session host must cope with can so be tried without an account, and tested without chance.
//!
//! Theory of operation: the thread that calls [`run`] reads lines and answers what can be answered at once; each
//! turn and each replay has a thread of its own; all of them write whole lines through one output. What happened
//! in a session is kept as one file of JSON lines in a state directory, so that another process can load it.
//!
//! Invariants: each request is answered exactly once, and a turn sends nothing after its answer, but for a quirk.
//! Boundary: shares no code with acpd's engine, on purpose: a mistake there must not hide here as well. It is a
//! test instrument, not an example of good agent manners: several directives break the protocol deliberately.

mod agent;
mod children;
mod client_services;
mod command_line;
mod directive;
mod failure;
mod filler;
mod history;
mod lifecycle;
mod listing;
mod login;
mod output;
mod perform;
mod prompt;
mod quirk_steps;
mod quirks;
mod run;
mod session;
mod settings;
mod store;
mod turn;
mod turn_signal;
mod wire;

pub use run::run;
