//! Other users of the machine: their directories, their sockets, and what of ours they can reach.
//!
//! Being another user takes root; without it, what is left is shown.

use crate::cli::{fails, run};
use acpd_e2e::{Exit, PATIENCE, Scratch};
use rustix::fs::{Gid, Uid};
use std::fs::{Permissions, create_dir, metadata, set_permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

/// Another user.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn mode(path: &Path) -> u32 {
    metadata(path).expect("it is there").permissions().mode() & 0o7777
}

fn allow(path: &Path, bits: u32) {
    set_permissions(path, Permissions::from_mode(bits)).expect("it is ours");
}

/// Does something as another user, in a thread that is that user.
fn as_nobody<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let acting = scope.spawn(|| {
            let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
            rustix::thread::set_thread_res_gid(gid, gid, gid).expect("root may");
            rustix::thread::set_thread_res_uid(uid, uid, uid).expect("root may");
            act()
        });
        acting.join().expect("it does not panic")
    })
}

// contract 6, SC-1: a state directory of ours is made private, and it is said; a private one is not spoken of
#[test]
fn an_open_state_directory_is_made_private() {
    let scratch = Scratch::new();
    scratch.config_file();
    for (bits, words) in [(0o777, "mode 0777"), (0o750, "mode 0750"), (0o700, "")] {
        if !scratch.state().exists() {
            create_dir(scratch.state()).expect("the scratch directory is writable");
        }
        allow(&scratch.state(), bits);
        let mut daemon = scratch.serve();
        assert_eq!(mode(&scratch.state()), 0o700, "while it serves");
        let said = daemon.stop();
        assert_eq!(said.contains("its mode is 0700 now") && said.contains(words), bits != 0o700, "{said}");
        allow(&scratch.state(), bits);
        let (exit, _, err) = run(&scratch, &["run", "--embedded", "hello"]);
        assert_eq!((exit, mode(&scratch.state())), (Exit::Code(0), 0o700), "{err}");
        assert_eq!(err.contains("its mode is 0700 now"), bits != 0o700, "{err}");
    }
}

// SC-1: where others could write, what listens may be theirs: nothing is said to it, and it is said what to do
#[test]
fn a_socket_in_an_open_directory_is_not_trusted() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let list = ["sessions", "list"];
    assert_eq!(run(&scratch, &list).0, Exit::Code(0));
    allow(&scratch.state(), 0o777);
    for words in [&list[..], &["run", "hello"], &["agents", "list"], &["stdio", "--agent", "example"]] {
        let err = fails(&scratch, 1, words);
        assert!(err.contains("others can write") && err.contains("`chmod 700 "), "{words:?}: {err}");
    }
    allow(&scratch.state(), 0o755);
    assert_eq!(run(&scratch, &list).0, Exit::Code(0));
    daemon.stop();
}

// SC-1: a state directory of another user is not used, nor one in which others have left something
#[test]
fn what_belongs_to_others_is_refused() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    scratch.config_file();
    create_dir(scratch.state()).expect("the scratch directory is writable");
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    chown(scratch.state(), Some(NOBODY), Some(NOBODY)).expect("root may");
    for words in [&serve[..], &["run", "--embedded", "hello"]] {
        let err = fails(&scratch, 1, words);
        assert!(err.contains("belongs to another user (uid 65534") && err.contains("chown -R 0"), "{err}");
    }
    chown(scratch.state(), Some(0), Some(0)).expect("root may");
    allow(&scratch.state(), 0o777);
    let planted = scratch.state().join("daemon.lock");
    std::os::unix::fs::symlink(scratch.config_file(), &planted).expect("the directory is writable");
    std::os::unix::fs::lchown(&planted, Some(NOBODY), Some(NOBODY)).expect("root may");
    let err = fails(&scratch, 1, &serve);
    assert!(err.contains("daemon.lock belongs to another user (uid 65534)"), "{err}");
    std::fs::remove_file(planted).expect("it is there");
    scratch.serve().stop();
}

// SC-1: another user's program that listens in the daemon's place gets no byte
#[test]
fn another_users_socket_is_told_nothing() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    scratch.config_file();
    allow(&scratch.path(""), 0o755);
    create_dir(scratch.state()).expect("the scratch directory is writable");
    allow(&scratch.state(), 0o777);
    let socket = scratch.state().join("acpd.sock");
    let theirs = as_nobody(|| UnixListener::bind(&socket).expect("anybody may"));
    let unix = format!("unix:{}", socket.display());
    for (bits, words) in [(0o777, "others can write"), (0o755, "runs as another user (uid 65534)")] {
        allow(&scratch.state(), bits);
        for command in [&["sessions", "list"][..], &["run", "hello"]] {
            let err = fails(&scratch, 1, command);
            assert!(
                err.contains(words) || err.contains("runs as another user (uid 65534)"),
                "{command:?}: {err}"
            );
            told_nothing(&theirs);
        }
        let err = fails(&scratch, 1, &["sessions", "list", "--connect", &unix]);
        assert!(err.contains("runs as another user (uid 65534)"), "{err}");
        told_nothing(&theirs);
    }
}

/// A client came, and went without a word.
fn told_nothing(listener: &UnixListener) {
    let (mut stream, _) = listener.accept().expect("a client came");
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).expect("and went");
    assert_eq!(String::from_utf8_lossy(&heard), "");
}

// SC-1: a socket that was opened to others is still its owner's
#[test]
fn another_user_is_refused_at_the_socket() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    allow(&scratch.path(""), 0o755);
    allow(&scratch.state(), 0o755);
    allow(&daemon.socket(), 0o666);
    let path = daemon.socket();
    let ask = |header: &str| {
        let mut socket = UnixStream::connect(&path).expect("its mode lets anybody");
        socket.set_read_timeout(Some(PATIENCE)).expect("the time is not zero");
        let request = format!("GET /v1/sessions HTTP/1.1\r\nHost: acpd\r\n{header}\r\n");
        socket.write_all(request.as_bytes()).expect("the daemon reads");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("it answers and closes");
        answer
    };
    // It is not kept, though it did not ask to be closed.
    let refused = as_nobody(|| ask(""));
    assert!(refused.starts_with("HTTP/1.1 403") && refused.contains("foreign_user"), "{refused}");
    assert!(refused.contains("not for uid 65534"), "{refused}");
    assert!(ask("Connection: close\r\n").starts_with("HTTP/1.1 200"), "its owner");
    daemon.stop();
}
