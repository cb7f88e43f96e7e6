//! Any node lists, shows, watches, prompts and ends any session.

use crate::nodes::{Fleet, ROOT, id};
use acpd_e2e::{Http, until};
use serde_json::{Value, json};

// contract 7.3: one door: lists of all nodes have all sessions, each with its node
#[test]
fn any_node_lists_all_sessions() {
    let fleet = Fleet::lasting(&[("a", ""), ("b", ""), ("c", "")], "0s");
    let sessions: Vec<String> = fleet
        .nodes
        .iter()
        .map(|node| node.create(&json!({"title": format!("würfel-{}", node.name)})))
        .collect();
    for node in &fleet.nodes {
        for (session, of) in sessions.iter().zip(["a", "b", "c"]) {
            let listed =
                node.sees(session, "all nodes list it", |listed| listed["title"] == format!("würfel-{of}"));
            assert_eq!((&listed["node"], &listed["reachable"]), (&json!(of), &json!(true)), "{listed}");
        }
        let ids = |query: &str| {
            let listed = node.lists(query);
            listed
                .iter()
                .map(|listed| listed["sessionId"].as_str().expect("an id").to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(ids("?node=b"), [sessions[1].clone()]);
        assert_eq!(ids("?q=W%C3%9CRFEL-c&agent=example&state=idle"), [sessions[2].clone()]);
        assert!(ids("?ended=true").is_empty() && ids("?node=nowhere").is_empty() && ids("?cwd=/").is_empty());
        // Page by page there is each once, the latest change first.
        let (mut paged, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = node.get(&format!("/v1/sessions?limit=2{cursor}")).json();
            assert_eq!(page["stale"], false);
            let listed = page["sessions"].as_array().expect("a list").iter();
            paged.extend(listed.map(|listed| listed["sessionId"].as_str().expect("an id").to_owned()));
            let Some(next) = page["nextCursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(paged, ids(""));
        let expected: Vec<_> =
            ["a", "b", "c"].iter().map(|name| json!([name, *name == node.name, 1])).collect();
        until("each is counted", || {
            let known = node.known();
            let told = known.iter().map(|known| json!([known["name"], known["here"], known["live"]]));
            (told.collect::<Vec<_>>() == expected).then_some(())
        });
    }
}

// contract 7.3: one door: every request of REST reaches the owner, with streams and cursors
#[test]
fn any_node_uses_any_session() {
    let fleet = Fleet::lasting(&[("a", ""), ("b", ""), ("c", "")], "0s");
    let [a, b, c] = &fleet.nodes[..] else { panic!("there are three") };
    let session = a.create(&json!({}));
    let path = |rest: &str| format!("/v1/sessions/{session}{rest}");
    for node in [b, c] {
        node.sees(&session, "it is listed", |_| true);
    }
    let shown = b.get(&path(""));
    assert_eq!((shown.status, shown.header("acpd-node")), (200, Some("a")), "{shown:?}");
    assert_eq!(shown.json(), a.get(&path("")).json());
    let mut events = c.events(&session);
    let prompted = b.ask("POST", &path("/prompt"), &json!({"prompt": "say the Größe\nask edit"}));
    assert_eq!(prompted.status, 202, "{prompted:?}");
    // What the agent asks is answered through a third door.
    let question = events.until("a question", |event| event.event.as_deref() == Some("permission_requested"));
    let outcome = json!({"outcome": "selected", "optionId": "allow-once"});
    let answer = json!({"question": question.json()["seq"], "outcome": outcome});
    let answered = b.ask("POST", &path("/answer"), &answer);
    assert_eq!(answered.status, 204, "{answered:?}");
    assert_eq!(c.ask("POST", &path("/answer"), &answer).status, 409, "it was answered");
    let last = events.until("the end of the turn", |event| event.event.as_deref() == Some("turn_ended"));
    let page = |node: &crate::nodes::Node| node.get(&path("/events?limit=1000")).json()["events"].clone();
    assert_eq!(page(b), page(a));
    // A reader that comes back by another door goes on behind its cursor.
    let authorization = format!("Bearer {ROOT}");
    let seq = last.json()["seq"].as_u64().expect("a number");
    let headers = [("Authorization", &*authorization), ("Last-Event-ID", last.id.as_deref().expect("an id"))];
    let rest = Http::on(b.daemon.connect()).events(&path("/events"), &headers);
    let mut rest = rest.unwrap_or_else(|answer| panic!("{answer:?}"));
    assert_eq!(c.ask("POST", &path("/close"), &Value::Null).status, 204);
    let ended = rest.until("its end", |event| event.event.as_deref() == Some("ended"));
    assert!(ended.json()["seq"].as_u64().expect("a number") > seq);
    b.sees(&session, "it has ended", |listed| listed["ended"] == true);
    let exported = b.get(&path("/export"));
    assert_eq!((exported.status, &exported.body), (200, &a.get(&path("/export")).body));
    assert_eq!(b.ask("POST", &path("/resume"), &Value::Null).status, 200);
    assert_eq!(c.ask("DELETE", &path(""), &Value::Null).status, 204);
    until("it is listed no more", || b.lists("").is_empty().then_some(()));
    assert_eq!(b.get(&path("")).status, 404);
}

// contract 7.3: forwarded once at most: 421 with the owner
#[test]
fn a_request_is_forwarded_once() {
    let fleet = Fleet::lasting_two();
    let [a, b] = &fleet.nodes[..] else { panic!("there are two") };
    let session = a.create(&json!({}));
    b.sees(&session, "it is listed", |_| true);
    let authorization = format!("Bearer {ROOT}");
    let headers = [("Authorization", &*authorization), ("Acpd-Forwarded-By", "c")];
    let path = format!("/v1/sessions/{session}");
    let missed = Http::on(b.daemon.connect()).request("GET", &path, &headers, "");
    assert_eq!((missed.status, missed.problem().as_str()), (421, "not_here"), "{missed:?}");
    assert_eq!(missed.json()["node"], "a");
    let there = Http::on(a.daemon.connect()).request("GET", &path, &headers, "");
    assert_eq!(id(&there), session);
}
