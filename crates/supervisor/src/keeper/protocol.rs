//! What daemon and keeper say to each other after the start frame: version 1.
//!
//! Frozen and additive: a keeper may be older or newer than the daemon that attaches to it. Bodies are JSON objects, whose
//! unknown members are ignored, or bulk (see `frames.rs`); frames of unknown types are skipped. Not here: what follows
//! from any of it.

use super::frames::{Frame, json, put_bulk, put_json};
use super::start_frame::SpawnFailure;
use crate::containment::Containment;
use crate::ladder::Rung;
use crate::report::ExitStatus;
use crate::stderr::StderrExcerpt;
use crate::streams::WindowSize;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tokio_util::bytes::{BufMut, Bytes, BytesMut};

/// The only version that there is, as a range from the oldest to the newest.
pub(crate) const VERSIONS: [u32; 2] = [1, 1];

/// A name and a value that a keeper holds for the daemon after this one.
pub(crate) type Mark = (String, String);

/// A request of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Bytes for stdin. They are accepted, and the mark stored, when the frame has come whole.
    Write { mark: Option<Mark>, bytes: Bytes },
    /// How far stdout was read, and up to where nothing of it is needed any more.
    Progress(Progress),
    /// Stores a mark, or removes it.
    Put(Put),
    /// From now on the program outlives its daemon for a time.
    Keep(Keep),
    /// Climb the ladder; asked again, jump to its end.
    Stop,
    /// Jump to the end of the ladder.
    Kill,
    /// The end of the program was recorded.
    Done,
    /// Changes the size of the window of a pseudo-terminal.
    Resize(WindowSize),
    /// The program ends when this is not said again in time, whatever becomes of the daemon.
    Alive(Alive),
    /// The first word on a connection to the keeper's socket.
    Hello(Hello),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Progress {
    pub(crate) read: u64,
    pub(crate) committed: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Put {
    pub(crate) key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Keep {
    pub(crate) keep_ms: u64,
    pub(crate) detached_bytes: u64,
    pub(crate) line_bytes: u64,
    pub(crate) directory: PathBuf,
    pub(crate) name: String,
    pub(crate) key: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Alive {
    /// None: it need not be said again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) within_ms: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// The oldest and the newest version that the daemon speaks.
    pub(crate) versions: [u32; 2],
    pub(crate) key: String,
}

#[derive(Serialize, Deserialize)]
struct WriteHead {
    mark: Mark,
}

impl Command {
    const WRITE: u8 = b'W';
    const PROGRESS: u8 = b'G';
    const PUT: u8 = b'P';
    const KEEP: u8 = b'L';
    const STOP: u8 = b'S';
    const KILL: u8 = b'K';
    const DONE: u8 = b'D';
    const RESIZE: u8 = b'R';
    const ALIVE: u8 = b'A';
    const HELLO: u8 = b'H';

    pub(crate) fn put_to(&self, out: &mut BytesMut) {
        /// A body without members.
        const NOTHING: BTreeMap<&str, ()> = BTreeMap::new();
        match self {
            Self::Write { mark, bytes } => {
                let mark = mark.as_ref().map(|(key, value)| (key.as_str(), value.as_str()));
                put_write(out, bytes, mark);
            }
            Self::Progress(progress) => put_json(out, Self::PROGRESS, progress),
            Self::Put(put) => put_json(out, Self::PUT, put),
            Self::Keep(keep) => put_json(out, Self::KEEP, keep),
            Self::Stop => put_json(out, Self::STOP, &NOTHING),
            Self::Kill => put_json(out, Self::KILL, &NOTHING),
            Self::Done => put_json(out, Self::DONE, &NOTHING),
            Self::Resize(size) => put_json(out, Self::RESIZE, size),
            Self::Alive(alive) => put_json(out, Self::ALIVE, alive),
            Self::Hello(hello) => put_json(out, Self::HELLO, hello),
        }
    }

    pub(crate) fn to_bytes(&self) -> BytesMut {
        let mut out = BytesMut::new();
        self.put_to(&mut out);
        out
    }

    /// None: a type of a later version.
    ///
    /// # Errors
    /// When the body is not what its type says.
    pub(crate) fn read(frame: Frame) -> serde_json::Result<Option<Self>> {
        let body = &frame.body;
        Ok(Some(match frame.kind {
            Self::WRITE => {
                let (head, bytes) = frame.bulk().ok_or_else(no_bulk)?;
                let head: Option<WriteHead> =
                    if head.is_empty() { None } else { Some(serde_json::from_slice(&head)?) };
                Self::Write { mark: head.map(|head| head.mark), bytes }
            }
            Self::PROGRESS => Self::Progress(serde_json::from_slice(body)?),
            Self::PUT => Self::Put(serde_json::from_slice(body)?),
            Self::KEEP => Self::Keep(serde_json::from_slice(body)?),
            Self::STOP => Self::Stop,
            Self::KILL => Self::Kill,
            Self::DONE => Self::Done,
            Self::RESIZE => Self::Resize(serde_json::from_slice(body)?),
            Self::ALIVE => Self::Alive(serde_json::from_slice(body)?),
            Self::HELLO => Self::Hello(serde_json::from_slice(body)?),
            _ => return Ok(None),
        }))
    }
}

/// Writes a [`Command::Write`].
pub(crate) fn put_write(out: &mut BytesMut, bytes: &[u8], mark: Option<(&str, &str)>) {
    #[derive(Serialize)]
    struct Head<'a> {
        mark: (&'a str, &'a str),
    }
    let head = mark.map(|mark| json(&Head { mark })).unwrap_or_default();
    put_bulk(out, Command::WRITE, &head, bytes.len());
    out.put_slice(bytes);
}

/// What a keeper says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FromKeeper {
    Started(Running),
    NotStarted(SpawnFailure),
    /// The answer to each [`Progress`]: up to where stdout is consumed.
    Consumed(Consumed),
    /// So many bytes of frames are done with: written to stdin, or of no use to it. Not told of each.
    Drained(Drained),
    /// The program reads no more.
    StdinClosed,
    /// What came on stderr.
    Stderr(Bytes),
    /// So many lines of stderr were not passed on, because the daemon was slow.
    StderrLost(StderrLost),
    /// The program is gone, with everything that it left.
    Exited(Exited),
    /// The answer to [`Hello`], with the reading end of stdout, and with all of it that is retained.
    Attached(Box<Attached>, Bytes),
    /// No answer to [`Hello`], or the last word on a connection.
    Refused(Refused),
    /// What [`Keep`] asked for could not be had: the program ends with its daemon.
    NotKept(NotKept),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Running {
    pub(crate) pid: u32,
    pub(crate) containment: Containment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Consumed {
    pub(crate) position: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Drained {
    pub(crate) bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StderrLost {
    pub(crate) lines: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Exited {
    pub(crate) status: ExitStatus,
    pub(crate) leaked: u32,
    pub(crate) rungs: Vec<Rung>,
    pub(crate) oom_kills: u32,
    /// Of a kept program, whose stderr its keeper reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stderr: Option<StderrExcerpt>,
}

/// Everything that a new controller needs to know. An end file holds the same frame, with `exited`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attached {
    pub(crate) version: u32,
    pub(crate) running: Running,
    /// How many controllers there were before.
    pub(crate) lease: u64,
    /// For how long there was none.
    pub(crate) detached_ms: u64,
    /// The waits of the ladder, as after the start.
    pub(crate) graces_ms: [u64; 2],
    /// Where what is retained begins, and where it ends.
    pub(crate) committed: u64,
    pub(crate) consumed: u64,
    pub(crate) marks: BTreeMap<String, String>,
    /// Bytes of frames that are not done with.
    pub(crate) undrained: u64,
    pub(crate) stdin_closed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exited: Option<Exited>,
    /// Its streams are a pseudo-terminal.
    #[serde(default)]
    pub(crate) is_pty: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refused {
    pub(crate) why: Why,
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Why {
    /// Not the right key.
    Key,
    /// No version that both speak.
    Version,
    /// A newer controller has come.
    Superseded,
    /// It said what makes no sense, or more than there is room for.
    Misbehaved,
    /// A reason of a later version.
    #[serde(other)]
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NotKept {
    pub(crate) why: String,
}

impl FromKeeper {
    const STARTED: u8 = b's';
    const NOT_STARTED: u8 = b'n';
    const CONSUMED: u8 = b'c';
    const DRAINED: u8 = b'd';
    const STDIN_CLOSED: u8 = b'i';
    const STDERR: u8 = b'e';
    const STDERR_LOST: u8 = b'l';
    const EXITED: u8 = b'x';
    const ATTACHED: u8 = b'a';
    const REFUSED: u8 = b'r';
    const NOT_KEPT: u8 = b'u';

    pub(crate) fn put_to(&self, out: &mut BytesMut) {
        match self {
            Self::Started(body) => put_json(out, Self::STARTED, body),
            Self::NotStarted(body) => put_json(out, Self::NOT_STARTED, body),
            Self::Consumed(body) => put_json(out, Self::CONSUMED, body),
            Self::Drained(body) => put_json(out, Self::DRAINED, body),
            Self::StdinClosed => put_json(out, Self::STDIN_CLOSED, &BTreeMap::<&str, ()>::new()),
            Self::Stderr(bytes) => put_stderr(out, bytes),
            Self::StderrLost(body) => put_json(out, Self::STDERR_LOST, body),
            Self::Exited(body) => put_json(out, Self::EXITED, body),
            Self::Attached(head, retained) => {
                head.put_to(out, retained.len());
                out.put_slice(retained);
            }
            Self::Refused(body) => put_json(out, Self::REFUSED, body),
            Self::NotKept(body) => put_json(out, Self::NOT_KEPT, body),
        }
    }

    /// None: a type of a later version.
    ///
    /// # Errors
    /// When the body is not what its type says.
    pub(crate) fn read(frame: Frame) -> serde_json::Result<Option<Self>> {
        let body = &frame.body;
        Ok(Some(match frame.kind {
            Self::STARTED => Self::Started(serde_json::from_slice(body)?),
            Self::NOT_STARTED => Self::NotStarted(serde_json::from_slice(body)?),
            Self::CONSUMED => Self::Consumed(serde_json::from_slice(body)?),
            Self::DRAINED => Self::Drained(serde_json::from_slice(body)?),
            Self::STDIN_CLOSED => Self::StdinClosed,
            Self::STDERR => Self::Stderr(frame.bulk().ok_or_else(no_bulk)?.1),
            Self::STDERR_LOST => Self::StderrLost(serde_json::from_slice(body)?),
            Self::EXITED => Self::Exited(serde_json::from_slice(body)?),
            Self::ATTACHED => {
                let (head, retained) = frame.bulk().ok_or_else(no_bulk)?;
                Self::Attached(serde_json::from_slice(&head)?, retained)
            }
            Self::REFUSED => Self::Refused(serde_json::from_slice(body)?),
            Self::NOT_KEPT => Self::NotKept(serde_json::from_slice(body)?),
            _ => return Ok(None),
        }))
    }
}

impl Attached {
    /// Writes the frame, up to the `retained` bytes at its end.
    pub(crate) fn put_to(&self, out: &mut BytesMut, retained: usize) {
        put_bulk(out, FromKeeper::ATTACHED, &json(self), retained);
    }
}

/// Writes a [`FromKeeper::Stderr`].
pub(crate) fn put_stderr(out: &mut BytesMut, bytes: &[u8]) {
    put_bulk(out, FromKeeper::STDERR, &[], bytes.len());
    out.put_slice(bytes);
}

fn no_bulk() -> serde_json::Error {
    serde::de::Error::custom("no bulk body")
}

#[cfg(test)]
mod tests;
