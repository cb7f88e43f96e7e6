//! What the user may not do. As root, the tests give up root's way around permissions first.

use crate::bench::{Bench, reason, write};
use acpd_host::{FileRules, FileSlots, Files, FilesSpec};
use rustix::fs::IFlags;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

/// Runs on a thread to which permissions apply; those that it starts get its rights.
fn as_a_user(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let before = capabilities(None).expect("a thread knows its capabilities");
    let mut sets = before;
    sets.effective &= !(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH | CapabilitySet::FOWNER);
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

// FS-4: in a directory that cannot be written nothing is made, and nothing is left behind
#[test]
fn a_read_only_directory_gets_no_new_files() {
    as_a_user(async {
        let bench = Bench::new().await;
        std::fs::create_dir(bench.path("cwd/fixed")).unwrap();
        bench.put("cwd/fixed/file", "old");
        allow(&bench, "cwd/fixed/file", 0o444);
        allow(&bench, "cwd/fixed", 0o555);
        for name in ["cwd/fixed/file", "cwd/fixed/new", "cwd/fixed/new/below"] {
            assert_eq!(reason(bench.write(name, "new").await), (-32603, "denied".to_owned()), "{name}");
        }
        assert_eq!(bench.names("cwd/fixed"), ["file"]);
        assert_eq!(bench.get("cwd/fixed/file"), "old");
        allow(&bench, "cwd/fixed", 0o755);
    });
}

// quirk fixed-name (dev containers, shared directories): a file that can be written and not replaced is written in place, and
// stays the file that it was
#[test]
fn a_file_that_cannot_be_replaced_is_written_in_place() {
    as_a_user(async {
        let bench = Bench::new().await;
        for (directory, mode) in [("cwd/fixed", 0o555), ("cwd/sticky", 0o1777)] {
            std::fs::create_dir(bench.path(directory)).unwrap();
            let file = format!("{directory}/file");
            bench.put(&file, "old and longer");
            allow(&bench, &file, 0o666);
            allow(&bench, directory, mode);
            // Without the right to give files away, the sticky bit says nothing of our own.
            let _only_root =
                [file.as_str(), directory].map(|name| chown(bench.path(name), Some(12345), Some(23456)));
            let inode = |bench: &Bench| std::fs::metadata(bench.path(&file)).unwrap().ino();
            let before = inode(&bench);
            for content in ["new", "new and longer than what was there", ""] {
                bench.write(&file, content).await.unwrap();
                assert_eq!(
                    (bench.get(&file).as_str(), bench.names(directory)),
                    (content, vec!["file".to_owned()])
                );
            }
            let replaced = inode(&bench) != before;
            assert_eq!(replaced, directory == "cwd/sticky" && !is_root(), "{directory}");
            let _only_root = chown(bench.path(directory), Some(rustix::process::geteuid().as_raw()), None);
            allow(&bench, directory, 0o755);
        }
    });
}

// FS-4: what may only grow is neither replaced nor written over
#[test]
fn a_file_that_may_only_grow_is_refused() {
    as_a_user(async {
        let bench = Bench::new().await;
        bench.put("cwd/log", "old\n");
        let log = std::fs::File::open(bench.path("cwd/log")).unwrap();
        let flags = rustix::fs::ioctl_getflags(&log).unwrap_or(IFlags::empty());
        if rustix::fs::ioctl_setflags(&log, flags | IFlags::APPEND).is_err() {
            // Neither every user nor every file system can have such a file.
            return;
        }
        let refused = bench.write("cwd/log", "new").await;
        rustix::fs::ioctl_setflags(&log, flags).unwrap();
        assert_eq!(reason(refused), (-32603, "denied".to_owned()));
        assert_eq!((bench.get("cwd/log").as_str(), bench.names("cwd")), ("old\n", vec!["log".to_owned()]));
    });
}

/// Says that the test runs where it may mount.
const MAY_MOUNT: &str = "ACPD_TEST_MAY_MOUNT";

// quirk fixed-name
#[test]
fn a_mount_point_is_written_in_place() {
    const NAME: &str = "permissions::a_mount_point_is_written_in_place";
    if std::env::var_os(MAY_MOUNT).is_none() {
        let this = std::env::current_exe().expect("a test has a program");
        let mut again = program("unshare");
        again.args(["--mount", "--map-root-user", "--"]).arg(this).args(["--exact", NAME, "--nocapture"]);
        // Not every machine lets a user mount anything.
        if let Ok(again) = again.env(MAY_MOUNT, "1").output()
            && !again.stderr.starts_with(b"unshare:")
        {
            assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stdout));
        }
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let bench = Bench::new().await;
        bench.put("outside/source", "old");
        bench.put("cwd/conf", "");
        let mount = |options: &[&str], on: &str| {
            let mounted = program("mount").args(options).arg(bench.path(on)).status();
            assert!(mounted.is_ok_and(|status| status.success()), "{options:?}");
        };
        let source = bench.text("outside/source");
        mount(&["--bind", &source], "cwd/conf");
        bench.write("cwd/conf", "new").await.unwrap();
        assert_eq!(
            (bench.get("outside/source").as_str(), bench.names("cwd")),
            ("new", vec!["conf".to_owned()])
        );
        // The same below a mount that is read-only.
        let cwd = bench.text("cwd");
        mount(&["--rbind", &cwd], "cwd");
        mount(&["-o", "remount,bind,ro"], "cwd");
        let spec = FilesSpec { directories: vec![bench.path("cwd")], rules: FileRules::default() };
        let files = Files::open(spec, &FileSlots::default()).await;
        write(&files, &bench.text("cwd/conf"), "newer").await.unwrap();
        assert_eq!(bench.get("outside/source"), "newer");
        assert_eq!(reason(write(&files, &bench.text("cwd/other"), "x").await), (-32603, "denied".to_owned()));
    });
}

#[expect(clippy::disallowed_methods, reason = "a test's own program, whose end it waits for")]
fn program(name: &str) -> std::process::Command {
    std::process::Command::new(name)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
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
