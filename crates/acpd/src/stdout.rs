//! Writing results to stdout, which may be a terminal, a file, or a pipe that is closed early.

use crate::exit::Failure;
use rustix::termios::tcgetwinsize;
use std::io::{ErrorKind, IsTerminal, Write};

/// Whether the output is still read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    There,
    Gone,
}

/// Prints whole lines. A reader that closes the pipe has read enough: that is no failure.
pub(crate) fn print(text: &str) -> Result<Reader, Failure> {
    // There is nothing to take out of a text without styles, and looking for it takes longer than writing it.
    let written = match text.contains('\u{1b}') {
        true => put(anstream::stdout(), text),
        false => put(std::io::stdout().lock(), text),
    };
    match written {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(error.into()),
    }
}

fn put(mut out: impl Write, text: &str) -> std::io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Columns and rows of the terminal on stdout; None when it is none, or does not say.
pub(crate) fn window() -> Option<(usize, usize)> {
    let out = std::io::stdout();
    if !out.is_terminal() {
        return None;
    }
    let size = tcgetwinsize(&out).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0)?;
    Some((size.ws_col.into(), size.ws_row.into()))
}
