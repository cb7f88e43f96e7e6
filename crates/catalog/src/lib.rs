//! The agents that acpd knows by name, what is found of them on a machine, and what it takes to have one: how an entry of a
//! registry is resolved, how an archive is unpacked, and what lies in the directory of installed agents.
//!
//! What is installed is put together in a staging directory that [`Locked`] hands out; [`unpack`] fills it from an archive, npm,
//! uv and pip by themselves; [`Locked::publish`] gives it its name in one step, and [`Receipt`] says what it is.
//!
//! Invariant: below `agents/NAME/VERSION` is all of a version or nothing; what a registry or an archive says leads to no path
//! outside. Boundary: facts, files and data; opens no connection, starts no process.
//!
//! Not here: the configuration, ACP, sessions.

mod archive;
mod finding;
mod inside;
mod known;
mod layout;
mod login;
mod name;
mod node;
mod npm;
mod package;
mod python;
mod receipt;
mod registry;
mod resolve;
mod size;
mod spec;

pub use archive::{ArchiveError, Bounds, Unpacked, unpack};
pub use finding::{Absent, Found, find, program_in, to_run};
pub use inside::{InsideError, InsidePath};
pub use known::{Companion, Habits, KNOWN, Known, Login, Package, Place, Wanted, known};
pub use layout::{AgentsDir, Locked, Published, Staging};
pub use login::logged_in;
pub use name::{AgentName, NameError, Version};
pub use node::{NodeNeed, needed_node, node_fits};
pub use npm::{InstallScript, NpmError, bin_of_package, install_scripts, version_of_lock};
pub use package::{Owner, owner};
pub use python::{PythonError, console_scripts, lock_of_report, python_fits, retarget, version_of_pins};
pub use receipt::{Receipt, Scripts, Sha256From, Source};
pub use registry::{
    Argument, Distribution, Entry, HttpsUrl, PackageRun, ProgramName, RegistryError, Sha256, Target, Unknown,
    Variable, find_entry,
};
pub use resolve::{Chosen, Kind, Platform, ResolveError, Tools, choose};
pub use size::size;
pub use spec::{Ecosystem, PackageSpec, SpecError};
