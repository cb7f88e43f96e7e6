//! What the user may not do. As root, the tests give up root's way around permissions first.

use crate::bench::{Bench, reason};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

/// Runs on a thread to which permissions apply; those that it starts get its rights.
fn as_a_user(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let before = capabilities(None).expect("a thread knows its capabilities");
    let mut sets = before;
    sets.effective &= !(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
    set_capabilities(None, sets).expect("a thread may give up its capabilities");
    runtime.block_on(test);
    set_capabilities(None, before).expect("a thread may take them again");
}

fn allow(bench: &Bench, name: &str, bits: u32) {
    std::fs::set_permissions(bench.path(name), Permissions::from_mode(bits)).expect("the mode is set");
}

// FS-4: what the user may not write is not replaced, though the directory would allow it
#[test]
fn a_read_only_file_is_not_replaced() {
    as_a_user(async {
        let bench = Bench::new().await;
        bench.put("cwd/file", "old");
        allow(&bench, "cwd/file", 0o444);
        let refused = bench.write("cwd/file", "new").await.unwrap_err();
        assert!(refused.message.contains("Permission denied"), "{}", refused.message);
        assert_eq!(reason::<()>(Err(refused)), (-32603, "denied".to_owned()));
        assert_eq!((bench.get("cwd/file").as_str(), bench.names("cwd")), ("old", vec!["file".to_owned()]));
        assert_eq!(bench.read("cwd/file").await.as_deref(), Ok("old"));
    });
}

// FS-4: a directory that cannot be written: a clean error, the old file, and nothing left behind
#[test]
fn a_read_only_directory_keeps_its_files() {
    as_a_user(async {
        let bench = Bench::new().await;
        std::fs::create_dir(bench.path("cwd/fixed")).unwrap();
        bench.put("cwd/fixed/file", "old");
        allow(&bench, "cwd/fixed", 0o555);
        for name in ["cwd/fixed/file", "cwd/fixed/new", "cwd/fixed/new/below"] {
            assert_eq!(reason(bench.write(name, "new").await), (-32603, "denied".to_owned()), "{name}");
        }
        assert_eq!(bench.names("cwd/fixed"), ["file"]);
        assert_eq!(bench.get("cwd/fixed/file"), "old");
        allow(&bench, "cwd/fixed", 0o755);
    });
}

// FS-3: what the user may not read, or not even look into
#[test]
fn what_cannot_be_read_is_denied() {
    as_a_user(async {
        let bench = Bench::new().await;
        std::fs::create_dir(bench.path("cwd/closed")).unwrap();
        bench.put("cwd/closed/file", "text");
        bench.put("cwd/file", "text");
        bench.link("cwd/out", "closed/../../outside/secret");
        allow(&bench, "cwd/file", 0o200);
        allow(&bench, "cwd/closed", 0o000);
        for name in ["cwd/file", "cwd/closed/file", "cwd/closed/none"] {
            assert_eq!(reason(bench.read(name).await), (-32603, "denied".to_owned()), "{name}");
        }
        assert_eq!(reason(bench.write("cwd/closed/file", "x").await), (-32603, "denied".to_owned()));
        assert_eq!(bench.read("cwd/out").await, Err(bench.outside("cwd/out")));
        // May be written though it may not be read.
        bench.write("cwd/file", "new").await.unwrap();
        allow(&bench, "cwd/file", 0o600);
        assert_eq!(bench.get("cwd/file"), "new");
        allow(&bench, "cwd/closed", 0o700);
    });
}

// FS-4: somebody else's file stays theirs, where acpd may say so
#[tokio::test]
async fn the_owner_stays() {
    use std::os::unix::fs::{MetadataExt, chown};
    let bench = Bench::new().await;
    bench.put("cwd/file", "old");
    // Without the right to give files away, the test is of our own file.
    let _only_root = chown(bench.path("cwd/file"), Some(12345), Some(23456));
    let owner = |bench: &Bench| {
        let file = std::fs::metadata(bench.path("cwd/file")).unwrap();
        (file.uid(), file.gid())
    };
    let before = owner(&bench);
    bench.write("cwd/file", "new").await.unwrap();
    assert_eq!((owner(&bench), bench.get("cwd/file").as_str()), (before, "new"));
}
