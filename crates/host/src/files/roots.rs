//! The directories of a session, and where in them a path leads.
//!
//! Each root is opened once and used by its handle. [`Roots::resolve`] follows links by reading them, one by one, and
//! says in which root and under which name below it a path ends; only names below a root are ever looked up, so a link
//! that leads out is refused before anything is seen of where it leads. Its answer is advice, not protection: links
//! may change right after it. The protection is that every use goes through the root's handle, beneath which the
//! kernel (or the library, where the kernel cannot) keeps each lookup.

use super::FileError;
use acpd_eventlog::log_files;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Links that are followed on the way to one file; what Linux allows.
const LINKS: usize = 40;

/// A session's directories.
#[derive(Debug, Default)]
pub(super) struct Roots(Vec<Root>);

#[derive(Debug)]
struct Root {
    dir: Dir,
    /// Without links in it.
    real: Vec<OsString>,
    /// As the session named it.
    given: Vec<OsString>,
    /// It was put into acpd's state directory on purpose, such as a project that lies there.
    in_state_directory: bool,
}

/// Where a path ends.
#[derive(Debug)]
pub(super) struct ResolvedPath<'a> {
    /// In this directory.
    pub(super) root: &'a Dir,
    /// That one lies in acpd's state directory.
    pub(super) in_state_directory: bool,
    /// Under this name below it, without links when it was looked at; `.` for the root itself. It need not exist. It
    /// ends with a slash if the path said that it is a directory.
    pub(super) below: PathBuf,
}

/// A part of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Up,
    Down(OsString),
}

/// How far a path has been followed.
enum Step {
    /// To its end.
    There(PathBuf),
    /// Out of this root, to an absolute path that may be in another, or in this one again.
    Elsewhere(VecDeque<Part>),
}

impl Roots {
    /// Opens the directories. One that cannot be opened is left out, for good: what is put in its place later may be
    /// anything.
    pub(super) fn open(directories: &[PathBuf]) -> Self {
        let open = |path: &PathBuf| match Root::open(path) {
            Ok(root) => Some(root),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a directory of the session cannot be opened; no file in it is served");
                None
            }
        };
        Self(directories.iter().filter_map(open).collect())
    }

    /// All files there are.
    pub(super) fn everything() -> Self {
        Self::open(&[PathBuf::from("/")])
    }

    /// Follows an absolute path.
    ///
    /// # Errors
    /// [`FileError::Outside`] when it leads out of the roots, [`FileError::Links`], [`FileError::Denied`] and
    /// [`FileError::Failed`] when the way cannot be followed.
    pub(super) fn resolve(&self, path: &str) -> Result<ResolvedPath<'_>, FileError> {
        let outside = || FileError::Outside(path.to_owned());
        let mut links = LINKS;
        let mut todo = parts(Path::new(path));
        loop {
            let (root, rest) = match self.enter(&todo) {
                Some(entered) => entered,
                None => self.enter_by_another_name(&todo).ok_or_else(outside)?,
            };
            match root.follow(rest, &mut links).map_err(|error| FileError::of_io(path, error))? {
                Step::There(mut below) => {
                    if path.ends_with('/') || path.ends_with("/.") {
                        below.push("");
                    }
                    let in_state_directory = root.in_state_directory;
                    return Ok(ResolvedPath { root: &root.dir, in_state_directory, below });
                }
                Step::Elsewhere(path) => todo = path,
            }
        }
    }

    /// The innermost root that an absolute path names, and what is left of the path. `..` outside the roots is taken by
    /// the name: nothing there is looked at.
    fn enter(&self, path: &VecDeque<Part>) -> Option<(&Root, VecDeque<Part>)> {
        let mut at: Vec<&OsString> = Vec::new();
        let mut entered = self.named(&at).map(|root| (root, 0));
        for (index, part) in path.iter().enumerate() {
            match part {
                // Inside, what `..` means depends on links.
                Part::Up if entered.is_some() => break,
                Part::Up => drop(at.pop()),
                Part::Down(name) => at.push(name),
            }
            entered = self.named(&at).map(|root| (root, index + 1)).or(entered);
        }
        entered.map(|(root, used)| (root, path.iter().skip(used).cloned().collect()))
    }

    fn named(&self, at: &[&OsString]) -> Option<&Root> {
        let is = |name: &[OsString]| name.iter().eq(at.iter().copied());
        self.0.iter().find(|root| is(&root.real) || is(&root.given))
    }

    /// A path whose name is in no root may still be another name of one, through a link outside. An agent learns
    /// nothing of it unless it is.
    fn enter_by_another_name(&self, path: &VecDeque<Part>) -> Option<(&Root, VecDeque<Part>)> {
        let mut names: Vec<&OsString> = Vec::new();
        for part in path {
            match part {
                Part::Up => drop(names.pop()),
                Part::Down(name) => names.push(name),
            }
        }
        let full: PathBuf = std::iter::once(Path::new("/")).chain(names.iter().map(Path::new)).collect();
        let (real, there) = full.ancestors().find_map(|known| Some((known.canonicalize().ok()?, known)))?;
        let missing = full.strip_prefix(there).ok()?;
        self.enter(&parts(&real.join(missing)))
    }
}

impl Root {
    fn open(path: &Path) -> io::Result<Self> {
        let dir = Dir::open_ambient_dir(path, ambient_authority())?;
        let whole = path.canonicalize()?;
        let real = names(&parts(&whole));
        let in_state_directory =
            log_files::is_in_log_directory(&whole) && !log_files::is_among_sessions(&whole);
        // With `..` in it, a name says nothing without a look at the disk.
        let given = Some(parts(path)).filter(|given| !given.contains(&Part::Up));
        let given = given.as_ref().map_or_else(|| real.clone(), names);
        Ok(Self { dir, given, real, in_state_directory })
    }

    /// Follows what is left of a path below this root.
    fn follow(&self, mut rest: VecDeque<Part>, links: &mut usize) -> io::Result<Step> {
        let mut below: Vec<OsString> = Vec::new();
        // From this depth on nothing exists, so nothing can be a link.
        let mut missing = usize::MAX;
        while let Some(part) = rest.pop_front() {
            let Part::Down(name) = part else {
                if below.pop().is_none() && !self.real.is_empty() {
                    count(links)?;
                    let up = self.real.iter().take(self.real.len() - 1).cloned().map(Part::Down);
                    return Ok(Step::Elsewhere(up.chain(rest).collect()));
                }
                continue;
            };
            below.push(name);
            if below.len() > missing {
                continue;
            }
            missing = usize::MAX;
            match self.dir.read_link_contents(below.iter().collect::<PathBuf>()) {
                Ok(target) => {
                    count(links)?;
                    below.pop();
                    let target_parts = parts(&target);
                    rest = target_parts.into_iter().chain(rest).collect();
                    if target.is_absolute() {
                        return Ok(Step::Elsewhere(rest));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
                {
                    missing = below.len();
                }
                Err(error) => return Err(error),
            }
        }
        let there: PathBuf = below.iter().collect();
        Ok(Step::There(if below.is_empty() { PathBuf::from(".") } else { there }))
    }
}

/// One link more.
fn count(links: &mut usize) -> io::Result<()> {
    *links = links.checked_sub(1).ok_or(rustix::io::Errno::LOOP)?;
    Ok(())
}

fn parts(path: &Path) -> VecDeque<Part> {
    let part = |component| match component {
        Component::Normal(name) => Some(Part::Down(name.to_owned())),
        Component::ParentDir => Some(Part::Up),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(part).collect()
}

fn names(path: &VecDeque<Part>) -> Vec<OsString> {
    path.iter()
        .filter_map(|part| match part {
            Part::Down(name) => Some(name.clone()),
            Part::Up => None,
        })
        .collect()
}
