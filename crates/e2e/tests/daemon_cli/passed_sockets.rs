//! Sockets that a service manager passes in, and what it is told (contract 7.2).

use crate::cli::{done, front_end, json, leave};
use acpd_e2e::{Daemon, Exit, Scratch, acpd};
use command_fds::{CommandFdExt, FdMapping};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, sync_channel};

/// A command that has these sockets from 3 on, as systemd passes them: for the process that runs it.
fn with_sockets(scratch: &Scratch, sockets: Vec<OwnedFd>) -> Command {
    let mut command = scratch.command("sh");
    command.args(["-c", r#"LISTEN_PID=$$ exec "$0" "$@""#]).arg(acpd());
    command.env("LISTEN_FDS", sockets.len().to_string());
    let mappings =
        (3..).zip(sockets).map(|(child_fd, parent_fd)| FdMapping { parent_fd, child_fd }).collect();
    command.fd_mappings(mappings).expect("each has its number");
    command
}

fn local_socket(scratch: &Scratch) -> UnixListener {
    let state = scratch.state();
    std::fs::create_dir_all(&state).expect("a directory");
    std::fs::set_permissions(&state, PermissionsExt::from_mode(0o700)).expect("it is ours");
    UnixListener::bind(state.join("acpd.sock")).expect("it is free")
}

/// Which variables of a service manager an agent has got.
fn service_variables(scratch: &Scratch, daemon: &Daemon) -> Vec<String> {
    let (client, _) = front_end(scratch);
    let environment = |pid: u32| std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let children = |parent: u32| -> Vec<u32> {
        let of =
            std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
        of.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    };
    let keepers: Vec<u32> = std::fs::read_dir(format!("/proc/{}/task", daemon.pid()))
        .expect("it lives")
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok())
        .flat_map(|of| of.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
        .collect();
    let agents: Vec<u32> = keepers.into_iter().flat_map(children).collect();
    assert!(!agents.is_empty());
    let variables = agents.into_iter().flat_map(|agent| {
        let all = environment(agent);
        let all = all.split(|byte| *byte == 0).map(|one| String::from_utf8_lossy(one).into_owned());
        all.filter(|one| ["LISTEN_", "NOTIFY_", "WATCHDOG_"].iter().any(|of| one.starts_with(of)))
            .collect::<Vec<_>>()
    });
    let variables = variables.collect();
    leave(client);
    variables
}

/// A service manager, which takes what it is told at once: the socket has room for a few messages only, and who tells more waits.
struct Manager(Receiver<String>);

impl Manager {
    fn listen(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).expect("it is free");
        let (sender, told) = sync_channel(1024);
        // It ends with the test, or with the program.
        std::thread::spawn(move || {
            let mut message = [0; 1024];
            while let Ok(length) = socket.recv(&mut message)
                && sender.send(String::from_utf8_lossy(&message[..length]).into_owned()).is_ok()
            {}
        });
        Self(told)
    }

    /// The next message.
    fn next(&self) -> String {
        self.0.recv_timeout(acpd_e2e::PATIENCE).expect("acpd tells")
    }

    /// The next that says more than that the daemon is alive.
    fn next_state(&self) -> String {
        std::iter::repeat_with(|| self.next()).find(|told| told != ALIVE).expect("it never ends")
    }
}

const ALIVE: &str = "WATCHDOG=1\n";

// contract 7.2: TCP and the local socket may be passed in; they stay when the daemon ends, and clients of the next wait
// meanwhile. The process that is told is the daemon, not the one that has opened the socket
#[test]
fn a_daemon_serves_on_what_it_is_given() {
    let scratch = Scratch::new();
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = tcp.local_addr().expect("it has one");
    let unix = local_socket(&scratch);
    let given = || vec![unix.try_clone().expect("a copy").into(), tcp.try_clone().expect("a copy").into()];
    // Where it is told to listen is of no account then.
    let mut daemon = scratch.serve_by(with_sockets(&scratch, given()), "127.0.0.1:1");
    assert_eq!(daemon.address(), address);
    assert_eq!(json(&scratch, &["status"])["pid"], daemon.pid());
    let over_tcp = json(&scratch, &["status", "--connect", &daemon.url()]);
    assert_eq!(over_tcp["running"], true);
    assert_eq!(service_variables(&scratch, &daemon), Vec::<String>::new());
    daemon.stop();
    assert!(daemon.socket().exists(), "it is not acpd's to remove");
    let waiting = scratch.start(&["status", "--connect", &daemon.url(), "--json"]);
    let mut daemon = scratch.serve_by(with_sockets(&scratch, given()), "127.0.0.1:1");
    let (exit, _, err) = waiting.end();
    assert_eq!(exit, Exit::Code(0), "{err}");
    assert!(done(&scratch, &["stop"]).contains(&format!("pid {}", daemon.pid())));
    daemon.expect_good_end();
}

// contract 7.2: what cannot be served on is refused with what to do, and so is TCP beyond this machine without a token
#[test]
fn what_is_passed_in_wrongly_is_refused() {
    let scratch = Scratch::new();
    scratch.config_file();
    let refused = |sockets: Vec<OwnedFd>, words: &str| {
        let mut command = with_sockets(&scratch, sockets);
        command.arg("serve").arg("--state-dir").arg(scratch.state());
        let (exit, out, err) = scratch.start_command(command).end();
        assert!(!matches!(exit, Exit::Code(0)) && out.is_empty() && err.contains(words), "{words}: {err}");
    };
    let open = TcpListener::bind("0.0.0.0:0").expect("a free port");
    refused(vec![open.into()], "there is no token");
    let elsewhere = UnixListener::bind(scratch.path("other.sock")).expect("it is free");
    refused(vec![elsewhere.into()], "acpd.sock` in the socket unit");
    let (connected, _other) = std::os::unix::net::UnixStream::pair().expect("a pair");
    refused(vec![connected.into()], "ListenStream=");
    refused(vec![std::fs::File::open("/dev/null").expect("it is there").into()], "ListenStream=");
}

// contract 7.2: a service manager is told when it serves, reads its configuration and stops, and that it is alive
#[test]
fn a_service_manager_is_told() {
    let scratch = Scratch::new();
    let place = scratch.path("notify");
    let manager = Manager::listen(&place);
    let mut command = scratch.command(acpd());
    command.env("NOTIFY_SOCKET", &place).env("WATCHDOG_USEC", "100000");
    let mut daemon = scratch.serve_by(command, "127.0.0.1:0");
    let ready = manager.next();
    assert_eq!(ready, format!("READY=1\nSTATUS=listening on {}\n", daemon.url()));
    assert_eq!([manager.next(), manager.next()], [ALIVE, ALIVE]);
    done(&scratch, &["reload"]);
    assert!(manager.next_state().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(manager.next_state(), ready);
    daemon.stop();
    assert!(manager.next_state().starts_with("STOPPING=1\n"));
}

// contract 7.2: a service manager that takes no messages holds nothing up
#[test]
fn a_service_manager_need_not_listen() {
    let scratch = Scratch::new();
    let place = scratch.path("notify");
    let _deaf = UnixDatagram::bind(&place).expect("it is free");
    let mut command = scratch.command(acpd());
    // Its socket is full within moments.
    command.env("NOTIFY_SOCKET", &place).env("WATCHDOG_USEC", "2000");
    let mut daemon = scratch.serve_by(command, "127.0.0.1:0");
    done(&scratch, &["reload"]);
    assert_eq!(json(&scratch, &["status"])["pid"], daemon.pid());
    daemon.stop();
}
