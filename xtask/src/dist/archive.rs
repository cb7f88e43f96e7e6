//! Archives that depend on nothing but what is in them: entries in order of their names, one time, no owner.
//!
//! `npm pack` and wheel builders would do as well, but compress as their own version of zlib does, and 60 MiB of a debug program
//! take them a while.

use anyhow::Result;
use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use std::io::{Cursor, Write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// A file of a package.
pub(super) struct Entry<'a> {
    pub(super) path: String,
    pub(super) mode: u32,
    pub(super) content: &'a [u8],
}

impl<'a> Entry<'a> {
    /// One to read.
    pub(super) fn file(path: &str, content: &'a [u8]) -> Self {
        Self { path: path.to_owned(), mode: 0o644, content }
    }

    /// One to run.
    pub(super) fn program(path: &str, content: &'a [u8]) -> Self {
        Self { path: path.to_owned(), mode: 0o755, content }
    }
}

/// Compresses like `gzip --no-name`.
pub(super) fn gzip(content: &[u8], level: u32) -> Result<Vec<u8>> {
    let mut encoder: GzEncoder<Vec<u8>> =
        GzBuilder::new().mtime(0).write(Vec::new(), Compression::new(level));
    encoder.write_all(content)?;
    Ok(encoder.finish()?)
}

/// An archive of which all is below one directory.
pub(super) fn tar_gz(
    directory: &str,
    mut entries: Vec<Entry<'_>>,
    epoch: u64,
    level: u32,
) -> Result<Vec<u8>> {
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    let mut archive = tar::Builder::new(Vec::new());
    for Entry { path, mode, content } in entries {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(mode);
        header.set_mtime(epoch);
        header.set_uid(0);
        header.set_gid(0);
        archive.append_data(&mut header, format!("{directory}/{path}"), content)?;
    }
    gzip(&archive.into_inner()?, level)
}

/// A zip archive, in the order given, of 1980: it has no earlier time.
pub(super) fn zip(entries: Vec<Entry<'_>>, level: u32) -> Result<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for Entry { path, mode, content } in entries {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(i64::from(level)))
            .last_modified_time(DateTime::DEFAULT)
            .unix_permissions(mode);
        archive.start_file(path, options)?;
        archive.write_all(content)?;
    }
    Ok(archive.finish()?.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read;

    // packages: two runs give the same bytes, with fixed times, owners and modes
    #[test]
    fn archives_are_the_same_whatever_the_order_and_the_time() {
        let entries = || vec![Entry::program("bin/b", b"b"), Entry::file("a", b"a")];
        let backwards = || entries().into_iter().rev().collect();
        let packed = tar_gz("x-1", entries(), 1_700_000_000, 9).expect("packed");
        assert_eq!(packed, tar_gz("x-1", backwards(), 1_700_000_000, 9).expect("packed"));
        let mut archive = tar::Archive::new(GzDecoder::new(&*packed));
        let found = archive.entries().expect("an archive").map(|entry| {
            let entry = entry.expect("an entry");
            let header = entry.header();
            let path = entry.path().expect("a path").display().to_string();
            (
                path,
                header.mode().expect("a mode"),
                header.mtime().expect("a time"),
                header.uid().expect("an owner"),
            )
        });
        let found: Vec<_> = found.collect();
        assert_eq!(
            found,
            [
                ("x-1/a".to_owned(), 0o644, 1_700_000_000, 0),
                ("x-1/bin/b".to_owned(), 0o755, 1_700_000_000, 0),
            ]
        );
    }

    #[test]
    fn a_zip_archive_keeps_order_modes_and_content() {
        let entries = || vec![Entry::program("z", b"program"), Entry::file("a", b"text")];
        let packed = zip(entries(), 9).expect("packed");
        assert_eq!(packed, zip(entries(), 9).expect("packed"));
        let mut archive = zip::ZipArchive::new(Cursor::new(packed)).expect("an archive");
        let mut first = archive.by_index(0).expect("an entry");
        let mut content = String::new();
        first.read_to_string(&mut content).expect("readable");
        assert_eq!(first.name().expect("a name"), "z");
        assert_eq!((first.unix_mode(), &*content), (Some(0o100_755), "program"));
        assert_eq!(first.last_modified().map(|time| time.year()), Some(1980));
    }
}
