//! The viewers of a session and what each can be asked; all that the session knows of them.
//!
//! A viewer is listed as long as its guard lives. The session looks when it has a question that not every
//! client understands, and when the only viewer that was asked has left.

use acpd_record::ConnectionId;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::Notify;

/// What a viewer can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewerInfo {
    /// Its connection; no two connections have the same.
    pub connection: ConnectionId,
    /// It may answer what every client understands.
    pub answers: bool,
    /// It can fill in forms (ACP page "elicitation", mode `form`).
    pub forms: bool,
    /// It can open a URL (mode `url`).
    pub urls: bool,
    /// It reads files for agents, unsaved ones too.
    pub reads: bool,
    /// It writes files for agents.
    pub writes: bool,
}

/// The viewers of one session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Viewers {
    table: Arc<Mutex<Table>>,
    left: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    listed: Vec<(u64, ViewerInfo)>,
    /// Those that leave come back to the next host.
    are_kept: bool,
}

/// Keeps a viewer in the list until it is dropped.
#[derive(Debug)]
pub struct ViewerGuard {
    number: u64,
    viewers: Viewers,
}

impl Viewers {
    /// Lists a viewer.
    pub(crate) fn add(&self, viewer: ViewerInfo) -> ViewerGuard {
        let mut table = self.table.lock();
        table.next += 1;
        let number = table.next;
        table.listed.push((number, viewer));
        ViewerGuard { number, viewers: self.clone() }
    }

    /// From now on none has left: those that go come back to the next host of the session.
    pub(crate) fn keep(&self) {
        self.table.lock().are_kept = true;
    }

    /// Whether `can` is true of a viewer.
    pub(crate) fn any(&self, can: impl Fn(&ViewerInfo) -> bool) -> bool {
        self.table.lock().listed.iter().any(|(_, viewer)| can(viewer))
    }

    /// A viewer of which `can` is true: on the connection `first`, if that is there, or else the one that came first.
    pub(crate) fn one(
        &self,
        first: Option<&ConnectionId>,
        can: impl Fn(&ViewerInfo) -> bool,
    ) -> Option<ConnectionId> {
        let table = self.table.lock();
        let able = || table.listed.iter().map(|(_, viewer)| viewer).filter(|viewer| can(viewer));
        let found = able().find(|viewer| Some(&viewer.connection) == first).or_else(|| able().next());
        found.map(|viewer| viewer.connection.clone())
    }

    /// Whether a connection is listed.
    pub(crate) fn has(&self, connection: &ConnectionId) -> bool {
        self.any(|viewer| viewer.connection == *connection)
    }

    /// Waits until a viewer has left since this was awaited last.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn viewer_left(&self) {
        self.left.notified().await;
    }
}

impl Drop for ViewerGuard {
    fn drop(&mut self) {
        let mut table = self.viewers.table.lock();
        if table.are_kept {
            return;
        }
        table.listed.retain(|(number, _)| *number != self.number);
        drop(table);
        self.viewers.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn viewer(connection: &str, urls: bool) -> ViewerInfo {
        ViewerInfo {
            connection: connection.into(),
            answers: true,
            forms: false,
            urls,
            reads: false,
            writes: false,
        }
    }

    // PE-5: url mode is for one client, the prompter if it can
    #[test]
    fn one_is_chosen_but_none_that_left() {
        let viewers = Viewers::default();
        let first = |viewers: &Viewers, id: &str| {
            let found = viewers.one(Some(&id.into()), |viewer| viewer.urls);
            found.map(|id| id.as_str().to_owned())
        };
        assert_eq!(viewers.one(None, |_| true), None);
        let a = viewers.add(viewer("a", false));
        let b = viewers.add(viewer("b", true));
        let _c = viewers.add(viewer("c", true));
        assert!(viewers.any(|viewer| viewer.urls) && !viewers.any(|viewer| viewer.forms));
        assert_eq!(first(&viewers, "a").as_deref(), Some("b"));
        assert_eq!(first(&viewers, "c").as_deref(), Some("c"));
        drop((a, b));
        assert_eq!(first(&viewers, "a").as_deref(), Some("c"));
    }

    // contract 7.3: a question is not taken for unheard because its client was sent to the next daemon
    #[test]
    fn a_viewer_that_is_kept_does_not_leave() {
        let viewers = Viewers::default();
        let a = viewers.add(viewer("a", true));
        viewers.keep();
        drop(a);
        assert!(viewers.has(&"a".into()));
    }
}
