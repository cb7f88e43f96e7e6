//! Terminals that outlive their host.

use super::bench::{Bench, OWNER, shell};
use acpd_supervisor::ExitStatus;
use acpd_terminal::{Keeping, KeptTerminal, Note, TerminalEvent, TerminalReport, TerminalState, Told};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

/// Where the next host finds what it needs.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Option<KeptTerminal>>>);

impl Notes {
    fn note(&self) -> Note {
        let notes = self.clone();
        Box::new(move |_, terminal| {
            *notes.0.lock().expect("no test panics with it") = terminal.cloned();
            true
        })
    }

    fn noted(&self) -> Option<KeptTerminal> {
        self.0.lock().expect("no test panics with it").clone()
    }
}

fn keeping(dir: &Path, notes: &Notes) -> Keeping {
    Keeping {
        keep: Duration::from_secs(600),
        detached_bytes: 1 << 20,
        directory: dir.join("keepers"),
        note: notes.note(),
    }
}

/// Until the keeper listens.
async fn listens(dir: &Path, terminal: &KeptTerminal) {
    let socket = dir.join("keepers").join(format!("{}.sock", terminal.mark()));
    while !socket.exists() {
        tokio::task::yield_now().await;
    }
}

/// What a feed tells until `needle`, or the end, without what it leaves out.
async fn told(feed: &mut mpsc::Receiver<TerminalEvent>, needle: &str) -> (String, Option<TerminalReport>) {
    let mut all = String::new();
    while !all.contains(needle) {
        match feed.recv().await.expect("the end is told before the channel closes") {
            TerminalEvent::Output { dropped, text, .. } => {
                assert_eq!(dropped, 0);
                all.push_str(&text);
            }
            TerminalEvent::Ended { report, .. } => return (all, Some(report)),
        }
    }
    (all, None)
}

/// Much, then a wait for a file, then the last words; the characters have two bytes.
const SCRIPT: &str = r#"i=0; while [ $i -lt 20000 ]; do echo "ü$i"; i=$((i+1)); done; echo much
    until [ -e "$DIR/go" ]; do sleep 0.01; done; echo last; exit 5"#;

fn said() -> String {
    (0..20_000).map(|i| format!("ü{i}\n")).collect::<String>() + "much\nlast\n"
}

// contract 7.3: a command goes on under the next host: each of its words is told once, its output and end are the real ones
#[tokio::test]
async fn a_terminal_outlives_its_host() {
    let dir = tempfile::tempdir().expect("a scratch directory");
    let (first, next, notes) = (Bench::new(), Bench::new(), Notes::default());
    let (sender, mut feed) = mpsc::channel(64);
    let mut spec = shell(SCRIPT);
    spec.env.push(("DIR".into(), dir.path().into()));
    spec.output_byte_limit = Some(1000);
    let kept = first.terminals.create_kept(OWNER, spec, Some(sender), Some(keeping(dir.path(), &notes)));
    let id = kept.await.expect("sh starts");
    let before = told(&mut feed, "much\n").await.0;
    let terminal = notes.noted().expect("it was noted");
    assert_eq!(terminal.id(), id);
    listens(dir.path(), &terminal).await;

    // The last of it was told and not recorded.
    let recorded = before.len() - "much\n".len();
    let (sender, mut feed) = mpsc::channel(64);
    let before_it = Told { text: recorded as u64, end: false };
    let where_to = (&*dir.path().join("keepers"), "example".into(), notes.note());
    next.terminals.take_over(OWNER, terminal, before_it, sender, where_to).await.expect("its keeper answers");
    let lost = first.get(&id).wait_for_exit().await;
    assert_eq!(lost, TerminalReport { state: TerminalState::Killed, status: ExitStatus::Unknown });
    std::fs::write(dir.path().join("go"), "").expect("written");
    let (after, end) = told(&mut feed, "\0").await;
    assert_eq!(format!("{}{after}", &before[..recorded]), said());
    let finished = TerminalReport { state: TerminalState::Finished, status: ExitStatus::Code(5) };
    assert_eq!(end.as_ref(), Some(&finished));

    let terminal = next.get(&id);
    assert_eq!(terminal.wait_for_exit().await, finished);
    let output = terminal.output(Some(500_000)).await.expect("it is there").output;
    assert_eq!((&*output.text, output.truncated), (&*said(), false), "all of it was kept");
    let output = terminal.output(None).await.expect("it is there").output;
    assert_eq!((output.text.len() <= 1000, output.truncated), (true, true));
    assert!(said().ends_with(&output.text));
    assert!(notes.noted().is_some());
    next.terminals.release(OWNER, &id).await.expect("it is there");
    next.nothing_left().await;
    assert_eq!(notes.noted(), None);
    first.nothing_left().await;
}

// contract 7.3: what the log has of the end is not told again; a stop whose reason is gone was a kill
#[tokio::test]
async fn an_end_is_told_once() {
    let dir = tempfile::tempdir().expect("a scratch directory");
    let (first, next, notes) = (Bench::new(), Bench::new(), Notes::default());
    let kept = keeping(dir.path(), &notes);
    let id = first.terminals.create_kept(OWNER, shell("echo so; exec sleep 1000"), None, Some(kept)).await;
    let id = id.expect("sh starts");
    let terminal = notes.noted().expect("it was noted");
    listens(dir.path(), &terminal).await;
    while first.get(&id).output(None).await.expect("it is there").output.text != "so\n" {
        tokio::task::yield_now().await;
    }
    assert_eq!(first.get(&id).kill().await.state, TerminalState::Killed);
    let (sender, mut feed) = mpsc::channel(64);
    let where_to = (&*dir.path().join("keepers"), "example".into(), notes.note());
    let all = Told { text: 3, end: true };
    next.terminals.take_over(OWNER, terminal, all, sender, where_to).await.expect("its keeper answers");
    let end = next.get(&id).wait_for_exit().await;
    let killed =
        TerminalReport { state: TerminalState::Killed, status: ExitStatus::Signal("SIGTERM".into()) };
    assert_eq!(end, killed);
    assert_eq!(next.get(&id).output(None).await.expect("it is there").output.text, "so\n");
    assert_eq!(feed.recv().await, None);
    next.terminals.release_all(OWNER).await;
    next.nothing_left().await;
    first.nothing_left().await;
}
