//! Files whose writes a test holds up for as long as it likes, on whatever thread they are, and ends as it says.

use parking_lot::{Condvar, Mutex};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;

/// Device and number of a file.
type FileId = (u64, u64);

static HELD: Mutex<BTreeMap<FileId, Arc<Held>>> = Mutex::new(BTreeMap::new());

/// What becomes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Stands,
    Goes,
    Fails(Errno),
}

#[derive(Debug)]
struct Held {
    fate: Mutex<Fate>,
    decided: Condvar,
    /// How many writes have come.
    arrived: watch::Sender<usize>,
}

/// A file whose writes are held up until this says otherwise, or is dropped.
#[derive(Debug)]
pub(crate) struct HeldFile {
    file: FileId,
    held: Arc<Held>,
}

impl HeldFile {
    /// Has the writes to a file stand still.
    pub(crate) fn at(path: &Path) -> Self {
        let found = std::fs::metadata(path).expect("the file is there");
        let (file, arrived) = ((found.dev(), found.ino()), watch::Sender::new(0));
        let held = Arc::new(Held { fate: Mutex::new(Fate::Stands), decided: Condvar::new(), arrived });
        HELD.lock().insert(file, Arc::clone(&held));
        Self { file, held }
    }

    /// Decides what becomes of the writes that stand still, and of all later ones.
    pub(crate) fn decide(&self, fate: Fate) {
        *self.held.fate.lock() = fate;
        self.held.decided.notify_all();
    }

    /// Waits until so many writes have come, with those that were before.
    pub(crate) async fn arrived(&self, count: usize) {
        let mut arrived = self.held.arrived.subscribe();
        arrived.wait_for(|arrived| *arrived >= count).await.expect("its sender is here");
    }
}

impl Drop for HeldFile {
    fn drop(&mut self) {
        HELD.lock().remove(&self.file);
        self.decide(Fate::Goes);
    }
}

/// Meets its fate before a write to a file.
pub(super) fn meet(file: &File) -> io::Result<()> {
    let found = file.metadata()?;
    let Some(held) = HELD.lock().get(&(found.dev(), found.ino())).cloned() else { return Ok(()) };
    held.arrived.send_modify(|arrived| *arrived += 1);
    let mut fate = held.fate.lock();
    held.decided.wait_while(&mut fate, |fate| *fate == Fate::Stands);
    match *fate {
        Fate::Fails(error) => Err(error.into()),
        Fate::Stands | Fate::Goes => Ok(()),
    }
}
