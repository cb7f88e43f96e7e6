//! When the index is written, and what it is told then.

use super::*;
use crate::query::SessionRow;

const LAG: Duration = Duration::from_millis(200);

fn live(id: &str) -> Arc<Live> {
    Arc::new(Live::new(id.to_owned(), 1, None, 0))
}

fn row(id: &str, info: Vec<u8>) -> IndexRow {
    let session = SessionRow {
        id: id.to_owned(),
        agent: String::new(),
        cwd: String::new(),
        owner: None,
        created_by: None,
        created_ms: 0,
        updated_ms: 0,
        ended: true,
        last_seq: 1,
        state: 0,
        position: 0,
        info,
    };
    IndexRow { session, segment: 1, bytes: 0, unsealed: false, claimed_by: String::new() }
}

fn now() -> Instant {
    crate::files::live_segment::now()
}

fn note() -> Vec<NamedNote> {
    vec![("hook".to_owned(), 1)]
}

fn take(rows: &UnwrittenRows) -> Vec<Change> {
    rows.take_with(|| Some(())).map(|(changes, ())| changes).unwrap_or_default()
}

// issue 29: events of live sessions wake the writer once for all that come within the lag; what hooks are told and what ends is sooner
#[test]
fn what_waits_is_written_together() {
    let (rows, begin) = (UnwrittenRows::new(LAG), now());
    let at = |ms: u64| begin + Duration::from_millis(ms);
    let [a, b] = ["a", "b"].map(live);
    assert!(rows.put_live(&a, (0, false), begin), "the writer learns of it");
    for ms in 0..100 {
        assert!(!rows.put_live(&a, (0, false), at(ms)) && !rows.put_live(&b, (0, false), at(ms)));
    }
    assert_eq!(rows.due(), Some(begin + LAG));
    a.note(note());
    assert!(rows.put_live(&a, (1, false), at(100)), "sooner than it knew");
    assert_eq!(rows.due(), Some(at(100) + SOON));
    assert!(!rows.put_live(&b, (0, true), at(110)) && !rows.put(row("c", Vec::new()), note(), at(110)));
    let taken: Vec<_> = take(&rows).into_iter().map(|change| (change.id, change.notes)).collect();
    let expected = [("a", note()), ("b", Vec::new()), ("c", note())];
    assert_eq!(taken, expected.map(|(id, notes)| (id.to_owned(), notes)));
    assert_eq!(rows.due(), None);
    assert!(rows.put_live(&a, (0, false), at(111)), "what comes while it is written waits anew");
    rows.written(true, at(112));
    assert_eq!(take(&rows).len(), 1);
    assert!(rows.put_live(&b, (0, true), at(200)));
    assert_eq!(rows.due(), Some(at(200) + SOON));
}

// issue 29: what waits is bounded, in sessions and in bytes; an index that cannot be written is not tried more often for that
#[test]
fn much_is_written_at_once() {
    let begin = now();
    let rows = UnwrittenRows::new(LAG);
    for at in 1..=MOST_SESSIONS {
        let is_sooner = rows.put_live(&live(&at.to_string()), (0, false), begin);
        assert_eq!(is_sooner, at == 1 || at == MOST_SESSIONS, "{at}");
    }
    assert_eq!(rows.due(), Some(begin));
    let rows = UnwrittenRows::new(LAG);
    assert!(rows.put(row("a", vec![0; MOST_BYTES - 1]), Vec::new(), begin));
    assert_eq!(rows.due(), Some(begin + SOON));
    assert!(rows.put(row("b", Vec::new()), note(), begin));
    assert_eq!(rows.due(), Some(begin));
    assert_eq!(take(&rows).len(), 2);
    rows.written(false, begin);
    assert_eq!(rows.due(), Some(begin + AGAIN));
    assert!(!rows.put(row("c", vec![0; MOST_BYTES]), note(), begin));
    assert_eq!(take(&rows).len(), 3);
    rows.written(true, begin);
    assert!(rows.put(row("d", Vec::new()), Vec::new(), begin));
    assert_eq!(rows.due(), Some(begin + SOON));
}

// issue 29: of a session whose row is only late the index knows how far its words go; not of one whose id was another's
#[test]
fn a_late_row_is_no_other_session() {
    let (rows, begin) = (UnwrittenRows::new(LAG), now());
    rows.put_live(&live("live"), (0, false), begin);
    rows.put(row("ended", Vec::new()), Vec::new(), begin);
    rows.remove("removed", begin);
    rows.remove("anew", begin);
    rows.put_live(&live("anew"), (0, false), begin);
    rows.rename("old", row("new", Vec::new()), begin, || {});
    let check = || {
        let replaced =
            ["live", "ended", "other", "removed", "anew", "old", "new"].map(|id| rows.is_replaced(id));
        assert_eq!(replaced, [false, false, false, true, true, true, true]);
    };
    check();
    take(&rows);
    check();
    rows.written(true, begin);
    assert!(!rows.is_replaced("anew"));
}

// design fleet, partition: what waits under an id is taken with the row that gives the index that id, and not without
#[test]
fn what_waits_under_an_id_is_taken_with_its_row() {
    let (rows, begin) = (UnwrittenRows::new(LAG), now());
    let waiting = Mutex::new(Some("old"));
    let take = || {
        let taken = rows.take_with(|| *waiting.lock());
        taken.map(|(changes, id)| (changes.into_iter().map(|change| (change.id, change.from)).collect(), id))
    };
    let changes = |all: &[(&str, Option<&str>)]| -> Vec<(String, Option<String>)> {
        all.iter().map(|(id, from)| ((*id).to_owned(), from.map(str::to_owned))).collect()
    };
    rows.put(row("old", Vec::new()), Vec::new(), begin);
    assert_eq!(take(), Some((changes(&[("old", None)]), "old")));
    rows.written(true, begin);
    rows.rename("old", row("new", Vec::new()), begin, || *waiting.lock() = Some("new"));
    rows.put(row("old", Vec::new()), Vec::new(), begin);
    let both = changes(&[("new", Some("old")), ("old", None)]);
    assert_eq!(take(), Some((both.clone(), "new")));
    rows.written(false, begin);
    assert_eq!(take(), Some((both, "new")));
    rows.written(false, begin);
    *waiting.lock() = None;
    assert_eq!(take(), None);
    assert_eq!(rows.unwritten().len(), 2, "nothing else to take: it waits");
    assert!(rows.due().is_some());
}

// design session-files 7: who asks the index waits for what it is just being told, too
#[test]
fn the_index_is_behind_until_it_is_written() {
    let (rows, now) = (UnwrittenRows::new(LAG), now());
    assert!(!rows.is_behind());
    assert!(rows.remove("a", now) && rows.is_behind());
    assert_eq!(take(&rows).len(), 1);
    assert!(rows.due().is_none() && rows.is_behind());
    rows.written(false, now);
    assert!(rows.due().is_some() && rows.is_behind());
    assert_eq!(take(&rows).len(), 1);
    rows.written(true, now);
    assert!(!rows.is_behind());
}
