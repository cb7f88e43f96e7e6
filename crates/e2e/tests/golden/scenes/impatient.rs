//! Scenes of a daemon that waits for nobody for long, and asks editors for files.

use super::{Skills, World, answer, of, until_asked, until_ended};
use acpd_e2e::Daemon;
use serde_json::json;

/// The same world, with that daemon.
pub(super) fn world(world: World) -> World {
    let World { scratch, binary, cwd, files } = world;
    let scratch = scratch
        .timeout("permission", "300ms")
        .timeout("cancel", "300ms")
        .timeout("idle", "3s")
        .timeout("stall", "400ms")
        .config("[files]\nforward = true\n[limits]\nline_bytes = \"100 KiB\"");
    World { scratch, binary, cwd, files }
}

pub(super) fn play(world: &World, daemon: &Daemon) {
    let (mut idle, left) = world.session(daemon, "example");
    // Answered by the clock.
    let (mut client, session) = world.session(daemon, "example");
    client.turn(&session, "ask edit Too late");
    client.call("session/close", &of(&session));
    // Silent for long.
    let (mut client, session) = world.session(daemon, "example");
    client.turn(&session, "sleep 900\nat last");
    client.call("session/close", &of(&session));
    // A turn that is given up.
    let (mut client, session) = world.session(daemon, "example");
    let prompt = client.prompt(&session, "ignore-cancel\nready\nsleep 900\nlate words");
    client.until_text("ready");
    client.notify("session/cancel", &of(&session));
    client.answer(&prompt);
    client.until_said("words");
    client.call("session/close", &of(&session));
    // A line that is too long.
    let (mut client, session) = world.session(daemon, "example");
    client.prompt(&session, "big 102000\nflood 110000\nhang");
    until_ended(&mut client, &session);
    editor(world, daemon);
    until_ended(&mut idle, &left);
}

fn editor(world: &World, daemon: &Daemon) {
    let mut client = world.client(daemon, "example", Skills::Editor);
    let session = world.new_session(&mut client, None);
    let file = world.files.join("notes.txt");
    let read = format!("read {}", file.display());
    let prompt = client.prompt(&session, &read);
    let asked = until_asked(&mut client, "fs/read_text_file");
    answer(&mut client, &asked, &json!({"content": "not saved yet"}));
    client.result(&prompt);
    let prompt = client.prompt(&session, &read);
    let asked = until_asked(&mut client, "fs/read_text_file");
    let error = json!({"code": -32603, "message": "not open"});
    client.write_line(json!({"jsonrpc": "2.0", "id": asked.json["id"], "error": error}).to_string());
    client.result(&prompt);
    let prompt = client.prompt(&session, &format!("write {} changed", file.display()));
    let asked = until_asked(&mut client, "fs/write_text_file");
    answer(&mut client, &asked, &json!({}));
    client.result(&prompt);
    client.call("session/close", &of(&session));
}
