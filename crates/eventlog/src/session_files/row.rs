//! The row of a session in a list, as its last segment says it.

use super::append::Standing;
use super::facts::Facts;
use super::last_segment::LastSegment;
use crate::query::SessionRow;

impl From<LastSegment> for SessionRow {
    /// The row of a session that stands so. A segment of a removal has none in any list.
    fn from(LastSegment { facts, standing, info, .. }: LastSegment) -> Self {
        facts.row(&standing, info)
    }
}

impl Facts {
    /// The row of a session of which these are the facts, and which stands so.
    pub(crate) fn row(&self, standing: &Standing, info: Vec<u8>) -> SessionRow {
        SessionRow {
            id: self.id.clone(),
            agent: self.agent.clone(),
            cwd: self.cwd.clone(),
            owner: (!standing.released).then(|| self.host.clone()),
            created_by: self.created_by.clone(),
            created_ms: self.created_ms,
            updated_ms: standing.at_ms,
            ended: standing.ended,
            last_seq: standing.last_seq,
            state: standing.state,
            position: standing.position,
            info,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Batch, IndexUpdate};
    use crate::segment::SegmentFlags;
    use crate::session_files::{Beginning, Claim, SessionDirectory};

    const EXPECT: &str = "it is written";

    fn events(count: u64, index: IndexUpdate) -> Batch {
        let mut batch = Batch::index_only(index);
        (0..count).for_each(|_| batch.push(1, 1, b"an event"));
        batch
    }

    // design session-files 7: a row from a segment is the row that the index has of the same changes
    #[test]
    fn a_segment_says_what_the_index_would() {
        let state = tempfile::tempdir().expect("a directory");
        let directory = SessionDirectory::open(state.path(), "one").expect("it is made");
        let facts = Facts {
            id: "S".into(),
            agent: "agent".into(),
            cwd: "/work".into(),
            host: "one".into(),
            created_by: Some("ci".into()),
            created_ms: 3,
        };
        let new = Beginning { facts: facts.clone(), info: b"new".to_vec(), batch: events(2, at(4)) };
        let mut claimed = directory.create(new).expect(EXPECT).expect("it is new");
        let found = directory.find("S").expect("it opens").expect("it is there");
        let row = || SessionRow::from(found.last().expect("it is read"));
        let mut expected = SessionRow {
            id: "S".into(),
            agent: "agent".into(),
            cwd: "/work".into(),
            owner: Some("one".into()),
            created_by: Some("ci".into()),
            created_ms: 3,
            updated_ms: 4,
            ended: false,
            last_seq: 2,
            state: 0,
            position: 0,
            info: b"new".to_vec(),
        };
        assert_eq!(row(), expected);
        let working =
            IndexUpdate { state: Some(7), position: Some(90), info: Some(b"old".to_vec()), ..at(5) };
        claimed.writer.append(events(1, working), None).expect(EXPECT);
        (expected.updated_ms, expected.last_seq) = (5, 3);
        (expected.state, expected.position, expected.info) = (7, 90, b"old".to_vec());
        assert_eq!(row(), expected, "live");
        let last = found.last().expect("it is read");
        let host = "other".to_owned();
        let adopted = Claim {
            flags: SegmentFlags::default(),
            facts: &Facts { host: host.clone(), ..facts },
            goes_on: true,
            batch: events(1, at(6)),
        };
        let claimed = found.claim(&last, adopted).expect(EXPECT).expect("it is free");
        (expected.updated_ms, expected.last_seq, expected.owner) = (6, 4, Some(host));
        assert_eq!(row(), expected, "adopted");
        let ends = IndexUpdate { ended: Some(true), ..at(7) };
        claimed.release(events(1, ends), 8).expect(EXPECT);
        (expected.updated_ms, expected.last_seq, expected.owner) = (8, 5, None);
        (expected.ended, expected.state, expected.position) = (true, 0, 0);
        assert_eq!(row(), expected, "ended and given back");
    }

    fn at(updated_ms: i64) -> IndexUpdate {
        IndexUpdate { updated_ms, ..IndexUpdate::default() }
    }
}
