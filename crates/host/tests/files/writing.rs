//! What is written.

use crate::bench::{Bench, read, reason, refusal, write};
use acpd_host::FileRules;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

fn mode(bench: &Bench, name: &str) -> u32 {
    std::fs::metadata(bench.path(name)).expect("it is there").mode() & 0o7777
}

// contract 2.2, FS-4: a file is made or replaced, to the letter, and nothing else is left
#[tokio::test]
async fn a_file_is_made_and_replaced() {
    let bench = Bench::new().await;
    for content in ["first\r\nno end", "", "x\0\u{1f600}\n", "shorter"] {
        bench.write("cwd/file", content).await.unwrap();
        assert_eq!(bench.get("cwd/file"), content);
        assert_eq!(bench.read("cwd/file").await.as_deref(), Ok(content));
    }
    let longest = "n".repeat(255);
    bench.write(&format!("cwd/{longest}"), "text").await.unwrap();
    assert_eq!(bench.names("cwd"), ["file", &longest]);
}

// contract 2.2, FS-4: missing parents are made, with the mode that any program would give them
#[tokio::test]
async fn missing_parents_are_made() {
    let bench = Bench::new().await;
    bench.link("cwd/new", "not/there/yet");
    bench.link("cwd/across", bench.path("more/not/yet"));
    for (name, target) in [
        ("cwd/a/b/c/file", "cwd/a/b/c/file"),
        ("cwd/a/b/other", "cwd/a/b/other"),
        ("cwd/x/../y/file", "cwd/y/file"),
        ("cwd/new", "cwd/not/there/yet"),
        ("cwd/across/below", "more/not/yet/below"),
    ] {
        bench.write(name, name).await.unwrap();
        assert_eq!(bench.get(target), name);
    }
    std::fs::create_dir(bench.path("cwd/plain")).unwrap();
    std::fs::write(bench.path("cwd/plain/file"), "").unwrap();
    assert_eq!(mode(&bench, "cwd/a/b"), mode(&bench, "cwd/plain"));
    assert_eq!(mode(&bench, "cwd/a/b/other"), mode(&bench, "cwd/plain/file"));
    assert!(std::fs::symlink_metadata(bench.path("cwd/new")).unwrap().is_symlink());
    assert!(!bench.path("cwd/x").exists(), "only what is needed is made");
}

// contract 2.2, FS-4: mode bits stay; a link stays a link and its target is written
#[tokio::test]
async fn the_mode_and_the_link_stay() {
    let bench = Bench::new().await;
    for (bits, kept) in [(0o755, 0o755), (0o600, 0o600), (0o666, 0o666), (0o4755, 0o755), (0o2755, 0o755)] {
        bench.put("cwd/script", "old");
        std::fs::set_permissions(bench.path("cwd/script"), Permissions::from_mode(bits)).unwrap();
        bench.write("cwd/script", "#!/bin/sh\n").await.unwrap();
        assert_eq!(mode(&bench, "cwd/script"), kept, "{bits:o}");
    }
    bench.link("cwd/link", "script");
    bench.link("more/far", bench.path("cwd/link"));
    bench.write("more/far", "through").await.unwrap();
    assert_eq!(bench.get("cwd/script"), "through");
    assert_eq!(mode(&bench, "cwd/script"), 0o755);
    for link in ["cwd/link", "more/far"] {
        assert!(std::fs::symlink_metadata(bench.path(link)).unwrap().is_symlink());
    }
}

// FS-4: a file is replaced, not written into: another name for it keeps what it had
#[tokio::test]
async fn a_hard_link_keeps_the_old_content() {
    let bench = Bench::new().await;
    bench.put("cwd/file", "old");
    std::fs::hard_link(bench.path("cwd/file"), bench.path("outside/other")).unwrap();
    bench.write("cwd/file", "new").await.unwrap();
    assert_eq!((bench.get("cwd/file").as_str(), bench.get("outside/other").as_str()), ("new", "old"));
}

// FS-3, FS-4: what cannot be a file is refused, and stays what it is
#[tokio::test]
async fn what_is_no_file_is_not_replaced() {
    let bench = Bench::new().await;
    bench.put("cwd/file", "text");
    std::fs::create_dir(bench.path("cwd/empty")).unwrap();
    mknodat(CWD, bench.path("cwd/pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    for (name, expected) in [
        ("cwd", "directory"),
        ("cwd/", "directory"),
        ("cwd/empty", "directory"),
        ("cwd/new/", "directory"),
        ("cwd/file/", "directory"),
        ("cwd/file/.", "directory"),
        ("cwd/file/below", "not_directory"),
        ("cwd/pipe", "special"),
    ] {
        assert_eq!(reason(bench.write(name, "new").await), (-32602, expected.to_owned()), "{name}");
    }
    let name = format!("cwd/{}", "n".repeat(256));
    assert_eq!(reason(bench.write(&name, "new").await), (-32603, "failed".to_owned()));
    assert_eq!(bench.names("cwd"), ["empty", "file", "pipe"]);
    assert_eq!(bench.get("cwd/file"), "text");
}

// FS-3: content is bounded before anything is done
#[tokio::test]
async fn size_is_bounded() {
    let bench = Bench::with(FileRules { confine: true, max_bytes: 10, ..FileRules::default() }).await;
    bench.write("cwd/file", "0123456789").await.unwrap();
    let refused = bench.write("cwd/new/file", "0123456789a").await.unwrap_err();
    let path = bench.text("cwd/new/file");
    assert_eq!(
        (refused.code, refused.data),
        (-32602, json!({"path": path, "reason": "too_large", "limit": 10}))
    );
    assert_eq!(bench.names("cwd"), ["file"]);
}

// FS-1: what is no request is refused with the field
#[tokio::test]
async fn a_wrong_field_is_named() {
    let bench = Bench::new().await;
    for (params, says) in [
        (json!({"path": "a", "content": "x"}), r#"path: "a" is not absolute; give the full path"#),
        (json!({"path": bench.text("cwd/a")}), "content: a string is required"),
        (json!({"path": bench.text("cwd/a"), "content": null}), "content: a string is required"),
        (json!({"path": bench.text("cwd/a"), "content": 7}), "content: a string is required"),
    ] {
        let refused = bench.files.write(params.to_string().into()).await.unwrap_err();
        assert_eq!((refusal(&refused).code, refusal(&refused).message.as_str()), (-32602, says));
    }
    assert_eq!(bench.names("cwd"), [""; 0]);
}

// contract 2.2: devices are refused where nothing confines the session
#[tokio::test]
async fn a_device_is_not_written() {
    let bench = Bench::with(FileRules { confine: false, ..FileRules::default() }).await;
    assert_eq!(reason(write(&bench.files, "/dev/null", "x").await), (-32602, "special".to_owned()));
    assert!(read(&bench.files, json!({"path": bench.text("cwd/none")})).await.is_err());
}
