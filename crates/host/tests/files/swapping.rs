//! Links that change between the look and the use.

use crate::bench::{Bench, PATIENCE, without_waiting_for_threads};
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// How often is read and written at least while the links change.
pub(crate) const ROUNDS: usize = 500;

/// Swaps two names, again and again, as fast as it can.
pub(crate) struct Swapper {
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Swapper {
    pub(crate) fn new(one: PathBuf, other: PathBuf) -> Self {
        let (stop, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&swaps));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).expect("both are there");
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { stop, swaps, thread: Some(thread) }
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            assert!(thread.join().is_ok() || std::thread::panicking());
        }
    }
}

/// Reads and writes while the two names are swapped, until some of it was served and so much, at least, refused as outside.
/// What is read is what is inside.
async fn attack(bench: &Bench, names: [&str; 2], (reads, writes): (&str, &str), least_refused: usize) {
    let swapper = Swapper::new(bench.path(names[0]), bench.path(names[1]));
    let swaps = || swapper.swaps.load(Ordering::Relaxed);
    let (mut rounds, mut served, mut refused) = (0, 0, 0);
    let race = async {
        while rounds < ROUNDS || served == 0 || refused < least_refused || swaps() <= 100 {
            rounds += 1;
            let read = bench.read(reads).await;
            if let Ok(text) = &read {
                assert!(text == "inside\n" || text.starts_with("written"), "{text:?} was read");
            }
            let written = bench.write(writes, &format!("written {rounds}\n")).await;
            for (name, done) in [(reads, read.map(drop)), (writes, written)] {
                match done {
                    Ok(()) => served += 1,
                    Err(refusal) => {
                        assert_eq!(refusal.data["path"], bench.text(name));
                        refused += usize::from(refusal == bench.outside(name));
                    }
                }
            }
        }
    };
    let was_run = tokio::time::timeout(PATIENCE, race).await.is_ok();
    let swaps = swaps();
    assert!(
        was_run,
        "{rounds} rounds, {served} served, {refused} refused, {swaps} swaps: the race was not run"
    );
    drop(swapper);
    bench.assert_outside_is_untouched();
}

// contract 2.2, FS-1: a directory that becomes a link to the outside, and back, and so on
#[tokio::test]
async fn a_directory_that_is_swapped_for_a_link_does_not_let_out() {
    let bench = Bench::new().await;
    std::fs::create_dir(bench.path("cwd/directory")).unwrap();
    bench.put("cwd/directory/secret", "inside\n");
    bench.link("cwd/link", bench.path("outside"));
    let names = ["cwd/directory", "cwd/link"];
    attack(&bench, names, ("cwd/directory/secret", "cwd/directory/new"), 1).await;
}

// contract 2.2, FS-1: the same by way of `..`
#[tokio::test]
async fn a_relative_link_that_is_swapped_does_not_let_out() {
    let bench = Bench::new().await;
    std::fs::create_dir_all(bench.path("cwd/deep/directory")).unwrap();
    bench.put("cwd/deep/directory/secret", "inside\n");
    bench.link("cwd/link", "../../outside");
    let names = ["cwd/deep/directory", "cwd/link"];
    attack(&bench, names, ("cwd/deep/directory/secret", "cwd/deep/directory/made/new"), 1).await;
}

// contract 2.2, FS-1: the file itself becomes a link to the outside
#[tokio::test]
async fn a_file_that_is_swapped_for_a_link_does_not_let_out() {
    let bench = Bench::new().await;
    bench.put("cwd/file", "inside\n");
    bench.link("cwd/link", bench.path("outside/secret"));
    // A write puts a file in the place of the link, after which nothing is outside.
    attack(&bench, ["cwd/file", "cwd/link"], ("cwd/file", "cwd/file"), 0).await;
}

// contract 2.2, FS-1: a link inside becomes one that leads out
#[tokio::test]
async fn a_link_that_is_swapped_for_another_does_not_let_out() {
    let bench = Bench::new().await;
    std::fs::create_dir(bench.path("more/directory")).unwrap();
    bench.put("more/directory/secret", "inside\n");
    bench.link("cwd/in", bench.path("more/directory"));
    bench.link("cwd/out", bench.path("outside"));
    attack(&bench, ["cwd/in", "cwd/out"], ("cwd/in/secret", "cwd/in/new"), 1).await;
}

// FS-3: a pipe that takes a file's place after the look does not block the read
#[test]
fn a_file_that_is_swapped_for_a_pipe_does_not_block() {
    without_waiting_for_threads(async {
        let bench = Bench::new().await;
        bench.put("cwd/file", "inside\n");
        mknodat(CWD, bench.path("cwd/pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let swapper = Swapper::new(bench.path("cwd/file"), bench.path("cwd/pipe"));
        let (mut served, mut refused) = (0, 0);
        let race = async {
            while served + refused < ROUNDS * 2 || served == 0 || refused == 0 {
                match bench.read("cwd/file").await {
                    Ok(text) => {
                        assert_eq!(text, "inside\n");
                        served += 1;
                    }
                    Err(refusal) => {
                        assert_eq!(refusal.data["reason"], "special");
                        refused += 1;
                    }
                }
            }
        };
        let was_run = tokio::time::timeout(PATIENCE, race).await.is_ok();
        drop(swapper);
        assert!(was_run, "{served} served, {refused} refused: the race was not run");
    });
}
