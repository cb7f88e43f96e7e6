//! The agents that acpd knows by name: a built-in table, and what is found of them on a machine.
//!
//! Not here: the configuration, ACP, sessions.

mod finding;
mod known;
mod login;
mod package;

pub use finding::{Absent, Found, find, program_in, to_run};
pub use known::{Companion, KNOWN, Known, Login, Package, Place, Wanted, known};
pub use login::logged_in;
pub use package::{Owner, owner};
