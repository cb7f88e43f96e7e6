//! Several requests at a time, and those whose asker is gone.

use crate::bench::{Bench, PATIENCE, bytes, read, without_waiting_for_threads, write};
use acpd_host::{FileRules, FileSlots, Files, FilesSpec};
use serde_json::json;
use tokio::task::JoinSet;

/// Enough that a write takes several system calls' time.
const SIZE: usize = 1 << 20;

// contract 2.2, FS-4: a reader sees one content or the other, whole, whoever writes
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_at_the_same_time_are_each_whole() {
    let bench = Bench::new().await;
    bench.put("cwd/file", "a".repeat(SIZE));
    let path = bench.text("cwd/file");
    let slots = FileSlots::default();
    let mut sessions = JoinSet::new();
    for letter in ["a", "b", "c"] {
        let spec = FilesSpec { directories: vec![bench.path("cwd")], rules: FileRules::default() };
        let files = Files::open(spec, &slots).await;
        let (path, content) = (path.clone(), letter.repeat(SIZE));
        sessions.spawn(async move {
            for _ in 0..15 {
                write(&files, &path, &content).await.unwrap();
                let read = read(&files, json!({"path": path})).await.unwrap();
                assert!(read == read[..1].repeat(SIZE), "a mixture was read");
            }
        });
    }
    while let Some(ended) = sessions.join_next().await {
        ended.unwrap();
    }
    assert_eq!(bench.names("cwd"), ["file"]);
}

// contract 2.2: in one session, requests take effect in their order
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_write_of_a_session_wins() {
    let bench = Bench::new().await;
    let path = bench.text("cwd/file");
    for _ in 0..20 {
        let request = |content: String| bytes(&json!({"path": path, "content": content}));
        // The first is the longest: it would be last if they raced.
        let (first, second) = (request("1".repeat(SIZE)), request("2".to_owned()));
        let asked = bytes(&json!({"path": path}));
        let files = &bench.files;
        let (one, seen, two, last) = tokio::join!(biased; files.write(first), files.read(asked.clone()), files.write(second), files.read(asked));
        one.unwrap();
        two.unwrap();
        assert_eq!(seen.unwrap().len(), SIZE + r#"{"content":""}"#.len());
        assert_eq!(last.unwrap(), r#"{"content":"2"}"#);
    }
}

// contract 2.2: a write that nobody waits for any more is done as a whole or not begun
#[tokio::test]
async fn a_dropped_write_is_whole_or_not_begun() {
    let bench = Bench::new().await;
    bench.put("cwd/file", "old");
    let path = bench.text("cwd/file");
    let params = bytes(&json!({"path": path, "content": "x".repeat(SIZE)}));
    drop(bench.files.write(params.clone()));
    assert_eq!(bench.read("cwd/file").await.as_deref(), Ok("old"), "it was never asked for");
    let mut writing = Box::pin(bench.files.write(params));
    tokio::select! {
        biased;
        written = &mut writing => panic!("a runtime of one thread had no time for it: {written:?}"),
        () = std::future::ready(()) => {}
    }
    drop(writing);
    // Waits for the write before it, which may have come to its end or not.
    let seen = bench.read("cwd/file").await.unwrap();
    assert!(seen == "old" || seen == "x".repeat(SIZE), "{} bytes", seen.len());
    assert_eq!(bench.names("cwd"), ["file"]);
}

// contract 2.2: slow reads of some sessions take the places of no other, and give their own back in the end
#[test]
fn slow_reads_are_the_business_of_their_session() {
    without_waiting_for_threads(async {
        let bench = Bench::new().await;
        std::fs::File::create(bench.path("cwd/hole")).unwrap().set_len(1 << 41).unwrap();
        bench.put("cwd/file", "text");
        let rules = FileRules { max_skipped: u64::MAX, ..FileRules::default() };
        let (slots, mut sessions) = (FileSlots::default(), Vec::new());
        for _ in 0..9 {
            let spec = FilesSpec { directories: vec![bench.path("cwd")], rules: rules.clone() };
            sessions.push(Files::open(spec, &slots).await);
        }
        let ninth = sessions.pop().unwrap();
        let slow = bytes(&json!({"path": bench.text("cwd/hole"), "line": u64::MAX}));
        let mut reads = Vec::new();
        for session in &sessions {
            for _ in 0..8 {
                let mut reading = Box::pin(session.read(slow.clone()));
                tokio::select! {
                    biased;
                    read = &mut reading => panic!("read to the end: {read:?}"),
                    () = std::future::ready(()) => reads.push(reading),
                }
            }
        }
        let path = bench.text("cwd/file");
        assert_eq!(read(&ninth, json!({"path": path})).await.as_deref(), Ok("text"));
        write(&ninth, &path, "other").await.unwrap();
        drop(reads);
        for session in &sessions {
            // Waits for all that the session has under way.
            tokio::time::timeout(PATIENCE, write(session, &path, "last")).await.unwrap().unwrap();
        }
    });
}
