//! `acpd nodes`: the nodes of a fleet, and which take new sessions.

use crate::address::encoded;
use crate::clean::line;
use crate::cli::{NodeAct, Nodes, Which};
use crate::commands::sessions::{print_remark, screen_of_stdout};
use crate::daemon::{Daemon, need_daemon};
use crate::exit::Failure;
use crate::moment::Moment;
use crate::stdout::{print, window};
use crate::view::{Cell, Column, Cut, Paint, Tone, age, table};
use http::Method;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::time::Duration;

/// How often it is looked whether a node still has live sessions.
const LOOK: Duration = Duration::from_secs(1);

/// What a daemon says of its fleet.
#[derive(Deserialize)]
struct Known {
    nodes: Vec<Node>,
    #[serde(default)]
    stale: bool,
    reason: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Node {
    name: String,
    here: bool,
    address: Option<String>,
    version: String,
    labels: Vec<String>,
    draining: bool,
    sessions: u64,
    live: u64,
    reachable: bool,
    unreachable_since: Option<Moment>,
}

pub(crate) async fn nodes(args: Nodes) -> Result<(), Failure> {
    match args {
        Nodes::List { json, which } => list(json, which).await,
        Nodes::Drain { node, no_wait } => drain(node, no_wait).await,
        Nodes::Undrain(node) => {
            let NodeAct { name, json, which } = node;
            let daemon = need_daemon(which).await?;
            let told = act(&daemon, &name, "undrain").await?;
            let text = format!("{} takes new sessions", line(&name, 64));
            print(if json { told.get() } else { &text }).map(drop)
        }
    }
}

const COLUMNS: [Column; 7] = [
    Column::text("NODE", Cut::Never),
    Column::text("STATE", Cut::Never),
    Column::number("LIVE"),
    Column::number("SESSIONS"),
    Column::text("VERSION", Cut::Never),
    Column::text("LABELS", Cut::End(6)),
    Column::text("ADDRESS", Cut::End(10)),
];

async fn list(json: bool, which: Which) -> Result<(), Failure> {
    let daemon = need_daemon(which).await?;
    let raw: Box<RawValue> = daemon.get("/v1/nodes").await?;
    if json {
        return print(raw.get()).map(drop);
    }
    let known: Known = serde_json::from_str(raw.get())?;
    let now = Timestamp::now();
    let cells: Vec<[Cell; 7]> = known.nodes.iter().map(|node| cells(node, now)).collect();
    let width = window().map(|(columns, _)| columns);
    let read = print(&table(&COLUMNS, &cells, width, Paint::new(screen_of_stdout().colour)).join("\n"))?;
    match known.reason {
        Some(reason) => {
            print_remark(&format!("the fleet does not know of this node: {}", line(&reason, 300)))
        }
        None if known.stale => print_remark("the engine of the fleet does not answer; this may be old"),
        None => {}
    }
    let _read_to_its_end = read;
    Ok(())
}

fn cells(node: &Node, now: Timestamp) -> [Cell; 7] {
    let here = if node.here { " (here)" } else { "" };
    let state = match (&node.unreachable_since, node.draining) {
        (Some(since), _) => Cell { text: format!("unreachable for {}", age(*since, now)), tone: Tone::Bad },
        (None, _) if !node.reachable => Cell { text: "unreachable".to_owned(), tone: Tone::Bad },
        (None, true) => Cell { text: "draining".to_owned(), tone: Tone::Notable },
        (None, false) => Cell { text: "ready".to_owned(), tone: Tone::Good },
    };
    let address = line(node.address.as_deref().unwrap_or("none"), 200);
    [
        format!("{}{here}", line(&node.name, 64)).into(),
        state,
        node.live.to_string().into(),
        node.sessions.to_string().into(),
        line(&node.version, 20).into(),
        line(&node.labels.join(","), 100).into(),
        Cell { text: address, tone: Tone::Dim },
    ]
}

async fn act(daemon: &Daemon, name: &str, what: &str) -> Result<Box<RawValue>, Failure> {
    Ok(daemon.ask(Method::POST, &format!("/v1/nodes/{}/{what}", encoded(name))).await?)
}

/// Has a node take no new sessions, and waits until those that it has are over.
async fn drain(node: NodeAct, no_wait: bool) -> Result<(), Failure> {
    let NodeAct { name, json, which } = node;
    let daemon = need_daemon(which).await?;
    let mut told = act(&daemon, &name, "drain").await?;
    let mut was_said = None;
    loop {
        let now: Node = serde_json::from_str(told.get())?;
        if no_wait || now.live == 0 {
            let rest = match now.live {
                0 => String::new(),
                1 => "; 1 live session goes on".to_owned(),
                more => format!("; {} go on", live(more)),
            };
            let text = format!("{} takes no new sessions{rest}", line(&name, 64));
            return print(if json { told.get() } else { &text }).map(drop);
        }
        if was_said != Some(now.live) {
            was_said = Some(now.live);
            print_remark(&format!("waiting for {}; Ctrl-C leaves the node as it is now", live(now.live)));
        }
        tokio::time::sleep(LOOK).await;
        told = find(&daemon, &name).await?;
    }
}

fn live(count: u64) -> String {
    if count == 1 { "1 live session".to_owned() } else { format!("{count} live sessions") }
}

async fn find(daemon: &Daemon, name: &str) -> Result<Box<RawValue>, Failure> {
    #[derive(Deserialize)]
    struct All {
        nodes: Vec<Box<RawValue>>,
    }
    let All { nodes } = daemon.get("/v1/nodes").await?;
    let is_it = |raw: &RawValue| serde_json::from_str::<Node>(raw.get()).is_ok_and(|node| node.name == name);
    let gone = || Failure::missing(format!("{} has left the fleet", line(name, 64)));
    nodes.into_iter().find(|raw| is_it(raw)).ok_or_else(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.1: acpd nodes list: who is there, and which take new sessions
    #[test]
    fn nodes_are_listed() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().expect("a time");
        let node = |name: &str| Node {
            name: name.to_owned(),
            reachable: true,
            version: "1".to_owned(),
            ..Node::default()
        };
        let since = Some("2026-11-21T11:58:00Z".into());
        let gone = Node { unreachable_since: since, reachable: false, live: 2, sessions: 3, ..node("b") };
        let labels = vec!["gpu".to_owned(), "big".to_owned()];
        let rows = [
            cells(&Node { here: true, labels, ..node("a") }, now),
            cells(&gone, now),
            cells(&Node { draining: true, address: Some("https://c:1".to_owned()), ..node("c") }, now),
        ];
        assert_eq!(
            table(&COLUMNS, &rows, None, Paint::new(false)),
            [
                "NODE      STATE               LIVE  SESSIONS  VERSION  LABELS   ADDRESS",
                "a (here)  ready                  0         0  1        gpu,big  none",
                "b         unreachable for 2m     2         3  1                 none",
                "c         draining               0         0  1                 https://c:1",
            ]
        );
    }
}
