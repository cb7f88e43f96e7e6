//! The end of a program that no daemon was there to see: a file for the next one.
//!
//! It holds what an attach would have told, and is there whole or not at all.

use super::listening::{END, file_of, within};
use super::output::Output;
use super::protocol::Attached;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use tokio_util::bytes::BytesMut;

/// Writes the end of the program `name` to disk, into `directory`.
pub(super) fn write(directory: &OwnedFd, name: &str, head: &Attached, output: &Output) -> io::Result<()> {
    let (file, begun) = (file_of(name, END), file_of(name, "end-begun"));
    let begun = within(directory, &begun);
    let written = write_whole(&begun, head, output)
        .and_then(|()| std::fs::rename(&begun, within(directory, &file)))
        .and_then(|()| Ok(rustix::fs::fsync(directory)?));
    if written.is_err() {
        // It takes what room there is, and the next try begins anew.
        let _gone = std::fs::remove_file(&begun);
    }
    written
}

fn write_whole(path: &std::path::Path, head: &Attached, output: &Output) -> io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    let mut frame = BytesMut::new();
    head.put_to(&mut frame, output.retained());
    file.write_all(&frame)?;
    let mut written = 0;
    while written < output.retained() {
        let piece = output.retained_from(written);
        file.write_all(piece)?;
        written += piece.len();
    }
    file.sync_all()
}
