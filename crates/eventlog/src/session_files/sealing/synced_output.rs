//! The output of a seal, synced as it grows.
//!
//! So little is left to be synced at its end, which whoever stops the attempt waits for, and the disk gets no burst.

use std::fs::File;
use std::io::{self, BufWriter, Write};

/// Bytes that may be unsynced.
const UNSYNCED: usize = 8 * 1024 * 1024;

/// A file that is written from its start.
pub(super) struct SyncedOutput {
    out: BufWriter<File>,
    unsynced: usize,
}

impl SyncedOutput {
    /// Writes to a file that is empty.
    pub(super) fn new(file: File) -> Self {
        Self { out: BufWriter::new(file), unsynced: 0 }
    }

    /// Has all of it on the disk.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.out.flush()?;
        self.out.get_ref().sync_all()
    }
}

impl Write for SyncedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.unsynced += written;
        if self.unsynced >= UNSYNCED {
            self.out.flush()?;
            self.out.get_ref().sync_data()?;
            self.unsynced = 0;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
