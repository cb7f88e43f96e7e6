//! Three servers of NATS and three daemons that reach each of them over a link of their own.
//!
//! Invariant: a daemon keeps its address over its lives, and so does a server.

use crate::asking::{Reply, ask};
use crate::schedule::{COUNT, Pace};
use acpd_e2e::{Daemon, NatsServer, NetworkLink, Scratch, acpd, nats_place, until};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The token that all nodes know, with all rights.
pub(crate) const ROOT: &str = "root-of-all-nodes";
pub(crate) const NAMES: [&str; COUNT] = ["a", "b", "c"];
/// How long a request may take where only its answer is of interest.
const LONG: Duration = Duration::from_secs(20);

/// A daemon that is a node. It ends before what it ran in.
pub(crate) struct Node {
    pub(crate) daemon: Daemon,
    pub(crate) address: SocketAddr,
    pub(crate) links: Vec<NetworkLink>,
    scratch: Scratch,
}

/// All that runs.
pub(crate) struct World {
    pub(crate) nodes: Vec<Node>,
    pub(crate) servers: [NatsServer; COUNT],
}

impl World {
    /// Starts all, and waits until the nodes know each other.
    pub(crate) fn start(pace: Pace) -> Self {
        let servers = NatsServer::start_three();
        let nodes = NAMES.iter().map(|name| Node::start(&servers, name, pace)).collect();
        let world = Self { nodes, servers };
        for node in &world.nodes {
            until("all nodes know each other", || {
                let answer = node.get("/v1/nodes").json();
                (answer["nodes"].as_array()?.len() == COUNT && answer["stale"] != true).then_some(())
            });
        }
        world
    }

    /// Sessions on each node, of which others may take up some; all nodes list them.
    pub(crate) fn create_sessions(&self) -> Vec<String> {
        let policies = ["local", "failover", "failover"];
        let wanted = self.nodes.iter().flat_map(|node| policies.map(|policy| (node, policy)));
        let sessions: Vec<String> = wanted.map(|(node, policy)| node.create(policy)).collect();
        for node in &self.nodes {
            until("all are listed", || {
                let listed = node.get("/v1/sessions").json()["sessions"].as_array().map(Vec::len);
                (listed == Some(sessions.len())).then_some(())
            });
        }
        sessions
    }
}

impl Node {
    fn start(servers: &[NatsServer; COUNT], name: &str, pace: Pace) -> Self {
        let links: Vec<_> = servers.iter().map(|server| NetworkLink::to(server.address())).collect();
        let urls: Vec<_> = links.iter().map(|link| format!("nats://{}", link.address())).collect();
        let hash: String = acpd_gateway::hash_token(ROOT).iter().map(|byte| format!("{byte:02x}")).collect();
        let scratch = Scratch::new().keep("0s").config(&format!(
            "[tokens.root]\nhash = \"sha256:{hash}\"\nscope = \"admin\"\n\
             [fleet]\nurl = \"{}\"\nnode = \"{name}\"\nheartbeat = \"{}ms\"\nlease = \"{}ms\"\npartition = \"failover\"\n",
            urls.join(","),
            pace.heartbeat.as_millis(),
            pace.lease.as_millis()
        ));
        let address = nats_place(1)[0];
        let daemon = serve(&scratch, address);
        Self { daemon, address, links, scratch }
    }

    /// Starts its daemon, after it was killed.
    pub(crate) fn again(&mut self) {
        self.daemon = serve(&self.scratch, self.address);
    }

    /// Where its log is.
    pub(crate) fn state(&self) -> PathBuf {
        self.scratch.state()
    }

    /// What its daemons have said.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.scratch.path("stderr")).unwrap_or_default()
    }

    /// The answer to a request, which it has to give.
    pub(crate) fn get(&self, path: &str) -> Reply {
        ask(self.address, "GET", path, &Value::Null, (LONG, &|| true))
            .unwrap_or_else(|why| panic!("{path}: {why}"))
    }

    fn create(&self, policy: &str) -> String {
        let wanted = json!({"agent": "example", "cwd": self.scratch.work(), "partition": policy});
        // It takes none before it knows that the fleet knows it.
        until("it takes sessions", || {
            let created = ask(self.address, "POST", "/v1/sessions", &wanted, (LONG, &|| true));
            let created = created.unwrap_or_else(|why| panic!("{why}"));
            assert!(matches!(created.status, 201 | 503), "{created:?}");
            created.json()["sessionId"].as_str().map(str::to_owned)
        })
    }
}

/// A daemon whose standard error is a file, so that it can be read when a schedule went wrong.
fn serve(scratch: &Scratch, address: SocketAddr) -> Daemon {
    let mut command = scratch.command("sh");
    command
        .args(["-c", "log=$1; shift; exec \"$0\" \"$@\" 2>>\"$log\""])
        .arg(acpd())
        .arg(scratch.path("stderr"));
    scratch.serve_by(command, &address.to_string())
}
