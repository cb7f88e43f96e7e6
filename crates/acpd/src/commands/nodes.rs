//! `acpd nodes`: the nodes of a fleet, and which take new sessions.

use crate::address::encoded;
use crate::clean::line;
use crate::cli::{Drain, NodeAct, Nodes, Which};
use crate::commands::sessions::screen_of_stdout;
use crate::commands::shown;
use crate::daemon::{Daemon, DaemonError, Node, Nodes as Known, need_daemon, need_daemon_to_change};
use crate::exit::{Code, Failure};
use crate::nearest::nearest;
use crate::signals::StopSignals;
use crate::streams::{print, print_json, remark, window};
use crate::view::{Cell, Column, Cut, Paint, Tone, age, table};
use acpd_host::chain;
use http::Method;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::time::Duration;
use tokio::time::Instant;

/// How often it is looked whether a node still has live sessions.
const LOOK: Duration = Duration::from_secs(1);
/// How long a daemon that is away is waited for meanwhile: longer than a hand-over takes.
const AWAY: Duration = Duration::from_secs(60);

pub(crate) async fn nodes(args: Nodes) -> Result<(), Failure> {
    match args {
        Nodes::List { json, which } => list(json, which).await,
        Nodes::Drain(drain) => drained(drain).await,
        Nodes::Remove(node) => removed(node).await,
        Nodes::Undrain(node) => {
            let (daemon, name, json) = chosen(node).await?;
            let told = act(&daemon, &name, "undrain").await?;
            let text = format!("{} takes new sessions", line(&name, 64));
            if json { print_json(told.get()) } else { print(&text) }.map(drop)
        }
    }
}

/// The daemon that is asked, and the node that is meant.
async fn chosen(node: NodeAct) -> Result<(Daemon, String, bool), Failure> {
    let NodeAct { name, json, which } = node;
    let daemon = need_daemon_to_change(which).await?;
    match name {
        Some(name) => Ok((daemon, name, json)),
        None => Err(Failure::Usage(format!("NAME is missing: which node? {}", has(&daemon.nodes().await?)))),
    }
}

/// What the fleet has instead.
fn has(known: &Known) -> String {
    match known.nodes.is_empty() {
        true => "the fleet has none that this node knows of".to_owned(),
        false => format!("the fleet has {}", known.names()),
    }
}

fn no_such_node(name: &str, known: &Known) -> Failure {
    let names = known.nodes.iter().map(|node| node.name.as_str());
    let meant = nearest(name, names).map(|meant| format!("; did you mean {}?", line(meant, 64)));
    let (name, has) = (line(name, 64), has(known));
    Failure::missing(format!("no node is called {name}; {has}{}", meant.unwrap_or_default()))
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
    let known = daemon.nodes().await?;
    if json {
        return print_json(known.raw.as_deref().map_or("{}", RawValue::get)).map(drop);
    }
    let now = Timestamp::now();
    let cells: Vec<[Cell; 7]> = known.nodes.iter().map(|node| cells(node, now)).collect();
    let width = window().map(|(columns, _)| columns);
    let read = print(&table(&COLUMNS, &cells, width, Paint::new(screen_of_stdout().colour)).join("\n"))?;
    if let Some(trouble) = known.trouble() {
        remark(&if known.reason.is_some() { trouble } else { format!("{trouble}; this may be old") });
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
    known_node(daemon, name, Method::POST, &format!("/v1/nodes/{}/{what}", encoded(name))).await
}

/// What is asked of a node; one that is not there is told with those that are.
async fn known_node<T: DeserializeOwned>(
    daemon: &Daemon,
    name: &str,
    method: Method,
    path: &str,
) -> Result<T, Failure> {
    match daemon.ask(method, path).await {
        // Where the list is not told either, that says most.
        Err(error) if error.is_not_found() => match daemon.nodes().await {
            Ok(known) => Err(no_such_node(name, &known)),
            Err(_) => Err(error.into()),
        },
        done => Ok(done?),
    }
}

/// What was removed with a node.
#[derive(serde::Deserialize)]
struct Removed {
    sessions: u64,
    left: u64,
}

/// Removes a node that is gone for good. Each request removes what it can within seconds.
async fn removed(node: NodeAct) -> Result<(), Failure> {
    let (daemon, name, json) = chosen(node).await?;
    let path = format!("/v1/nodes/{}", encoded(&name));
    let mut sessions = 0;
    loop {
        let done: Removed = known_node(&daemon, &name, Method::DELETE, &path).await?;
        sessions += done.sessions;
        if done.left == 0 {
            break;
        }
        if done.sessions == 0 {
            let left = done.left;
            return Err(Failure::Failed(format!("{left} sessions could not be removed; try again")));
        }
        remark(&format!("{} sessions left", done.left));
    }
    let text = format!("{} is removed, with {}", line(&name, 64), counted(sessions));
    let told = serde_json::json!({"sessions": sessions, "left": 0}).to_string();
    if json { print_json(&told) } else { print(&text) }.map(drop)
}

fn counted(sessions: u64) -> String {
    if sessions == 1 { "1 session".to_owned() } else { format!("{sessions} sessions") }
}

/// Has a node take no new sessions, and waits until those that it has are over.
async fn drained(args: Drain) -> Result<(), Failure> {
    let Drain { node, no_wait } = args;
    let (daemon, name, json) = chosen(node).await?;
    let mut signals = StopSignals::listen()?;
    let mut told = act(&daemon, &name, "drain").await?;
    let mut waiting = Waiting { name, was_said: None };
    loop {
        let now: Node = serde_json::from_str(told.get())?;
        if no_wait || now.live == 0 {
            let text = if now.live == 0 { waiting.empty() } else { waiting.goes_on(now.live) };
            return if json { print_json(told.get()) } else { print(&text) }.map(drop);
        }
        if let Some(text) = waiting.remark(&now, Timestamp::now()) {
            remark(&text);
        }
        tokio::select! {
            found = find(&daemon, &waiting) => told = found?,
            () = signals.next() => {
                remark(&waiting.left());
                return Err(Failure::Told(Code::Interrupted));
            }
        }
    }
}

/// What a person who waits is told.
#[derive(Debug)]
struct Waiting {
    /// Of the node.
    name: String,
    /// What was told last: how many are live, and whether the node is there.
    was_said: Option<(u64, bool)>,
}

impl Waiting {
    /// How many are left, where that is news.
    fn remark(&mut self, now: &Node, time: Timestamp) -> Option<String> {
        let news = (now.live, now.reachable);
        if self.was_said.replace(news) == Some(news) {
            return None;
        }
        let (name, left) = (line(&self.name, 64), live(now.live));
        if now.reachable {
            return Some(format!("{left} left; Ctrl-C stops the waiting, and {name} stays drained"));
        }
        let since = now.unreachable_since.map(|since| format!(" for {}", age(since, time)));
        let since = since.unwrap_or_default();
        Some(format!(
            "{name} cannot be reached{since}, and had {left}; Ctrl-C stops the waiting, and {name} stays drained"
        ))
    }

    fn undo(&self) -> String {
        format!("`acpd nodes undrain {}` has it take new ones again", shown(&self.name))
    }

    fn empty(&self) -> String {
        format!("{} takes no new sessions, and none is live there; {}", line(&self.name, 64), self.undo())
    }

    fn goes_on(&self, count: u64) -> String {
        let goes_on = if count == 1 { "1 live session goes on" } else { &format!("{} go on", live(count)) };
        format!("{} takes no new sessions; {goes_on}; {}", line(&self.name, 64), self.undo())
    }

    fn left(&self) -> String {
        format!("{} stays drained; {}", line(&self.name, 64), self.undo())
    }
}

fn live(count: u64) -> String {
    if count == 1 { "1 live session".to_owned() } else { format!("{count} live sessions") }
}

/// The node, a moment later. A daemon that is away, as while it hands over, is waited for.
async fn find(daemon: &Daemon, waiting: &Waiting) -> Result<Box<RawValue>, Failure> {
    let begun = Instant::now();
    loop {
        tokio::time::sleep(LOOK).await;
        match daemon.nodes().await {
            Ok(known) => {
                let is_it = |raw: &&RawValue| {
                    serde_json::from_str::<Node>(raw.get()).is_ok_and(|node| node.name == waiting.name)
                };
                let gone = || Failure::missing(format!("{} has left the fleet", line(&waiting.name, 64)));
                return each(&known)?.into_iter().find(is_it).map(ToOwned::to_owned).ok_or_else(gone);
            }
            Err(error) if error.may_pass() && begun.elapsed() < AWAY => {}
            Err(error) => return Err(given_up(waiting, &error)),
        }
    }
}

/// The nodes, each as the daemon wrote it.
fn each(known: &Known) -> Result<Vec<&RawValue>, Failure> {
    #[derive(serde::Deserialize)]
    struct All<'a> {
        #[serde(borrow)]
        nodes: Vec<&'a RawValue>,
    }
    let All { nodes } = serde_json::from_str(known.raw.as_deref().map_or("{}", RawValue::get))?;
    Ok(nodes)
}

fn given_up(waiting: &Waiting, error: &DaemonError) -> Failure {
    Failure::Failed(format!(
        "{}; it is not known whether sessions are live there: {}",
        waiting.left(),
        chain(error)
    ))
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

    // contract 7.1: acpd nodes drain: what is left, how to leave, and how to undo it; nothing is said twice
    #[test]
    fn who_waits_is_told_what_is_left() {
        let mut waiting = Waiting { name: "a".to_owned(), was_said: None };
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().expect("a time");
        let node = |live| Node { live, reachable: true, ..Node::default() };
        assert_eq!(
            waiting.remark(&node(2), now).as_deref(),
            Some("2 live sessions left; Ctrl-C stops the waiting, and a stays drained")
        );
        assert_eq!(waiting.remark(&node(2), now), None);
        let told = waiting.remark(&node(1), now).expect("there is one less");
        assert!(told.starts_with("1 live session left; "), "{told}");
        let since = Some("2026-11-21T11:58:00Z".into());
        let gone = Node { unreachable_since: since, reachable: false, ..node(1) };
        let told = waiting.remark(&gone, now).expect("it is gone");
        assert!(told.starts_with("a cannot be reached for 2m, and had 1 live session; "), "{told}");
        assert_eq!(
            waiting.empty(),
            "a takes no new sessions, and none is live there; `acpd nodes undrain a` has it take new ones again"
        );
        assert!(waiting.goes_on(1).starts_with("a takes no new sessions; 1 live session goes on; "));
        assert!(waiting.goes_on(2).starts_with("a takes no new sessions; 2 live sessions go on; "));
    }

    // contract 7.1: a node that is not there is told with those that are
    #[test]
    fn an_unknown_node_is_told_with_the_others() {
        let node = |name: &str| Node { name: name.to_owned(), ..Node::default() };
        let known =
            Known { nodes: ["build-1", "build-2", "c\u{1b}[2J"].map(node).to_vec(), ..Known::default() };
        assert_eq!(
            no_such_node("x", &known).to_string(),
            "no node is called x; the fleet has build-1, build-2, c␛[2J"
        );
        let near = no_such_node("biuld-2", &known).to_string();
        assert!(near.ends_with("; did you mean build-2?"), "{near}");
    }
}
