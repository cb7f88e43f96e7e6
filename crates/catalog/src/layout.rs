//! What lies in the directory of installed agents, `agents/` in the state directory: `NAME/VERSION`, a directory each, and
//! `.staging`, in which new ones are put together and old ones taken apart.
//!
//! Invariants: one process at a time changes it, by a lock on the directory itself; a version gets and loses its name in one
//! step, so that it is there as a whole or not at all, whatever kills the process; what such a process left in `.staging` is
//! removed by the next one. When nothing is installed, nothing is left. Not here: what a version consists of.

use crate::name::{AgentName, Version};
use crate::receipt::Receipt;
use rustix::fs::{FlockOperation, RenameFlags, flock, renameat_with};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

const STAGING: &str = ".staging";

/// The directory of installed agents.
#[derive(Debug, Clone)]
pub struct AgentsDir(PathBuf);

impl AgentsDir {
    /// That of a state directory; it need not be there.
    pub fn of(state_dir: &Path) -> Self {
        // By its real name: an entry of a configuration has whole paths.
        let state_dir = std::fs::canonicalize(state_dir).unwrap_or_else(|_| state_dir.to_owned());
        Self(state_dir.join("agents"))
    }

    /// Where a version of an agent lies, or would.
    pub fn version(&self, name: &AgentName, version: &Version) -> PathBuf {
        self.agent(name).join(version.as_str())
    }

    /// Where the versions of an agent lie, or would.
    pub fn agent(&self, name: &AgentName) -> PathBuf {
        self.0.join(name.as_str())
    }

    /// Its installed versions, the newest first.
    pub fn installed(&self, name: &AgentName) -> Vec<Receipt> {
        let dirs = std::fs::read_dir(self.agent(name)).into_iter().flatten().flatten();
        let mut receipts: Vec<Receipt> = dirs.filter_map(|dir| Receipt::read(&dir.path())).collect();
        receipts.retain(|receipt| receipt.name == *name);
        receipts.sort_by(|one, other| other.version.order(&one.version));
        receipts
    }

    /// The agents that something is installed of.
    pub fn agents(&self) -> Vec<AgentName> {
        let dirs = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
        let names = dirs.filter_map(|dir| AgentName::try_from(dir.file_name().into_string().ok()?).ok());
        let mut names: Vec<AgentName> = names.collect();
        names.sort();
        names
    }

    /// The version whose directory a program lies in.
    pub fn version_of(&self, name: &AgentName, program: &Path) -> Option<Version> {
        let below = program.strip_prefix(self.agent(name)).ok()?;
        let version = below.components().next()?.as_os_str().to_str()?.to_owned();
        Version::try_from(version).ok()
    }

    /// Has it for this process alone, if no other one has it.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn try_lock(&self) -> io::Result<Option<Locked>> {
        self.lock_by(FlockOperation::NonBlockingLockExclusive)
    }

    /// Waits until it is for this process alone.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn lock(&self) -> io::Result<Locked> {
        loop {
            if let Some(locked) = self.lock_by(FlockOperation::LockExclusive)? {
                return Ok(locked);
            }
        }
    }

    fn lock_by(&self, how: FlockOperation) -> io::Result<Option<Locked>> {
        private(&self.0)?;
        let dir = match File::open(&self.0) {
            Ok(dir) => dir,
            // Another process has just left it, empty.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match flock(&dir, how) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        // It is still the one of this name.
        let held = dir.metadata()?;
        match std::fs::metadata(&self.0) {
            Ok(named) if (named.dev(), named.ino()) == (held.dev(), held.ino()) => {
                Ok(Some(Locked { agents: self.clone(), _alone: dir }))
            }
            _ => Ok(None),
        }
    }
}

/// A directory that only this user can use.
fn private(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// The directory, while no other process changes it.
#[derive(Debug)]
pub struct Locked {
    agents: AgentsDir,
    _alone: File,
}

/// A directory in which a version is put together. It is gone with this, unless it was published.
#[derive(Debug)]
pub struct Staging(PathBuf);

impl Staging {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // The next process tries again.
        let _left = std::fs::remove_dir_all(&self.0);
    }
}

impl Locked {
    /// Which it is.
    pub fn agents(&self) -> &AgentsDir {
        &self.agents
    }

    fn staging_dir(&self) -> PathBuf {
        self.agents.0.join(STAGING)
    }

    /// An empty directory, after removing what others left.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn staging(&self) -> io::Result<Staging> {
        let all = self.staging_dir();
        match std::fs::remove_dir_all(&all) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        private(&all)?;
        // What a process that was just killed still writes into the one before is not in this one.
        let nanos = std::fs::metadata(&all)?.ctime_nsec();
        let own = all.join(format!("{}-{nanos}", std::process::id()));
        private(&own)?;
        Ok(Staging(own))
    }

    /// Gives a version its name. One that has the name already is kept aside, in the same step where the system can. What
    /// comes of it is taken back when it is dropped, unless it is [confirmed](Published::confirm).
    ///
    /// # Errors
    /// What the operating system says.
    pub fn publish<'a>(
        &'a self,
        staging: Staging,
        name: &AgentName,
        version: &Version,
    ) -> io::Result<Published<'a>> {
        let place = self.agents.version(name, version);
        private(&self.agents.agent(name))?;
        let before = place.symlink_metadata().is_ok();
        if before {
            swap(staging.path(), &place)?;
        } else {
            std::fs::rename(staging.path(), &place)?;
        }
        Ok(Published { locked: self, place, before: before.then_some(staging), is_confirmed: false })
    }

    /// Removes a version.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn remove(&self, name: &AgentName, version: &Version) -> io::Result<()> {
        self.take_away(&self.agents.version(name, version))
    }

    /// Removes all of an agent.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn remove_agent(&self, name: &AgentName) -> io::Result<()> {
        self.take_away(&self.agents.agent(name))
    }

    fn take_away(&self, dir: &Path) -> io::Result<()> {
        if dir.symlink_metadata().is_err() {
            return Ok(());
        }
        private(&self.staging_dir())?;
        let nanos = std::fs::symlink_metadata(dir)?.ctime_nsec();
        let gone = self.staging_dir().join(format!("gone-{}-{nanos}", std::process::id()));
        std::fs::rename(dir, &gone)?;
        std::fs::remove_dir_all(&gone)
    }
}

/// A version that has its name, for now.
#[derive(Debug)]
pub struct Published<'a> {
    locked: &'a Locked,
    place: PathBuf,
    /// What had the name before.
    before: Option<Staging>,
    is_confirmed: bool,
}

impl Published<'_> {
    /// Where it is.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// It stays, and what had the name before goes.
    pub fn confirm(mut self) {
        self.is_confirmed = true;
    }
}

impl Drop for Published<'_> {
    fn drop(&mut self) {
        if self.is_confirmed {
            return;
        }
        let taken_back = match &self.before {
            // What is in its place is gone with the staging directory.
            Some(before) => swap(before.path(), &self.place),
            None => self.locked.take_away(&self.place),
        };
        // There is nothing to do about a file system that does not let go.
        let _left = taken_back;
    }
}

/// Two directories change their names.
fn swap(one: &Path, other: &Path) -> io::Result<()> {
    let here = rustix::fs::CWD;
    if renameat_with(here, one, here, other, RenameFlags::EXCHANGE).is_ok() {
        return Ok(());
    }
    // A system without that. Between the last two steps a kill leaves the second without its name.
    let aside = one.with_extension("aside");
    std::fs::rename(one, &aside)?;
    std::fs::rename(other, one)?;
    std::fs::rename(&aside, other)
}

impl Drop for Locked {
    fn drop(&mut self) {
        // What is not empty stays.
        let _used = std::fs::remove_dir(self.staging_dir());
        for name in self.agents.agents() {
            let _used = std::fs::remove_dir(self.agents.agent(&name));
        }
        let _used = std::fs::remove_dir(&self.agents.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word<T: TryFrom<String>>(text: &str) -> T {
        T::try_from(text.to_owned()).ok().expect("it has the form")
    }

    // issue 14: either not there or whole; what a killed process left is removed by the next
    #[test]
    fn a_version_is_there_as_a_whole_or_not_at_all() {
        let state = tempfile::tempdir().expect("a directory");
        let agents = AgentsDir::of(state.path());
        let (name, version): (AgentName, Version) = (word("x"), word("1.0"));
        let left = state.path().join("agents/.staging/7-7/node_modules");
        std::fs::create_dir_all(&left).expect("what another left");
        let locked = agents.lock().expect("it can be had");
        assert!(agents.try_lock().expect("it is there").is_none(), "it is for one at a time");
        let staging = locked.staging().expect("a directory");
        assert!(!left.exists(), "what another left is gone");
        std::fs::write(staging.path().join("a"), "one").expect("a file");
        let published = locked.publish(staging, &name, &version).expect("it gets its name");
        let place = published.place().to_owned();
        let content = || std::fs::read_to_string(place.join("a")).expect("a file");
        assert_eq!(content(), "one");
        published.confirm();
        for (confirms, then) in [(false, "one"), (true, "two")] {
            let again = locked.staging().expect("a directory");
            std::fs::write(again.path().join("a"), "two").expect("a file");
            let published = locked.publish(again, &name, &version).expect("it takes the place");
            assert_eq!(content(), "two");
            if confirms {
                published.confirm();
            } else {
                drop(published);
            }
            assert_eq!(content(), then);
        }
        let other: Version = word("2.0");
        drop(
            locked.publish(locked.staging().expect("a directory"), &name, &other).expect("it gets its name"),
        );
        assert!(!agents.version(&name, &other).exists(), "it is taken back");
        assert_eq!(agents.version_of(&name, &place.join("bin/x")), Some(version.clone()));
        assert_eq!(agents.version_of(&name, Path::new("/bin/x")), None);
        drop(locked);
        let names = || std::fs::read_dir(state.path().join("agents")).expect("it is there").flatten();
        assert_eq!(names().map(|entry| entry.file_name()).collect::<Vec<_>>(), ["x"]);
        let locked = agents.lock().expect("it can be had");
        drop(locked.staging().expect("a directory"));
        locked.remove(&name, &version).expect("it goes");
        drop(locked);
        assert!(!state.path().join("agents").exists(), "where nothing is installed nothing is left");
    }
}
