//! The state directory: what keeps a daemon from starting there, and what else is not well.

use super::path;
use crate::checks::{Check, finding, fine};
use crate::state_dir::NOT_OWNERS;
use crate::view::byte_count;
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

const ABOUT: &str = "state";
/// Below it a long session may fill the disk.
const LITTLE_ROOM: u64 = 256 << 20;
/// Below it sessions, each of which is a directory with a few files, may run out of inodes before the disk runs out of room.
const FEW_FILES: u64 = 100_000;
/// Below it nothing can begin: a daemon writes some small files when it starts.
const ROOM_TO_START: u64 = 64 << 10;

/// A state directory.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) place: Place,
    /// What is there and cannot be used.
    pub(crate) below: Vec<Below>,
    /// The magic number of its file system.
    pub(crate) file_system: Option<u32>,
    pub(crate) free_bytes: Option<u64>,
    /// What the log keeps for a start on a disk that is full.
    pub(crate) reserved_bytes: u64,
    /// Files that can be made; None where there is no such limit.
    pub(crate) free_files: Option<u64>,
}

#[derive(Debug)]
pub(crate) enum Place {
    There {
        owner: u32,
        mode: u32,
        user: u32,
        /// Why nothing can be written there, whatever its mode.
        refused: Option<Errno>,
    },
    NoDirectory,
    /// It is made when it is needed.
    Absent {
        can_be_made: bool,
    },
    Unknown(String),
}

/// Something in the state directory that this user cannot read and write, or that is something else.
#[derive(Debug)]
pub(crate) struct Below {
    pub(crate) path: PathBuf,
    pub(crate) why: Errno,
}

pub(crate) fn is_own(state: &State) -> bool {
    matches!(state.place, Place::There { owner, user, .. } if owner == user)
}

/// Whether it is as a daemon leaves it: a look by which sessions are read changes nothing then.
pub(crate) fn is_private(state: &State) -> bool {
    matches!(state.place, Place::There { mode, refused: None, .. } if mode & NOT_OWNERS == 0 && is_own(state))
}

/// What keeps a daemon from starting there.
pub(crate) fn hindrances(dir: &Path, state: &State) -> Vec<Check> {
    let (name, elsewhere) = (path(dir), "or another directory with --state-dir or path in [storage]");
    let wrong = match &state.place {
        Place::There { owner, user, .. } if owner != user => Some(finding(
            ABOUT,
            format!("{name} belongs to another user (uid {owner}, this is {user})"),
            format!("run acpd as its owner, chown -R {user} {name}, {elsewhere}"),
        )),
        Place::There { refused: Some(why), .. } => Some(unwritable(dir, *why, elsewhere)),
        Place::NoDirectory => {
            Some(finding(ABOUT, format!("{name} is no directory"), format!("move it away, {elsewhere}")))
        }
        Place::Absent { can_be_made: false } => Some(finding(
            ABOUT,
            format!("{name} cannot be made"),
            format!("mkdir it for this user, {elsewhere}"),
        )),
        Place::Unknown(error) => Some(finding(
            ABOUT,
            format!("cannot look at {name}: {error}"),
            format!("let this user in, {elsewhere}"),
        )),
        Place::There { .. } | Place::Absent { .. } => None,
    };
    // What the directory itself refuses, all in it does.
    let is_open = wrong.is_none();
    let below =
        state.below.iter().filter(|_| is_open).map(|below| unwritable(&below.path, below.why, elsewhere));
    let files = state.free_files.filter(|free| *free == 0).map(|_| {
        finding(
            ABOUT,
            format!("no file can be made on the disk of {name}: it has no inode left"),
            format!("remove files there, {elsewhere}"),
        )
    });
    let room = state.free_bytes.filter(|free| !is_enough(*free, state));
    let room = room.map(|free| {
        finding(
            ABOUT,
            format!("{} are free on the disk of {name}: nothing can begin there", byte_count(free)),
            format!("free some, {elsewhere}"),
        )
    });
    wrong.into_iter().chain(below).chain(files).chain(room).collect()
}

fn is_enough(free: u64, state: &State) -> bool {
    free.saturating_add(state.reserved_bytes) >= ROOM_TO_START
}

fn unwritable(what: &Path, why: Errno, elsewhere: &str) -> Check {
    let name = path(what);
    let remedy = match why {
        Errno::ROFS => format!("remount its file system writable, {elsewhere}"),
        Errno::ACCESS | Errno::PERM => format!("chmod u+rwX {name}, as its owner or root"),
        _ => format!("move it away, {elsewhere}"),
    };
    finding(ABOUT, format!("{name} cannot be written: {}", io::Error::from(why)), remedy)
}

/// The same, with what is not well beside.
pub(crate) fn state(dir: &Path, state: &State) -> Vec<Check> {
    let mut checks = hindrances(dir, state);
    let name = path(dir);
    if let Place::There { owner, mode, user, .. } = state.place
        && owner == user
    {
        let chmod = || format!("chmod 700 {name}");
        if mode & NOT_OWNERS != 0 {
            checks.push(finding(ABOUT, format!("{name} is open to others (mode {mode:04o})"), chmod()));
        } else if mode & 0o700 != 0o700 {
            checks.retain(|check| !check.says.starts_with(&format!("{name} cannot be written")));
            checks.push(finding(
                ABOUT,
                format!("{name} cannot be used by its owner (mode {mode:04o})"),
                chmod(),
            ));
        }
    }
    let network = state.file_system.and_then(network_name).map(|kind| {
        finding(
            ABOUT,
            format!("{name} is on {kind}, which locks and shares memory badly"),
            "use a local disk, or another directory with --state-dir or path in [storage]",
        )
    });
    let full = state.free_bytes.filter(|free| is_enough(*free, state) && *free < LITTLE_ROOM).map(|free| {
        finding(
            ABOUT,
            format!("{} are free on the disk of {name}", byte_count(free)),
            "free some; acpd sessions delete ID gives back what a session took",
        )
    });
    let few = state.free_files.filter(|free| (1..FEW_FILES).contains(free)).map(|free| {
        finding(
            ABOUT,
            format!("{free} files can be made on the disk of {name}, and each session is some"),
            "remove files there, or use a disk with more inodes; acpd sessions prune removes old sessions",
        )
    });
    checks.extend([network, full, few].into_iter().flatten());
    if checks.is_empty() {
        let free = state.free_bytes.map(|free| format!(", {} free", byte_count(free))).unwrap_or_default();
        let made = if matches!(state.place, Place::Absent { .. }) { ", made at the first use" } else { "" };
        checks.push(fine(ABOUT, format!("{name}{made}{free}")));
    }
    checks
}

/// File systems on which SQLite's locks and shared memory are not to be trusted.
fn network_name(magic: u32) -> Option<&'static str> {
    match magic {
        0x6969 => Some("NFS"),
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => Some("SMB"),
        0x0102_1997 => Some("9P"),
        0x5346_414f => Some("AFS"),
        0x00c3_6400 => Some("Ceph"),
        _ => None,
    }
}
