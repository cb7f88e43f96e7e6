//! The next image of this process: the program that is on disk now, where this one was started from, with the same arguments
//! and the same process id.
//!
//! Invariant: what is exec'd is given the sockets by LISTEN_FDS and nothing else; all other descriptors close with the old
//! image. What signals ask for meanwhile waits for it, as far as it acts on that. Not here: whether it is fit, which it is asked before.

use crate::passed::FIRST;
use crate::signals::release_all_but;
use acpd_gateway::LocalSocket;
use command_fds::{CommandFdExt, FdMapping};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What this process was started as.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    /// A whole path. A symbolic link in it stays one: an upgrade may be a link that names another file.
    pub(crate) program: PathBuf,
    name: OsString,
    pub(crate) args: Vec<OsString>,
}

impl Image {
    /// To be called at the start, while the program is where it was and so is the working directory.
    pub(crate) fn of_this_process() -> io::Result<Self> {
        let mut args = std::env::args_os();
        let name = args.next().unwrap_or_default();
        let running = std::env::current_exe()?;
        // What was run in fact, also where the file is gone already.
        let process = std::fs::metadata("/proc/self/exe").or_else(|_| std::fs::metadata(&running)).ok();
        let process = process.map(|found| (found.dev(), found.ino()));
        let is_it = |path: &PathBuf| {
            std::fs::metadata(path)
                .ok()
                .map(|found| (found.dev(), found.ino()))
                .is_some_and(|of| Some(of) == process)
        };
        let named = places(&name, std::env::var_os("PATH").as_deref()).into_iter().find(is_it);
        let program = match named {
            Some(path) => std::path::absolute(path)?,
            None => running,
        };
        Ok(Self { program, name, args: args.collect() })
    }
}

/// Where a program of this name is, as a shell looks for it.
fn places(name: &OsStr, path: Option<&OsStr>) -> Vec<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return vec![name.into()];
    }
    path.map(|path| std::env::split_paths(path).map(|dir| dir.join(name)).collect()).unwrap_or_default()
}

/// All that the next image is given.
#[derive(Debug)]
pub(crate) struct Successor {
    pub(crate) image: Image,
    /// The signals that it acts on though they come before it does.
    pub(crate) held_signals: Vec<String>,
    /// What is listened on, by the names that it is passed by.
    pub(crate) sockets: Vec<(String, OwnedFd)>,
    /// Where they go, as far as they are not there: threads of this image that have not ended yet close what is theirs.
    pub(crate) places: Vec<OwnedFd>,
    /// Held to the last: the lock that it holds closes with this image, and its path stays.
    pub(crate) local: LocalSocket,
}

impl Successor {
    /// Becomes it. Comes back only when that fails, and then this process has to end: descriptors are in places where others
    /// were.
    pub(crate) fn exec(self) -> io::Error {
        let Self { image, held_signals, sockets, places: kept, local } = self;
        let names: Vec<String> = sockets.iter().map(|(name, _)| name.clone()).collect();
        let places = (FIRST..).zip(sockets);
        let mappings = places.map(|(child_fd, (_, parent_fd))| FdMapping { parent_fd, child_fd }).collect();
        #[expect(
            clippy::disallowed_methods,
            reason = "it is no program that is started: this process becomes it"
        )]
        let mut command = Command::new(&image.program);
        command.arg0(&image.name).args(&image.args);
        command.env("LISTEN_PID", std::process::id().to_string());
        command.env("LISTEN_FDS", names.len().to_string()).env("LISTEN_FDNAMES", names.join(":"));
        let error = match command.fd_mappings(mappings) {
            Ok(command) => release_all_but(&held_signals).map_or_else(|error| error, |()| command.exec()),
            Err(collision) => io::Error::other(collision),
        };
        drop((kept, local));
        error
    }

    pub(crate) fn program(&self) -> &Path {
        &self.image.program
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.1: the program is found as the shell has found it
    #[test]
    fn a_program_is_looked_for_as_a_shell_does() {
        let path = Some(OsStr::new("/a:/b"));
        for (name, path, found) in [
            ("/opt/acpd", path, &["/opt/acpd"][..]),
            ("./acpd", path, &["./acpd"]),
            ("acpd", path, &["/a/acpd", "/b/acpd"]),
            ("acpd", None, &[]),
        ] {
            let found: Vec<PathBuf> = found.iter().map(PathBuf::from).collect();
            assert_eq!(places(OsStr::new(name), path), found, "{name}");
        }
        let image = Image::of_this_process().expect("it is known");
        assert_eq!(image.program, std::env::current_exe().expect("it is known"));
    }
}
