//! What is known of an agent before it is there: its program, the package that has it, its login, what it does not get along with.
//!
//! Facts, in a table that is compiled in ([`KNOWN`]); nothing here reads a file. Not here: whether it is installed.

use std::ffi::OsString;
use std::path::PathBuf;

mod table;
#[cfg(test)]
mod tests;

pub use table::KNOWN;

/// An agent that is known by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The name that is typed, and that of its entry in a configuration.
    pub name: &'static str,
    /// What its makers call it.
    pub title: &'static str,
    /// Other names of the same agent: its id in a registry, and those that its users try.
    pub also: &'static [&'static str],
    /// The name of the program's file.
    pub program: &'static str,
    /// The arguments that make it an ACP agent.
    pub args: &'static [&'static str],
    /// Variables that it needs.
    pub env: &'static [(&'static str, &'static str)],
    /// What has the program.
    pub package: Package,
    /// A program of another package that it starts.
    pub companion: Option<Companion>,
    /// The arguments with which the program prints its version and ends; none where it has none, or where that takes long.
    pub version_args: &'static [&'static str],
    /// What it wants of its host.
    pub wanted: Wanted,
    /// What its host does for it besides.
    pub habits: Habits,
    /// What a login of it looks like.
    pub login: Login,
}

/// What has a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Package {
    /// A package of npm, by its name.
    Npm(&'static str),
    /// A package of PyPI.
    Pypi {
        /// Its name.
        name: &'static str,
        /// The extras that it needs as an agent.
        extras: &'static [&'static str],
        /// The Python that it runs on, as packages say it: `>=3.12`.
        python: &'static str,
    },
}

impl Package {
    /// Its name, without extras.
    pub fn name(&self) -> &'static str {
        match self {
            Package::Npm(name) | Package::Pypi { name, .. } => name,
        }
    }
}

/// A program that an agent starts and does not bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Companion {
    /// The name of its file, found in `PATH`.
    pub program: &'static str,
    /// What has it.
    pub package: Package,
    /// The variable by which the agent takes another path for it.
    pub variable: &'static str,
}

/// What an agent wants of its host: the keys of its entry in a configuration that differ from their defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// `files`: whether it gets along with files of the host.
    pub files: bool,
    /// `stderr_log`: whether what it writes to stderr is worth a log.
    pub stderr_log: bool,
}

impl Wanted {
    /// An agent that takes everything as it is.
    pub const DEFAULT: Wanted = Wanted { files: true, stderr_log: false };
}

/// What an agent does that its host has to know, and that no key of an entry says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Habits {
    /// The directory that it keeps files of its own in, such as plans, which it may ask its host to read and write.
    pub own_directory: Option<Place>,
    /// It moves an embedded resource of a prompt behind the text, and puts a reference in its place.
    pub moves_resources: bool,
}

impl Habits {
    /// An agent without any.
    pub const DEFAULT: Habits = Habits { own_directory: None, moves_resources: false };
}

/// What a login of an agent looks like from outside. Only whether something is there is looked at, never what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Login {
    /// The variables of which one is a login.
    pub variables: &'static [&'static str],
    /// The files of which one is a login.
    pub files: &'static [Place],
    /// The files in which one can be hidden: with none of these and none of the others there is no login. `None`: it can be
    /// anywhere, such as in a keyring.
    pub elsewhere: Option<&'static [Place]>,
    /// Whether macOS keeps it in its keychain, where it cannot be seen.
    pub in_keychain: bool,
    /// The command of its makers that logs it in, where the agent names none by itself.
    pub command: &'static [&'static str],
}

/// A file or a directory of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The variable that names the directory, where it is set.
    pub variable: Option<&'static str>,
    /// Else the directory below the home directory.
    pub below_home: &'static str,
    /// What is in it; the directory itself when this is empty.
    pub file: &'static str,
}

impl Place {
    /// Returns its path for an agent with these variables; none without a home directory.
    pub fn path(&self, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let named = self.variable.and_then(set);
        let directory = named.or_else(|| Some(set("HOME")?.join(self.below_home)))?;
        Some(if self.file.is_empty() { directory } else { directory.join(self.file) })
    }
}

/// The agent that is called so, or also so.
pub fn known(name: &str) -> Option<&'static Known> {
    let by_name = KNOWN.iter().find(|known| known.name == name);
    by_name.or_else(|| KNOWN.iter().find(|known| known.also.contains(&name)))
}
