//! An index that lacks sessions, has too many, or has them otherwise.

use super::*;
use crate::batch::{Batch, IndexUpdate};
use crate::segment::SegmentFlags;
use crate::session_files::{Beginning, Claim, Facts, SessionDirectory};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const MADE: &str = "it is made";

fn create(directory: &SessionDirectory, id: &str, events: u64) {
    let facts = Facts { id: id.into(), host: "host".into(), created_ms: 3, ..Facts::default() };
    let mut batch = Batch::index_only(IndexUpdate { updated_ms: 5, ..IndexUpdate::default() });
    (0..events).for_each(|_| batch.push(1, 9, b"an event"));
    let new = Beginning { facts, info: Vec::new(), batch };
    drop(directory.create(new).expect(MADE).expect("it is new"));
}

fn row(id: &str, last_seq: u64) -> IndexedSession {
    IndexedSession { id: id.into(), last_seq, updated_ms: 5 }
}

/// All of the pieces, and how large they were.
fn all(catch_up: CatchUp) -> (BTreeMap<String, u64>, BTreeSet<String>, Vec<String>, Vec<usize>) {
    let (mut rows, mut gone, mut doomed, mut sizes) =
        (BTreeMap::new(), BTreeSet::new(), Vec::new(), Vec::new());
    for piece in catch_up {
        sizes.push(piece.sessions.len() + piece.gone.len());
        let found = piece.sessions.into_iter().map(|found| found.last);
        rows.extend(found.map(|last| (last.facts.id, last.standing.last_seq)));
        gone.extend(piece.gone);
        doomed.extend(piece.doomed);
    }
    (rows, gone, doomed, sizes)
}

fn id_of(at: u8) -> String {
    // One that has a name that can be read, one that differs by case, one whose name is a hash.
    match at % 3 {
        0 => format!("s{at}"),
        1 => format!("S{}", at - 1),
        _ => format!("{}{at}", "x".repeat(300)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    // design session-files 7: whatever the index has, behind a catch-up it has the sessions that are there; of those that are
    // above suspicion no head is read
    #[test]
    fn an_index_has_what_is_there(
        there in prop::collection::btree_map(0_u8..12, 1_u64..4, 0..10),
        indexed in prop::collection::btree_map(0_u8..12, 1_u64..4, 0..10),
        suspect in prop::collection::btree_set(0_u8..12, 0..12),
    ) {
        let state = tempfile::tempdir().expect("a directory");
        let directory = SessionDirectory::open(state.path(), "host").expect(MADE);
        there.iter().for_each(|(at, events)| create(&directory, &id_of(*at), *events));
        let rows = indexed.iter().map(|(at, last)| row(&id_of(*at), *last)).collect();
        let suspect_ids: BTreeSet<String> = suspect.iter().map(|at| id_of(*at)).collect();
        let catch_up = CatchUp::new(state.path(), rows, |id| suspect_ids.contains(id)).expect("it is read");
        let (rows, gone, doomed, _) = all(catch_up);
        let is_written = |at: &u8, last: &u64| match indexed.get(at) {
            None => true,
            Some(indexed) => suspect.contains(at) && indexed != last,
        };
        let expected: BTreeMap<_, _> = there.iter().filter(|(at, last)| is_written(at, last))
            .map(|(at, last)| (id_of(*at), *last)).collect();
        prop_assert_eq!(rows, expected);
        let expected = indexed.keys().filter(|at| !there.contains_key(at)).map(|at| id_of(*at)).collect();
        prop_assert_eq!(gone, expected);
        prop_assert_eq!(doomed, Vec::<String>::new());
    }
}

// design session-files 7: it takes no more than a moment at once
#[test]
fn pieces_are_small() {
    let state = tempfile::tempdir().expect("a directory");
    let directory = SessionDirectory::open(state.path(), "host").expect(MADE);
    (0..200).for_each(|at| create(&directory, &format!("s{at}"), 1));
    let rows = (0..400).map(|at| row(&format!("old{at}"), 1)).collect();
    let catch_up = CatchUp::new(state.path(), rows, |_| false).expect("it is read");
    assert_eq!(catch_up.left(), 600);
    let (rows, gone, _, sizes) = all(catch_up);
    assert_eq!((rows.len(), gone.len()), (200, 400));
    assert_eq!(sizes, [256, 256, 88]);
}

// design session-files 4, 8: a removal that was cut off is found, what is no session is passed over, a damaged one stays as it is
#[test]
fn what_is_half_there_is_told_apart() {
    let state = tempfile::tempdir().expect("a directory");
    let directory = SessionDirectory::open(state.path(), "host").expect(MADE);
    for id in ["doomed", "damaged", "moved", "empty"] {
        create(&directory, id, 1);
    }
    let found = directory.find("doomed").expect("it opens").expect("it is there");
    let last = found.last().expect("it is read");
    let claim = Claim {
        flags: SegmentFlags::DELETED,
        facts: &last.facts,
        goes_on: false,
        batch: Batch::of_history(),
    };
    drop(found.claim(&last, claim).expect(MADE));
    fs::write(directory.path("damaged").join("1.log"), b"nothing of ours").expect("it is written");
    let elsewhere = directory.path("other");
    fs::create_dir_all(elsewhere.parent().expect("it has one")).expect(MADE);
    fs::rename(directory.path("moved"), &elsewhere).expect("it is moved");
    fs::remove_file(directory.path("empty").join("1.log")).expect("it is removed");
    let sessions = layout::sessions(state.path());
    fs::write(sessions.join("stray"), b"").expect("it is written");
    fs::create_dir_all(sessions.join(".gone").join("host-1")).expect(MADE);
    let named = ["doomed", "damaged", "moved", "empty", "other"];
    for (rows, expected) in
        [(named.map(|id| row(id, 1)).into(), vec!["doomed", "empty", "moved"]), (Vec::new(), vec![])]
    {
        let catch_up = CatchUp::new(state.path(), rows, |_| true).expect("it is read");
        let (rows, gone, doomed, _) = all(catch_up);
        assert_eq!(rows, BTreeMap::new());
        assert_eq!(gone, expected.into_iter().map(str::to_owned).collect());
        assert_eq!(doomed, ["doomed"]);
    }
}

// design session-files 7: a session that is there again when its row would go stays
#[test]
fn a_session_that_came_meanwhile_stays() {
    let state = tempfile::tempdir().expect("a directory");
    let directory = SessionDirectory::open(state.path(), "host").expect(MADE);
    let catch_up = CatchUp::new(state.path(), vec![row("a", 7)], |_| false).expect("it is read");
    create(&directory, "a", 2);
    let (rows, gone, ..) = all(catch_up);
    assert_eq!((rows, gone), (BTreeMap::from([("a".to_owned(), 2)]), BTreeSet::new()));
}
