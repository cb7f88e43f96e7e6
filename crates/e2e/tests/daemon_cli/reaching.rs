//! Ways to a daemon: tokens, TLS, sockets by name, and what is not one.

use crate::cli::{args, done, fails, front_end, leave};
use acpd_e2e::{Exit, Scratch, acpd};
use std::net::TcpListener;

pub(crate) const TOKEN: &str = "secret-of-the-observer";
/// Its SHA-256.
const HASH: &str = "35966b56323fd867851c9a8587cde081e0ce789fffc54023358ec6a0dc2e67ae";

pub(crate) fn with_token(scope: &str) -> Scratch {
    Scratch::new()
        .config(&format!("[tokens.someone]\nhash = \"sha256:{HASH}\"\nscope = \"{scope}\"\nsees = \"all\""))
}

// contract 1.7, contract 6: a token from the environment or a file; without one it is said how; it is never shown
#[test]
fn tokens_are_given_and_not_shown() {
    let scratch = with_token("observe");
    let mut daemon = scratch.serve();
    let url = daemon.url();
    let (client, session) = front_end(&scratch);
    let file = scratch.path("token");
    std::fs::write(&file, format!("{TOKEN}\n")).expect("the scratch directory is writable");
    let file = file.to_str().expect("text");
    let connect = ["--connect", &url];
    for words in [
        &["sessions", "list"][..],
        &["sessions", "events", &session, "--follow"],
        &["agents", "list"],
        &["top", "--once"],
        &["run", "hello"],
        &["stdio", "--agent", "example"],
    ] {
        let all = match words.split_last() {
            // A prompt is behind the flags.
            Some((prompt, run)) if words[0] == "run" => [run, &connect, &[*prompt]].concat(),
            _ => [words, &connect].concat(),
        };
        let err = fails(&scratch, 5, &all);
        assert!(!err.contains("401") && err.contains("ACPD_TOKEN") && err.contains("--token-file"), "{err}");
    }
    let list = done(&scratch, &["sessions", "list", "--connect", &url, "--token-file", file]);
    assert!(list.contains("idle"), "{list}");
    for (token, code, words) in [
        (TOKEN, 0, ""),
        ("wrong-and-secret", 5, "(401 unauthorized): what was given is no token that acpd knows"),
        ("two words", 2, "is no token"),
    ] {
        let mut command = scratch.command(acpd());
        command.args(
            args(&scratch, &["sessions", "list", "--connect", &url, "-vvv"]).iter().map(AsRef::<str>::as_ref),
        );
        command.env("ACPD_TOKEN", token);
        let (exit, out, err) = scratch.start_command(command).end();
        assert!(exit == Exit::Code(code) && err.contains(words), "{out}{err}");
        assert!(!err.contains(token) && !out.contains(token), "{out}{err}");
        // Once is enough.
        assert!(!err.contains("Unauthorized") && !err.contains("is not known there"), "{err}");
    }
    // What it may not do is said.
    let err =
        fails(&scratch, 5, &["sessions", "terminate", &session, "--connect", &url, "--token-file", file]);
    assert!(!err.contains("403") && err.contains("observe"), "{err}");
    let err = fails(&scratch, 5, &["run", "--connect", &url, "--token-file", file, "hello"]);
    assert!(err.contains("needs a token with the scope control"), "{err}");
    let err = fails(&scratch, 2, &["sessions", "list", "--connect", &url, "--token-file", "/no/such/token"]);
    assert!(err.contains("/no/such/token"), "{err}");
    leave(client);
    daemon.stop();
}

// contract 6: TLS with certificates of one's own; a certificate that nobody vouches for is refused
#[test]
fn tls_is_spoken_and_checked() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let scratch = with_token("admin");
    let (cert, key, token) = (scratch.path("cert.pem"), scratch.path("key.pem"), scratch.path("token"));
    for (path, text) in
        [(&cert, made.cert.pem()), (&key, made.signing_key.serialize_pem()), (&token, TOKEN.into())]
    {
        std::fs::write(path, text).expect("the scratch directory is writable");
    }
    let scratch = scratch.config(&format!("[server]\ntls_cert = {cert:?}\ntls_key = {key:?}"));
    let mut daemon = scratch.serve();
    let url = format!("https://localhost:{}", daemon.address().port());
    let (cert, token) = (cert.to_str().expect("text"), token.to_str().expect("text"));
    let trusted = ["--connect", &url, "--token-file", token, "--ca", cert];
    let run = [&["run"], &trusted[..], &["hello"]].concat();
    assert_eq!(done(&scratch, &run), "hello\n");
    assert!(done(&scratch, &[&["sessions", "list"], &trusted[..]].concat()).contains("completed"));

    for (variable, code) in [(cert, 0), ("", 1)] {
        let words = ["sessions", "list", "--connect", &url, "--token-file", token];
        let mut command = scratch.command(acpd());
        command.args(args(&scratch, &words).iter().map(AsRef::<str>::as_ref)).env("ACPD_CA", variable);
        let (exit, _, err) = scratch.start_command(command).end();
        assert!(exit == Exit::Code(code) && err.contains("certificate") == (code == 1), "{err}");
    }
    let address = format!("https://127.0.0.1:{}", daemon.address().port());
    let wrong_name = ["sessions", "list", "--connect", &address, "--token-file", token, "--ca", cert];
    let err = fails(&scratch, 1, &wrong_name);
    assert!(err.contains("certificate"), "{err}");
    let err = fails(&scratch, 1, &["sessions", "list", "--connect", &url, "--ca", token]);
    assert!(err.contains("cannot use the certificates in"), "{err}");
    daemon.stop();
}

/// Makes a certificate and its key by a command line of openssl, in a scratch directory.
fn make_certificate(scratch: &Scratch, line: &str) {
    let mut command = scratch.command("sh");
    command.args(["-ec", line]).current_dir(scratch.path("."));
    let (exit, _, err) = scratch.start_command(command).end();
    assert_eq!(exit, Exit::Code(0), "{line}: {err}");
}

// contract 6: the line of docs/operations.md makes a certificate that acpd takes on both sides; one that says that it is an
// authority, one without --ca, one for other names, and no TLS at all are each told with the remedy
#[test]
fn trouble_with_tls_is_told_with_the_remedy() {
    let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md"));
    let guide = guide.expect("the guide is in the tree");
    let line =
        guide.split("```sh\n").find(|block| block.starts_with("openssl req")).expect("a line of openssl");
    let line = line.split("```").next().expect("its end");
    let usual = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
                 -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out fullchain.pem";
    for (made_by, good) in [(line, true), (usual, false)] {
        let scratch =
            with_token("admin").config("[server]\ntls_cert = \"fullchain.pem\"\ntls_key = \"key.pem\"");
        make_certificate(&scratch, made_by);
        let token = scratch.path("token");
        std::fs::write(&token, TOKEN).expect("the scratch directory is writable");
        let mut daemon = scratch.serve();
        let port = daemon.address().port();
        let (cert, token) = (scratch.path("fullchain.pem"), token.to_str().expect("text"));
        let cert = cert.to_str().expect("text");
        let url = format!("https://127.0.0.1:{port}");
        let list = ["sessions", "list", "--token-file", token, "--connect", &url];
        let trusted = [&list[..], &["--ca", cert]].concat();
        if good {
            done(&scratch, &trusted);
            let err = fails(&scratch, 1, &list);
            assert!(err.contains("--ca FILE") && err.contains("ACPD_CA"), "{err}");
            let address = format!("https://localhost:{port}");
            let elsewhere = ["sessions", "list", "--token-file", token, "--connect", &address, "--ca", cert];
            let err = fails(&scratch, 1, &elsewhere);
            assert!(err.contains("subjectAltName"), "{err}");
        } else {
            for words in [&list[..], &trusted] {
                let err = fails(&scratch, 1, words);
                assert!(err.contains("CA:FALSE") && err.contains("--ca FILE"), "{err}");
            }
        }
        let plain = format!("http://localhost:{port}");
        let err = fails(&scratch, 1, &["sessions", "list", "--token-file", token, "--connect", &plain]);
        assert!(err.contains("does not speak HTTP") && err.contains("https://"), "{err}");
        daemon.stop();
    }
}

// contract 6: the start of a second daemon is told of the first, and only then of a port that is taken
#[test]
fn a_second_daemon_is_told_of_the_first() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let address = daemon.address().to_string();
    let err = fails(&scratch, 1, &["serve", "--listen", &address]);
    assert!(
        err.contains(&format!("a daemon (pid {}) serves this state directory already", daemon.pid())),
        "{err}"
    );
    let other = Scratch::new();
    other.config_file();
    let err = fails(&other, 1, &["serve", "--listen", &address]);
    assert!(err.contains("already in use") && err.contains("`--listen 127.0.0.1:0`"), "{err}");
    assert_eq!(done(&scratch, &["run", "hello"]), "hello\n", "the first goes on");
    daemon.stop();
}

// contract 6: a socket by its name; a port where something else answers, or nothing ever does
#[test]
fn what_is_no_daemon_is_told_from_one() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let socket = format!("unix:{}", daemon.socket().display());
    assert_eq!(done(&scratch, &["run", "--connect", &socket, "hello"]), "hello\n");
    let ca = scratch.path("ca.pem");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    std::fs::write(&ca, made.cert.pem()).expect("the scratch directory is writable");
    let url = format!("https://localhost:{}", daemon.address().port());
    let ca = ca.to_str().expect("text");
    let err = fails(&scratch, 1, &["sessions", "list", "--connect", &url, "--ca", ca]);
    assert!(err.ends_with("does not speak TLS; a daemon without it is named with http://\n"), "{err}");
    daemon.stop();

    // A state directory that is a file has no daemon, and that is not what is wrong with it.
    let file = scratch.path("file");
    std::fs::write(&file, "").expect("the scratch directory is writable");
    let mut command = scratch.command(acpd());
    command.args(["run", "--state-dir"]).arg(&file).arg("hello");
    let (exit, _, err) = scratch.start_command(command).end();
    assert!(exit == Exit::Code(1) && err.contains("state directory") && !err.contains("connect"), "{err}");

    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("it has an address"));
    let answering = std::thread::spawn(move || {
        for answer in
            ["SSH-2.0-nothing of ours\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n<html>\u{1b}[2", ""]
        {
            use std::io::{Read, Write};
            let (mut client, _) = listener.accept().expect("acpd connects");
            let mut request = [0; 4096];
            // What was asked does not matter, only that all of it was taken before the answer.
            let _count = client.read(&mut request).expect("a request");
            client.write_all(answer.as_bytes()).expect("acpd reads");
        }
    });
    for words in ["does not speak HTTP", "cannot read", "was lost"] {
        let err = fails(&scratch, 1, &["sessions", "list", "--connect", &url]);
        assert!(err.contains(words) && !err.contains('\u{1b}'), "{err}");
    }
    answering.join().expect("it answered three times");
}
