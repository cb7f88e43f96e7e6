//! Search over REST: what is found, by whom, page by page, and after a kill at any moment.

use crate::door::{ask, client, entry};
use acpd_e2e::{Client, Daemon, Scratch, until};
use serde_json::Value;
use std::collections::BTreeSet;

fn scratch() -> Scratch {
    let tokens = [
        entry("a", "scope = \"control\""),
        entry("b", "scope = \"control\""),
        entry("watch", "scope = \"observe\"\nsees = \"all\""),
        entry("blind", "scope = \"observe\""),
        entry("root", "scope = \"admin\""),
    ];
    Scratch::new().config(&tokens.join("\n"))
}

fn page(daemon: &Daemon, token: &str, query: &str) -> Value {
    let answer = ask(daemon, token, "GET", &format!("/v1/search?{query}"));
    assert_eq!(answer.status, 200, "{query}: {}", answer.json());
    answer.json()
}

/// What all pages have: session, part and snippet of each turn.
fn all(daemon: &Daemon, token: &str, text: &str, limit: usize) -> Vec<(String, String, String)> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = page(daemon, token, &format!("text={text}&limit={limit}{cursor}"));
        let hits = page["hits"].as_array().expect("hits");
        let of = |hit: &Value, name: &str| hit[name].as_str().expect("text").to_owned();
        found.extend(hits.iter().map(|hit| (of(hit, "sessionId"), of(hit, "part"), of(hit, "snippet"))));
        match page["nextCursor"].as_str() {
            None => return found,
            Some(next) => {
                assert_eq!(hits.len(), limit, "a page that another follows is full");
                cursor = format!("&cursor={next}");
            }
        }
    }
}

/// A session with these prompts.
fn said(client: &mut Client, prompts: &[&str]) -> String {
    let session = client.new_session();
    for prompt in prompts {
        client.turn(&session, prompt);
    }
    session
}

fn indexed(daemon: &Daemon, text: &str, count: usize) {
    until("the turns are indexed", || (all(daemon, "watch", text, 100).len() == count).then_some(()));
}

// contract 7.3: visible sessions only, full pages, the latest first; a deleted session is not found
#[test]
fn each_token_finds_what_it_sees() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let mut a = client(&daemon, &scratch, "a");
    let mut b = client(&daemon, &scratch, "b");
    let first = said(&mut a, &["needle one", "say nothing", "needle two"]);
    let others = said(&mut b, &["needle three", "needle four"]);
    let last = said(&mut a, &["tool Needle-finder"]);
    indexed(&daemon, "needle", 5);
    for limit in [1, 2, 100] {
        let mine = all(&daemon, "a", "needle", limit);
        let sessions: Vec<&str> = mine.iter().map(|(session, ..)| session.as_str()).collect();
        assert_eq!(sessions, [&last, &first, &first], "{limit}");
        assert_eq!(all(&daemon, "b", "needle", limit).len(), 2);
        assert_eq!(all(&daemon, "watch", "needle", limit).len(), 5);
        assert_eq!(all(&daemon, "blind", "needle", limit).len(), 0);
    }
    let snippets: BTreeSet<String> =
        all(&daemon, "watch", "NEEDLE%20fo*", 100).into_iter().map(|(.., snippet)| snippet).collect();
    assert_eq!(snippets, BTreeSet::from(["needle four".to_owned()]));
    // A cursor is that of its text.
    let first_page = page(&daemon, "a", "text=needle&limit=1");
    let cursor = first_page["nextCursor"].as_str().expect("there is more");
    for (query, about) in [
        (format!("text=other&cursor={cursor}"), "cursor:"),
        ("text=needle&cursor=zz".to_owned(), "cursor:"),
        ("text=".to_owned(), "text:"),
        ("text=%2A%22".to_owned(), "text:"),
        ("text=needle&limit=0".to_owned(), "limit:"),
        ("limit=1".to_owned(), "`text`"),
    ] {
        let answer = ask(&daemon, "a", "GET", &format!("/v1/search?{query}"));
        assert_eq!(answer.status, 400, "{query}");
        assert!(answer.problem().contains("bad_request"), "{query}");
        assert!(answer.json()["detail"].as_str().is_some_and(|detail| detail.contains(about)), "{query}");
    }
    assert_eq!(ask(&daemon, "root", "DELETE", &format!("/v1/sessions/{first}")).status, 204);
    let left: BTreeSet<String> =
        all(&daemon, "watch", "needle", 2).into_iter().map(|(session, ..)| session).collect();
    assert_eq!(left, BTreeSet::from([others, last]));
    drop((a, b));
    daemon.stop();
}

// contract 7.3: sessions by words of what they are known by, and by what they do; of the caller's own, in full pages
#[test]
fn lists_are_filtered() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let mut a = client(&daemon, &scratch, "a");
    let mut b = client(&daemon, &scratch, "b");
    let titled = said(&mut a, &["title Fix the Gr\u{f6}\u{df}e tests"]);
    let plain = said(&mut a, &["hello"]);
    let other = said(&mut b, &["title Fix it too"]);
    let list = |token: &str, query: &str| -> Vec<String> {
        let answer = ask(&daemon, token, "GET", &format!("/v1/sessions?{query}"));
        assert_eq!(answer.status, 200, "{query}: {}", answer.json());
        let page = answer.json();
        let sessions = page["sessions"].as_array().expect("sessions").iter();
        sessions.map(|session| session["sessionId"].as_str().expect("an id").to_owned()).collect()
    };
    until("the title is known", || (list("watch", "q=fix").len() == 2).then_some(()));
    for (token, query, expected) in [
        ("a", "q=fix", vec![&titled]),
        ("b", "q=fix", vec![&other]),
        ("watch", "q=FIX%20gro\u{308}ß", vec![&titled]),
        ("a", "q=exampl&limit=1", vec![&plain]),
        ("a", &format!("q={}", &plain[24..]), vec![&plain]),
        ("a", "q=fix&state=idle", vec![&titled]),
        ("a", "q=nothing", vec![]),
        ("watch", "state=running", vec![]),
        ("watch", "state=ended", vec![]),
        ("watch", "state=idle&limit=2", vec![&other, &plain]),
    ] {
        let query = query.replace('\u{308}', "%CC%88").replace('ß', "%C3%9F");
        assert_eq!(list(token, &query), expected.into_iter().cloned().collect::<Vec<_>>(), "{query}");
    }
    for (query, about) in [("q=%20", "q:"), ("state=sleeping", "state:")] {
        let answer = ask(&daemon, "a", "GET", &format!("/v1/sessions?{query}"));
        assert_eq!(answer.status, 400);
        assert!(answer.json()["detail"].as_str().is_some_and(|detail| detail.starts_with(about)), "{query}");
    }
    drop((a, b));
    daemon.stop();
}

// issue 11, deliver 3: whenever the daemon is killed, the next one finds all turns that had ended, each once
#[test]
fn a_killed_daemon_loses_nothing_of_the_index() {
    let scratch = scratch();
    let mut turns = 0;
    for round in 0..4 {
        let mut daemon = scratch.serve();
        let mut a = client(&daemon, &scratch, "a");
        let session = a.new_session();
        for _ in 0..=round {
            a.turn(&session, "needle");
            turns += 1;
        }
        // Right behind the answer: the index may be anywhere.
        daemon.kill();
        drop(a);
    }
    let mut daemon = scratch.serve();
    indexed(&daemon, "needle", turns);
    let is_done = || page(&daemon, "watch", "text=needle")["incomplete"] == false;
    until("all is indexed", || is_done().then_some(()));
    assert_eq!(all(&daemon, "watch", "needle", 3).len(), turns);
    daemon.stop();
}

// contract 7.2: search = false drops the index, and says which setting it is
#[test]
fn search_can_be_turned_off() {
    let on = scratch();
    let mut daemon = on.serve();
    let mut a = client(&daemon, &on, "a");
    said(&mut a, &["needle"]);
    indexed(&daemon, "needle", 1);
    drop(a);
    daemon.stop();
    let off = on.config("[storage]\nsearch = false");
    let mut daemon = off.serve();
    let answer = ask(&daemon, "a", "GET", "/v1/search?text=needle");
    assert_eq!((answer.status, answer.problem().contains("search_off")), (409, true));
    assert!(
        answer.json()["detail"].as_str().is_some_and(|detail| detail.contains("search = true in [storage]"))
    );
    daemon.stop();
}
