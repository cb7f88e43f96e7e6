//! Zip archives. What their directory says is looked through first; two entries that share bytes are a bomb.

use super::{ArchiveError, Files, Sum};
use crate::inside::InsidePath;
use flate2::read::DeflateDecoder;
use rawzip::{CompressionMethod, RECOMMENDED_BUFFER_SIZE, ZipArchive, ZipArchiveEntryWayfinder};
use std::fs::File;
use std::path::Path;

/// The bits of a Unix mode that say what it is, and the values for a file, a directory and a link.
const TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

/// An entry that is taken.
struct Found {
    path: InsidePath,
    /// None of a directory.
    file: Option<(ZipArchiveEntryWayfinder, CompressionMethod)>,
    size: u64,
    can_run: bool,
}

fn damaged(error: rawzip::Error) -> ArchiveError {
    ArchiveError::Damaged(error.to_string())
}

pub(super) fn unpack(archive: &Path, target: &mut Files<'_>) -> Result<(), ArchiveError> {
    let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
    let zip = ZipArchive::from_file(File::open(archive)?, &mut buffer).map_err(damaged)?;
    let mut sum = Sum::of(target.bounds);
    let mut found = Vec::new();
    let mut entries = zip.entries(&mut buffer);
    while let Some(entry) = entries.next_entry().map_err(damaged)? {
        let text = String::from_utf8_lossy(entry.file_path().as_bytes()).into_owned();
        let refused = |what| Err(ArchiveError::Entry { path: text.chars().take(200).collect(), what });
        let mode = entry.mode().value();
        let is_directory = entry.is_dir();
        match mode & TYPE {
            LINK => return refused("a symbolic link"),
            0 | REGULAR | DIRECTORY => {}
            _ => return refused("a device, a pipe or a socket"),
        }
        if entry.flags().is_encrypted() {
            return refused("encrypted");
        }
        let method = entry.compression_method();
        if method != CompressionMethod::STORE && method != CompressionMethod::DEFLATE {
            return refused("compressed in a way that is not known");
        }
        let (path, size) = (InsidePath::read(&text)?, entry.uncompressed_size_hint());
        sum.add(size)?;
        let file = (!is_directory).then(|| (entry.wayfinder(), method));
        found.push(Found { path, file, size, can_run: mode & 0o111 != 0 });
    }
    if u64::try_from(found.len()).ok() != Some(zip.entries_hint()) {
        return Err(ArchiveError::Damaged("it has another number of entries than it says".to_owned()));
    }
    let mut ranges = Vec::new();
    for Found { file, .. } in &found {
        if let Some((wayfinder, _)) = file {
            ranges.push(zip.get_entry(*wayfinder).map_err(damaged)?.compressed_data_range());
        }
    }
    ranges.sort_unstable();
    if ranges.windows(2).any(|pair| pair[0].1 > pair[1].0) {
        return Err(ArchiveError::Damaged("two entries share their content".to_owned()));
    }
    for Found { path, file, size, can_run } in found {
        let Some((wayfinder, method)) = file else {
            target.directory(&path)?;
            continue;
        };
        let entry = zip.get_entry(wayfinder).map_err(damaged)?;
        match method {
            CompressionMethod::STORE => {
                target.file(&path, can_run, size, &mut entry.verifying_reader(entry.reader()))?;
            }
            _ => {
                let content = DeflateDecoder::new(entry.reader());
                target.file(&path, can_run, size, &mut entry.verifying_reader(content))?;
            }
        }
    }
    Ok(())
}
