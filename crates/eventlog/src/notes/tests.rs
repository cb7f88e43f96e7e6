//! Notes, and what is left of them when a process dies.

use super::*;
use crate::batch::Batch;
use crate::session_files::layout::Part;
use crate::session_files::{Beginning, Claim, Claimed, Facts, SessionDirectory};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

const DONE: &str = "it is done";

fn open_in(dir: &TempDir) -> Connection {
    open(dir.path(), Durability::Process).expect("it opens").1
}

fn subscriber(name: &str, kinds: &[u16]) -> Subscriber {
    Subscriber { name: name.to_owned(), kinds: kinds.to_vec() }
}

fn of_session(session: &str, upto: u64, notes: &[(&str, u64)]) -> SessionNotes {
    let notes = notes.iter().map(|(name, seq)| ((*name).to_owned(), *seq)).collect();
    SessionNotes { session: session.to_owned(), upto, notes }
}

fn all_of(connection: &Connection, name: &str) -> Vec<(String, u64)> {
    let notes = read(connection, name, 0, 1000).expect("it is read");
    assert!(notes.is_sorted_by(|one, other| one.number < other.number));
    notes.into_iter().map(|note| (note.session, note.seq)).collect()
}

fn at(session: &str, seq: u64) -> (String, u64) {
    (session.to_owned(), seq)
}

// contract 7.2: notes survive the process, each subscriber has its own, and they go with their session or its subscriber
#[test]
fn notes_are_kept_until_they_were_told() {
    let dir = TempDir::new().expect("a directory");
    let mut notes = open_in(&dir);
    let first = [of_session("a", 4, &[("x", 3), ("y", 3), ("y", 4)]), of_session("b", 9, &[])];
    write(&mut notes, &first).expect(DONE);
    write(&mut notes, &[of_session("b", 12, &[("y", 11)])]).expect(DONE);
    drop(notes);
    let mode = fs::metadata(dir.path().join("hooks.db")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let mut notes = open_in(&dir);
    assert_eq!(all_of(&notes, "x"), [at("a", 3)]);
    assert_eq!(all_of(&notes, "y"), [at("a", 3), at("a", 4), at("b", 11)]);
    let page = read(&notes, "y", 0, 2).expect(DONE);
    assert_eq!(read(&notes, "y", page[1].number, 9).expect(DONE)[0].seq, 11);
    take_out(&mut notes, &page.iter().map(|note| note.number).collect::<Vec<_>>()).expect(DONE);
    assert_eq!((all_of(&notes, "x"), all_of(&notes, "y")), (vec![at("a", 3)], vec![at("b", 11)]));
    for _ in 0..2 {
        rename(&mut notes, "b", "c").expect(DONE);
        assert_eq!(all_of(&notes, "y"), [at("c", 11)]);
        assert_eq!(["b", "c"].map(|id| noted(&notes, id).expect(DONE)), [None, Some(12)]);
    }
    delete(&mut notes, "a").expect(DONE);
    assert_eq!((all_of(&notes, "x"), noted(&notes, "a").expect(DONE)), (vec![], None));
    let number = read(&notes, "y", 0, 9).expect(DONE)[0].number;
    forget_others(&mut notes, &[subscriber("x", &[1])]).expect(DONE);
    assert_eq!(all_of(&notes, "y"), []);
    write(&mut notes, &[of_session("c", 13, &[("y", 13)])]).expect(DONE);
    assert!(read(&notes, "y", 0, 9).expect(DONE)[0].number > number, "a number is never used twice");
}

// design session-files 7: for whom a host noted is known behind its death; a new name begins with what comes later
#[test]
fn a_host_has_its_own_subscribers() {
    let dir = TempDir::new().expect("a directory");
    let mut notes = open_in(&dir);
    let of_one = [subscriber("x", &[0, 6]), subscriber("y", &[63])];
    subscribe(&mut notes, "one", &[subscriber("z", &[2])], &[]).expect(DONE);
    subscribe(&mut notes, "one", &of_one, &[("s".to_owned(), 7)]).expect(DONE);
    subscribe(&mut notes, "other", &[subscriber("x", &[1])], &[]).expect(DONE);
    assert_eq!(noted(&notes, "s").expect(DONE), Some(7));
    assert_eq!(subscribers(&notes, "one").expect(DONE), of_one);
    forget_subscribers(&notes, "one").expect(DONE);
    assert_eq!(subscribers(&notes, "one").expect(DONE), []);
    assert_eq!(subscribers(&notes, "other").expect(DONE), [subscriber("x", &[1])]);
}

// design session-files 8: a file that is none of these is left as it is
#[test]
fn what_is_no_database_of_notes_is_refused() {
    let dir = TempDir::new().expect("a directory");
    drop(schema::open_index(dir.path(), Durability::Process).expect("it opens"));
    fs::copy(dir.path().join("index-1.db"), dir.path().join("hooks.db")).expect("it is copied");
    let refused = open(dir.path(), Durability::Process);
    assert!(matches!(refused, Err(OpenError::Foreign { .. })), "{refused:?}");
    fs::write(dir.path().join("hooks.db"), b"damaged".repeat(1000)).expect("it is written");
    let refused = open(dir.path(), Durability::Process);
    assert!(matches!(refused, Err(OpenError::Damaged { .. })), "{refused:?}");
}

fn session(state: &TempDir, batch: Batch) -> (SessionDir, Claimed) {
    let directory = SessionDirectory::open(state.path(), "host").expect("it is made");
    let facts = Facts { id: "s".into(), host: "host".into(), ..Facts::default() };
    let new = Beginning { facts, info: Vec::new(), batch };
    let claimed = directory.create(new).expect(DONE).expect("it is new");
    (directory.find("s").expect(DONE).expect("it is there"), claimed)
}

/// The session's next segment is a host's.
fn claim(session: &SessionDir, host: &str, batch: Batch) -> Claimed {
    let last = session.last().expect("it is read");
    let facts = Facts { host: host.into(), ..last.facts.clone() };
    let claim = Claim { flags: Default::default(), facts: &facts, goes_on: true, batch };
    session.claim(&last, claim).expect(DONE).expect("it is free")
}

/// An append, and whether it is to the next segment.
#[derive(Clone, Debug)]
struct Appended {
    kinds: Vec<u16>,
    is_history: bool,
    payload: usize,
    is_claim: bool,
}

impl Appended {
    fn batch(&self) -> Batch {
        let mut batch = if self.is_history { Batch::of_history() } else { Batch::new() };
        self.kinds.iter().for_each(|kind| batch.push(*kind, 1, &vec![b'x'; self.payload]));
        batch
    }
}

fn any_append() -> impl Strategy<Value = Appended> {
    let payload = prop::sample::select(vec![0_usize, 40, 20_000, 700_000]);
    let kinds = prop::collection::vec(0_u16..6, 1..4);
    (kinds, prop::bool::weighted(0.2), payload, prop::bool::weighted(0.2))
        .prop_map(|(kinds, is_history, payload, is_claim)| Appended { kinds, is_history, payload, is_claim })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    // design session-files 7: whatever a host had appended and noted when it was killed, each event is noted at least once then,
    // in order, and no event of history, of another kind or of another host; a second death meanwhile takes none
    #[test]
    fn a_kill_takes_no_note(
        all in prop::collection::vec(any_append(), 1..8),
        written in any::<prop::sample::Index>(),
        by_another in any::<bool>(),
    ) {
        let (state, them) = (TempDir::new().expect("a directory"), [subscriber("x", &[1, 2]), subscriber("y", &[2, 5])]);
        let mut notes = open_in(&state);
        subscribe(&mut notes, "host", &them, &[]).expect(DONE);
        let (directory, mut claimed) = session(&state, Batch::new());
        // Of so many appends the notes were written when it died.
        let written = written.index(all.len() + 1);
        let (mut expected, mut next) = (Vec::new(), 1);
        for (at, one) in all.iter().enumerate() {
            let batch = one.batch();
            let found = notes_of(batch.events(next), &them).filter(|_| !one.is_history);
            let found: Vec<_> = found.collect();
            next += batch.len();
            match one.is_claim {
                true => claimed = claim(&directory, "host", batch),
                false => drop(claimed.writer.append(batch, None).expect(DONE)),
            }
            expected.extend(found.iter().cloned());
            if at < written {
                let group = SessionNotes { session: "s".into(), upto: next - 1, notes: found };
                write(&mut notes, &[group]).expect(DONE);
            }
        }
        drop((claimed, notes));

        let mut notes = open_in(&state);
        let them = subscribers(&notes, "host").expect(DONE);
        let upto = noted(&notes, "s").expect(DONE);
        let derived = derive(&directory, "host", upto, &them).expect("it is read");
        prop_assert_eq!((&derived.session[..], derived.upto), ("s", next - 1));
        if by_another {
            // The one that derives dies, too, once it has claimed the session and has noted nothing of its own.
            drop(claim(&directory, "next", Appended { kinds: vec![2], is_history: false, payload: 1, is_claim: true }.batch()));
            let again = derive(&directory, "host", upto, &them).expect("it is read");
            prop_assert_eq!(&again.notes, &derived.notes);
            let own = derive(&directory, "next", upto, &them).expect("it is read");
            prop_assert_eq!(own.notes, [("x".to_owned(), next), ("y".to_owned(), next)]);
        }
        write(&mut notes, &[derived]).expect(DONE);
        for name in ["x", "y"] {
            let expected: Vec<_> = expected.iter().filter(|(to, _)| to == name).map(|(_, seq)| at("s", *seq)).collect();
            prop_assert_eq!(all_of(&notes, name), expected);
        }
        let upto = noted(&notes, "s").expect(DONE);
        prop_assert_eq!(derive(&directory, "host", upto, &them).expect("it is read").notes, []);
    }
}

// design session-files 7: what was noted of a session that had the same id says nothing of the one that has it now
#[test]
fn what_is_noted_of_an_earlier_session_does_not_count() {
    let state = TempDir::new().expect("a directory");
    let mut batch = Batch::new();
    (0..3).for_each(|_| batch.push(1, 1, b"an event"));
    let (directory, _claimed) = session(&state, batch);
    let them = [subscriber("x", &[1])];
    for (noted, expected) in
        [(None, vec![1, 2, 3]), (Some(1), vec![2, 3]), (Some(3), vec![]), (Some(4), vec![1, 2, 3])]
    {
        let derived = derive(&directory, "host", noted, &them).expect("it is read");
        let seqs: BTreeSet<_> = derived.notes.into_iter().map(|(_, seq)| seq).collect();
        assert_eq!(seqs, expected.into_iter().collect(), "{noted:?}");
    }
}

// design session-files 7: what is sealed was noted before, and hides nothing of what comes behind it
#[test]
fn what_stands_behind_a_seal_is_derived() {
    let state = TempDir::new().expect("a directory");
    let batch = || Appended { kinds: vec![1], is_history: false, payload: 9, is_claim: false }.batch();
    let (directory, first) = session(&state, batch());
    drop(first);
    for _ in 0..2 {
        drop(claim(&directory, "host", batch()));
    }
    directory.seal("host", &()).expect("it is sealed");
    assert_eq!(directory.parts().expect("it is read"), [Part::Seal(1, 2), Part::Log(3)]);
    for noted in [None, Some(2)] {
        let derived = derive(&directory, "host", noted, &[subscriber("x", &[1])]).expect("it is read");
        assert_eq!(derived, of_session("s", 3, &[("x", 3)]));
    }
}
