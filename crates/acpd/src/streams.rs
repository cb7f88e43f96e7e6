//! stdout and stderr of this process, for every command.
//!
//! Invariants: all of a text is written, also to a file that does not block; of the control characters in a text only
//! line ends, tabs and acpd's own styles reach it. Not here: the view, which composes its screen out of clean pieces and
//! writes them through [`stdout`] and [`stderr`].

use crate::clean::{json_escaped, styled};
use crate::exit::Failure;
use anstream::{AutoStream, ColorChoice};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::tcgetwinsize;
use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal, Stderr, Stdout, Write};
use std::os::fd::AsFd;

/// A writer that waits where its file would not: `O_NONBLOCK` belongs to the open file, which other processes share, and
/// Node.js leaves it set on pipes. The flag is not changed, for those others.
#[derive(Debug)]
pub(crate) struct Blocking<W>(W);

impl<W: AsFd> Blocking<W> {
    /// Waits until something can be written, or the reader is gone, which the next write finds.
    fn wait(&self) -> io::Result<()> {
        match poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl<W: Write + AsFd> Write for Blocking<W> {
    /// The writers of the standard library take nothing of `bytes` when they fail, so the same bytes can be tried again.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait()?,
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        loop {
            match self.0.flush() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait()?,
                flushed => return flushed,
            }
        }
    }
}

/// The standard output of this process.
pub(crate) fn stdout() -> Blocking<Stdout> {
    Blocking(io::stdout())
}

/// The standard error of this process.
pub(crate) fn stderr() -> Blocking<Stderr> {
    Blocking(io::stderr())
}

/// A writer of what is said beside an answer. What cannot be written is not shown, which is no failure; but that the terminal is
/// gone, is told.
#[derive(Debug)]
pub(crate) struct Beside<W>(W);

impl<W: Write> Beside<W> {
    fn shown<T>(result: io::Result<T>, unshown: T) -> io::Result<T> {
        let is_told = |error: &io::Error| {
            error.kind() == ErrorKind::Interrupted || error.raw_os_error() == Some(Errno::IO.raw_os_error())
        };
        result.or_else(|error| if is_told(&error) { Err(error) } else { Ok(unshown) })
    }
}

impl<W: Write> Write for Beside<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::shown(self.0.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Self::shown(self.0.flush(), ())
    }
}

/// The standard error of this process, for what is said beside an answer on stdout.
pub(crate) fn stderr_beside() -> Beside<Blocking<Stderr>> {
    Beside(stderr())
}

/// Whether the output is still read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    There,
    Gone,
}

/// Prints whole lines for people on stdout. A reader that closes the pipe has read enough: that is no failure.
pub(crate) fn print(text: &str) -> Result<Reader, Failure> {
    let colour = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
    print_line(&styled(text, colour))
}

/// Prints whole lines of JSON on stdout. A terminal gets the control characters in its strings escaped, which JSON
/// leaves as they are above U+001F; a program gets every byte as it is.
pub(crate) fn print_json(text: &str) -> Result<Reader, Failure> {
    match io::stdout().is_terminal() {
        true => print_line(&json_escaped(text)),
        false => print_line(text),
    }
}

fn print_line(text: &str) -> Result<Reader, Failure> {
    match put(stdout(), text, "\n") {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(error.into()),
    }
}

/// Writes a line for people on stderr. Without stderr it cannot be shown, which is no failure.
pub(crate) fn remark(text: &str) {
    let line = on_stderr(text).into_owned() + "\n";
    let _closed = put(stderr(), &line, "");
}

/// Writes a part of a line on stderr, such as a question behind which the answer is typed.
pub(crate) fn remark_open(text: &str) {
    let _closed = put(stderr(), &on_stderr(text), "");
}

/// Replaces the last line of a terminal on stderr, which is to be empty or to be replaced again; an empty text clears it.
pub(crate) fn remark_over(text: &str) {
    let _closed = put(stderr(), "\r\u{1b}[K", &on_stderr(text));
}

fn on_stderr(text: &str) -> Cow<'_, str> {
    styled(text, AutoStream::choice(&io::stderr()) != ColorChoice::Never)
}

fn put(mut out: impl Write, text: &str, end: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.write_all(end.as_bytes())?;
    out.flush()
}

/// Columns and rows of the terminal on stdout; None when it is none, or does not say.
pub(crate) fn window() -> Option<(usize, usize)> {
    let out = io::stdout();
    if !out.is_terminal() {
        return None;
    }
    let size = tcgetwinsize(&out).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0)?;
    Some((size.ws_col.into(), size.ws_row.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::{BorrowedFd, OwnedFd};

    /// A writer with a buffer, as stdout is one.
    struct Lines(io::LineWriter<File>);

    impl AsFd for Lines {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.get_ref().as_fd()
        }
    }

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.0.flush()
        }
    }

    // quirk nonblocking-stdout (parents in Node.js): acpd waits until the pipe takes more, writes all, and leaves the flag
    #[test]
    fn a_pipe_that_does_not_block_takes_all() {
        let (mut output, input) = io::pipe().expect("a pipe");
        fcntl_setfl(&input, OFlags::NONBLOCK).expect("the flag is set");
        let file = File::from(OwnedFd::from(input));
        // Far more than a pipe holds: the first write meets a pipe that is full, before anything is read.
        let all: Vec<u8> = (0..4_000_000_u32).map(|at| b'a' + (at % 26) as u8).collect();
        let text = all.clone();
        let writing = std::thread::spawn(move || {
            let mut lines = Blocking(Lines(io::LineWriter::new(file)));
            lines
                .write_all(&text)
                .and_then(|()| lines.write_all(b"\nend"))
                .and_then(|()| lines.flush())
                .expect("all");
            assert!(fcntl_getfl(lines.0.0.get_ref()).expect("its flags").contains(OFlags::NONBLOCK));
        });
        let mut read = Vec::new();
        output.read_to_end(&mut read).expect("it reads");
        writing.join().expect("it writes");
        assert_eq!(read.len(), all.len() + 4);
        assert!(read.starts_with(&all) && read.ends_with(b"\nend"));
    }

    // quirk nonblocking-stdout
    #[test]
    fn a_full_pipe_without_a_reader_is_no_wait() {
        let (output, input) = io::pipe().expect("a pipe");
        fcntl_setfl(&input, OFlags::NONBLOCK).expect("the flag is set");
        let mut out = Blocking(File::from(OwnedFd::from(input)));
        drop(output);
        assert_eq!(out.write_all(&[b'x'; 1 << 20]).expect_err("nobody reads").kind(), ErrorKind::BrokenPipe);
    }
}
