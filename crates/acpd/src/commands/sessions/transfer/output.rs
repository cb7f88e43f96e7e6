//! Where an export goes: stdout, or a file that is there with all of it or not at all.

use crate::exit::Failure;
use crate::state_files;
use crate::streams::stdout;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub(super) enum Output {
    Stdout,
    /// A pipe, or a device.
    Open(PathBuf, File),
    File(Spool),
}

/// A file that takes its name at the end.
pub(super) struct Spool {
    path: PathBuf,
    unnamed: PathBuf,
    file: File,
    /// What is whole, in bytes.
    kept: u64,
}

impl Output {
    pub(super) fn open(path: Option<PathBuf>) -> Result<Self, Failure> {
        let Some(path) = path.filter(|path| path != Path::new("-")) else { return Ok(Self::Stdout) };
        let wrong = |error: io::Error| Failure::Usage(format!("--output {}: {error}", path.display()));
        state_files::refuse(&path).map_err(wrong)?;
        if path.is_dir() {
            return Err(wrong(io::Error::other("a directory; name a file in it")));
        }
        if path.exists() && !path.is_file() {
            let file = OpenOptions::new().write(true).open(&path).map_err(wrong)?;
            return Ok(Self::Open(path, file));
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let unnamed = path.with_file_name(name);
        // What was said to an agent is for its owner only.
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unnamed);
        let file = opened.map_err(wrong)?;
        Ok(Self::File(Spool { path, unnamed, file, kept: 0 }))
    }

    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Self::Stdout) && io::stdout().is_terminal()
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = match self {
            Self::Stdout => stdout().write_all(bytes),
            Self::Open(_, file) => file.write_all(bytes),
            Self::File(spool) => spool.file.write_all(bytes),
        };
        written.map_err(|error| self.failed(error))
    }

    /// What was written is whole.
    pub(super) fn keep(&mut self) -> Result<(), Failure> {
        let kept = match self {
            Self::Stdout => stdout().flush(),
            Self::Open(..) => Ok(()),
            Self::File(spool) => spool.file.stream_position().map(|end| spool.kept = end),
        };
        kept.map_err(|error| self.failed(error))
    }

    /// What was written since then is not, and is taken back where that can be.
    pub(super) fn back(&mut self) -> Result<(), Failure> {
        let back = match self {
            Self::Stdout | Self::Open(..) => Ok(()),
            Self::File(spool) => spool
                .file
                .set_len(spool.kept)
                .and_then(|()| spool.file.seek(SeekFrom::Start(spool.kept)).map(drop)),
        };
        back.map_err(|error| self.failed(error))
    }

    /// Names the file, if anything is in it.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let finished = match &mut self {
            Self::Stdout => stdout().flush(),
            Self::Open(_, file) => file.flush(),
            Self::File(spool) if spool.kept == 0 => Ok(()),
            Self::File(spool) => {
                spool.file.sync_all().and_then(|()| std::fs::rename(&spool.unnamed, &spool.path))
            }
        };
        finished.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> Failure {
        match self {
            Self::Stdout => error.into(),
            Self::Open(path, _) => Failure::Failed(format!("cannot write {}: {error}", path.display())),
            Self::File(spool) => Failure::Failed(format!("cannot write {}: {error}", spool.path.display())),
        }
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        // It is not there any more when it has its name.
        let _gone = std::fs::remove_file(&self.unnamed);
    }
}
