//! A copy of a fixture, and what a binary shows of it: a text of sections, each with a request and its answer.

use crate::rules::{Rules, put_changed_last};
use crate::{archive, show_acp, show_rest};
use acpd_e2e::{Client, Daemon, Scratch};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Agents of the scenes, each with what plays it here.
pub(crate) const AGENTS: [&str; 7] = ["example", "leaver", "memory", "odd", "plain", "shared", "url"];

/// How the agents of a showing are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agents {
    /// They can load and resume what is theirs.
    Able,
    /// They cannot.
    Unable,
    /// They cannot, and are given transcripts.
    Told,
}

/// A part of what is shown. Each begins with a copy of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// Everything that REST reads.
    Rest,
    /// Lists and replays over a WebSocket, of sessions that cannot be taken up.
    Replays,
    /// Every session loaded, prompted, closed, resumed, over stdio; and what its log has gained by that.
    TakenUp,
    /// The same with agents that are given transcripts, and forks.
    Transcripts,
}

impl View {
    pub(crate) const ALL: [Self; 4] = [Self::Rest, Self::Replays, Self::TakenUp, Self::Transcripts];

    /// The line before it.
    pub(crate) fn heading(self) -> String {
        format!("# {self:?}\n")
    }

    fn agents(self) -> Agents {
        match self {
            Self::Rest | Self::Replays => Agents::Unable,
            Self::TakenUp => Agents::Able,
            Self::Transcripts => Agents::Told,
        }
    }
}

/// A copy of a fixture and the binary that shows it.
pub(crate) struct Showing {
    pub(crate) scratch: Scratch,
    binary: PathBuf,
    rules: Rules,
    text: String,
    /// Whether a host was killed there, so that sessions change when they are looked at.
    pub(crate) has_lost: bool,
}

/// What `binary` shows of the fixture in `archive`.
pub(crate) fn show(fixture: &Path, view: View, binary: &Path) -> String {
    // Nothing is to be stopped by force here, however busy the machine is.
    let scratch = Scratch::with_default_graces();
    archive::unpack(fixture, &scratch.path(""));
    let agent = scratch.path("agent");
    let rules = Rules::new(&crate::events::stored(&scratch.state()), &agent);
    // Reading it has tidied the log up; what is shown is how it was left.
    std::fs::remove_dir_all(scratch.state()).expect("it was unpacked");
    archive::unpack(fixture, &scratch.path(""));
    let scratch = AGENTS.iter().fold(scratch, |scratch, name| {
        let mut args = vec!["example-agent", "--state-dir", agent.to_str().expect("it is text")];
        if view.agents() != Agents::Able {
            args.extend(["--without", "load,resume"]);
        }
        let args: Vec<String> = args.into_iter().map(str::to_owned).collect();
        let scratch = scratch.agent(name, binary, &args);
        scratch.config(&format!("resume_with_transcript = {}", view.agents() == Agents::Told))
    });
    let has_lost =
        std::fs::read_dir(scratch.state().join("hosts")).is_ok_and(|mut hosts| hosts.next().is_some());
    let binary = binary.to_owned();
    let mut showing = Showing { scratch, binary, rules, text: view.heading(), has_lost };
    match view {
        View::Rest => show_rest::everything(&mut showing),
        View::Replays => show_acp::replays(&mut showing),
        View::TakenUp => show_acp::taken_up(&mut showing, false),
        View::Transcripts => show_acp::taken_up(&mut showing, true),
    }
    showing.text
}

impl Showing {
    /// Starts its daemon.
    pub(crate) fn serve(&self) -> Daemon {
        self.scratch.serve_by(self.scratch.command(&self.binary), "127.0.0.1:0")
    }

    /// A front end that hosts by itself.
    pub(crate) fn stdio(&self, agent: &str) -> Client {
        let mut command = self.scratch.command(&self.binary);
        command.args(["stdio", "--agent", agent]);
        command.arg("--state-dir").arg(self.scratch.state());
        command.arg("--config").arg(self.scratch.config_file());
        initialized(self.scratch.client(command), true)
    }

    /// Begins a section.
    pub(crate) fn section(&mut self, title: &str) {
        self.text.push_str(&format!("## {}\n", self.rules.apply(title)));
    }

    /// Adds lines.
    pub(crate) fn lines<T: AsRef<str>>(&mut self, lines: impl IntoIterator<Item = T>) {
        for line in self.compared(lines) {
            self.text.push_str(&line);
            self.text.push('\n');
        }
    }

    /// Adds the entries of a list.
    pub(crate) fn entries<T: AsRef<str>>(&mut self, entries: impl IntoIterator<Item = T>) {
        let mut lines = self.compared(entries);
        put_changed_last(&mut lines);
        self.lines(lines);
    }

    fn compared<T: AsRef<str>>(&self, lines: impl IntoIterator<Item = T>) -> Vec<String> {
        lines.into_iter().map(|line| self.rules.apply(line.as_ref())).collect()
    }
}

/// Initializes a client: one that understands everything, or one that understands what it must.
pub(crate) fn initialized(mut client: Client, versed: bool) -> Client {
    // Logs have what breaks the schema, and it is shown as it is.
    client.tolerant();
    let capabilities = match versed {
        true => json!({
            "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
            "_meta": {"sandboxagent.dev": {"terminals": true}},
        }),
        false => json!({}),
    };
    let info = json!({"name": "golden", "version": "1"});
    client.call(
        "initialize",
        &json!({"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": info}),
    );
    client
}

/// A JSON text with each element of one of its arrays on a line of its own, and nothing else changed but that the commas
/// between them are left out: the lines before, the elements, the lines behind.
pub(crate) fn broken(text: &str, member: &str) -> [Vec<String>; 3] {
    let whole: Value = serde_json::from_str(text).expect("it is JSON");
    assert!(whole[member].is_array(), "{member} is missing: {text}");
    let members: HashMap<String, &RawValue> = serde_json::from_str(text).expect("it is an object");
    let elements: Vec<&RawValue> = serde_json::from_str(members[member].get()).expect("it is an array");
    let array = text.find(members[member].get()).expect("it is in there") + 1;
    let (mut lines, mut at) = (Vec::new(), array);
    for element in elements {
        let from = at + text[at..].find(element.get()).expect("it is in there");
        assert!(matches!(&text[at..from], "" | ","), "only commas stand between elements");
        at = from + element.get().len();
        lines.push(element.get().to_owned());
    }
    [vec![text[..array].to_owned()], lines, vec![text[at..].to_owned()]]
}
