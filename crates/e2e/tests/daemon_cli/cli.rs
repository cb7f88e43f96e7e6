//! Runs `acpd` against the daemon of a test.

use acpd_e2e::{Client, Exit, Message, Scratch, Started, acpd};
use serde_json::{Value, json};

/// The arguments, with those that name the scratch's configuration and state directory.
pub(crate) fn args<'a>(scratch: &Scratch, words: &[&'a str]) -> Vec<std::borrow::Cow<'a, str>> {
    let path =
        |path: std::path::PathBuf| path.into_os_string().into_string().expect("scratch paths are text");
    let (state, config) = (path(scratch.state()), path(scratch.path("config.toml")));
    // Behind the subcommands, before what may be a prompt.
    let subcommands = if matches!(words[0], "sessions" | "agents") { 2 } else { 1 };
    let mut all: Vec<std::borrow::Cow<'a, str>> = words[..subcommands].iter().map(|w| (*w).into()).collect();
    all.extend(["--state-dir".into(), state.into(), "--config".into(), config.into()]);
    all.extend(words[subcommands..].iter().map(|word| std::borrow::Cow::from(*word)));
    all
}

/// Runs `acpd` to its end: how it ended, stdout and stderr.
pub(crate) fn run(scratch: &Scratch, words: &[&str]) -> (Exit, String, String) {
    let args = args(scratch, words);
    scratch.run(&args.iter().map(AsRef::as_ref).collect::<Vec<_>>())
}

/// Runs `acpd` and expects success: its stdout.
pub(crate) fn done(scratch: &Scratch, words: &[&str]) -> String {
    let (exit, out, err) = run(scratch, words);
    assert_eq!(exit, Exit::Code(0), "{words:?}: {err}");
    out
}

/// Runs `acpd` and expects one JSON value.
pub(crate) fn json(scratch: &Scratch, words: &[&str]) -> Value {
    let out = done(scratch, &[words, &["--json"]].concat());
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{words:?}: {error}: {out}"))
}

/// Runs `acpd` and expects failure with this code: its stderr.
pub(crate) fn fails(scratch: &Scratch, code: i32, words: &[&str]) -> String {
    let (exit, out, err) = run(scratch, words);
    assert_eq!((exit, out.as_str()), (Exit::Code(code), ""), "{words:?}: {err}");
    err
}

/// Starts `acpd`.
pub(crate) fn start(scratch: &Scratch, words: &[&str]) -> Started {
    let args = args(scratch, words);
    scratch.start(&args.iter().map(AsRef::as_ref).collect::<Vec<_>>())
}

/// A client of `acpd stdio` in front of the daemon, with one session.
pub(crate) fn front_end(scratch: &Scratch) -> (Client, String) {
    let mut client = stdio(scratch, &[]);
    client.initialize();
    let session = client.new_session();
    (client, session)
}

/// A client of `acpd stdio` in front of the daemon.
pub(crate) fn stdio(scratch: &Scratch, more: &[&str]) -> Client {
    let mut command = scratch.command(acpd());
    let words = [&["stdio", "--agent", "example"], more].concat();
    command.args(args(scratch, &words).iter().map(AsRef::<str>::as_ref));
    scratch.client(command)
}

/// Closes the client's input; it ends with exit code 0, whatever else lives.
pub(crate) fn leave(mut client: Client) {
    client.close_input();
    client.read_to_end();
    assert_eq!(client.exit_unread(acpd_e2e::PATIENCE), Some(Exit::Code(0)));
}

/// The ids of all sessions, as the list has them.
pub(crate) fn ids(scratch: &Scratch, filter: &[&str]) -> Vec<String> {
    let list = json(scratch, &[&["sessions", "list"], filter].concat());
    let sessions = list["sessions"].as_array().expect("a list");
    sessions.iter().map(|session| session["sessionId"].as_str().expect("an id").to_owned()).collect()
}

/// The state of a session.
pub(crate) fn state(scratch: &Scratch, id: &str) -> Value {
    json(scratch, &["sessions", "show", id])["state"].clone()
}

/// Attaches to a session and shows its history.
pub(crate) fn load(client: &mut Client, scratch: &Scratch, session: &str) -> Value {
    client.call("session/load", &json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []}))
}

/// Runs the test with the flags for a host inside, then with none, beside a daemon.
pub(crate) fn both(scratch: &Scratch, test: impl Fn(&[&str])) {
    scratch.config_file();
    test(&["--embedded"]);
    let mut daemon = scratch.serve();
    test(&[]);
    daemon.stop();
}

/// The numbers of a stream, as far as a client has them.
pub(crate) fn numbers(messages: &[Message]) -> Vec<usize> {
    let number = |message: &Message| message.text()?.split(' ').next()?.parse().ok();
    messages.iter().filter_map(number).collect()
}

/// How often a client has the answer to a request.
pub(crate) fn answers(client: &Client, id: &str) -> usize {
    let is_it = |message: &&Message| message.is_answer() && message.json["id"] == id;
    client.received().iter().filter(is_it).count()
}
