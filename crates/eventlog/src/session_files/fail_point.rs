//! Places at which a test has a process die.

use std::io;

/// A place between two steps of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailPoint {
    /// A claim is announced, and nothing of it written.
    Announced,
    /// A segment has its header alone.
    HalfWritten,
    /// A segment is whole and has no name yet.
    Written,
    /// A segment has its name, and the one aside too.
    Linked,
    /// A session is claimed by its removal, and all of it is there.
    Doomed,
    /// A file of it is gone, or one that was sealed.
    Unlinked,
    /// A part of a seal is written.
    HalfSealed,
    /// A seal is whole and has no name yet.
    Sealed,
    /// A seal has its name, and what it replaces is there, too.
    Renamed,
    /// A session is claimed by its renaming, and its directory has the name it had.
    Moving,
    /// Its directory has the new name, and it is not released.
    Moved,
    /// It cannot have the new id, and its last segment says that it has.
    Refused,
    /// A session of a database is copied, and that is not noted.
    Copied,
    /// Some are, and it is.
    Noted,
    /// All are, and are on the disk.
    Prepared,
    /// The copy of the database has another place, which does not count yet.
    Settled,
    /// The database has two names.
    Kept,
    /// The files are the log, and not in their places.
    Marked,
    /// A part of them is.
    Placed,
}

#[cfg(not(test))]
pub(crate) fn reach(_: FailPoint) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
thread_local! {
    static FAILS_AT: std::cell::Cell<Option<(FailPoint, Option<io::ErrorKind>)>> = const { std::cell::Cell::new(None) };
}

/// An error at the place where the test has this thread die: nothing is done behind it that a process that died would not do.
/// Or the error that the test has there.
#[cfg(test)]
pub(crate) fn reach(point: FailPoint) -> io::Result<()> {
    match FAILS_AT.get() {
        Some((at, kind)) if at == point => Err(kind.map_or_else(|| io::Error::other(Died), io::Error::from)),
        _ => Ok(()),
    }
}

/// What a change ends with that a test has cut off.
#[cfg(test)]
#[derive(Debug, thiserror::Error)]
#[error("it died")]
pub(crate) struct Died;

/// Whether an error is a death. What is done about other errors, a process that died does not do.
#[cfg(not(test))]
pub(crate) fn has_died(_: &io::Error) -> bool {
    false
}

#[cfg(test)]
pub(crate) fn has_died(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Died>())
}

/// Has this thread die at a place in all that `act` does.
#[cfg(test)]
pub(crate) fn dying_at<T>(point: FailPoint, act: impl FnOnce() -> T) -> T {
    with_fault((point, None), act)
}

/// Has `act` fail at a place.
#[cfg(test)]
pub(crate) fn failing_at<T>(point: FailPoint, kind: io::ErrorKind, act: impl FnOnce() -> T) -> T {
    with_fault((point, Some(kind)), act)
}

#[cfg(test)]
fn with_fault<T>(fault: (FailPoint, Option<io::ErrorKind>), act: impl FnOnce() -> T) -> T {
    FAILS_AT.set(Some(fault));
    let result = act();
    FAILS_AT.set(None);
    result
}
