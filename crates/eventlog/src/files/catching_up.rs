//! What the index lacks when a log is opened: it may be new, or have been written by others than who changed the sessions.

use super::live_segment::now;
use super::owning::Found;
use super::{Files, IndexRow, index};
use crate::failure::WriteError;
use crate::live::LiveSessions;
use crate::session_files::{CatchUp, CatchUpPiece, Claims, FoundSession, IndexedSession};
use rusqlite::Connection;
use std::collections::HashSet;

impl Files {
    /// Compares the index with the sessions that there are. A new one is filled at once, and a few are looked at: lists are told from
    /// it. None: all is well, or it could not be compared, which is said.
    pub(crate) fn catch_up(&self, connection: &mut Connection) -> Option<CatchUp> {
        let compared = self.compare(connection).and_then(|mut catch_up| {
            self.catch_up_piece(&mut catch_up, &LiveSessions::default())?;
            Ok(catch_up)
        });
        match compared {
            Ok(catch_up) => Some(catch_up).filter(|catch_up| catch_up.left() > 0),
            Err(error) => {
                let error: &dyn std::error::Error = &*error;
                tracing::warn!(error, "the index of sessions is not compared with them");
                None
            }
        }
    }

    fn compare(&self, connection: &mut Connection) -> Result<CatchUp, Box<dyn std::error::Error>> {
        let (indexed, owned) = indexed_sessions(connection)?;
        let (is_new, claims) = (indexed.is_empty(), Claims::of_all(&self.state)?);
        let claimed: HashSet<&String> = claims.iter().flat_map(|claims| &claims.sessions).collect();
        self.unclaimed.lock().extend(owned.into_iter().filter(|id| !claimed.contains(id)));
        let mut catch_up = CatchUp::new(&self.state, indexed, |id| claimed.contains(&id.to_owned()))?;
        if is_new && catch_up.left() > 0 {
            let (transaction, mut unfinished) = (connection.transaction()?, Vec::new());
            for mut piece in catch_up.by_ref() {
                for found in std::mem::take(&mut piece.sessions) {
                    if let Some(row) = self.row_of(found)? {
                        self.note_unclaimed(&row, &claims);
                        index::put(&transaction, &row)?;
                    }
                }
                unfinished.push(piece);
            }
            transaction.commit()?;
            unfinished.iter().try_for_each(|piece| self.finish_changes(piece, &LiveSessions::default()))?;
        }
        Ok(catch_up)
    }

    fn note_unclaimed(&self, row: &IndexRow, claims: &[Claims]) {
        let id = &row.session.id;
        if row.session.owner.is_some() && !claims.iter().any(|claims| claims.sessions.contains(id)) {
            self.unclaimed.lock().insert(id.clone());
        }
    }

    /// Has the index told of a piece of what it lacks, but for live sessions, which do that themselves.
    pub(crate) fn catch_up_piece(
        &self,
        catch_up: &mut CatchUp,
        live: &LiveSessions,
    ) -> Result<(), WriteError> {
        // None begins or goes between the look and the word of it.
        let _owning = self.owning.lock();
        let Some(mut piece) = catch_up.next() else { return Ok(()) };
        let claims = self.claims()?;
        for found in std::mem::take(&mut piece.sessions) {
            if let Some(row) = self.row_of(found)?.filter(|row| live.get(&row.session.id).is_none()) {
                self.note_unclaimed(&row, &claims);
                self.rows.put(row, Vec::new(), now());
            }
        }
        self.finish_changes(&piece, live)
    }

    /// The row of a session, whose renaming is finished if it is not.
    fn row_of(&self, found: FoundSession) -> Result<Option<IndexRow>, WriteError> {
        match found.last.is_moving() {
            // It finishes what it finds.
            true => Ok(self.find(&found.last.facts.id)?.map(|found| found.row())),
            false => Ok(Some(found.into())),
        }
    }

    /// Finishes what hosts that died have begun, and has the index told of that and of sessions that are gone.
    fn finish_changes(&self, piece: &CatchUpPiece, live: &LiveSessions) -> Result<(), WriteError> {
        for (id, new) in &piece.moving {
            match self.find(id)? {
                // The other id was taken.
                Some(found) if live.get(id).is_none() => drop(self.rows.put(found.row(), Vec::new(), now())),
                Some(_) => {}
                None => {
                    if let Some(found) = self.find(new)? {
                        self.rows.rename(id, found.row(), now(), || {});
                    }
                }
            }
        }
        for id in piece.gone.iter().chain(&piece.doomed) {
            if self.find(id)?.is_none() {
                self.rows.remove(id, now());
            }
        }
        Ok(())
    }

    /// The sessions that a host that has died had released, and may not have noted.
    pub(crate) fn released_by(&self, owner: &str) -> Result<Vec<String>, WriteError> {
        let mut released = Vec::new();
        if self.hosts.lock().contains_key(owner) {
            return Ok(released);
        }
        let claims = self.claims()?.into_iter().find(|claims| claims.host == owner);
        for id in claims.into_iter().flat_map(|claims| claims.sessions) {
            // What another has claimed since is that one's to note.
            let is_released = |found: &Found| found.owner().is_none() && found.last.facts.host == owner;
            if self.find(&id)?.as_ref().is_some_and(is_released) {
                released.push(id);
            }
        }
        Ok(released)
    }

    /// Whether a host that has died has no session left; what the index lacks of those it had is noted.
    pub(crate) fn has_nothing(&self, owner: &str) -> Result<bool, WriteError> {
        if self.hosts.lock().contains_key(owner) {
            return Ok(false);
        }
        let claims = self.claims()?.into_iter().find(|claims| claims.host == owner);
        let mut has_nothing = claims.is_some();
        for id in claims.iter().flat_map(|claims| &claims.sessions) {
            match self.find(id)? {
                Some(found) if found.owner() == Some(owner) => has_nothing = false,
                Some(found) => drop(self.rows.put(found.row(), Vec::new(), now())),
                None => drop(self.rows.remove(id, now())),
            }
        }
        Ok(has_nothing)
    }

    /// Forgets a host that has died and has no session left, once the index says that.
    pub(crate) fn forget_host(&self, owner: &str) -> Result<(), WriteError> {
        Claims::forget(&self.state, owner).map_err(|error| self.failed(error))
    }

    /// The files of hosts that have no session go with the log.
    pub(crate) fn end_hosts(&self) {
        for (_, host) in self.hosts.lock().drain() {
            host.claims.lock().end();
        }
    }
}

/// All sessions that the index has, and those among them of which it says that they have an owner.
fn indexed_sessions(connection: &Connection) -> rusqlite::Result<(Vec<IndexedSession>, Vec<String>)> {
    let mut select = connection.prepare("SELECT id, last_seq, updated_ms, owner IS NOT NULL FROM session")?;
    let (mut sessions, mut owned) = (Vec::new(), Vec::new());
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let session = IndexedSession { id: row.get(0)?, last_seq: row.get(1)?, updated_ms: row.get(2)? };
        owned.extend(row.get::<_, bool>(3)?.then(|| session.id.clone()));
        sessions.push(session);
    }
    Ok((sessions, owned))
}

#[cfg(test)]
mod tests {
    use crate::batch::{Batch, IndexUpdate};
    use crate::renaming::Renamed;
    use crate::session_files::{Beginning, Facts, FailPoint, SessionDirectory, failing_at};
    use crate::{EventLog, ListQuery, Options};
    use std::io::ErrorKind;

    // design fleet, partition: a session that a process renamed when it was killed is listed, also if the index is new
    #[tokio::test]
    async fn a_new_index_has_what_was_being_renamed() {
        let cases = [(FailPoint::Moving, false), (FailPoint::Moving, true), (FailPoint::Moved, false)];
        for (point, is_taken) in cases {
            let state = tempfile::tempdir().expect("a directory");
            let directory = SessionDirectory::open(state.path(), "host").expect("it is made");
            let create = |id: &str| {
                let facts = Facts { id: id.into(), host: "host".into(), ..Facts::default() };
                let new = Beginning { facts, info: Vec::new(), batch: Batch::new() };
                let claimed = directory.create(new).expect("it is made").expect("it is new");
                let over = IndexUpdate { ended: Some(true), ..IndexUpdate::default() };
                claimed.release(Batch::index_only(over), 5).expect("it is written");
            };
            create("old");
            let found = directory.find("old").expect("it is read").expect("it is there");
            let last = found.last().expect("it is read");
            let renamed = Renamed { id: "new".into(), info: Vec::new(), at_ms: 7 };
            let cut_off = failing_at(point, ErrorKind::Other, || directory.rename(&found, &last, renamed));
            assert!(cut_off.is_err(), "{point:?}");
            let expected = if is_taken { vec!["new", "old"] } else { vec!["new"] };
            if is_taken {
                create("new");
            }
            let log = EventLog::open(state.path(), Options::default()).expect("the log opens");
            let rows = log.list(ListQuery::default()).await.expect("it is read");
            assert!(rows.iter().all(|row| row.owner.is_none()), "{point:?}");
            let mut ids: Vec<_> = rows.into_iter().map(|row| row.id).collect();
            ids.sort_unstable();
            assert_eq!(ids, expected, "{point:?}");
            log.close().await;
        }
    }
}
