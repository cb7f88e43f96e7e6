//! Signals that come while one image has gone and the next does not listen yet (contract 7.1).

use super::{blocked, install_script, program, serve, uptime};
use crate::cli::json;
use acpd_e2e::{Daemon, Http, Scratch, acpd, until};
use rustix::process::Signal;
use std::fs::File;
use std::io::Write;

/// SIGHUP, SIGINT, SIGUSR2 and SIGTERM, as bits 0, 1, 11 and 14 of a mask.
const OF_DAEMON: u64 = 0x4803;

/// Installs what becomes the next image when the file `go` is written to, and until then is neither the one nor the other. `answer` is a
/// filter for what it says of itself.
fn install_slow(scratch: &Scratch, answer: &str) {
    let made = scratch.command("mkfifo").arg(scratch.path("go")).status();
    assert!(made.expect("mkfifo is there").success());
    let (acpd, go, between) = (acpd(), scratch.path("go"), scratch.path("between"));
    let (acpd, go, between) = (acpd.display(), go.display(), between.display());
    let script = format!(
        "case \"$*\" in *--check*) {acpd} \"$@\" | {answer}; exit;; esac\n: >{between}\nread -r _ <{go}\nexec {acpd} \"$@\""
    );
    install_script(scratch, &script);
}

/// Has it take the place of a daemon, as far as it does before `go`.
fn hand_over(scratch: &Scratch, daemon: &Daemon) {
    let answer = Http::on(daemon.connect()).request("POST", "/v1/handover", &[], "");
    assert_eq!(answer.status, 202, "{answer:?}");
    until("no image listens", || scratch.path("between").exists().then_some(()));
}

/// Lets it go on; to be kept until it does. Waits for no reader, which there is none of if it was killed.
fn go(scratch: &Scratch) -> File {
    let mut go = File::options().read(true).write(true).open(scratch.path("go")).expect("it is there");
    go.write_all(b"\n").expect("there is room");
    go
}

fn begin(scratch: &Scratch, daemon: &Daemon) -> String {
    let body = serde_json::json!({"agent": "example", "cwd": scratch.work(), "prompt": "hang"}).to_string();
    let json = ("Content-Type", "application/json");
    let created = Http::on(daemon.connect()).request("POST", "/v1/sessions", &[json], &body);
    assert_eq!(created.status, 201, "{created:?}");
    created.json()["sessionId"].as_str().expect("an id").to_owned()
}

// contract 7.1: a stop that comes when no image listens is one: agents end as at any stop, and none waits for another daemon
#[test]
fn a_stop_between_two_images_ends_agents() {
    for signal in [Signal::TERM, Signal::INT] {
        let scratch = Scratch::new().keep("60s");
        let mut daemon = serve(&scratch);
        let session = begin(&scratch, &daemon);
        install_slow(&scratch, "cat");
        hand_over(&scratch, &daemon);
        assert_eq!(blocked(daemon.pid()), Some(OF_DAEMON));
        daemon.signal(signal);
        let _go = go(&scratch);
        let log = daemon.expect_good_end();
        assert!(log.contains("acpd becomes its next image") && log.contains("agents_go_on=false"), "{log}");
        let mut next = scratch.serve();
        let shown = json(&scratch, &["sessions", "show", &session]);
        assert_eq!(shown["terminationInfo"]["cause"], "daemon_shutdown", "{shown}");
        next.stop();
    }
}

// contract 7.1: a program that does not say that it acts on signals that were held is given none of them blocked, or it could
// not be stopped
#[test]
fn an_older_image_has_no_signals_blocked() {
    let scratch = Scratch::new().keep("60s");
    let mut daemon = serve(&scratch);
    install_slow(&scratch, r#"sed 's/"heldSignals":[[][^]]*[]],//'"#);
    hand_over(&scratch, &daemon);
    assert_eq!(blocked(daemon.pid()), Some(0));
    let _go = go(&scratch);
    until("the next image", || (program(daemon.pid()) == acpd()).then_some(()));
    // It listens when it answers.
    uptime(&daemon);
    daemon.stop();
}
