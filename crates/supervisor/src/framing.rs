//! How messages for a program's stdin are written into a buffer.

use crate::keeper::protocol::{Command, Put, put_write};
use tokio_util::bytes::BytesMut;

/// How messages for stdin are written into a buffer that [`Stdin::try_write`](crate::Stdin::try_write) takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// As they are: the buffer goes into a pipe.
    Plain,
    /// In frames for the keeper, which writes each once and whole, whatever becomes of this process.
    Kept,
}

impl Framing {
    /// Appends a message, which is one or more whole lines. With a mark, the keeper stores that name and value as it
    /// accepts the message, so that whether it was accepted can be seen by a later host; without a keeper there is no
    /// later host, and no mark.
    pub fn message(self, out: &mut BytesMut, bytes: &[u8], mark: Option<(&str, &str)>) {
        match self {
            Self::Plain => out.extend_from_slice(bytes),
            Self::Kept => put_write(out, bytes, mark),
        }
    }

    /// Has the keeper store a mark, or remove it, once it has accepted all before it.
    pub fn put(self, out: &mut BytesMut, key: &str, value: Option<&str>) {
        match self {
            Self::Plain => {}
            Self::Kept => {
                Command::Put(Put { key: key.to_owned(), value: value.map(str::to_owned) }).put_to(out);
            }
        }
    }
}
