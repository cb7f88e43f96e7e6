//! SIGHUP: tokens come and go while clients are there.

use crate::door::{ask, bearer, client, entry, initialize, plain, stream};
use acpd_e2e::{Daemon, Http, Scratch, WebSocket, until};
use rustix::process::Signal;
use serde_json::json;
use std::path::Path;
use std::process::Stdio;

/// What a WebSocket is told; silence has the same code.
const REVOKED: &str = "revoked: the token is not known any more";

fn write(file: &Path, entries: &[String]) {
    let timeouts = "[timeouts]\nstdin_grace = \"100ms\"\nterm_grace = \"300ms\"\n";
    std::fs::write(file, format!("{timeouts}{}", entries.join("\n"))).expect("the configuration is written");
}

fn known(daemon: &Daemon, token: &str) -> bool {
    ask(daemon, token, "GET", "/v1/sessions").status == 200
}

// SC-1, contract 1.7: who is known no more is let go of at once, on every kind of stream; its sessions live on
#[test]
fn what_a_removed_token_has_open_ends() {
    let (stays, goes) = (entry("stays", "scope = \"admin\""), entry("goes", "scope = \"control\""));
    let changes = |scope: &str| entry("changes", &format!("scope = \"{scope}\"\nsees = \"all\""));
    let scratch = Scratch::new().config(&[stays.clone(), goes, changes("control")].join("\n"));
    let mut daemon = scratch.serve();
    let mut owner = client(&daemon, &scratch, "goes");
    let session = owner.new_session();
    let asked = owner.prompt(&session, "ask edit");
    owner.until("a question", |message| message.method() == Some("session/request_permission"));
    let path = format!("/v1/sessions/{session}/events");
    let (going, staying) = (bearer("goes"), bearer("stays"));
    let mut socket =
        WebSocket::open(daemon.connect(), "/acp", &[("Authorization", &going)]).expect("a socket");
    let mut watching = stream(&daemon, "goes", &path).expect("a stream");
    let mut changing = stream(&daemon, "changes", &path).expect("a stream");
    let mut kept = stream(&daemon, "stays", &path).expect("a stream");
    let mut kept_socket =
        WebSocket::open(daemon.connect(), "/acp", &[("Authorization", &staying)]).expect("a socket");
    let id = initialize(&daemon, "goes").header("acp-connection-id").expect("it is given").to_owned();
    let headers = [("Authorization", &*going), ("Acp-Connection-Id", &*id)];
    let mut connection = Http::on(daemon.connect()).events("/acp", &headers).expect("a stream");

    write(&scratch.path("config.toml"), &[stays, changes("observe")]);
    daemon.signal(Signal::HUP);
    assert_eq!(socket.until_close(), (1008, REVOKED.to_owned()));
    for (events, own) in [(&mut watching, true), (&mut changing, true), (&mut connection, false)] {
        let last = events.until("why it ends", |event| event.event.as_deref() == Some("closed"));
        let reason =
            if own { last.json()["reason"].clone() } else { last.json()["params"]["reason"].clone() };
        assert_eq!((reason, last.id), (json!("revoked"), None));
        assert_eq!(events.next_data(), None);
    }
    owner.read_to_end();
    drop(asked);
    assert!(!known(&daemon, "goes") && known(&daemon, "changes") && known(&daemon, "stays"));
    let refused = ask(&daemon, "changes", "POST", &format!("/v1/sessions/{session}/close"));
    assert_eq!(refused.status, 403, "its new scope counts");
    // The session lives on, and whoever stayed goes on watching it.
    let shown = ask(&daemon, "stays", "GET", &format!("/v1/sessions/{session}")).json();
    assert_eq!(shown["state"], "waiting");
    assert_eq!(ask(&daemon, "stays", "POST", &format!("/v1/sessions/{session}/close")).status, 204);
    kept.until("the end", |event| event.event.as_deref() == Some("ended"));
    assert_eq!(kept.next_data(), None);
    kept_socket.text(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#);
    assert_eq!(kept_socket.next_json().expect("it is there")["id"], 1);
    daemon.stop();
}

// SC-1: an open door that gets its first token closes behind those who came in without one; the Unix socket stays
#[test]
fn the_first_token_closes_an_open_door() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut socket = WebSocket::open(daemon.connect(), "/acp", &[]).expect("it is open");
    assert_eq!(plain(&daemon, "GET", "/v1/sessions", &[]).status, 200);
    write(&scratch.path("config.toml"), &[entry("new", "scope = \"admin\"")]);
    daemon.signal(Signal::HUP);
    assert_eq!(socket.until_close(), (1008, REVOKED.to_owned()));
    assert_eq!(plain(&daemon, "GET", "/v1/sessions", &[]).status, 401);
    assert!(known(&daemon, "new"));
    owner_lists(&scratch);
    daemon.stop();
}

/// Whoever owns the state directory needs no token.
fn owner_lists(scratch: &Scratch) {
    let paths =
        [scratch.state(), scratch.path("config.toml")].map(|path| path.to_string_lossy().into_owned());
    let listed =
        scratch.run(&["sessions", "list", "--json", "--state-dir", &paths[0], "--config", &paths[1]]);
    assert_eq!(listed.0, acpd_e2e::Exit::Code(0), "{listed:?}");
}

// HT-12: a reload forgets nothing of what is open
#[test]
fn limits_count_across_a_reload() {
    let a = |most: u32| entry("a", &format!("scope = \"control\"\nconnections = {most}"));
    let scratch = Scratch::new().config(&a(1));
    let mut daemon = scratch.serve();
    let token = bearer("a");
    let open = || WebSocket::open(daemon.connect(), "/acp", &[("Authorization", &token)]);
    let _first = open().expect("one may be open");
    let config = scratch.path("config.toml");
    let marker = entry("marker", "scope = \"observe\"");
    write(&config, &[a(1), marker.clone()]);
    daemon.signal(Signal::HUP);
    until("the new configuration", || known(&daemon, "marker").then_some(()));
    assert_eq!(open().expect_err("there is one").status, 429);
    write(&config, &[a(2)]);
    daemon.signal(Signal::HUP);
    until("the newer configuration", || (!known(&daemon, "marker")).then_some(()));
    let _second = open().expect("two may be open now");
    assert_eq!(open().expect_err("there are two").status, 429);
    daemon.stop();
}

// contract 1.7: whoever takes the last token out wants it gone, and not everybody let in
#[test]
fn the_last_token_leaves_the_door_closed() {
    let scratch = Scratch::new().config(&entry("only", "scope = \"admin\""));
    let mut daemon = scratch.serve();
    write(&scratch.path("config.toml"), &[]);
    daemon.signal(Signal::HUP);
    until("the new configuration", || (!known(&daemon, "only")).then_some(()));
    assert_eq!(plain(&daemon, "GET", "/v1/sessions", &[]).status, 401);
    owner_lists(&scratch);
    write(&scratch.path("config.toml"), &[entry("new", "scope = \"admin\"")]);
    daemon.signal(Signal::HUP);
    until("the newer configuration", || known(&daemon, "new").then_some(()));
    let stderr = daemon.stop();
    assert!(stderr.contains("the last token was taken out"), "{stderr}");
}

// contract 6: a configuration that cannot be read changes nothing, and it is logged; no token ever is
#[test]
fn a_broken_configuration_changes_nothing() {
    let scratch = Scratch::new().config(&entry("old", "scope = \"admin\""));
    let mut command = scratch.command(acpd_e2e::acpd());
    command.arg("-vvv").env("ACPD_TOKEN", "environment-secret");
    let mut daemon = scratch.serve_by(command, "127.0.0.1:0");
    let config = scratch.path("config.toml");
    // A pipe tells when it is read: whoever opens it for writing waits for the reader.
    for broken in [
        "[server\n",
        "[server]\nno_such_key = 1\n",
        "[tokens.x]\nhash = \"hash-secret\"\nscope = \"admin\"\n",
    ] {
        std::fs::remove_file(&config).expect("it is there");
        let mut mkfifo = scratch.command("mkfifo");
        assert!(mkfifo.arg(&config).stdin(Stdio::null()).status().expect("it is installed").success());
        daemon.signal(Signal::HUP);
        std::fs::write(&config, broken).expect("the daemon reads it");
        assert!(known(&daemon, "old"));
    }
    std::fs::remove_file(&config).expect("it is there");
    write(&config, &[entry("new", "scope = \"admin\"")]);
    daemon.signal(Signal::HUP);
    until("the new configuration", || known(&daemon, "new").then_some(()));
    assert!(!known(&daemon, "old"));
    let mut watching = client(&daemon, &scratch, "new");
    let session = watching.new_session();
    assert_eq!(watching.turn(&session, "hello"), "end_turn");
    for path in ["/v1/sessions?token=query-secret", "/metrics", "/no/such/path"] {
        ask(&daemon, "new", "GET", path);
        ask(&daemon, "wrong", "GET", path);
    }
    let stderr = daemon.stop();
    assert_eq!(stderr.matches("the configuration stays as it was").count(), 3, "{stderr}");
    assert!(stderr.contains("no_such_key") && stderr.contains("read the configuration anew"), "{stderr}");
    assert!(!stderr.contains("secret"), "{stderr}");
}
