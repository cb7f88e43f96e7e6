//! What is unpacked, and what is refused.

use super::*;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use rawzip::path::EntryPath;
use rawzip::{CompressionMethod, ZipArchiveWriter};
use std::io::Write;
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

const BOUNDS: Bounds = Bounds { bytes: 1024 * 1024, entries: 20 };

/// An entry of a tar archive, as its header says it: its type, path, what a link leads to, mode, content.
struct Item(EntryType, &'static str, &'static str, u32, Vec<u8>);

fn file(path: &'static str, content: &[u8]) -> Item {
    Item(EntryType::Regular, path, "", 0o644, content.to_vec())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(bytes).expect("memory takes it");
    gzip.finish().expect("memory takes it")
}

fn tarball(items: &[Item]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    for Item(kind, path, link, mode, content) in items {
        let mut header = Header::new_gnu();
        // By its bytes: the library refuses such paths itself.
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(*mode);
        header.set_size(u64::try_from(content.len()).expect("it is small"));
        header.set_cksum();
        tar.append(&header, content.as_slice()).expect("memory takes it");
    }
    gzip(&tar.into_inner().expect("memory takes it"))
}

/// Path, mode, content.
fn zip(items: &[(&[u8], u32, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut zip = ZipArchiveWriter::new(&mut bytes);
    for (path, mode, content) in items {
        let file = zip.new_file(EntryPath::verbatim(*path)).unix_permissions(*mode);
        let (mut entry, config) =
            file.compression_method(CompressionMethod::DEFLATE).start().expect("memory takes it");
        let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::fast()));
        writer.write_all(content).expect("memory takes it");
        let (encoder, descriptor) = writer.finish().expect("memory takes it");
        encoder.finish().expect("memory takes it");
        entry.finish(descriptor).expect("memory takes it");
    }
    zip.finish().expect("memory takes it");
    bytes
}

fn unpacked(bytes: &[u8], program: &str) -> (TempDir, Result<Unpacked, String>) {
    let scratch = tempfile::tempdir().expect("a directory");
    let (archive, dir) = (scratch.path().join("archive"), scratch.path().join("files"));
    std::fs::write(&archive, bytes).expect("a file");
    std::fs::create_dir(&dir).expect("a directory");
    let program = InsidePath::read(program).expect("a path");
    let done = unpack(&archive, &dir, &program, BOUNDS, &mut |_| true).map_err(|error| {
        match std::error::Error::source(&error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        }
    });
    // Whatever it is, nothing is beside the two.
    assert_eq!(std::fs::read_dir(scratch.path()).expect("it is there").count(), 2);
    (scratch, done)
}

fn mode(scratch: &TempDir, path: &str) -> u32 {
    let found = std::fs::symlink_metadata(scratch.path().join("files").join(path)).expect("it is there");
    found.permissions().mode() & 0o7777
}

// issue 14: tar.gz, zip and a bare executable; modes are sane
#[test]
fn archives_are_unpacked() {
    let root = Item(EntryType::Directory, "./", "", 0o777, Vec::new());
    let set_id = Item(EntryType::Regular, "./bin/x", "", 0o6777, b"#!/bin/sh\n".to_vec());
    let (scratch, done) = unpacked(&tarball(&[root, set_id, file("lib/a", b"12")]), "bin/x");
    assert_eq!(done, Ok(Unpacked { files: 2, bytes: 12 }));
    assert_eq!(
        [mode(&scratch, "bin/x"), mode(&scratch, "lib/a"), mode(&scratch, "bin")],
        [0o755, 0o644, 0o755]
    );
    let (scratch, done) = unpacked(&zip(&[(b"x", 0o104_644, b"\x7fELF"), (b"d/y", 0o100_755, b"12")]), "./x");
    assert_eq!(done, Ok(Unpacked { files: 2, bytes: 6 }));
    assert_eq!([mode(&scratch, "x"), mode(&scratch, "d/y")], [0o755; 2], "the program can be run");
    for program in [b"\x7fELF\x02".as_slice(), b"#!/bin/sh\n", b"\xcf\xfa\xed\xfe"] {
        let (scratch, done) = unpacked(program, "x");
        assert_eq!(
            done,
            Ok(Unpacked { files: 1, bytes: u64::try_from(program.len()).expect("it is small") })
        );
        assert_eq!(mode(&scratch, "x"), 0o755);
    }
}

// issue 14: no links, no devices, no paths that leave; what is refused is refused as a whole
#[test]
fn hostile_archives_are_refused() {
    let x = || file("x", b"1");
    let of = |kind, path, link| Item(kind, path, link, 0o777, Vec::new());
    let (symlink, hard) = (EntryType::Symlink, EntryType::Link);
    let zeros = vec![0; 2 * 1024 * 1024];
    for (bytes, why) in [
        (tarball(&[x(), file("../y", b"2")]), "\"../y\" leads out of the archive"),
        (tarball(&[x(), file("a/../../y", b"2")]), "leads out of the archive"),
        (tarball(&[x(), file("/tmp/y", b"2")]), "\"/tmp/y\" is an absolute path"),
        (tarball(&[x(), of(symlink, "l", "/etc"), file("l/y", b"2")]), "\"l\" is a symbolic link"),
        (tarball(&[x(), of(hard, "l", "/etc/passwd")]), "\"l\" is a hard link"),
        (tarball(&[x(), of(EntryType::Char, "d", "")]), "\"d\" is a device"),
        (tarball(&[x(), of(EntryType::Fifo, "d", "")]), "\"d\" is a pipe"),
        (tarball(&[x(), of(EntryType::GNUSparse, "d", "")]), "\"d\" is a sparse file"),
        (tarball(&[x(), file("x", b"2")]), "\"x\" comes twice"),
        (tarball(&[x(), file("x/y", b"2")]), "\"x/y\" comes twice, or below a file"),
        (tarball(&[x(), file("y", &zeros)]), "more than 1 MiB"),
        (tarball(&(0..21).map(|_| x()).collect::<Vec<_>>()), "more than 20 entries"),
        (
            tarball(&[x(), Item(EntryType::GNULongName, "n", "", 0, zeros[..70_000].to_vec())]),
            "longer than any path",
        ),
        (tarball(&[file("y", b"1")]), "there is no file x in the archive"),
        (tarball(&[of(EntryType::Directory, "x", "")]), "there is no file x in the archive"),
        (tarball(&[x()])[..40].to_vec(), "the archive is damaged"),
        (gzip(b"no tar"), "the archive is damaged"),
        (zip(&[(b"x", 0o644, b"1"), (b"../y", 0o644, b"2")]), "\"../y\" leads out of the archive"),
        (zip(&[(b"x", 0o644, b"1"), (b"/y", 0o644, b"2")]), "\"/y\" is an absolute path"),
        (zip(&[(b"x", 0o644, b"1"), (b"..\\y", 0o644, b"2")]), "has a backslash"),
        (zip(&[(b"x", 0o644, b"1"), (b"l", 0o120_777, b"/etc")]), "\"l\" is a symbolic link"),
        (zip(&[(b"x", 0o644, b"1"), (b"d", 0o020_666, b"")]), "\"d\" is a device"),
        (zip(&[(b"x", 0o644, b"1"), (b"x", 0o644, b"2")]), "\"x\" comes twice"),
        (zip(&[(b"x", 0o644, b"1"), (b"y", 0o644, &zeros)]), "more than 1 MiB"),
        (b"PK no zip".to_vec(), "the archive is damaged"),
        (b"\xfd7zXZ\0...".to_vec(), "it is compressed by xz"),
        (b"BZh9...".to_vec(), "the archive is damaged"),
        (b"<html>".to_vec(), "none of the known formats"),
        (Vec::new(), "none of the known formats"),
    ] {
        let (_scratch, done) = unpacked(&bytes, "x");
        let told = done.expect_err(why);
        assert!(told.contains(why), "{told}, not {why}");
    }
}

// issue 14: an archive that says less than it has is cut off
#[test]
fn a_zip_that_lies_is_refused() {
    let mut bytes = zip(&[(b"x", 0o644, &[0; 4096])]);
    // The size of the entry in the directory at the end: 24 bytes behind its mark.
    let at = bytes.windows(4).rposition(|mark| mark == b"PK\x01\x02").expect("there is a directory");
    bytes[at + 24..at + 28].copy_from_slice(&7_u32.to_le_bytes());
    let (scratch, done) = unpacked(&bytes, "x");
    let told = done.expect_err("it lies");
    assert!(told.contains("damaged"), "{told}");
    let written = std::fs::metadata(scratch.path().join("files/x")).expect("it was begun").len();
    assert!(written <= 8, "no more is written than it says: {written}");
}

/// A tar archive with the program `bin/x`, compressed by bzip2.
const BZIP2: &str = "425a6839314159265359ccaa6dfa0000727b80ca9040006800d78000087a619e40080820005432a7a400c80d1e\
    903d2092a034d0d1a0069a1a4bebc9d08194a108c22fb07dcd62044c10850473969e1ab44ca010a842b9f14ce9\
    45acb4a5f2b41a2c3908d7ced9ba04903f177245385090ccaa6dfa";

// quirk bzip2-archives
#[test]
fn an_archive_by_bzip2_is_unpacked() {
    let digit = |at: usize| u8::from_str_radix(&BZIP2[at..at + 2], 16).expect("two digits");
    let bytes: Vec<u8> = (0..BZIP2.len()).step_by(2).map(digit).collect();
    let (scratch, done) = unpacked(&bytes, "bin/x");
    assert_eq!(done, Ok(Unpacked { files: 1, bytes: 18 }));
    assert_eq!(mode(&scratch, "bin/x"), 0o755);
}
