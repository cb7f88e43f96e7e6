//! Errors of files that say which file they are about: the system says only what is wrong.
//!
//! Kind and number of an error stay. Not here: what is decided by them.

use crate::session_files::SessionFileError;
use crate::session_files::fail_point::has_died;
use std::io;
use std::path::{Path, PathBuf};

/// A result, or an error, that can name its file.
pub(crate) trait Named {
    /// Names the file that the error is about, unless it has a name already.
    fn named(self, path: &Path) -> Self;
}

/// An error of a file. It has no source of its own: a chain of causes says each once.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", path.display())]
struct NamedError {
    path: PathBuf,
    error: io::Error,
}

impl Named for io::Error {
    fn named(self, path: &Path) -> Self {
        let is_named = self.get_ref().is_some_and(|inner| inner.is::<NamedError>());
        if is_named || has_died(&self) {
            return self;
        }
        Self::new(self.kind(), NamedError { path: path.to_owned(), error: self })
    }
}

impl Named for SessionFileError {
    fn named(self, path: &Path) -> Self {
        match self {
            Self::Io(error) => Self::Io(error.named(path)),
            // These say what is wrong in which segment.
            other => other,
        }
    }
}

impl<T, E: Named> Named for Result<T, E> {
    fn named(self, path: &Path) -> Self {
        self.map_err(|error| error.named(path))
    }
}

/// The number of an error of the system, named or not.
pub(crate) fn system_code(error: &io::Error) -> Option<i32> {
    let named = || error.get_ref()?.downcast_ref::<NamedError>()?.error.raw_os_error();
    error.raw_os_error().or_else(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.1: an error names its file once, the one that is nearest to it, and stays what it was
    #[test]
    fn a_file_is_named_once() {
        let code = rustix::io::Errno::ACCESS.raw_os_error();
        let error = io::Error::from_raw_os_error(code);
        let named = error.named(Path::new("/s/a")).named(Path::new("/s"));
        assert_eq!(named.to_string(), "/s/a: Permission denied (os error 13)");
        assert_eq!((named.kind(), system_code(&named)), (io::ErrorKind::PermissionDenied, Some(code)));
        let own = io::Error::other("said here").named(Path::new("/s"));
        assert_eq!((own.to_string().as_str(), system_code(&own)), ("/s: said here", None));
    }
}
