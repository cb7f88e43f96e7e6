//! A small file system where the state of a scratch is, for tests of what a disk does when it has no more.

use crate::Scratch;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Until it is dropped.
pub struct Volume {
    at: PathBuf,
    unmount: Command,
}

impl Volume {
    /// With these options of a tmpfs; None where this user may not mount.
    ///
    /// # Panics
    /// When the state directory is there already.
    pub fn mount(scratch: &Scratch, options: &str) -> Option<Self> {
        let at = scratch.state();
        std::fs::create_dir(&at).expect("a directory");
        let mut mount = scratch.command("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&at).stderr(Stdio::null());
        let mut unmount = scratch.command("umount");
        unmount.arg("-l").arg(&at);
        let is_mounted = mount.status().is_ok_and(|status| status.success());
        is_mounted.then_some(Self { at, unmount })
    }

    /// With other options from now on.
    ///
    /// # Panics
    /// When the system refuses them.
    pub fn remount(&self, scratch: &Scratch, options: &str) {
        let status = scratch.command("mount").args(["-o", options]).arg(&self.at).status();
        assert!(status.is_ok_and(|status| status.success()), "it was mounted");
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.at
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        let _left_to_the_system = self.unmount.status();
    }
}
