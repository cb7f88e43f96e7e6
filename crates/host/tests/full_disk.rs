//! A full disk, played by a limit on the size of files. Alone in its process, which the limit is for.

use acpd_host::{FileRules, FileSlots, Files, FilesSpec};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

// FS-4: a disk that is full in the middle of a write leaves the old file, and nothing else
#[tokio::test]
async fn a_full_disk_leaves_the_old_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, "old").unwrap();
    let spec = FilesSpec { directories: vec![directory.path().to_owned()], rules: FileRules::default() };
    let files = Files::open(spec, &FileSlots::default()).await;
    let write = |content: String| files.write(json!({"path": path, "content": content}).to_string().into());

    // Else the limit is said by a signal that ends the process.
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false))).unwrap();
    let before = getrlimit(Resource::Fsize);
    let limited = Rlimit { current: Some(64 << 10), ..before };
    setrlimit(Resource::Fsize, limited).unwrap();
    let refused = write("x".repeat(1 << 20)).await.unwrap_err();
    let new = files.write(
        json!({"path": directory.path().join("new"), "content": "x".repeat(1 << 20)}).to_string().into(),
    );
    let new = new.await.unwrap_err();
    setrlimit(Resource::Fsize, before).unwrap();

    for refused in [refused, new] {
        let (code, message, data) = refused.to_wire();
        assert_eq!((code, data.reason), (-32603, Some("failed")));
        assert!(message.contains("File too large"), "{message}");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    write("x".repeat(1 << 20)).await.unwrap();
}
