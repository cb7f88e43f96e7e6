//! What is due for the directory and the archive, and whose a session is.

use super::*;
use crate::archive::Position;
use crate::record::{Epoch, NodeId};
use serde_json::json;

const HEARTBEAT: Duration = Duration::from_secs(5);

fn node(id: &str) -> NodeRecord {
    NodeRecord::new(NodeName::try_from("a".to_owned()).expect("a name"), NodeId(id.to_owned()), "1")
}

fn row(state: &str, seq: u64) -> Row {
    Row {
        session: SessionId::parse("s").expect("an id"),
        creator: None,
        partition: Partition::Local,
        seq,
        ended: false,
        created_ms: 0,
        changed_ms: 0,
        info: json!({"state": state, "updatedAt": seq, "eventCount": seq}),
    }
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

// design fleet, sessions: what a session does is told at once, what grows once in a heartbeat
#[test]
fn news_are_written_at_once_and_growth_with_the_heartbeat() {
    let (mut published, me) = (Published::default(), node("1"));
    published.is_now(row("idle", 1));
    let due = published.due(&me, at(1), HEARTBEAT);
    assert!(matches!(&due[..], [(record, Expected::Nothing)] if record.epoch.is_none()), "a claim: {due:?}");
    published.wrote(due[0].0.clone(), Revision(7), at(1));
    assert_eq!(published.due(&me, at(1), HEARTBEAT), []);
    published.is_now(row("idle", 2));
    assert_eq!(published.due(&me, at(5), HEARTBEAT), [], "it has only grown");
    let due = published.due(&me, at(6), HEARTBEAT);
    assert_eq!(due.len(), 1);
    assert_eq!((due[0].0.epoch, due[0].1), (Some(Epoch(7)), Expected::Unchanged(Revision(7))));
    published.wrote(due[0].0.clone(), Revision(8), at(6));
    published.is_now(row("running", 3));
    let due = published.due(&me, at(6), HEARTBEAT);
    assert_eq!((due[0].0.seq, due[0].0.epoch), (3, Some(Epoch(7))), "the claim stays what it was");
}

// design fleet, fence: what another node owns is not written over; what is the own one of an earlier life goes on
#[test]
fn an_entry_of_another_owner_stays() {
    let (mut published, me, other) = (Published::default(), node("1"), node("2"));
    let entry = |owner| SessionRecord::new(row("idle", 1).session, owner, json!({}));
    let ended = |seq| Row { ended: true, ..row("ended", seq) };
    published.is_now(ended(1));
    assert!(!published.found(&entry(&other), Revision(3), &me), "it is believed");
    assert!(published.knows_entry(&row("idle", 1).session) && !published.keeps(&row("idle", 1).session));
    published.is_now(ended(2));
    assert_eq!(published.due(&me, at(100), HEARTBEAT), []);
    published.found(&entry(&me), Revision(4), &me);
    let due = published.due(&me, at(100), HEARTBEAT);
    assert_eq!((due[0].0.epoch, due[0].1), (Some(Epoch(4)), Expected::Unchanged(Revision(4))));
    published.missing(&row("idle", 1).session);
    assert_eq!(published.due(&me, at(100), HEARTBEAT)[0].1, Expected::Nothing);
}

// contract 7.3: what is live here, or was this node's, is written over a false owner, once in a heartbeat; what
// another node may take up, or has under the same key, is not
#[test]
fn a_false_owner_is_written_over() {
    let (me, other) = (node("1"), node("2"));
    let id = "0198c0de-0000-7000-8000-000000000000";
    let of = |partition, ended, created_ms| {
        let session = SessionId::parse(id).expect("an id");
        Row { session, partition, ended, created_ms, ..row("idle", 3) }
    };
    let entry = |owner, created_ms| {
        let session = SessionId::parse(id).expect("an id");
        SessionRecord { created_ms, ..SessionRecord::new(session, owner, json!({})) }
    };
    for (partition, ended, was_mine, is_kept) in [
        (Partition::Local, false, false, true),
        (Partition::Local, false, true, true),
        (Partition::Local, true, true, true),
        (Partition::Local, true, false, false),
        (Partition::Failover, false, true, false),
    ] {
        // Another time of creation is no excuse where the id was drawn.
        for created_ms in [7, 8] {
            let mut published = Published::default();
            published.is_now(of(partition, ended, 7));
            if was_mine {
                published.found(&entry(&me, 7), Revision(2), &me);
            }
            let what = format!("{partition:?} {ended} {was_mine} {created_ms}");
            assert_eq!(published.found(&entry(&other, created_ms), Revision(3), &me), is_kept, "{what}");
            assert!(
                !published.found(&entry(&other, created_ms), Revision(4), &me),
                "it is said once: {what}"
            );
            let session = &entry(&me, 7).session;
            assert_eq!((published.keeps(session), published.kept().len()), (is_kept, usize::from(is_kept)));
            let due = published.due(&me, at(1), HEARTBEAT);
            assert_eq!(
                published.unfiled(at(1), false),
                [],
                "nothing is added to an epoch of another: {what}"
            );
            if !is_kept {
                assert_eq!(due, [], "{what}");
                continue;
            }
            assert_eq!(
                (due[0].1, due[0].0.epoch),
                (Expected::Unchanged(Revision(4)), None),
                "a claim: {what}"
            );
            published.wrote(due[0].0.clone(), Revision(5), at(1));
            assert_eq!((published.kept().len(), published.unfiled(at(1), false).len()), (0, 1), "{what}");
            assert!(published.found(&entry(&other, created_ms), Revision(6), &me), "again: {what}");
            assert_eq!(published.due(&me, at(5), HEARTBEAT), [], "{what}");
            assert_eq!(published.due(&me, at(6), HEARTBEAT)[0].1, Expected::Unchanged(Revision(6)), "{what}");
        }
    }
    let mut keyed = Published::default();
    keyed.is_now(Row { created_ms: 7, ..row("idle", 3) });
    let theirs = SessionRecord { created_ms: 8, ..SessionRecord::new(row("", 0).session, &other, json!({})) };
    assert!(!keyed.found(&theirs, Revision(3), &me));
    assert_eq!(keyed.superseded().len(), 1);
}

// design fleet, sessions: an entry that is not taken is passed over, and never in the way of others
#[test]
fn what_is_refused_holds_up_nothing() {
    let (mut published, me) = (Published::default(), node("1"));
    let named = |name: &str| Row { session: SessionId::parse(name).expect("an id"), ..row("idle", 1) };
    let ids = |due: Vec<(SessionRecord, Expected)>| {
        due.into_iter().map(|(record, _)| record.session.to_string()).collect::<Vec<_>>()
    };
    for name in ["a", "b", "c"] {
        published.is_now(named(name));
    }
    assert_eq!(ids(published.due(&me, at(1), HEARTBEAT)), ["a", "b", "c"]);
    assert!(published.refused(&named("a").session, at(1), HEARTBEAT), "it is told");
    published.failed(&named("b").session, at(1), HEARTBEAT);
    assert_eq!(ids(published.due(&me, at(1), HEARTBEAT)), ["c", "b"], "what failed comes last");
    let c = published.due(&me, at(1), HEARTBEAT).remove(0).0;
    published.wrote(c, Revision(3), at(1));
    assert!(!published.is_listed());
    for _ in 0..FAILURES {
        published.failed(&named("b").session, at(2), HEARTBEAT);
    }
    assert!(published.due(&me, at(2), HEARTBEAT).is_empty(), "and waits when it fails again and again");
    assert_eq!(ids(published.due(&me, at(7), HEARTBEAT)), ["a", "b"]);
    assert!(!published.refused(&named("a").session, at(7), HEARTBEAT), "it is told once");
    let b = published.due(&me, at(7), HEARTBEAT).remove(0).0;
    published.wrote(b, Revision(4), at(7));
    assert!(published.is_listed(), "as far as the engine takes them");
    // The archive likewise.
    let c = named("c").session;
    assert!(published.refused_piece(&c, at(7), HEARTBEAT));
    assert_eq!(published.unfiled(at(8), false).len(), 1, "only the other one's");
    published.filed(&c, 0, Position(1));
    assert!(!published.refused_piece(&c, at(12), HEARTBEAT), "it is told once");
    published.filed(&c, 1, Position(2));
    published.is_now(Row { seq: 2, ..named("c") });
    assert_eq!(published.unfiled(at(12), false).len(), 2, "what is behind it may be taken");
}

// design fleet, log archive: what is not in the archive is added, as far as is known, and told with the heartbeat
#[test]
fn what_the_archive_lacks_is_added() {
    let (mut published, me) = (Published::default(), node("1"));
    let session = row("idle", 1).session;
    published.is_now(row("idle", 3));
    assert_eq!(
        (published.unfiled(at(0), false), published.lag()),
        (vec![], 3),
        "nothing before it is claimed"
    );
    let claim = published.due(&me, at(0), HEARTBEAT).remove(0).0;
    published.wrote(claim, Revision(7), at(0));
    let unfiled =
        |after, behind| Unfiled { session: session.clone(), claim: Epoch(7), after, behind, seq: 3 };
    assert_eq!(published.unfiled(at(0), false), [unfiled(0, None)]);
    published.filed(&session, 2, Position(9));
    assert_eq!((published.unfiled(at(0), false), published.lag()), (vec![unfiled(2, Some(Position(9)))], 1));
    published.doubt(&session, at(0), HEARTBEAT);
    assert_eq!(published.unfiled(at(0), false), [unfiled(2, None)]);
    published.filed(&session, 3, Position(10));
    assert_eq!((published.unfiled(at(0), false), published.lag()), (vec![], 0));
    assert_eq!(published.due(&me, at(1), HEARTBEAT), []);
    assert_eq!(published.due(&me, at(5), HEARTBEAT)[0].0.archived, 3);
    published.is_now(row("idle", 4));
    published.cannot_file(&session, "it is another one's".to_owned());
    assert_eq!(
        (published.unfiled(at(0), false), published.lag()),
        (vec![], 1),
        "what cannot be added is counted"
    );
    // A process that knows nothing yet goes by what was told.
    let mut again = Published::default();
    again.is_now(row("idle", 3));
    let told = SessionRecord { archived: 2, ..SessionRecord::new(session.clone(), &me, json!({})) };
    again.found(&told, Revision(7), &me);
    assert_eq!(again.unfiled(at(0), false), [unfiled(2, None)]);
}

// design fleet: what was deleted leaves the directory
#[test]
fn what_is_not_there_is_removed() {
    let (mut published, me) = (Published::default(), node("1"));
    published.is_now(row("idle", 1));
    let (record, _) = published.due(&me, at(0), HEARTBEAT).remove(0);
    published.wrote(record, Revision(2), at(0));
    let there = BTreeSet::from([row("idle", 1).session]);
    assert_eq!(published.only(&there), []);
    assert_eq!(published.only(&BTreeSet::new()), [(row("idle", 1).session, Revision(2))]);
    assert_eq!(published.due(&me, at(100), HEARTBEAT), []);
}

// contract 7.3: what a node that joins has of ended sessions comes behind all that others may wait for, and the archive of
// those behind their entries
#[test]
fn what_ended_before_waits() {
    let (mut published, me) = (Published::default(), node("1"));
    let named = |name: &str, ended| Row {
        session: SessionId::parse(name).expect("an id"),
        ended,
        ..row(if ended { "ended" } else { "idle" }, 1)
    };
    for (name, ended) in [("a", true), ("b", false), ("c", true), ("d", true)] {
        published.is_now(named(name, ended));
    }
    let mut wrote = 1;
    let mut write = |published: &mut Published, name: &str| {
        let mut due = published.due(&me, at(1), HEARTBEAT).into_iter();
        let (record, _) = due.find(|(record, _)| record.session.as_str() == name).expect("it is due");
        wrote += 1;
        published.wrote(record, Revision(wrote), at(1));
    };
    let ids = |published: &mut Published| {
        let due = published.due(&me, at(1), HEARTBEAT).into_iter();
        due.map(|(record, _)| record.session.to_string()).collect::<Vec<_>>()
    };
    let unfiled = |published: &Published, is_joining| {
        let unfiled = published.unfiled(at(1), is_joining).into_iter();
        unfiled.map(|unfiled| unfiled.session.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&mut published), ["b", "a", "c", "d"]);
    for name in ["a", "b", "c"] {
        write(&mut published, name);
    }
    assert_eq!(unfiled(&published, true), ["b"], "one is not listed");
    assert_eq!(unfiled(&published, false), ["b", "a", "c"]);
    // It has changed, so it is more than one of those.
    published.is_now(Row { info: json!({"state": "ended", "title": "t"}), ..named("c", true) });
    assert_eq!(ids(&mut published), ["c", "d"]);
    published.failed(&named("d", true).session, at(1), HEARTBEAT);
    assert_eq!(unfiled(&published, true), ["b", "a", "c"], "one that cannot be written holds up no other");
    for number in 0..2 * BATCH {
        published.is_now(named(&format!("many-{number:04}"), true));
    }
    while published.due(&me, at(2), HEARTBEAT).iter().any(|(record, _)| record.session.as_str() != "d") {
        for (record, _) in published.due(&me, at(2), HEARTBEAT) {
            published.wrote(record, Revision(9), at(2));
        }
    }
    assert_eq!(unfiled(&published, false).len(), 1 + BATCH, "the live one waits for some of the others only");
}
