//! The command line against a real daemon (contract 6): `acpd sessions`, `top`, `agents`, and `run` and `stdio` as its
//! front ends.

mod agents;
mod chat;
mod checking;
mod cli;
mod client_section;
mod completions;
mod configuration;
mod cutting_proxy;
mod doctor;
mod events;
mod following;
mod handover;
mod in_line;
mod leaving_chat;
mod opening;
mod operate;
mod other_users;
mod own_agents;
mod passed_sockets;
mod pruning;
mod reaching;
mod relinking;
mod run;
mod run_again;
mod run_detached;
mod run_settings;
mod search;
mod session_deeds;
mod session_files;
mod sessions;
mod stdio;
mod top;
mod without_daemon;
mod wrong_streams;
