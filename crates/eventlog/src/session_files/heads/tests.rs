//! Sessions of other hosts, in each way in which their claims can be wrong.

use super::*;
use crate::batch::{Batch, IndexUpdate};
use crate::session_files::{Beginning, Claim, Claimed, Facts, SessionDirectory};
use std::fs;

const MADE: &str = "it is made";

struct Place {
    state: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { state: tempfile::tempdir().expect("a directory") }
    }

    fn of(&self, host: &str) -> SessionDirectory {
        SessionDirectory::open(self.state.path(), host).expect(MADE)
    }

    fn create(&self, host: &str, id: &str) -> Claimed {
        let facts = Facts { id: id.into(), host: host.into(), created_ms: 3, ..Facts::default() };
        let mut batch = Batch::new();
        batch.push(1, 9, b"an event");
        let new = Beginning { facts, info: id.as_bytes().to_vec(), batch };
        self.of(host).create(new).expect(MADE).expect("it is new")
    }

    fn read(&self, claims: &[Claims]) -> (Vec<(String, Option<String>)>, Vec<String>) {
        let heads = HeadReader::new(self.state.path()).read(claims, |host| host == "own");
        (heads.rows.into_iter().map(|row| (row.id, row.owner)).collect(), heads.gone)
    }

    fn damage(&self, id: &str) {
        let path = self.of("own").path(id).join("1.log");
        let mut bytes = fs::read(&path).expect("it is read");
        bytes[70] ^= 1;
        fs::write(path, bytes).expect("it is written");
    }
}

fn claims(host: &str, sessions: &[&str]) -> Claims {
    Claims { host: host.into(), sessions: sessions.iter().map(|id| (*id).to_owned()).collect() }
}

fn release() -> Batch {
    let index = IndexUpdate { updated_ms: 8, ended: Some(true), ..IndexUpdate::default() };
    Batch::index_only(index)
}

// design session-files 7: of a session that another host claims the files say whose it is and where it stands
#[test]
fn heads_say_more_than_claims() {
    let place = Place::new();
    for (host, id) in [("other", "live"), ("other", "damaged"), ("third", "of a third"), ("own", "mine")] {
        drop(place.create(host, id));
    }
    drop(place.create("other", "claimed by nobody"));
    place.create("other", "given back").release(release(), 8).expect(MADE);
    place.damage("damaged");
    let directory = place.of("other");
    drop(place.create("other", "removed"));
    let found = directory.find("removed").expect("it opens").expect("it is there");
    let facts = found.last().expect("it is read").facts;
    let claim =
        Claim { flags: SegmentFlags::DELETED, facts: &facts, goes_on: false, batch: Batch::of_history() };
    drop(found.claim(&found.last().expect("it is read"), claim).expect(MADE));
    fs::create_dir_all(directory.path("empty")).expect(MADE);
    let named = ["live", "damaged", "of a third", "mine", "given back", "removed", "empty", "never there"];
    let (rows, gone) =
        place.read(&[claims("other", &named), claims("own", &["x"]), claims("dead", &["live"])]);
    let is = |id: &str, owner: Option<&str>| (id.to_owned(), owner.map(str::to_owned));
    assert_eq!(rows, [is("given back", None), is("live", Some("other")), is("of a third", Some("third"))]);
    assert_eq!(gone, ["empty", "never there", "removed"]);
}

// design session-files 4: what stands under the name of another session is not that session
#[test]
fn a_session_under_another_name_is_none() {
    let place = Place::new();
    drop(place.create("other", "a"));
    let directory = place.of("other");
    let path = directory.path("b");
    fs::create_dir_all(path.parent().expect("it has one")).expect(MADE);
    fs::rename(directory.path("a"), path).expect("it is moved");
    assert_eq!(place.read(&[claims("other", &["a", "b"])]), (vec![], vec!["a".to_owned()]));
}

// design session-files 8: a damaged session is told of once, and not with each list
#[test]
fn a_damaged_session_is_told_of_once() {
    let place = Place::new();
    drop(place.create("other", "a"));
    place.damage("a");
    let reader = HeadReader::new(place.state.path());
    for _ in 0..2 {
        assert_eq!(reader.read(&[claims("other", &["a"])], |_| false), Heads::default());
        assert_eq!(*reader.unreadable.lock(), HashSet::from(["a".to_owned()]));
    }
}
