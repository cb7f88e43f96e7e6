//! Pages of `session/list`, and the filter before them (SE-12, contract 1.3).

use crate::asking::{ids, listed};
use acpd_e2e::{Client, Scratch};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::Path;

/// Enough for three pages.
const MANY: usize = 120;

/// One process for all, so that many sessions cost little.
fn crowd() -> (Scratch, Client) {
    let scratch = Scratch::new().example("shared", &["--no-state"]).config("share_process = true");
    let mut client = scratch.stdio("shared");
    client.initialize();
    (scratch, client)
}

fn new_in(client: &mut Client, cwd: &Path) -> String {
    let result = client.call("session/new", &json!({"cwd": cwd, "mcpServers": []}));
    result["sessionId"].as_str().expect("a session has an id").to_owned()
}

fn page(client: &mut Client, cursor: &Value) -> (Vec<String>, Value) {
    let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
    let mut page = client.call("session/list", &params);
    let entries = page["sessions"].take();
    let ids = ids(entries.as_array().expect("a page has sessions")).into_iter().map(str::to_owned).collect();
    (ids, page["nextCursor"].take())
}

// SE-12, SE-1: each session once, though others change, come and go meanwhile
#[test]
fn pages_show_each_session_once() {
    let (scratch, mut client) = crowd();
    let sessions: Vec<String> = (0..MANY).map(|_| new_in(&mut client, &scratch.work())).collect();
    assert_eq!(sessions.iter().collect::<HashSet<_>>().len(), MANY);
    let (first, cursor) = page(&mut client, &Value::Null);
    assert_eq!(first.len(), 50);
    // One of the page before, one of the page after, a new one, one that goes.
    let later: Vec<&String> = sessions.iter().filter(|session| !first.contains(session)).collect();
    let (changed, gone) = ([&first[30], later[0]], later[1]);
    for session in changed {
        assert_eq!(client.turn(session, "hello"), "end_turn");
    }
    new_in(&mut client, &scratch.work());
    client.call("session/delete", &json!({"sessionId": gone}));
    let (second, cursor) = page(&mut client, &cursor);
    let (third, end) = page(&mut client, &cursor);
    assert_eq!((second.len(), end), (50, Value::Null));
    let seen: Vec<&String> = first.iter().chain(&second).chain(&third).collect();
    assert_eq!(seen.iter().collect::<HashSet<_>>().len(), seen.len(), "none is seen twice");
    let unchanged = sessions.iter().filter(|session| !changed.contains(session) && *session != gone);
    let missing: Vec<_> = unchanged.filter(|session| !seen.contains(session)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    // The same pages from the store alone, by another process.
    let before = listed(&mut client, &json!({}));
    client.finish();
    let mut later = scratch.stdio("shared");
    later.initialize();
    let after = listed(&mut later, &json!({}));
    let (mut before, mut after) = (ids(&before), ids(&after));
    assert_eq!(before.len(), MANY);
    before.sort_unstable();
    after.sort_unstable();
    assert_eq!(before, after);
    later.finish();
}

// SE-12: the directory is compared exactly, and before paging
#[test]
fn the_filter_comes_before_the_pages() {
    let (scratch, mut client) = crowd();
    let (work, inner) = (scratch.work(), scratch.work().join("inner"));
    std::fs::create_dir(&inner).unwrap();
    let wanted: HashSet<String> = (0..3)
        .map(|_| {
            let session = new_in(&mut client, &inner);
            (0..20).for_each(|_| drop(new_in(&mut client, &work)));
            session
        })
        .collect();
    let result = client.call("session/list", &json!({"cwd": inner}));
    let found = ids(result["sessions"].as_array().unwrap()).into_iter().map(str::to_owned).collect();
    assert_eq!((wanted, result.get("nextCursor")), (found, None));
    assert_eq!(listed(&mut client, &json!({"cwd": work})).len(), 60);
    let prefix = work.to_str().unwrap().trim_end_matches('k').to_owned();
    for other in [prefix, "/".to_owned()] {
        assert_eq!(listed(&mut client, &json!({"cwd": other})), Vec::<Value>::new());
    }
    client.finish();
}

// SE-12, FR-10: a cursor that is garbage, or of another list
#[test]
fn a_cursor_belongs_to_its_list() {
    let (scratch, mut client) = crowd();
    (0..51).for_each(|_| drop(new_in(&mut client, &scratch.work())));
    let (plain, all, cwd) = (
        json!({}),
        json!({"_meta": {"sandboxagent.dev": {"allAgents": true}}}),
        json!({"cwd": scratch.work()}),
    );
    for filter in [&plain, &all, &cwd] {
        let cursor = client.call("session/list", filter)["nextCursor"].take();
        assert!(cursor.is_string());
        for other in [&plain, &all, &cwd] {
            let mut params = other.clone();
            params["cursor"] = cursor.clone();
            if other == filter {
                assert_eq!(client.call("session/list", &params)["sessions"].as_array().unwrap().len(), 1);
            } else {
                assert_eq!(client.refused("session/list", &params)["code"], -32602);
            }
        }
    }
    let cut = client.call("session/list", &plain)["nextCursor"].as_str().unwrap()[2..].to_owned();
    for garbage in [json!("x"), json!(""), json!("7b7d"), json!("é"), json!(cut), json!(5), json!(["a"])] {
        let error = client.refused("session/list", &json!({"cursor": garbage}));
        assert_eq!(error["code"], -32602, "{garbage}");
        assert!(error["message"].as_str().unwrap().starts_with("cursor: "), "{error}");
    }
    for cwd in [json!("relative"), json!(5)] {
        assert_eq!(client.refused("session/list", &json!({"cwd": cwd}))["code"], -32602);
    }
    client.finish();
}
