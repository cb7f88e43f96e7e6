//! Where a keeper can be found by the next daemon: a socket in a directory that only its user may enter.
//!
//! Owner of connections until they have said who they are. They are few, and the oldest gives way to the newest, but not before
//! it was heard; none is answered before it has said the right key.

use super::connection::Connection;
use super::protocol::{Command, Hello, Keep, Why};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{AtFlags, Mode, OFlags, Timespec, Timestamps, UTIME_NOW};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

/// Connections that have not said who they are.
const STRANGERS: usize = 8;
/// What stands for the time at which it is set.
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
/// The longest first word.
const HELLO: usize = 4 * 1024;

pub(super) struct Listening {
    listener: UnixListener,
    directory: OwnedFd,
    name: String,
    /// The versions that are spoken.
    versions: [u32; 2],
    strangers: Vec<Connection>,
}

/// The file in which something of the program `name` is.
pub(crate) fn file_of(name: &str, what: &str) -> String {
    format!("{name}.{what}")
}

/// A path to something in an open directory. It is short: names of sockets have 108 bytes at most.
pub(crate) fn within(directory: &OwnedFd, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{file}", directory.as_fd().as_raw_fd()))
}

pub(crate) const SOCKET: &str = "sock";
pub(crate) const END: &str = "end";

impl Listening {
    pub(super) fn open(keep: &Keep, versions: [u32; 2]) -> io::Result<Self> {
        if keep.name.contains('/') {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let made = std::fs::DirBuilder::new().mode(0o700).create(&keep.directory);
        made.or_else(|error| if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })?;
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(&keep.directory, flags, Mode::empty())?;
        let name = file_of(&keep.name, SOCKET);
        let listener = UnixListener::bind(within(&directory, &name))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, directory, name: keep.name.clone(), versions, strangers: Vec::new() })
    }

    pub(super) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// The listener, and those that have not said who they are.
    pub(super) fn poll(&self) -> impl Iterator<Item = PollFd<'_>> {
        let strangers = self.strangers.iter().filter_map(Connection::poll);
        std::iter::once(PollFd::new(&self.listener, PollFlags::IN)).chain(strangers)
    }

    /// Looks at all of them; gives one that has said the right key, which is `may_attach`'s to say.
    pub(super) fn look(&mut self, may_attach: impl Fn(&str) -> Result<(), Why>) -> Option<Connection> {
        // What does not come in now is there at the next look.
        while self.strangers.len() < STRANGERS
            && let Ok((socket, _)) = self.listener.accept()
        {
            self.strangers.extend(Connection::new(socket).ok());
        }
        let mut index = 0;
        while let Some(stranger) = self.strangers.get_mut(index) {
            match said(stranger) {
                None if stranger.is_lost() => drop(self.strangers.remove(index)),
                None => index += 1,
                Some(hello) => {
                    let mut stranger = self.strangers.remove(index);
                    match hello.and_then(|hello| answer(&hello, self.versions, &may_attach)) {
                        Ok(()) => return Some(stranger),
                        Err(why) => stranger.refuse(why),
                    }
                }
            }
        }
        if self.strangers.len() == STRANGERS {
            self.strangers.remove(0);
        }
        None
    }

    /// Says by the time of the socket's name that there is no daemon from now on.
    pub(super) fn note_detached(&self) {
        let now = Timestamps { last_access: NOW, last_modification: NOW };
        let name = file_of(&self.name, SOCKET);
        // It is for people to read.
        let _gone = rustix::fs::utimensat(&self.directory, name, &now, AtFlags::SYMLINK_NOFOLLOW);
    }

    /// Removes the socket's name.
    pub(super) fn close(&self) {
        let name = file_of(&self.name, SOCKET);
        let _gone = rustix::fs::unlinkat(&self.directory, name, AtFlags::empty());
    }
}

/// The first word, if it has come.
fn said(stranger: &mut Connection) -> Option<Result<Hello, Why>> {
    stranger.fill();
    match stranger.next(HELLO) {
        Ok(None) => None,
        Ok(Some(frame)) => match Command::read(frame) {
            Ok(Some(Command::Hello(hello))) => Some(Ok(hello)),
            _ => Some(Err(Why::Misbehaved)),
        },
        Err(_) => Some(Err(Why::Misbehaved)),
    }
}

fn answer(
    hello: &Hello,
    versions: [u32; 2],
    may_attach: &impl Fn(&str) -> Result<(), Why>,
) -> Result<(), Why> {
    // The key first: only the holder of the key learns what the keeper speaks.
    may_attach(&hello.key)?;
    let ([oldest, newest], [ours_oldest, ours_newest]) = (hello.versions, versions);
    if oldest > ours_newest || newest < ours_oldest { Err(Why::Version) } else { Ok(()) }
}
