//! Writes redo files: two that take turns, so that one is written while the segments of the other are being synced.
//!
//! Owned by the writer thread. A generation is the entries between two turns; its file is written again only when the segments
//! of all its entries are synced. Invariants: an append is on the disk when it returns; the entries that are not synced in their
//! segments are in the two files.

use super::{BOOT_BYTES, REDO_HEADER_BYTES, RedoEntry, RedoHeader};
use crate::segment::NONCE_BYTES;
use crate::session_files::{StoredFile, new_nonce, write_all};
use std::io::{self, IoSlice};

/// Why entries were not appended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedoError {
    /// They could not be written. The files are as they were.
    #[error("the redo file could not be written")]
    Write(#[source] io::Error),
    /// The disk did not confirm them. Nothing more may be appended here.
    #[error("the redo file could not be synced")]
    Sync(#[source] io::Error),
}

/// Appends to the redo files of one log.
#[derive(Debug)]
pub struct RedoWriter<F> {
    files: [F; 2],
    boot: [u8; BOOT_BYTES],
    generation: u64,
    /// Of the last generation in each file.
    headers: [Option<RedoHeader>; 2],
    /// Bytes of each file.
    lengths: [u64; 2],
    /// Behind the last entry of this generation; 0: it has none.
    end: u64,
    is_other_free: bool,
}

impl<F: StoredFile> RedoWriter<F> {
    /// Begins with two files that have no entries.
    pub fn new(files: [F; 2], boot: [u8; BOOT_BYTES]) -> Self {
        Self { files, boot, generation: 1, headers: [None; 2], lengths: [0; 2], end: 0, is_other_free: true }
    }

    /// Bytes of this generation; 0: it has no entries.
    pub fn bytes(&self) -> u64 {
        self.end
    }

    /// Appends entries behind the others and syncs them.
    ///
    /// # Errors
    /// Then none of them counts as appended. They may be replayed all the same.
    pub fn append(&mut self, entries: &[RedoEntry<'_>]) -> Result<(), RedoError> {
        let at = self.at();
        let (header, mut bytes) = match self.headers[at].filter(|_| self.end > 0) {
            Some(header) => (header, Vec::new()),
            None => {
                let nonce: [u8; NONCE_BYTES] = new_nonce().map_err(RedoError::Write)?;
                let header = RedoHeader { generation: self.generation, boot: self.boot, nonce };
                (header, header.encode().to_vec())
            }
        };
        if !entries.iter().all(|entry| entry.put(&mut bytes, self.end, &header.nonce)) {
            let too_long = "a batch is longer than the format of a redo file allows";
            return Err(RedoError::Write(io::Error::new(io::ErrorKind::InvalidInput, too_long)));
        }
        write_all(&self.files[at], &mut [IoSlice::new(&bytes)], self.end).map_err(RedoError::Write)?;
        self.files[at].sync().map_err(RedoError::Sync)?;
        self.headers[at] = Some(header);
        self.end += bytes.len() as u64;
        self.lengths[at] = self.lengths[at].max(self.end);
        Ok(())
    }

    /// Ends this generation, whose segments are to be synced, and begins the next one. None: it has no entries, or the
    /// segments of the one before are still being synced.
    pub fn turn(&mut self) -> Option<u64> {
        if self.end == 0 || !self.is_other_free {
            return None;
        }
        let ended = self.generation;
        (self.generation, self.end, self.is_other_free) = (ended + 1, 0, false);
        Some(ended)
    }

    /// The segments of all entries of a generation that has ended are synced. Its file keeps `most` bytes: what is there need not be
    /// allocated again.
    pub fn free(&mut self, generation: u64, most: u64) {
        if generation + 1 != self.generation {
            return;
        }
        self.is_other_free = true;
        let other = 1 - self.at();
        // One that stays long costs room and nothing else.
        if self.lengths[other] > most && self.files[other].truncate(most).is_ok() {
            self.lengths[other] = most;
        }
    }

    /// Has the entries replayed whenever the files are found, also in this boot: a segment could not be synced, so what it has is in
    /// doubt.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn condemn(&mut self) -> io::Result<()> {
        self.boot = [0; BOOT_BYTES];
        for (file, header) in self.files.iter().zip(&mut self.headers) {
            if let Some(header) = header {
                header.boot = self.boot;
                write_all(file, &mut [IoSlice::new(&header.encode())], 0)?;
                file.sync()?;
            }
        }
        Ok(())
    }

    fn at(&self) -> usize {
        usize::from(self.generation.is_multiple_of(2))
    }
}

const _: () = assert!(REDO_HEADER_BYTES.is_multiple_of(8), "entries are aligned behind it");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redo::RedoEntries;
    use parking_lot::Mutex;

    /// A file in memory, with room for so many bytes.
    struct Full {
        bytes: Mutex<Vec<u8>>,
        room: Mutex<usize>,
    }

    impl StoredFile for &Full {
        fn write_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
            let whole: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
            let (begin, mut bytes) = (usize::try_from(offset).expect("it is short"), self.bytes.lock());
            let taken = whole.len().min(self.room.lock().saturating_sub(begin));
            if taken == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let length = bytes.len().max(begin + taken);
            bytes.resize(length, 0);
            bytes[begin..begin + taken].copy_from_slice(&whole[..taken]);
            Ok(taken)
        }

        fn truncate(&self, length: u64) -> io::Result<()> {
            self.bytes.lock().truncate(usize::try_from(length).expect("it is short"));
            Ok(())
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn files() -> [Full; 2] {
        [(); 2].map(|()| Full { bytes: Mutex::default(), room: Mutex::new(usize::MAX) })
    }

    fn offsets(file: &Full) -> Vec<u64> {
        let bytes = file.bytes.lock();
        let Ok(header) = RedoHeader::decode(&bytes) else { return Vec::new() };
        RedoEntries::new(&bytes, &header).map(|entry| entry.offset).collect()
    }

    fn entry(offset: u64) -> RedoEntry<'static> {
        RedoEntry { session: "a", segment: 1, offset, batches: &[5; 40] }
    }

    // design session-files 8: a disk that is full at any byte costs the entries that do not fit, and none before them
    #[test]
    fn a_full_disk_costs_what_does_not_fit() {
        for room in 0..400 {
            let files = files();
            let mut writer = RedoWriter::new(files.each_ref(), [1; 16]);
            files.iter().for_each(|file| *file.room.lock() = room);
            let mut appended = Vec::new();
            for offset in 0..6 {
                match writer.append(&[entry(offset)]) {
                    Ok(()) => appended.push(offset),
                    Err(RedoError::Write(error)) => assert_eq!(error.kind(), io::ErrorKind::StorageFull),
                    Err(error) => panic!("{error}"),
                }
            }
            assert_eq!(offsets(&files[0]), appended, "{room}");
            *files[0].room.lock() = usize::MAX;
            writer.append(&[entry(9)]).expect("there is room");
            assert_eq!(offsets(&files[0]), [&appended[..], &[9]].concat(), "{room}");
        }
    }

    // design session-files 5: files take turns, and one is written again only when its segments are synced
    #[test]
    fn files_take_turns() {
        let files = files();
        let mut writer = RedoWriter::new(files.each_ref(), [1; 16]);
        assert_eq!(writer.turn(), None, "there is nothing to sync");
        for offset in 0..5 {
            writer.append(&[entry(offset)]).expect("there is room");
        }
        assert_eq!((writer.turn(), writer.bytes()), (Some(1), 0));
        writer.append(&[entry(10)]).expect("there is room");
        assert_eq!(writer.turn(), None, "the first is needed");
        writer.append(&[entry(11)]).expect("there is room");
        assert_eq!((offsets(&files[0]), offsets(&files[1])), (vec![0, 1, 2, 3, 4], vec![10, 11]));
        writer.free(7, 0);
        assert_eq!(writer.turn(), None, "that was another");
        writer.free(1, 100);
        assert_eq!(files[0].bytes.lock().len(), 100);
        assert_eq!(writer.turn(), Some(2));
        writer.append(&[entry(20)]).expect("there is room");
        assert_eq!((offsets(&files[0]), offsets(&files[1])), (vec![20], vec![10, 11]));
    }
}
