//! Lists from an index that may lag: its rows, overlaid by what is known to be newer.
//!
//! Pure. Invariant: a list is what the index would give if it had the newer rows. Not here: where these come from (memory for
//! one's own sessions, `session_files/heads.rs` for those of other hosts).

use std::collections::{HashMap, HashSet};

use crate::query::{ListQuery, RowFilter, SessionRow};

/// Sessions of which something newer is known than the index has. Of one session, what was put in last counts.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    /// Rows by id; none of a session that is gone.
    sessions: HashMap<String, Option<SessionRow>>,
}

impl Overlay {
    /// A session is as this row says.
    pub(crate) fn put(&mut self, row: SessionRow) {
        self.sessions.insert(row.id.clone(), Some(row));
    }

    /// A session is gone, whatever the index says.
    pub(crate) fn remove(&mut self, id: String) {
        self.sessions.insert(id, None);
    }

    /// The query that the index is to be asked for [`merge`](Self::merge): it leaves out what is known to be newer, so that as
    /// many rows are read as there may be in the list.
    pub(crate) fn index_query(&self, query: &ListQuery) -> ListQuery {
        if self.sessions.is_empty() {
            return query.clone();
        }
        let newer: HashSet<String> = self.sessions.keys().cloned().collect();
        let matching = query.matching.clone();
        let filter = RowFilter::new(move |row| {
            !newer.contains(row.id) && matching.as_ref().is_none_or(|filter| filter.accepts(row))
        });
        ListQuery { matching: Some(filter), ..query.clone() }
    }

    /// The list, from what the index has answered to [`index_query`](Self::index_query).
    pub(crate) fn merge(self, query: &ListQuery, indexed: Vec<SessionRow>) -> Vec<SessionRow> {
        let mut rows = self.overlay(indexed, |row| query.selects(row));
        rows.sort_unstable_by(SessionRow::compare);
        rows.truncate(query.most());
        rows
    }

    /// Rows of the index that nothing newer is known of, and those of the newer that are meant.
    fn overlay(
        self,
        mut indexed: Vec<SessionRow>,
        is_meant: impl Fn(&SessionRow) -> bool,
    ) -> Vec<SessionRow> {
        indexed.retain(|row| !self.sessions.contains_key(&row.id));
        indexed.extend(self.sessions.into_values().flatten().filter(is_meant));
        indexed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Durability;
    use crate::{query, schema};
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};
    use rusqlite::{Connection, params};
    use std::collections::BTreeMap;

    type Sessions = BTreeMap<u8, SessionRow>;

    /// A database that has these rows and no others.
    fn fill<'a>(connection: &Connection, rows: impl Iterator<Item = &'a SessionRow>) {
        let transaction = connection.unchecked_transaction().expect("it is written");
        transaction.execute_batch("DELETE FROM session; DELETE FROM info").expect("it is written");
        for row in rows {
            let columns = params![
                row.id,
                row.agent,
                row.cwd,
                row.owner,
                row.created_ms,
                row.updated_ms,
                row.ended,
                row.last_seq,
                row.created_by,
                row.state,
                row.position
            ];
            transaction
                .execute(
                    "INSERT INTO session (id, agent, cwd, owner, created_ms, updated_ms, ended, last_seq, \
                     created_by, state, position) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                    columns,
                )
                .expect("it is written");
            let info = params![transaction.last_insert_rowid(), row.info];
            transaction
                .execute("INSERT INTO info (session, info) VALUES (?1, ?2)", info)
                .expect("it is written");
        }
        transaction.commit().expect("it is written");
    }

    fn any_name() -> impl Strategy<Value = String> {
        prop::sample::select(vec!["", "x", "y"]).prop_map(str::to_owned)
    }

    fn any_row() -> impl Strategy<Value = SessionRow> {
        let names = (any_name(), any_name(), prop::option::of(any_name()), prop::option::of(any_name()));
        (names, 0_i64..4, any::<bool>(), 0_u64..9, prop::collection::vec(0_u8..3, 0..2)).prop_map(
            |((agent, cwd, owner, created_by), updated_ms, ended, last_seq, info)| SessionRow {
                id: String::new(),
                agent,
                cwd,
                owner,
                created_by,
                created_ms: 1,
                updated_ms,
                ended,
                last_seq,
                state: 3,
                position: 4,
                info,
            },
        )
    }

    fn named(at: u8, row: SessionRow) -> SessionRow {
        SessionRow { id: id_of(at), ..row }
    }

    fn id_of(at: u8) -> String {
        format!("s{at}")
    }

    fn any_sessions() -> impl Strategy<Value = Sessions> {
        prop::collection::btree_map(0_u8..12, any_row(), 0..10)
            .prop_map(|rows| rows.into_iter().map(|(at, row)| (at, named(at, row))).collect())
    }

    fn any_query() -> impl Strategy<Value = ListQuery> {
        let names =
            (prop::option::of(any_name()), prop::option::of(any_name()), prop::option::of(any_name()));
        let after = prop::option::of((0_i64..4, (0_u8..12).prop_map(id_of)));
        (names, prop::option::of(any::<bool>()), after, any::<bool>(), prop::option::of(0_u32..6)).prop_map(
            |((agent, cwd, created_by), ended, after, is_filtered, limit)| {
                let matching = is_filtered.then(|| RowFilter::new(|row| row.info != b"\0" && row.id != "s3"));
                ListQuery { agent, cwd, created_by, ended, after, matching, limit }
            },
        )
    }

    // design session-files 7: no lag is visible: a list is the one that an index with the newer rows would give
    #[test]
    fn what_is_newer_is_listed_as_if_it_were_indexed() {
        let dirs = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
        let [behind, even] = dirs
            .each_ref()
            .map(|dir| schema::open_index(dir.path(), Durability::Process).expect("it opens").1);
        let newer = prop::collection::btree_map(0_u8..12, prop::option::of(any_row()), 0..6);
        let check = |(indexed, newer, query): (Sessions, BTreeMap<u8, Option<SessionRow>>, ListQuery)| {
            let overlay = || {
                let mut overlay = Overlay::default();
                for (at, row) in &newer {
                    // What was put in before does not count.
                    overlay.remove(id_of(*at));
                    match row {
                        Some(row) => overlay.put(named(*at, row.clone())),
                        None => overlay.remove(id_of(*at)),
                    }
                }
                overlay
            };
            let mut all = indexed.clone();
            for (at, row) in &newer {
                match row {
                    Some(row) => drop(all.insert(*at, named(*at, row.clone()))),
                    None => drop(all.remove(at)),
                }
            }
            fill(&behind, indexed.values());
            fill(&even, all.values());
            let read = "it is read";
            let asked = query::list(&behind, overlay().index_query(&query)).expect(read);
            prop_assert!(asked.len() <= query.most());
            let expected = query::list(&even, query.clone()).expect(read);
            prop_assert_eq!(overlay().merge(&query, asked), expected);
            Ok(())
        };
        let cases = (any_sessions(), newer, any_query());
        TestRunner::new(Config::with_cases(400)).run(&cases, check).expect("it holds");
    }
}
