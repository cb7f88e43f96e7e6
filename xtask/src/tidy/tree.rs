//! The files that the checks look at: every text file that git tracks or would track.
//!
//! Invariant: paths are relative to the top of the repository, with `/`. Not here: binary files, ignored files.

use crate::run;
use anyhow::{Context, Result};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// All text files of the repository.
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
}

/// One text file.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) executable: bool,
}

impl Tree {
    pub(crate) fn load(root: &Path) -> Result<Self> {
        // git lists the files, so that build output and scratch files are left out.
        let listing = run::answer(run::line("git ls-files -z --cached --others --exclude-standard", root))
            .context("`git ls-files` failed in this directory; a git checkout is needed")?;
        let mut paths: Vec<&str> = listing.split('\0').filter(|path| !path.is_empty()).collect();
        paths.sort_unstable();
        paths.dedup();
        let mut files = Vec::new();
        for path in paths {
            let bytes = match std::fs::read(root.join(path)) {
                Ok(bytes) => bytes,
                // Deleted and not yet committed, or the directory of a nested checkout.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::IsADirectory) =>
                {
                    continue;
                }
                Err(error) => return Err(error).context(path.to_owned()),
            };
            let mode = std::fs::metadata(root.join(path))?.permissions().mode();
            if let Some(text) = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')) {
                files.push(File { path: path.to_owned(), text, executable: mode & 0o111 != 0 });
            }
        }
        Ok(Self { files })
    }

    /// A tree made of paths and texts.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| File {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
            executable: false,
        };
        Self { files: files.iter().map(file).collect() }
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(crate) fn rust_files(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    /// The directories `crates/NAME` that hold a crate: their NAMEs.
    pub(crate) fn crate_dirs(&self) -> impl Iterator<Item = &str> {
        self.files.iter().filter_map(|file| file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_files_are_read_ignored_and_binary_ones_are_not() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let write =
            |name: &str, bytes: &[u8]| std::fs::write(root.path().join(name), bytes).expect("writable");
        assert!(run::answer(run::line("git init --quiet", root.path())).is_some());
        write(".gitignore", b"scratch\n");
        write("scratch", b"x");
        write("kept", b"x");
        write("binary", b"x\0y");
        let tree = Tree::load(root.path()).expect("a git checkout");
        let paths: Vec<&str> = tree.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, [".gitignore", "kept"]);
    }
}
