//! Cuts a byte stream into lines, in bounded memory.
//!
//! Owner: the reader of a pipe or socket; one buffer for each stream.
//! Invariants: every byte is scanned once, whatever the chunks; a line is a slice of the read buffer, not a copy; an
//! unfinished line never grows past the limit plus one read; a big allocation goes when its line has been taken.
//! Not here: what a line means. Blank lines and noise come out like any other.
//!
//! A line that the caller keeps also keeps the allocation it was read into (up to about [`ALLOCATION`] bytes, shared by
//! all lines of the same reads). Copy a line that is to live long.
//!
//! What is offered to a read follows what reads bring: little to a stream that is mostly silent, of which there may be
//! thousands, and all that a pipe holds to one in full flow.

use bytes::{Buf, Bytes, BytesMut};
use thiserror::Error;

/// The limit for streams that say nothing else: images and diffs travel as one line each.
pub const DEFAULT_LINE_LIMIT: usize = 64 * 1024 * 1024;

/// Free room offered to a read at most: what a Linux pipe holds.
const READ_SPACE: usize = 64 * 1024;

/// Free room offered to the reads of a stream that says little.
const SMALL_READ: usize = 1024;

/// Two reads fit, so that lines still held by a consumer cost an allocation per 64 KiB of data, not per read.
const ALLOCATION: usize = 2 * READ_SPACE;

/// An allocation up to this size, in bytes, is cheaper to make again than to keep for thousands of silent streams.
const CHEAP: usize = 16 * 1024;

/// A line was longer than the buffer's limit. What was there of it is gone, what follows of it will be skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("line is longer than {limit} bytes")]
pub struct LineTooLong {
    /// The limit in bytes, without the line end.
    pub limit: usize,
}

/// Collects reads and yields lines. See the module for memory and cost.
///
/// ```
/// # use acpd_wire::LineBuffer;
/// let mut lines = LineBuffer::new(1024);
/// lines.push(b"one\r\ntw");
/// assert_eq!(lines.next_line()?.as_deref(), Some(&b"one"[..]));
/// assert_eq!(lines.next_line()?, None);
/// lines.push(b"o");
/// assert_eq!(lines.finish()?.as_deref(), Some(&b"two"[..]));
/// # Ok::<(), acpd_wire::LineTooLong>(())
/// ```
#[derive(Debug)]
pub struct LineBuffer {
    buffer: BytesMut,
    /// Bytes at the start of `buffer` known to hold no newline.
    scanned: usize,
    /// Size of the allocation behind `buffer`, which `BytesMut` does not tell once parts were split off.
    allocated: usize,
    limit: usize,
    /// The rest of an over-long line is being skipped.
    skipping: bool,
    /// Free room that is offered to the next read.
    offered: usize,
    /// What the last read brought.
    arrived: usize,
    /// Bytes of the stream up to the end of what was taken or skipped.
    position: u64,
}

impl LineBuffer {
    /// An empty buffer for lines of at most `limit` bytes, not counting the line end. Allocates at the first read.
    pub fn new(limit: usize) -> Self {
        let (buffer, offered) = (BytesMut::new(), SMALL_READ);
        Self { buffer, scanned: 0, allocated: 0, limit, skipping: false, offered, arrived: 0, position: 0 }
    }

    /// The same for a stream that is read from `position` on.
    pub fn starting_at(limit: usize, position: u64) -> Self {
        Self { position, ..Self::new(limit) }
    }

    /// Where the line that was taken last ends in the stream, in bytes, its line end included.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Where the next read goes: 1 to 64 KiB of free capacity or more, to be appended to by `read_buf` or the like.
    ///
    /// Take all lines with [`next_line`](Self::next_line) before asking again, since the limit is enforced there.
    pub fn space(&mut self) -> &mut BytesMut {
        self.follow_the_stream();
        if self.buffer.capacity() - self.buffer.len() < self.offered {
            self.make_room();
        }
        &mut self.buffer
    }

    /// A read that filled what it was offered is offered more the next time, one that did not about twice what it
    /// brought; the buffer shrinks after a burst.
    fn follow_the_stream(&mut self) {
        let arrived = std::mem::take(&mut self.arrived);
        if arrived == 0 {
            return;
        }
        let wanted = if arrived >= self.offered { self.offered * 4 } else { arrived * 2 };
        self.offered = wanted.clamp(SMALL_READ, READ_SPACE);
        if self.buffer.is_empty() && self.allocated > 4 * self.offered {
            self.buffer = BytesMut::new();
            self.allocated = 0;
        }
    }

    /// There is nothing to read for now: an empty buffer gives up its allocation until the next [`space`](Self::space). A
    /// stream in full flow, whose reader finds it empty between reads too, keeps its big one.
    pub fn rest(&mut self) {
        if self.buffer.is_empty() && self.allocated <= CHEAP {
            self.buffer = BytesMut::new();
            self.allocated = 0;
        }
    }

    /// Appends bytes that were read elsewhere.
    pub fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(READ_SPACE) {
            self.offered = self.offered.max(piece.len());
            self.space().extend_from_slice(piece);
        }
    }

    /// The next complete line, without `"\n"` or `"\r\n"`; `None` when more bytes are needed.
    ///
    /// # Errors
    ///
    /// [`LineTooLong`] once for each line over the limit. Going on is allowed: the line is skipped up to its newline.
    pub fn next_line(&mut self) -> Result<Option<Bytes>, LineTooLong> {
        // The first of several after a read sees the most.
        self.arrived = self.arrived.max(self.buffer.len() - self.scanned);
        loop {
            let Some(offset) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) else {
                return self.keep_unfinished();
            };
            let end = self.scanned + offset;
            self.scanned = 0;
            self.position += end as u64 + 1;
            if std::mem::take(&mut self.skipping) {
                self.buffer.advance(end + 1);
                self.release_big_allocation();
                continue;
            }
            let mut line = self.buffer.split_to(end + 1);
            line.truncate(content_length(&line[..end]));
            self.release_big_allocation();
            if line.len() > self.limit {
                return Err(LineTooLong { limit: self.limit });
            }
            return Ok(Some(line.freeze()));
        }
    }

    /// At the end of the stream: the lines still buffered, then the unterminated last piece, then `None`.
    ///
    /// # Errors
    ///
    /// As [`next_line`](Self::next_line).
    pub fn finish(&mut self) -> Result<Option<Bytes>, LineTooLong> {
        if let Some(line) = self.next_line()? {
            return Ok(Some(line));
        }
        let mut rest = std::mem::take(&mut self.buffer);
        self.position += rest.len() as u64;
        self.scanned = 0;
        self.allocated = 0;
        self.skipping = false;
        if rest.is_empty() {
            return Ok(None);
        }
        rest.truncate(content_length(&rest));
        Ok(Some(rest.freeze()))
    }

    /// Bytes allocated behind the buffer, lines not counted that live on in an allocation the buffer has left.
    pub fn capacity(&self) -> usize {
        self.allocated.max(self.buffer.capacity())
    }

    /// No newline in sight: remember what was scanned, or give the line up when it is too long already.
    fn keep_unfinished(&mut self) -> Result<Option<Bytes>, LineTooLong> {
        let too_long = content_length(&self.buffer) > self.limit;
        if self.skipping || too_long {
            let first = !std::mem::replace(&mut self.skipping, true);
            self.position += self.buffer.len() as u64;
            self.buffer.clear();
            self.scanned = 0;
            self.release_big_allocation();
            return if first { Err(LineTooLong { limit: self.limit }) } else { Ok(None) };
        }
        self.scanned = self.buffer.len();
        Ok(None)
    }

    fn make_room(&mut self) {
        if self.buffer.try_reclaim(self.offered) {
            return;
        }
        // Doubling keeps the copying linear. It stops at the limit, where the line is given up anyway.
        let unfinished = self.buffer.len();
        let most = self.limit.saturating_add(ALLOCATION);
        let wanted = unfinished.saturating_mul(2).clamp(2 * self.offered, most);
        self.move_to_allocation(wanted.max(unfinished + self.offered));
    }

    /// The buffer shares its allocation with the line just taken and would keep it alive, so it moves out when little
    /// is left to copy. (With much left it waits: copying the rest after each line would be quadratic.)
    fn release_big_allocation(&mut self) {
        if self.capacity() <= 2 * ALLOCATION || self.buffer.len() > READ_SPACE {
            return;
        }
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
            self.allocated = 0;
        } else {
            self.move_to_allocation(ALLOCATION);
        }
    }

    fn move_to_allocation(&mut self, size: usize) {
        let mut fresh = BytesMut::with_capacity(size);
        fresh.extend_from_slice(&self.buffer);
        self.allocated = fresh.capacity();
        self.buffer = fresh;
    }
}

/// Length without a trailing `"\r"`. For an unfinished line the `"\r"` may still become part of the line end.
fn content_length(line: &[u8]) -> usize {
    line.len() - usize::from(line.last() == Some(&b'\r'))
}

#[cfg(test)]
mod tests;
