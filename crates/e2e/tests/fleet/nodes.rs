//! Three nodes and their server.

use acpd_e2e::{Answer, Daemon, Events, Http, NatsServer, NetworkLink, Scratch, until};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// The token that all nodes know, with all rights; others are each node's own.
pub(crate) const ROOT: &str = "root-of-all-nodes";
/// The time after which a node that says nothing is lost.
pub(crate) const LEASE: Duration = Duration::from_secs(2);
/// The same where no node is lost: on a busy machine a heartbeat may be seconds late.
pub(crate) const LONG_LEASE: Duration = Duration::from_secs(20);

/// A daemon that is a node.
pub(crate) struct Node {
    pub(crate) name: &'static str,
    // It ends before what it ran in.
    pub(crate) daemon: Daemon,
    pub(crate) scratch: Scratch,
    /// To the server.
    pub(crate) link: NetworkLink,
}

/// Nodes and their server. The server ends last.
pub(crate) struct Fleet {
    pub(crate) nodes: Vec<Node>,
    pub(crate) server: NatsServer,
}

impl Fleet {
    /// As many nodes as names, each with more in its configuration.
    pub(crate) fn start(names: &[(&'static str, &str)]) -> Self {
        Self::start_with(names, "")
    }

    /// The same with more in the section of the fleet.
    pub(crate) fn start_with(names: &[(&'static str, &str)], section: &str) -> Self {
        Self::begin(NatsServer::start(), names, "0s", section, LEASE)
    }

    /// The same with agents that outlive their daemons for so long.
    pub(crate) fn start_kept(names: &[&'static str], keep: &str, section: &str) -> Self {
        let names: Vec<_> = names.iter().map(|name| (*name, "")).collect();
        Self::begin(NatsServer::start(), &names, keep, section, LEASE)
    }

    /// Nodes of which the test loses none, with agents that outlive their daemons for so long.
    pub(crate) fn lasting(names: &[(&'static str, &str)], keep: &str) -> Self {
        Self::begin(NatsServer::start(), names, keep, "", LONG_LEASE)
    }

    /// All that can be said of it.
    pub(crate) fn begin(
        server: NatsServer,
        names: &[(&'static str, &str)],
        keep: &str,
        section: &str,
        lease: Duration,
    ) -> Self {
        let start = |name, more| Node::start(&server, name, keep, (more, section), lease);
        let nodes: Vec<Node> = names.iter().map(|(name, more)| start(name, more)).collect();
        let fleet = Self { nodes, server };
        for node in &fleet.nodes {
            until("all nodes know each other", || (node.known().len() == names.len()).then_some(()));
            // Until all have written their sessions, an unknown one may be anywhere.
            until("all is known", || (node.get("/v1/sessions").json()["stale"] != true).then_some(()));
        }
        fleet
    }

    pub(crate) fn two() -> Self {
        Self::start(&[("a", ""), ("b", "")])
    }

    /// Two of which the test loses none.
    pub(crate) fn lasting_two() -> Self {
        Self::lasting(&[("a", ""), ("b", "")], "0s")
    }
}

impl Node {
    fn start(
        server: &NatsServer,
        name: &'static str,
        keep: &str,
        (more, section): (&str, &str),
        lease: Duration,
    ) -> Self {
        let link = NetworkLink::to(server.address());
        // An agent that is somewhere else does not know what it was told here.
        let scratch =
            Scratch::new().keep(keep).example("example", &[]).config("resume_with_transcript = true");
        let scratch = scratch.config(&format!(
            "{}\n{more}\n\
             [fleet]\nurl = \"nats://{}\"\nnode = \"{name}\"\nheartbeat = \"500ms\"\nlease = \"{}ms\"\n{section}",
            token("root", ROOT, "admin"),
            link.address(),
            lease.as_millis()
        ));
        let daemon = scratch.serve();
        Self { name, daemon, scratch, link }
    }

    /// A request with the token of all nodes.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.ask_as(ROOT, method, path, body)
    }

    pub(crate) fn ask_as(&self, token: &str, method: &str, path: &str, body: &Value) -> Answer {
        let authorization = format!("Bearer {token}");
        let headers = [("Authorization", &*authorization), ("Content-Type", "application/json")];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        Http::on(self.daemon.connect()).request(method, path, &headers, &body)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &Value::Null)
    }

    /// The events of a session, as they come.
    pub(crate) fn events(&self, session: &str) -> Events {
        let authorization = format!("Bearer {ROOT}");
        let headers = [("Authorization", &*authorization)];
        let path = format!("/v1/sessions/{session}/events");
        Http::on(self.daemon.connect()).events(&path, &headers).unwrap_or_else(|answer| panic!("{answer:?}"))
    }

    /// The nodes that it knows.
    pub(crate) fn known(&self) -> Vec<Value> {
        let answer = self.get("/v1/nodes");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["nodes"].as_array().expect("a list").clone()
    }

    /// A node as it knows it.
    pub(crate) fn knows(&self, name: &str) -> Value {
        self.known().into_iter().find(|node| node["name"] == name).unwrap_or_default()
    }

    /// The sessions that it lists.
    pub(crate) fn lists(&self, query: &str) -> Vec<Value> {
        let answer = self.get(&format!("/v1/sessions{query}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["sessions"].as_array().expect("a list").clone()
    }

    /// A session as it lists it, once it does and that is so.
    pub(crate) fn sees(&self, session: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        until(what, || {
            let listed = self.lists("");
            listed.into_iter().find(|listed| listed["sessionId"] == session && is_so(listed))
        })
    }

    /// A new session on it.
    pub(crate) fn create(&self, more: &Value) -> String {
        let answer = self.ask("POST", "/v1/sessions", &self.wanted(more));
        assert_eq!(answer.status, 201, "{answer:?}");
        id(&answer)
    }

    /// What a session is created with.
    pub(crate) fn wanted(&self, more: &Value) -> Value {
        let mut wanted = json!({"agent": "example", "cwd": self.work()});
        wanted.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        wanted
    }

    fn work(&self) -> PathBuf {
        self.scratch.work()
    }
}

pub(crate) fn id(answer: &Answer) -> String {
    answer.json()["sessionId"].as_str().expect("an id").to_owned()
}

/// A token in a configuration.
pub(crate) fn token(name: &str, secret: &str, scope: &str) -> String {
    let hash: String = acpd_gateway::hash_token(secret).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("[tokens.{name}]\nhash = \"sha256:{hash}\"\nscope = \"{scope}\"\n")
}
