//! Writing the configuration's file: one writer at a time, all of a change or nothing, with the mode, the owner and the
//! links that were there.

use crate::state_files;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// The file, for as long as nothing else of acpd changes it.
pub(crate) struct ConfigFile {
    /// Behind links, so that they stay.
    path: PathBuf,
    _alone: File,
}

impl ConfigFile {
    /// Waits for other writers. The directory is there when this returns. Fails where sessions depend on the file.
    pub(crate) fn lock(named: &Path) -> io::Result<Self> {
        let path = std::fs::canonicalize(named).unwrap_or_else(|_| named.to_owned());
        state_files::refuse(&path)?;
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        std::fs::create_dir_all(dir)?;
        let alone = File::open(dir)?;
        rustix::fs::flock(&alone, rustix::fs::FlockOperation::LockExclusive)?;
        Ok(Self { path, _alone: alone })
    }

    /// What is in it; None when it is not there.
    pub(crate) fn text(&self) -> io::Result<Option<String>> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts a text into its place. One that was not there is its owner's alone.
    pub(crate) fn replace(&self, text: &str) -> io::Result<()> {
        let known = match std::fs::metadata(&self.path) {
            Ok(known) => Some(known),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}", std::process::id()));
        let copy = self.path.with_file_name(name);
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&copy);
        let written = opened.and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            if let Some(known) = known {
                let own = file.metadata()?;
                if (own.uid(), own.gid()) != (known.uid(), known.gid()) {
                    fchown(&file, Some(known.uid()), Some(known.gid()))?;
                }
                file.set_permissions(Permissions::from_mode(known.mode() & 0o7777))?;
            }
            file.sync_all()
        });
        written
            .and_then(|()| std::fs::rename(&copy, &self.path))
            .inspect_err(|_| drop(std::fs::remove_file(&copy)))
    }
}
