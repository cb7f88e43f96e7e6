//! The start frame: the program, and the ends of its streams that its keeper hands to it.
//!
//! The first thing on the control socket, from a daemon of the same build: a length, with which the descriptors travel,
//! then NUL-separated strings. The keeper of a kept program gets our ends of the streams too. What follows are the frames of
//! `protocol.rs`.

use crate::ladder::{Graces, Leftovers};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// A start frame may not be larger than the kernel would accept for an exec anyway.
const MAX_FRAME: usize = 16 * 1024 * 1024;

/// Why the program does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SpawnFailure {
    /// No such program.
    NotFound,
    /// The file is there, but what its first line names as interpreter is not.
    InterpreterNotFound,
    /// There, but not allowed or not able to run.
    NotExecutable { errno: i32 },
    /// The working directory is missing or not a directory.
    BadCwd { errno: i32 },
    /// Anything else, such as too many processes.
    Other { errno: i32 },
}

/// The program as it crosses the socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WireProgram {
    pub(crate) command: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: PathBuf,
    pub(crate) graces: Graces,
    /// How long what it leaves may go on.
    pub(crate) leftovers: Leftovers,
    /// Its streams are a terminal, which it is to control.
    pub(crate) controls_terminal: bool,
}

/// A string that cannot be given to a program.
#[derive(Debug, thiserror::Error)]
#[error("the {field} contains a NUL byte")]
pub(crate) struct NulByte {
    pub(crate) field: &'static str,
}

impl WireProgram {
    /// Strings separated by NUL: counts, flags and times, then cwd, command, arguments, environment pairs.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, NulByte> {
        let times = [self.graces.stdin, self.graces.term, self.leftovers.after_exit].map(millis);
        let flags = [self.controls_terminal, self.leftovers.rest_of_grace].map(usize::from);
        let counts = [self.args.len(), self.env.len()];
        let mut body = Vec::new();
        for number in counts.into_iter().chain(flags).chain(times) {
            body.extend_from_slice(number.to_string().as_bytes());
            body.push(0);
        }
        let mut string = |field: &'static str, text: &OsStr| {
            if text.as_bytes().contains(&0) {
                return Err(NulByte { field });
            }
            body.extend_from_slice(text.as_bytes());
            body.push(0);
            Ok(())
        };
        string("working directory", self.cwd.as_os_str())?;
        string("command", &self.command)?;
        for arg in &self.args {
            string("argument list", arg)?;
        }
        for (name, value) in &self.env {
            string("environment", name)?;
            string("environment", value)?;
        }
        Ok(body)
    }

    fn decode(body: &[u8]) -> Option<Self> {
        let mut fields = body.strip_suffix(&[0])?.split(|byte| *byte == 0);
        let mut number = || -> Option<usize> { std::str::from_utf8(fields.next()?).ok()?.parse().ok() };
        let (args, env) = (number()?, number()?);
        let (controls_terminal, rest_of_grace) = (number()? != 0, number()? != 0);
        let mut time = || Some(Duration::from_millis(number()? as u64));
        let graces = Graces { stdin: time()?, term: time()? };
        let leftovers = Leftovers { after_exit: time()?, rest_of_grace };
        let mut string = || fields.next().map(|bytes| OsString::from_vec(bytes.to_vec()));
        let (cwd, command) = (PathBuf::from(string()?), string()?);
        let args = (0..args).map(|_| string()).collect::<Option<_>>()?;
        let env = (0..env).map(|_| Some((string()?, string()?))).collect::<Option<_>>()?;
        Some(Self { command, args, env, cwd, graces, leftovers, controls_terminal })
    }
}

fn millis(duration: Duration) -> usize {
    usize::try_from(duration.as_millis()).unwrap_or(usize::MAX).min(1 << 40)
}

/// stdin, stdout and stderr of the program, in this order.
pub(crate) type Pipes = [OwnedFd; 3];

/// What a keeper is told first.
pub(crate) struct StartFrame {
    pub(crate) program: WireProgram,
    pub(crate) pipes: Pipes,
    /// When the program is kept: the other ends of the same streams; of a pseudo-terminal its master, and both ends of the
    /// pipe that its output goes through.
    pub(crate) other_ends: Option<Pipes>,
}

/// Descriptors in a frame, at most.
const MOST: usize = 6;

impl StartFrame {
    /// Sends the length of the body with the descriptors, three or six; the body itself is the caller's to write.
    pub(crate) fn send_head(socket: impl AsFd, body: usize, ends: &[BorrowedFd<'_>]) -> io::Result<()> {
        let head = u32::try_from(body).map_err(|_| io::ErrorKind::InvalidInput)?.to_le_bytes();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(ends)), "the space was made for six");
        // Four bytes into an empty socket buffer go out at once.
        sendmsg(socket, &[IoSlice::new(&head)], &mut ancillary, SendFlags::empty())?;
        Ok(())
    }

    pub(crate) fn receive(socket: &UnixStream) -> io::Result<Self> {
        let mut head = [0; 4];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received =
            recvmsg(socket, &mut [IoSliceMut::new(&mut head)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
        let mut pipes = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                pipes.extend(fds);
            }
        }
        let bad = |what| io::Error::new(io::ErrorKind::InvalidData, format!("no start frame: {what}"));
        let others = pipes.split_off(pipes.len().min(3));
        let pipes = Pipes::try_from(pipes).map_err(|_| bad("three pipe ends are missing"))?;
        let other_ends = Pipes::try_from(others).ok();
        (&*socket).read_exact(&mut head[received.bytes..])?;
        let length = u32::from_le_bytes(head) as usize;
        if length > MAX_FRAME {
            return Err(bad("it is too large"));
        }
        let mut body = vec![0; length];
        (&*socket).read_exact(&mut body)?;
        let program = WireProgram::decode(&body).ok_or_else(|| bad("it is not readable"))?;
        Ok(Self { program, pipes, other_ends })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text() -> impl Strategy<Value = OsString> {
        proptest::collection::vec(1u8.., 0..12).prop_map(OsString::from_vec)
    }

    proptest! {
        #[test]
        fn a_program_survives_the_socket(
            command in text(), cwd in text(),
            args in proptest::collection::vec(text(), 0..5),
            env in proptest::collection::vec((text(), text()), 0..5),
            stdin in 0u64..100_000, term in 0u64..100_000, after_exit in 0u64..100_000, controls_terminal: bool,
            rest_of_grace: bool,
        ) {
            let graces = Graces { stdin: Duration::from_millis(stdin), term: Duration::from_millis(term) };
            let leftovers = Leftovers { after_exit: Duration::from_millis(after_exit), rest_of_grace };
            let cwd = cwd.into();
            let program = WireProgram { command, args, env, cwd, graces, leftovers, controls_terminal };
            let body = program.encode().expect("there is no NUL in it");
            prop_assert_eq!(WireProgram::decode(&body), Some(program));
        }

        #[test]
        fn garbage_is_refused_without_a_panic(body in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _program = WireProgram::decode(&body);
        }
    }

    #[test]
    fn a_nul_byte_is_named() {
        let program = WireProgram {
            command: "a".into(),
            args: vec!["b\0c".into()],
            env: Vec::new(),
            cwd: "/".into(),
            graces: Graces::default(),
            leftovers: Leftovers::default(),
            controls_terminal: false,
        };
        assert_eq!(program.encode().expect_err("NUL").to_string(), "the argument list contains a NUL byte");
    }
}
