//! Tar archives, compressed by gzip or bzip2. They are gone through twice: for what they say, and for what they have.

use super::bunzip::BzDecoder;
use super::{ArchiveError, Files, Sum, damaged_or};
use crate::inside::InsidePath;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use tar::{Archive, EntryType};

/// The longest name or list of attributes before an entry.
const LONGEST_HEADER: u64 = 64 * 1024;

/// The compression of a tar archive.
#[derive(Debug, Clone, Copy)]
pub(super) enum Compression {
    Gzip,
    Bzip2,
}

fn open(archive: &Path, compression: Compression) -> Result<Archive<Box<dyn Read>>, ArchiveError> {
    let file = BufReader::new(File::open(archive)?);
    Ok(Archive::new(match compression {
        Compression::Gzip => Box::new(MultiGzDecoder::new(file)),
        Compression::Bzip2 => Box::new(BzDecoder::new(file)),
    }))
}

pub(super) fn unpack(
    archive: &Path,
    compression: Compression,
    target: &mut Files<'_>,
) -> Result<(), ArchiveError> {
    look_through(archive, compression, target)?;
    let mut opened = open(archive, compression)?;
    for entry in opened.entries().map_err(damaged_or)? {
        let mut entry = entry.map_err(damaged_or)?;
        let kind = entry.header().entry_type();
        if kind == EntryType::XGlobalHeader {
            continue;
        }
        let text = shown(&entry.path_bytes());
        refuse(kind, &text)?;
        if kind == EntryType::Directory {
            // The root itself is often among them.
            if !text.split('/').all(|part| part.is_empty() || part == ".") || text.starts_with('/') {
                target.directory(&InsidePath::read(&text)?)?;
            }
            continue;
        }
        let can_run = entry.header().mode().map_err(damaged_or)? & 0o111 != 0;
        let (path, size) = (InsidePath::read(&text)?, entry.size());
        target.file(&path, can_run, size, &mut entry)?;
    }
    Ok(())
}

/// As the headers stand there: a name that is gigabytes long is read by nothing.
fn look_through(archive: &Path, compression: Compression, target: &Files<'_>) -> Result<(), ArchiveError> {
    let mut sum = Sum::of(target.bounds);
    let mut opened = open(archive, compression)?;
    for entry in opened.entries().map_err(damaged_or)?.raw(true) {
        let entry = entry.map_err(damaged_or)?;
        let (kind, size) = (entry.header().entry_type(), entry.size());
        match kind {
            EntryType::GNULongName | EntryType::XHeader | EntryType::XGlobalHeader
                if size > LONGEST_HEADER =>
            {
                return Err(ArchiveError::Damaged("a header in it is longer than any path".to_owned()));
            }
            EntryType::GNULongName | EntryType::XHeader | EntryType::XGlobalHeader => {}
            kind => refuse(kind, &shown(&entry.path_bytes()))?,
        }
        sum.add(size)?;
    }
    Ok(())
}

fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

fn refuse(kind: EntryType, path: &str) -> Result<(), ArchiveError> {
    let what = match kind {
        EntryType::Regular | EntryType::Directory => return Ok(()),
        EntryType::Link => "a hard link",
        EntryType::Symlink => "a symbolic link",
        EntryType::GNULongLink => "a link with a long name",
        EntryType::Char | EntryType::Block => "a device",
        EntryType::Fifo => "a pipe",
        EntryType::GNUSparse => "a sparse file",
        _ => "of an unknown type",
    };
    Err(ArchiveError::Entry { path: path.chars().take(200).collect(), what })
}
