//! What a node is over its restarts: an id of its state directory, and whether it takes new sessions. Two small files there.

use acpd_fleet::NodeId;
use acpd_host::fresh_id;
use acpd_supervisor::read_regular;
use std::io;
use std::path::{Path, PathBuf};

const ID: &str = "node-id";
/// The longest file of an id that is read, in bytes.
const ID_BYTES: u64 = 4096;
/// It is there while the node takes no new sessions.
const DRAINING: &str = "draining";

/// The file of the id.
pub(super) fn id_file(state_dir: &Path) -> PathBuf {
    state_dir.join(ID)
}

/// The file that says that the node takes no new sessions.
pub(super) fn draining_file(state_dir: &Path) -> PathBuf {
    state_dir.join(DRAINING)
}

/// The id of the node of a state directory; a new one where it has none.
pub(super) fn node_id(state_dir: &Path) -> io::Result<NodeId> {
    let file = id_file(state_dir);
    let read = read_regular(&file, ID_BYTES);
    match read.and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other)) {
        Ok(id) if !id.trim().is_empty() => return Ok(NodeId(id.trim().to_owned())),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        // One that was not written to its end is of no node.
        _ => {}
    }
    let id = fresh_id();
    let new = file.with_extension("new");
    std::fs::write(&new, format!("{id}\n"))?;
    std::fs::rename(&new, &file)?;
    Ok(NodeId(id))
}

/// Whether the node takes no new sessions.
pub(super) fn drains(state_dir: &Path) -> bool {
    draining_file(state_dir).exists()
}

/// Keeps whether it does.
pub(super) fn keep_draining(state_dir: &Path, drains: bool) -> io::Result<()> {
    let file = draining_file(state_dir);
    if drains {
        return std::fs::write(file, "");
    }
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // design fleet: a node is the same after a restart, with what it was told
    #[test]
    fn a_node_is_the_same_after_a_restart() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let first = node_id(dir.path()).expect("it is writable");
        assert_eq!(node_id(dir.path()).expect("it is readable"), first);
        std::fs::write(dir.path().join(ID), "").expect("it is writable");
        assert_ne!(node_id(dir.path()).expect("it is writable"), first, "half a file is none");
        assert!(!drains(dir.path()));
        for wanted in [true, true, false, false] {
            keep_draining(dir.path(), wanted).expect("it is writable");
            assert_eq!(drains(dir.path()), wanted);
        }
    }
}
