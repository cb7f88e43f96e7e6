//! What agents ask: permission, forms, URLs, files, terminals; and who answers.

use super::{Skills, World, answer, choose, of, until_asked};
use acpd_e2e::{Client, Daemon};
use serde_json::json;

/// Asks its user to open a URL, twice, and says that one is done.
pub(super) const URL: &str = r#"
take; prompt=$id
for e in e-1 e-2; do
printf '{"jsonrpc":"2.0","id":"%s","method":"elicitation/create","params":{"sessionId":"shell-1","mode":"url","message":"log in","url":"https://example.invalid/","elicitationId":"%s"}}\n' $e $e
take
done
printf '{"jsonrpc":"2.0","method":"elicitation/complete","params":{"sessionId":"shell-1","elicitationId":"e-1"}}\n'
printf '{"jsonrpc":"2.0","method":"elicitation/complete","params":{"sessionId":"shell-1","elicitationId":"e-3"}}\n'
id=$prompt; answer '{"stopReason":"end_turn"}'
take"#;

pub(super) fn play(world: &World, daemon: &Daemon) {
    permissions(world, daemon);
    elicitations(world, daemon);
    terminals(world, daemon);
    let (mut client, session) = world.session(daemon, "example");
    let files = world.files.display();
    let text = format!(
        "write {files}/notes.txt some\\nwords\nread {files}/notes.txt\nread {files}/notes.txt 2 1\nread {files}/none\nread /etc/hostname"
    );
    client.turn(&session, &text);
    client.call("session/close", &of(&session));
}

fn permissions(world: &World, daemon: &Daemon) {
    let (mut client, session) = world.session(daemon, "example");
    for option in ["allow-once", "reject-always"] {
        let prompt = client.prompt(&session, "ask edit Change it");
        choose(&mut client, option);
        client.result(&prompt);
    }
    let prompt = client.prompt(&session, "withdraw execute");
    client.result(&prompt);
    let prompt = client.prompt(&session, "ask execute Then not");
    until_asked(&mut client, "session/request_permission");
    client.notify("session/cancel", &of(&session));
    client.result(&prompt);
    client.call("session/close", &of(&session));
    for mode in ["acceptEdits", "bypassPermissions", "deny"] {
        let session = world.new_session(&mut client, Some(mode));
        let prompt = client.prompt(&session, "ask edit\nask execute");
        if mode == "acceptEdits" {
            choose(&mut client, "allow-always");
        }
        client.result(&prompt);
        client.call("session/close", &of(&session));
    }
    other_viewer(world, daemon);
}

/// Asked of one client, answered by another.
fn other_viewer(world: &World, daemon: &Daemon) {
    let (mut client, session) = world.session(daemon, "example");
    let prompt = client.prompt(&session, "ask edit Whose is it?");
    until_asked(&mut client, "session/request_permission");
    let mut other = world.client(daemon, "example", Skills::Few);
    world.take_up(&mut other, "session/load", &session);
    choose(&mut other, "allow-once");
    client.result(&prompt);
    // Two at once: the second waits for its turn.
    let first = client.prompt(&session, "begun\nsleep 100\nfirst");
    client.until_text("begun");
    let second = other.prompt(&session, "second");
    client.result(&first);
    other.result(&second);
    // And one that is cancelled while it waits.
    let first = client.prompt(&session, "begun again\nhang");
    client.until_text("again");
    let second = client.prompt(&session, "never");
    other.notify("session/cancel", &of(&session));
    client.result(&first);
    client.answer(&second);
    other.call("session/close", &of(&session));
}

fn elicitations(world: &World, daemon: &Daemon) {
    let mut client = world.client(daemon, "example", Skills::Forms);
    let session = world.new_session(&mut client, None);
    let prompt = client.prompt(&session, "elicit What is it?");
    let asked = until_asked(&mut client, "elicitation/create");
    answer(&mut client, &asked, &json!({"action": "accept", "content": {"answer": "this"}}));
    client.result(&prompt);
    let prompt = client.prompt(&session, "elicit And then?");
    until_asked(&mut client, "elicitation/create");
    client.notify("session/cancel", &of(&session));
    client.result(&prompt);
    client.call("session/close", &of(&session));
    let (mut mute, session) = world.session(daemon, "example");
    mute.turn(&session, "elicit Is there anybody?");
    mute.call("session/close", &of(&session));
    let mut client = world.client(daemon, "url", Skills::Forms);
    let session = world.new_session(&mut client, None);
    let prompt = client.prompt(&session, "go");
    for action in ["accept", "decline"] {
        let asked = until_asked(&mut client, "elicitation/create");
        answer(&mut client, &asked, &json!({"action": action}));
    }
    client.result(&prompt);
    client.call("session/close", &of(&session));
}

fn terminals(world: &World, daemon: &Daemon) {
    let (mut client, session) = world.session(daemon, "example");
    let run = |client: &mut Client, text: &str| drop(client.turn(&session, text));
    run(&mut client, "run sh -c 'printf \"out\\\\n\"; printf \"err \\\\377\\\\n\" >&2; exit 3'");
    run(&mut client, "run-timeout 200 sh -c 'echo begun; exec sleep 100'");
    run(&mut client, "run acpd-no-such-command x");
    let prompt = client.prompt(&session, "run sh -c 'echo waits; exec sleep 100'");
    client.until("output", |message| message.raw.contains("\"output\":\"waits"));
    client.notify("session/cancel", &of(&session));
    client.result(&prompt);
    client.call("session/close", &of(&session));
}
