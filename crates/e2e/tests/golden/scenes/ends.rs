//! Every end that a session can have while its daemon lives.

use super::{World, of, until_ended};
use acpd_e2e::Daemon;

/// Leaves in good order after a turn.
pub(super) const LEAVER: &str = "take; answer '{\"stopReason\":\"end_turn\"}'; echo bye >&2";
/// Ends as a runtime does that has run out of memory.
pub(super) const MEMORY: &str = "take; update half; echo 'fatal error: runtime: out of memory' >&2; exit 2";

pub(super) fn play(world: &World, daemon: &Daemon) {
    for (agent, text) in [
        ("example", "exit 0"),
        ("example", "hello\nexit 3"),
        ("example", "signal SEGV"),
        ("example", "plan a\ntool x\ncrash"),
        ("example", "stderr 2\nclose-stdout\nhang"),
        ("example", "stderr 120\nsignal KILL"),
        ("leaver", "bye"),
        ("memory", "more"),
    ] {
        let (mut client, session) = world.session(daemon, agent);
        client.prompt(&session, text);
        until_ended(&mut client, &session);
    }
    let (mut client, session) = world.session(daemon, "example");
    client.turn(&session, "hello");
    client.call("_sandboxagent/session/terminate", &of(&session));
    let (mut client, session) = world.session(daemon, "example");
    client.turn(&session, "fork setsid");
    client.prompt(&session, "ignore-cancel\nignore-sigterm\nready\nhang");
    client.until_text("ready");
    client.call("_sandboxagent/session/terminate", &of(&session));
    // Crashed, gone on with, and crashed again.
    let (mut client, session) = world.session(daemon, "example");
    client.prompt(&session, "one\nstderr 1\nexit 4");
    until_ended(&mut client, &session);
    world.take_up(&mut client, "session/resume", &session);
    client.prompt(&session, "two\nexit 5");
    until_ended(&mut client, &session);
    // Never prompted.
    let (mut client, session) = world.session(daemon, "example");
    client.call("session/close", &of(&session));
}
