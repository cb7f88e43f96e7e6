//! The scenes that fixtures are made of: between them they leave every kind of event and of end in a log.
//!
//! Played by several lives of a daemon on one state directory. Nothing in them depends on where they are played.

mod ends;
mod impatient;
mod questions;
mod words;

use acpd_e2e::{Client, Daemon, Message, Scratch, shell_agent, taking_shell_agent};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Where scenes are played.
pub(crate) struct World {
    pub(crate) scratch: Scratch,
    binary: PathBuf,
    /// The working directory of sessions.
    cwd: PathBuf,
    /// Where their files are.
    files: PathBuf,
}

/// What a client of the scenes understands.
#[derive(Clone, Copy)]
enum Skills {
    Few,
    Forms,
    Editor,
}

impl World {
    /// A world of this binary. With `files`, nothing that it records tells of this machine.
    pub(crate) fn new(binary: PathBuf, files: Option<PathBuf>) -> Self {
        // A death in a scene is the end of its agents.
        let scratch = Scratch::new().keep("0s");
        let agent = scratch.path("agent");
        std::fs::create_dir(&agent).expect("a directory for agents");
        let example = |more: &[&str]| -> Vec<String> {
            let first = ["example-agent", "--state-dir", agent.to_str().expect("it is text")];
            first.iter().chain(more).map(|arg| (*arg).to_owned()).collect()
        };
        let scratch = scratch
            .agent("example", &binary, &example(&[]))
            .agent("shared", &binary, &example(&[]))
            .config("share_process = true")
            .agent("plain", &binary, &example(&["--without", "load,resume,fork"]))
            .config("resume_with_transcript = true")
            .shell("odd", &taking_shell_agent(words::ODD))
            .shell("url", &shell_agent(questions::URL))
            .shell("leaver", &shell_agent(ends::LEAVER))
            .shell("memory", &shell_agent(ends::MEMORY));
        let cwd = if files.is_some() { "/tmp".into() } else { scratch.work() };
        let files = files.unwrap_or_else(|| scratch.work());
        Self { scratch, binary, cwd, files }
    }

    /// A command of the binary that has nothing of this machine in what agents can tell of it.
    fn command(&self) -> std::process::Command {
        let mut command = self.scratch.command(&self.binary);
        command.current_dir(&self.cwd).env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command
    }

    fn serve(&self) -> Daemon {
        self.scratch.serve_by(self.command(), "127.0.0.1:0")
    }

    fn client(&self, daemon: &Daemon, agent: &str, skills: Skills) -> Client {
        let client = daemon.over_websocket(&self.scratch, &format!("/acp?agent={agent}"));
        introduced(client, skills)
    }

    fn new_session(&self, client: &mut Client, mode: Option<&str>) -> String {
        let mut params = json!({"cwd": self.cwd, "mcpServers": []});
        if let Some(mode) = mode {
            params["_meta"]["sandboxagent.dev"]["permissionMode"] = json!(mode);
        }
        let session = client.call("session/new", &params);
        session["sessionId"].as_str().expect("it has an id").to_owned()
    }

    /// A client of an agent, with a session.
    fn session(&self, daemon: &Daemon, agent: &str) -> (Client, String) {
        let mut client = self.client(daemon, agent, Skills::Few);
        let session = self.new_session(&mut client, None);
        (client, session)
    }

    fn take_up(&self, client: &mut Client, method: &str, session: &str) -> Value {
        client.call(method, &json!({"sessionId": session, "cwd": self.cwd, "mcpServers": []}))
    }
}

fn introduced(mut client: Client, skills: Skills) -> Client {
    // The schema's unions are more than the oracle can follow, and agents here break it.
    client.tolerant();
    let mut capabilities = json!({
        "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
        "_meta": {"sandboxagent.dev": {"terminals": true}},
    });
    match skills {
        Skills::Few => {}
        Skills::Forms => capabilities["elicitation"] = json!({"form": {}, "url": {}}),
        Skills::Editor => capabilities["fs"] = json!({"readTextFile": true, "writeTextFile": true}),
    }
    let info = json!({"name": "scenes", "version": "1"});
    client.call(
        "initialize",
        &json!({"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": info}),
    );
    client
}

fn of(session: &str) -> Value {
    json!({"sessionId": session})
}

fn until_asked(client: &mut Client, method: &str) -> Message {
    client.until(method, |message| message.method() == Some(method) && message.json.get("id").is_some())
}

fn answer(client: &mut Client, asked: &Message, result: &Value) {
    client.write_line(json!({"jsonrpc": "2.0", "id": asked.json["id"], "result": result}).to_string());
}

fn choose(client: &mut Client, option: &str) {
    let asked = until_asked(client, "session/request_permission");
    answer(client, &asked, &json!({"outcome": {"outcome": "selected", "optionId": option}}));
}

fn until_ended(client: &mut Client, session: &str) {
    client.until("the end", |message| {
        message.method() == Some("_sandboxagent/session/ended") && message.session() == Some(session)
    });
}

/// All scenes, down to a daemon that ended in good order.
pub(crate) fn all(mut world: World) -> World {
    let mut daemon = world.serve();
    let known = words::play(&world, &daemon);
    questions::play(&world, &daemon);
    ends::play(&world, &daemon);
    daemon.stop();
    front_end(&world);
    world = impatient::world(world);
    let mut daemon = world.serve();
    impatient::play(&world, &daemon);
    let lost = left_open(&world, &daemon);
    kill(&world, &mut daemon);
    let mut daemon = world.serve();
    words::go_on(&world, &daemon, &known);
    for session in lost {
        let mut client = world.client(&daemon, "example", Skills::Few);
        world.take_up(&mut client, "session/resume", &session);
        client.turn(&session, "found again");
        client.call("session/close", &of(&session));
    }
    daemon.stop();
    world
}

/// Few scenes, and a daemon that was killed in the middle of them.
pub(crate) fn killed(world: World) -> World {
    let mut daemon = world.serve();
    left_open(&world, &daemon);
    kill(&world, &mut daemon);
    world
}

fn kill(world: &World, daemon: &mut Daemon) {
    daemon.kill();
    world.scratch.mark().only_left(&[]).expect("the keepers end what they keep");
}

/// A host of one client, which leaves.
fn front_end(world: &World) {
    for signal in [None, Some(Signal::TERM)] {
        let mut command = world.command();
        command.args(["stdio", "--agent", "example", "--state-dir"]).arg(world.scratch.state());
        command.arg("--config").arg(world.scratch.config_file());
        let mut client = introduced(world.scratch.client(command), Skills::Few);
        let session = world.new_session(&mut client, None);
        client.turn(&session, "title Front end\nhello");
        match signal {
            None => client.finish(),
            Some(signal) => {
                client.signal(signal);
                client.expect_good_end();
            }
        }
    }
}

/// Sessions in the middle of something; those of the example agent.
fn left_open(world: &World, daemon: &Daemon) -> Vec<String> {
    let mut sessions = Vec::new();
    for (skills, text, until) in [
        (Skills::Few, "idle", "idle"),
        (Skills::Few, "title In a turn\nplan a,b\nnow\nhang", "now"),
        (Skills::Few, "tool look\nask edit Change it", "session/request_permission"),
        (Skills::Forms, "elicit What?", "elicitation/create"),
        (Skills::Few, "run sh -c 'echo begun; exec sleep 100'", "\"output\":\"begun"),
    ] {
        let mut client = world.client(daemon, "example", skills);
        let session = world.new_session(&mut client, None);
        let prompt = client.prompt(&session, text);
        client.until(until, |message| message.raw.contains(until));
        match until {
            "idle" => drop(client.result(&prompt)),
            "now" => drop(client.prompt(&session, "this one waits")),
            _ => {}
        }
        sessions.push(session);
    }
    sessions
}
