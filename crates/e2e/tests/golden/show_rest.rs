//! What REST shows of a state directory: lists, sessions, events in pages and as streams.

use crate::show::{Showing, broken};
use acpd_e2e::{Daemon, Http, check_event};

/// The path of the first page, and of the one behind a cursor.
fn behind(path: &str, name: &str, cursor: &str) -> String {
    format!("{path}{}{name}={cursor}", if path.contains('?') { '&' } else { '?' })
}

/// All pages of one array.
fn pages(showing: &mut Showing, daemon: &Daemon, first: &str, member: &str, cursor: &str) {
    let mut path = first.to_owned();
    let mut http = Http::on(daemon.connect());
    loop {
        let answer = http.request("GET", &path, &[], "");
        showing.section(&format!("GET {path}: {}", answer.status));
        let shown = answer.json();
        shown[member].as_array().into_iter().flatten().filter(|_| member == "events").for_each(check_event);
        let body = String::from_utf8(answer.body.clone()).expect("it is text");
        let [before, elements, behind_them] = broken(&body, member);
        showing.lines(before);
        match member {
            "sessions" => showing.entries(elements),
            _ => showing.lines(elements),
        }
        showing.lines(behind_them);
        match shown["nextCursor"].as_str() {
            Some(next) => path = behind(first, cursor, next),
            None => return,
        }
    }
}

fn get(showing: &mut Showing, daemon: &Daemon, path: &str) {
    let answer = Http::on(daemon.connect()).request("GET", path, &[], "");
    showing.section(&format!("GET {path}: {}", answer.status));
    showing.lines(String::from_utf8(answer.body).expect("it is text").lines());
}

fn stream(showing: &mut Showing, daemon: &Daemon, path: &str, headers: &[(&str, &str)]) {
    let events = Http::on(daemon.connect()).events(path, headers);
    showing.section(&format!("GET {path} as a stream with {headers:?}"));
    match events {
        Ok(mut events) => {
            while let Some(text) = events.next_text() {
                showing.lines(text.lines());
            }
        }
        Err(answer) => {
            showing.lines([format!("{}", answer.status), String::from_utf8_lossy(&answer.body).into()])
        }
    }
}

/// Ids of all sessions, in an order that does not change.
pub(crate) fn ids(daemon: &Daemon) -> Vec<String> {
    let answer = Http::on(daemon.connect()).request("GET", "/v1/sessions?limit=500", &[], "");
    let id = |session: &serde_json::Value| session["sessionId"].as_str().expect("an id").to_owned();
    let mut ids: Vec<String> = answer.json()["sessions"].as_array().expect("a list").iter().map(id).collect();
    ids.sort();
    ids
}

pub(crate) fn everything(showing: &mut Showing) {
    let mut daemon = showing.serve();
    let lists = ["limit=500", "limit=500&ended=true", "limit=500&ended=false", "limit=500&cwd=/tmp"];
    for query in lists {
        pages(showing, &daemon, &format!("/v1/sessions?{query}"), "sessions", "cursor");
    }
    pages(showing, &daemon, "/v2/sessions?agent=example&limit=500", "sessions", "cursor");
    if !showing.has_lost {
        // A cursor has the time of a change in it.
        pages(showing, &daemon, "/v1/sessions?limit=7", "sessions", "cursor");
    }
    for id in ids(&daemon) {
        let path = format!("/v1/sessions/{id}");
        get(showing, &daemon, &path);
        let events = format!("{path}/events");
        pages(showing, &daemon, &events, "events", "after");
        pages(showing, &daemon, &format!("{events}?limit=7"), "events", "after");
        stream(showing, &daemon, &events, &[]);
        stream(showing, &daemon, &events, &[("Last-Event-ID", "4")]);
        get(showing, &daemon, &format!("{events}?after=100000"));
    }
    daemon.stop();
}

/// The sessions as they are now, and what their logs have gained.
pub(crate) fn gained(showing: &mut Showing, before: &[(String, u64)]) {
    let mut daemon = showing.serve();
    pages(showing, &daemon, "/v1/sessions?limit=500", "sessions", "cursor");
    for id in ids(&daemon) {
        let had = before.iter().find(|(known, _)| *known == id).map_or(0, |(_, count)| *count);
        get(showing, &daemon, &format!("/v1/sessions/{id}"));
        pages(showing, &daemon, &format!("/v1/sessions/{id}/events?after={had}"), "events", "after");
    }
    daemon.stop();
}
