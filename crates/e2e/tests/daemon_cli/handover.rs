//! `acpd handover` and SIGUSR2 (contract 7.1, 7.3): the daemon goes on as the binary that is on disk now.

mod agents;
mod held_signals;

use crate::cli::{done, fails, front_end, json, leave, load, run, start, state, stdio};
use acpd_e2e::{Daemon, Exit, Http, Scratch, WebSocket, until};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Installs a copy of acpd, as an upgrade does: a new file under the old name.
fn install(scratch: &Scratch) -> PathBuf {
    let (path, fresh) = (scratch.path("acpd"), scratch.path("acpd.new"));
    scratch.copy_acpd(&fresh);
    std::fs::rename(fresh, &path).expect("it is replaced");
    path
}

/// Installs something else in its place.
fn install_script(scratch: &Scratch, script: &str) {
    let (path, fresh) = (scratch.path("acpd"), scratch.path("acpd.new"));
    scratch.write_program(&fresh, &format!("#!/bin/sh\n{script}\n"));
    std::fs::rename(fresh, path).expect("it is replaced");
}

fn serve(scratch: &Scratch) -> Daemon {
    let binary = install(scratch);
    scratch.serve_by(scratch.command(binary), "127.0.0.1:0")
}

fn program(pid: u32) -> PathBuf {
    std::fs::read_link(format!("/proc/{pid}/exe")).expect("it lives")
}

/// How many sockets it has open: those that it was passed, and no others of the image before.
fn sockets(pid: u32) -> usize {
    let all = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it lives").flatten();
    let targets = all.filter_map(|file| std::fs::read_link(file.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
}

fn uptime(daemon: &Daemon) -> u64 {
    let health = Http::on(daemon.connect()).request("GET", "/v1/health", &[], "").json();
    health["uptimeMs"].as_u64().expect("a number")
}

/// One request on a connection of its own, answered in full.
fn ask(mut stream: impl Read + Write) {
    stream
        .write_all(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("it is taken");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it is answered");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("uptimeMs"), "{answer}");
}

/// Requests, one behind the other, until `over`: how many.
fn requests<S: Read + Write>(
    over: &Arc<AtomicBool>,
    connect: impl Fn() -> std::io::Result<S> + Send + 'static,
) -> JoinHandle<usize> {
    let over = Arc::clone(over);
    std::thread::spawn(move || {
        let mut count = 0;
        while count < 100 || !over.load(Ordering::Acquire) {
            ask(connect().expect("no client is refused"));
            count += 1;
        }
        count
    })
}

// contract 7.1: the same process goes on as the new binary, on the same sockets, and no client is refused meanwhile
#[test]
fn no_client_is_refused_while_the_binary_is_replaced() {
    let scratch = Scratch::new();
    let mut daemon = serve(&scratch);
    let (pid, url, before) = (daemon.pid(), daemon.url(), sockets(daemon.pid()));
    let over = Arc::new(AtomicBool::new(false));
    let (address, socket) = (daemon.address(), daemon.socket());
    let clients = [
        requests(&over, move || TcpStream::connect(address)),
        requests(&over, move || UnixStream::connect(&socket)),
    ];
    for _ in 0..3 {
        let binary = install(&scratch);
        assert!(program(pid).to_string_lossy().ends_with(" (deleted)"));
        let told = json(&scratch, &["handover"]);
        assert_eq!(
            (&told["handedOver"], &told["pid"], &told["sessions"]),
            (&true.into(), &pid.into(), &0.into())
        );
        assert_eq!((&told["from"], &told["to"]), (&told["to"], &env!("CARGO_PKG_VERSION").into()));
        assert!(told["ms"].as_u64().is_some());
        assert_eq!(program(pid), binary);
    }
    over.store(true, Ordering::Release);
    for client in clients {
        assert!(client.join().expect("no client is refused") >= 100);
    }
    let status = json(&scratch, &["status"]);
    assert_eq!((&status["url"], &status["pid"]), (&url.into(), &pid.into()));
    until("as many sockets as at first", || (sockets(pid) == before).then_some(()));
    let words = done(&scratch, &["handover"]);
    assert!(words.contains(" handed over to acpd ") && words.contains("no session was live"), "{words}");
    let log = daemon.stop();
    assert_eq!(log.matches("acpd becomes its next image").count(), 4, "{log}");
    assert!(!daemon.socket().exists() && TcpStream::connect(daemon.address()).is_err());
}

/// The signals that a process has blocked, as a mask; none of one that has ended.
fn blocked(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).expect("it is told");
    Some(u64::from_str_radix(mask.trim(), 16).expect("a mask"))
}

// contract 7.1: requests that come while a hand-over is under way, for another one or for the configuration, do not end the
// daemon; no agent has them blocked
#[test]
fn signals_during_a_hand_over_do_not_end_the_daemon() {
    let scratch = Scratch::new().keep("60s");
    let mut daemon = serve(&scratch);
    let body = serde_json::json!({"agent": "example", "cwd": scratch.work(), "prompt": "hang"}).to_string();
    let begin = |daemon: &Daemon| {
        let json = ("Content-Type", "application/json");
        Http::on(daemon.connect()).request("POST", "/v1/sessions", &[json], &body).status
    };
    assert_eq!(begin(&daemon), 201);
    let over = Arc::new(AtomicBool::new(false));
    let storm = std::thread::spawn({
        let (over, pid) = (Arc::clone(&over), i32::try_from(daemon.pid()).ok());
        let pid = pid.and_then(rustix::process::Pid::from_raw).expect("a process id");
        move || {
            while !over.load(Ordering::Acquire) {
                for signal in [Signal::USR2, Signal::HUP] {
                    // One that is dead is seen by those who ask it.
                    let _dead = rustix::process::kill_process(pid, signal);
                }
                std::thread::yield_now();
            }
        }
    });
    let (mut seen, mut before) = (0, uptime(&daemon));
    while seen < 5 {
        let now = uptime(&daemon);
        seen += u32::from(now < before);
        before = now;
    }
    over.store(true, Ordering::Release);
    storm.join().expect("it only sends");
    // The last of them may have begun another hand-over, in which no session begins.
    until("a session begins", || (begin(&daemon) == 201).then_some(()));
    // The two of the sessions that began. What was started for one that a hand-over refused may be ending meanwhile.
    for program in ["keeper", "example-agent"] {
        let running = scratch.mark().running(program);
        let masks: Vec<_> = running.iter().filter_map(|process| blocked(process.pid)).collect();
        assert!(masks.len() >= 2 && masks.iter().all(|mask| *mask == 0), "{masks:?} {running:?}");
    }
    // Nor is one under way, in which a request to stop is a kill.
    until("no hand-over is left", || (uptime(&daemon) > 2000).then_some(()));
    daemon.stop();
}

// contract 7.3: viewers are told when to come back, over all transports; sessions can be taken up again. SIGUSR2 asks, too
#[test]
fn viewers_are_told_when_to_come_back() {
    // A front end that does not come back by itself.
    let scratch = Scratch::new().keep("0s").config("[client]\nreconnect = \"0s\"");
    let mut daemon = scratch.serve();
    let (mut client, session) = front_end(&scratch);
    let mut watching =
        Http::on(daemon.connect()).events(&format!("/v1/sessions/{session}/events"), &[]).expect("a stream");
    let mut socket = WebSocket::initialized(daemon.connect());
    let body = acpd_e2e::initialize().to_string();
    let headers = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    let initialized = Http::on(daemon.connect()).request("POST", "/acp", &headers, &body);
    let id = initialized.header("acp-connection-id").expect("it is given").to_owned();
    let mut connection =
        Http::on(daemon.connect()).events("/acp", &[("Acp-Connection-Id", &*id)]).expect("a stream");
    let before = std::time::Duration::from_millis(uptime(&daemon));
    daemon.signal(Signal::USR2);
    let last = connection.until("why it ends", |event| event.event.as_deref() == Some("closed")).json();
    assert_eq!((&last["params"]["reason"], &last["params"]["retryMs"]), (&"handover".into(), &250.into()));
    let (code, reason) = socket.until_close();
    assert!(
        code == 1012 && reason.starts_with("handover: ") && reason.contains("retryMs 250"),
        "{code} {reason}"
    );
    // The end of its run is told before.
    while let Some(event) = watching.next_event() {
        if event.event.as_deref() == Some("closed") {
            assert_eq!(
                (&event.json()["reason"], &event.json()["retryMs"]),
                (&"handover".into(), &250.into())
            );
        }
    }
    client.read_to_end();
    until("the next image", || (u128::from(uptime(&daemon)) < before.as_millis().max(1)).then_some(()));
    let shown = json(&scratch, &["sessions", "show", &session]);
    assert_eq!(shown["terminationInfo"]["cause"], "daemon_shutdown", "{shown}");
    let mut client = stdio(&scratch, &[]);
    client.initialize();
    load(&mut client, &scratch, &session);
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    leave(client);
    daemon.stop();
}

// contract 7.1: a binary that would not start takes no place: the daemon goes on with its sessions and says why
#[test]
fn a_binary_that_refuses_takes_no_place() {
    let scratch = Scratch::new();
    let mut daemon = serve(&scratch);
    let (client, session) = front_end(&scratch);
    let refused = |words: &str| {
        let err = fails(&scratch, 1, &["handover"]);
        assert!(err.contains(words), "{words}: {err}");
    };
    let finding = r#"{"about":"log","ok":false,"says":"format 99","remedy":"use the newer one"}"#;
    install_script(
        &scratch,
        &format!(r#"echo '{{"ok":false,"version":"9","keeperProtocols":[],"checks":[{finding}]}}'; exit 1"#),
    );
    refused("acpd 9 would not start: log: format 99 (use the newer one)");
    install_script(&scratch, "echo \"error: unexpected argument '--check' found\" >&2; exit 2");
    refused("exit status: 2, error: unexpected argument '--check' found");
    std::fs::remove_file(scratch.path("acpd")).expect("it is there");
    refused("cannot be started");
    install(&scratch);
    let config = scratch.path("config.toml");
    let text = std::fs::read_to_string(&config).expect("it is there");
    std::fs::write(&config, format!("{text}\n[server]\nlistenn = 1\n")).expect("writable");
    let socket = format!("unix:{}", daemon.socket().display());
    let err = fails(&scratch, 1, &["handover", "--connect", &socket]);
    assert!(err.contains("unknown key \"listenn\"") && err.contains("acpd config check"), "{err}");
    let answer = Http::on(daemon.connect()).request("POST", "/v1/handover", &[], "");
    assert_eq!((answer.status, answer.problem()), (409, "handover_refused".to_owned()));
    std::fs::write(&config, &text).expect("writable");
    assert_eq!(state(&scratch, &session), "idle");
    leave(client);
    let log = daemon.stop();
    assert!(log.contains("acpd does not hand over and goes on") && !log.contains("becomes"), "{log}");
    assert_eq!(run(&scratch, &["handover"]).0, Exit::Code(4));
}

// contract 7.1: several that ask at once get what they asked for
#[test]
fn several_hand_overs_at_once_succeed() {
    let scratch = Scratch::new();
    let mut daemon = serve(&scratch);
    let asking: Vec<_> = (0..8).map(|_| start(&scratch, &["handover"])).collect();
    for one in asking {
        let (exit, out, err) = one.end();
        assert!(exit == Exit::Code(0) && out.contains(" handed over to acpd "), "{out}{err}");
    }
    daemon.stop();
}

// contract 7.1: a daemon whose working directory was removed goes on, and names that
#[test]
fn a_working_directory_that_is_gone_is_named() {
    let scratch = Scratch::new();
    let place = scratch.path("place");
    std::fs::create_dir(&place).expect("a directory");
    let mut command = scratch.command(install(&scratch));
    command.current_dir(&place);
    let mut daemon = scratch.serve_by(command, "127.0.0.1:0");
    std::fs::remove_dir(&place).expect("it is empty");
    let err = fails(&scratch, 1, &["handover"]);
    let named = format!("its working directory, {} (deleted), cannot be used", place.display());
    assert!(err.contains(&named) && err.contains("restarted in another directory"), "{err}");
    assert_eq!(run(&scratch, &["status"]).0, Exit::Code(0));
    daemon.stop();
}

// contract 7.1: what listens where others can reach it does not go on without a token
#[test]
fn an_open_door_needs_its_token_in_the_next_image() {
    let hash = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
    let scratch = Scratch::new().config(&format!("[tokens.a]\nhash = \"{hash}\""));
    let mut daemon = scratch.serve_on("0.0.0.0:0");
    let config = scratch.path("config.toml");
    std::fs::write(&config, "[server]\nlisten = \"127.0.0.1:0\"\n").expect("writable");
    let err = fails(&scratch, 1, &["handover"]);
    assert!(err.contains("there is no token"), "{err}");
    daemon.stop();
}

// contract 7.1: SIGTERM meanwhile stops the daemon for good
#[test]
fn a_stop_goes_over_a_hand_over() {
    let scratch = Scratch::with_default_graces().timeout("stdin_grace", "2m").timeout("term_grace", "2m");
    // An agent that is not kept is ended first, which lasts.
    let scratch = scratch.keep("0s").config("[client]\nreconnect = \"0s\"");
    let mut daemon = scratch.serve();
    let (mut client, session) = front_end(&scratch);
    assert_eq!(client.turn(&session, "ignore-sigterm"), "end_turn");
    let mut watching =
        Http::on(daemon.connect()).events(&format!("/v1/sessions/{session}/events"), &[]).expect("a stream");
    watching.until("an event", |event| event.id.is_some());
    daemon.signal(Signal::USR2);
    until_not_ready(&daemon.socket());
    daemon.signal(Signal::TERM);
    let log = daemon.expect_good_end();
    assert!(log.contains("acpd hands over") && log.contains("acpd stopped"), "{log}");
    client.read_to_end();
}

/// Waits until a daemon takes no client any more, while its socket is open. One that does answers soon, however busy the machine is.
fn until_not_ready(socket: &Path) {
    until("no answer", || {
        let mut stream = UnixStream::connect(socket).expect("it is open");
        stream.set_read_timeout(Some(std::time::Duration::from_secs(5))).expect("not zero");
        let asked =
            stream.write_all(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let mut answer = [0; 16];
        (asked.is_err() || !matches!(stream.read(&mut answer), Ok(read) if read > 0)).then_some(())
    });
}
