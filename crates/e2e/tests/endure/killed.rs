//! SIGKILL of a daemon that many watch: at the next start each goes on where it was.
//!
//! `ACPD_KILLS` sets the number of lives:
//!
//! ```text
//! ACPD_KILLS=50 cargo test -p acpd-e2e --test endure killed
//! ```

use crate::flow::driver;
use crate::rest::{Came, Viewer, get};
use acpd_e2e::{Events, PATIENCE, Scratch};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

const KILLS: usize = 4;
const SESSIONS: usize = 4;
/// Viewers of each session.
const VIEWERS: usize = 4;
/// Messages of each session.
const MESSAGES: usize = 4_000;

/// Reads until the daemon dies, waits for the next one, and reads to the end of the session.
fn watch(
    mut viewer: Viewer,
    mut events: Events,
    address: SocketAddr,
    count: impl Fn(),
    next: &Receiver<()>,
) -> Viewer {
    loop {
        match viewer.take(&mut events) {
            Came::Event(_) => count(),
            Came::Nothing => break,
            closed @ Came::Closed(_) => panic!("it dies without a word: {closed:?}"),
        }
    }
    next.recv_timeout(PATIENCE).expect("there is a next one");
    let mut events = viewer.open(address);
    viewer.read_to_end(&mut events);
    viewer
}

// UP-5, TM-4, SU-3, HT-6, contract 1.2, contract 1.6: after SIGKILL each viewer goes on by its cursor without a hole and
// without anything twice, the end is on record, no agent is left
#[test]
fn viewers_outlive_their_daemon() {
    let lives = std::env::var("ACPD_KILLS").map_or(KILLS, |kills| kills.parse().expect("it is a number"));
    let scratch = Scratch::new().keep("0s");
    let mut daemon = scratch.serve();
    let address = daemon.address();
    for life in 0..lives {
        // Each life ends a little later than the one before.
        let moment = 1 + (MESSAGES * SESSIONS * VIEWERS - 1) * life / lives;
        let mut clients: Vec<_> = (0..SESSIONS).map(|_| driver(&daemon, &scratch)).collect();
        let sessions: Vec<String> = clients.iter().map(|(_, session)| session.clone()).collect();
        let (count, (reached, is_time)) = (AtomicUsize::new(0), sync_channel(1));
        let seen = thread::scope(|scope| {
            let watched = sessions.iter().flat_map(|session| std::iter::repeat_n(session, VIEWERS));
            let viewers: Vec<_> = watched
                .map(|session| {
                    let (start, next) = sync_channel(1);
                    let (viewer, count, reached) = (Viewer::of(session), &count, reached.clone());
                    let events = viewer.open(address);
                    let count = move || {
                        if count.fetch_add(1, Ordering::Relaxed) + 1 == moment {
                            reached.send(()).expect("the test waits");
                        }
                    };
                    (start, scope.spawn(move || watch(viewer, events, address, count, &next)))
                })
                .collect();
            for (client, session) in &mut clients {
                client.prompt(session, &format!("stream {MESSAGES} 200\nhang"));
            }
            is_time.recv_timeout(PATIENCE).expect("so much is read");
            daemon.kill();
            let left = scratch.mark().only_left(&[]);
            left.expect("no agent outlives it");
            daemon = scratch.serve_on(&address.to_string());
            assert_eq!(daemon.address(), address);
            let (starts, viewers): (Vec<_>, Vec<_>) = viewers.into_iter().unzip();
            for start in starts {
                start.send(()).expect("the viewer waits");
            }
            viewers
                .into_iter()
                .map(|viewer| viewer.join().expect("it has seen everything"))
                .collect::<Vec<_>>()
        });
        for (session, seen) in sessions.iter().zip(seen.chunks(VIEWERS)) {
            let info = get(address, &format!("/v1/sessions/{session}"));
            let end = &info["terminationInfo"];
            assert_eq!((&info["ended"], &end["cause"]), (&true.into(), &"daemon_lost".into()), "{info}");
            assert_eq!((&end["reason"], &end["terminatedBy"]), (&"error".into(), &"daemon".into()));
            assert_eq!(end["message"], "daemon stopped while the session was live");
            assert_eq!(seen[0].last()["terminationInfo"], *end, "the record is the last event");
            let mut fresh = Viewer::of(session);
            let mut events = fresh.open(address);
            fresh.read_to_end(&mut events);
            assert!(seen.iter().all(|viewer| viewer.seen == fresh.seen), "all have seen what is stored");
        }
        assert!(scratch.mark().running("example-agent").is_empty(), "nobody has started one again");
    }
    daemon.stop();
}
