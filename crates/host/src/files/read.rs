//! Reading the lines of a text file.
//!
//! Memory is bounded by what is returned, not by the file: lines before the first are only counted, and only so far.
//! Nothing waits for a pipe or a device, since neither is opened.

use super::guard::{self, HeldFile};
use super::params::ReadRequest;
use super::roots::Roots;
use super::{Bounds, FileError};
use cap_std::fs::Metadata;
use rustix::fs::OFlags;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

/// How much is read at once, in bytes.
const PIECE: usize = 64 * 1024;

/// Why the lines were not read.
enum Fault {
    Io(io::Error),
    TooLarge,
    TooFar,
}

/// The requested text. `stopped` says that it is not needed any more.
pub(super) fn read(
    roots: &Roots,
    request: &ReadRequest,
    bounds: Bounds,
    stopped: &dyn Fn() -> bool,
) -> Result<String, FileError> {
    let path = &request.path;
    let fail = |error: io::Error| match FileError::of_io(path, error) {
        // A file has nothing below it.
        FileError::NotDirectory(path) => FileError::NotFound(path),
        error => error,
    };
    let resolved = roots.resolve(path)?;
    // Looked at before it is opened: opening a device, a pipe or a file of the log has effects.
    let held = HeldFile::hold(resolved.root, &resolved.below, 0).map_err(fail)?;
    let metadata = held.metadata().map_err(fail)?;
    check(path, &metadata)?;
    guard::check_file(path, &resolved, &held)?;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed());
    let file = held.open(&options).map_err(fail)?;
    let too_large = || FileError::TooLarge {
        path: path.clone(),
        limit: bounds.content,
        instead: "read it in pieces, with line and limit",
    };
    let first = request.line.unwrap_or(1).saturating_sub(1);
    if first == 0 && request.limit.is_none() && metadata.len() > bounds.content {
        return Err(too_large());
    }
    match lines(file, first, request.limit, bounds, stopped) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_not_utf8| FileError::NotText(path.clone())),
        Err(Fault::TooLarge) => Err(too_large()),
        Err(Fault::TooFar) => Err(FileError::TooFar { path: path.clone(), limit: bounds.skipped }),
        Err(Fault::Io(error)) => Err(fail(error)),
    }
}

fn check(path: &str, metadata: &Metadata) -> Result<(), FileError> {
    match metadata {
        file if file.is_file() => Ok(()),
        directory if directory.is_dir() => Err(FileError::Directory(path.to_owned())),
        _ => Err(FileError::Special(path.to_owned())),
    }
}

/// `count` lines (or all) behind the first `skip`, with their line ends.
fn lines(
    mut file: impl Read,
    mut skip: u64,
    count: Option<u64>,
    bounds: Bounds,
    stopped: &dyn Fn() -> bool,
) -> Result<Vec<u8>, Fault> {
    let max_bytes = usize::try_from(bounds.content).unwrap_or(usize::MAX);
    let mut may_skip = bounds.skipped;
    let mut wanted = count;
    let mut text = Vec::new();
    let mut piece = vec![0; PIECE];
    while wanted != Some(0) {
        if stopped() {
            return Err(Fault::Io(io::ErrorKind::Interrupted.into()));
        }
        let mut rest = match file.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => &piece[..length],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Fault::Io(error)),
        };
        let read = rest.len();
        rest = skip_lines(rest, &mut skip);
        let skipped = read - rest.len();
        may_skip = may_skip.checked_sub(skipped as u64).ok_or(Fault::TooFar)?;
        if let Some(wanted) = &mut wanted {
            let after = skip_lines(rest, wanted);
            rest = &rest[..rest.len() - after.len()];
        }
        if text.len() + rest.len() > max_bytes {
            return Err(Fault::TooLarge);
        }
        text.extend_from_slice(rest);
    }
    Ok(text)
}

/// What comes behind the first `count` line ends, which is counted down to those that are still missing.
fn skip_lines<'a>(bytes: &'a [u8], count: &mut u64) -> &'a [u8] {
    if *count == 0 {
        return bytes;
    }
    for end in memchr::memchr_iter(b'\n', bytes) {
        *count -= 1;
        if *count == 0 {
            return &bytes[end + 1..];
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its text in pieces of one byte, and is interrupted before each.
    struct Slowly<'a>(&'a [u8], bool);

    impl Read for Slowly<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            self.0.read(&mut buffer[..1])
        }
    }

    const AMPLE: Bounds = Bounds { content: 100, skipped: u64::MAX };

    // FS-2: the same lines, however the bytes come
    #[test]
    fn lines_are_counted_across_pieces() {
        let text = b"one\r\n\ntwo\rthree\nlast";
        let expected: [&[u8]; 4] = [b"one\r\n", b"\n", b"two\rthree\n", b"last"];
        for skip in 0..6 {
            for count in 0..6 {
                let wanted: Vec<u8> =
                    expected.iter().skip(skip).take(count).copied().flatten().copied().collect();
                let read = lines(Slowly(text, false), skip as u64, Some(count as u64), AMPLE, &|| false);
                assert_eq!(read.ok(), Some(wanted), "{count} lines behind {skip}");
            }
        }
    }

    // FS-3: what is returned is bounded, to the byte; what is only counted is not
    #[test]
    fn the_bound_is_on_what_is_returned() {
        let text = b"0123456789\nabc\n";
        let bounds = |content: usize| Bounds { content: content as u64, ..AMPLE };
        let read = |skip, content| lines(Slowly(text, false), skip, None, bounds(content), &|| false).ok();
        assert_eq!(read(1, 4).as_deref(), Some(b"abc\n".as_slice()));
        assert_eq!(read(1, 3), None);
        assert_eq!(read(0, text.len()).as_deref(), Some(text.as_slice()));
        assert_eq!(read(0, text.len() - 1), None);
    }

    // contract 2.2: what is only looked at is bounded too, to the byte
    #[test]
    fn the_way_to_the_first_line_is_bounded() {
        let text = b"0123456789\nabc\n";
        let read = |skip, skipped| {
            let bounds = Bounds { skipped, ..AMPLE };
            lines(Slowly(text, false), skip, None, bounds, &|| false)
        };
        assert_eq!(read(1, 11).ok().as_deref(), Some(b"abc\n".as_slice()));
        assert!(matches!(read(1, 10), Err(Fault::TooFar)));
        assert_eq!(read(0, 0).ok().as_deref(), Some(text.as_slice()));
        assert_eq!(read(7, 15).ok().as_deref(), Some(b"".as_slice()), "beyond the end");
        let bounds = Bounds { skipped: 1 << 20, ..AMPLE };
        let endless = lines(io::repeat(b'x'), 1, None, bounds, &|| false);
        assert!(matches!(endless, Err(Fault::TooFar)));
    }

    // contract 2.2: a read without a waiter does not go on for ever
    #[test]
    fn an_endless_file_is_left_when_nobody_waits() {
        let left = std::cell::Cell::new(100);
        let stopped = || left.replace(left.get() - 1) == 0;
        assert!(lines(io::repeat(b'x'), u64::MAX, None, AMPLE, &stopped).is_err());
        assert_eq!(left.get(), -1);
    }
}
