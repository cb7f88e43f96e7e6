//! Requests at random doors, and whether each is answered in time.
//!
//! Invariant: a door that is killed or stopped meanwhile owes no answer; any other owes a result or a problem that says what it is.

use crate::board::Board;
use crate::dice::Dice;
use crate::world::ROOT;
use acpd_e2e::{Deadline, Lateness};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A request during a partition is answered within that (design fleet).
const ANSWER: Duration = Duration::from_secs(5);
/// How often it is looked whether it is still to be waited for.
const LOOK: Duration = Duration::from_millis(200);
/// So long an answer is waited for, to say how late it was.
const GIVEN_UP: Duration = Duration::from_secs(8);

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    body: Vec<u8>,
}

impl Reply {
    /// The body, or null.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// What it is, for the report; the error is an answer that says nothing.
    fn judged(&self) -> Result<String, String> {
        let body = self.json();
        let kind = body["type"].as_str().and_then(|kind| kind.strip_prefix("urn:sandbox-agent:error:"));
        let is_told = body["detail"].as_str().is_some_and(|detail| !detail.is_empty());
        match (self.status, kind) {
            (200..300, _) => Ok(self.status.to_string()),
            // No session is deleted, and each is asked for after it was listed everywhere.
            (400.., Some("internal" | "session_not_found") | None) => {
                Err(format!("{}: {}", self.status, self.text()))
            }
            (400.., Some(kind)) if is_told => Ok(format!("{} {kind}", self.status)),
            _ => Err(format!("{}: {}", self.status, self.text())),
        }
    }
}

/// A request and its answer within `limit`, and while `goes_on`.
pub(crate) fn ask(
    door: SocketAddr,
    method: &str,
    path: &str,
    body: &Value,
    (limit, goes_on): (Duration, &dyn Fn() -> bool),
) -> Result<Reply, String> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let deadline = Deadline::after(limit);
    let told = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect_timeout(&door, limit).map_err(told)?;
    stream.set_read_timeout(Some(LOOK)).map_err(told)?;
    // HTTP/1.0: the end of the connection is the end of the answer.
    let request = format!(
        "{method} {path} HTTP/1.0\r\nHost: {door}\r\nAuthorization: Bearer {ROOT}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).map_err(told)?;
    let mut answer = Vec::new();
    while let Err(error) = stream.read_to_end(&mut answer) {
        let is_silent = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        if !is_silent || deadline.is_over() || !goes_on() {
            return Err(format!("no answer: {error}"));
        }
    }
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let head = end.and_then(|end| std::str::from_utf8(&answer[..end]).ok());
    let status = head.and_then(|head| head.split(' ').nth(1)?.parse().ok());
    match (status, end) {
        (Some(status), Some(end)) => Ok(Reply { status, body: answer.split_off(end + 4) }),
        _ => Err(format!("this is no answer: {:?}", String::from_utf8_lossy(&answer))),
    }
}

/// One who asks until the schedule is over.
pub(crate) struct Asker<'a> {
    pub(crate) board: &'a Board,
    pub(crate) doors: Vec<SocketAddr>,
    pub(crate) sessions: &'a [String],
    pub(crate) dice: Dice,
}

impl Asker<'_> {
    pub(crate) fn run(mut self) {
        while self.board.pause(Duration::from_millis(50 + self.dice.below(200) as u64)) {
            self.ask();
        }
    }

    fn ask(&mut self) {
        let session = self.dice.pick(self.sessions);
        let prompt = |text: &str| json!({"prompt": text});
        let (what, method, rest, body) = match self.dice.below(10) {
            0 | 1 => ("list", "GET", None, Value::Null),
            2 | 3 => ("show", "GET", Some(""), Value::Null),
            4 | 5 => ("events", "GET", Some("/events?limit=1000"), Value::Null),
            6 => ("prompt", "POST", Some("/prompt"), prompt("say a few words")),
            7 => ("prompt", "POST", Some("/prompt"), prompt("stream 20 40")),
            _ => ("resume", "POST", Some("/resume"), Value::Null),
        };
        let path = rest.map_or("/v1/sessions".to_owned(), |rest| format!("/v1/sessions/{session}{rest}"));
        let door = self.dice.below(self.doors.len());
        let begun = self.board.now();
        // It owes none, and would hold this one up; one that goes down while it is asked is often enough.
        if self.board.was_down(door, begun, begun) {
            return;
        }
        let is_up = || !self.board.was_down(door, begun, self.board.now());
        let lateness = Lateness::measure();
        let reply = ask(self.doors[door], method, &path, &body, (GIVEN_UP, &is_up));
        let (ended, late) = (self.board.now(), lateness.end());
        let judged = reply.as_ref().map_err(Clone::clone).and_then(Reply::judged);
        if self.board.was_down(door, begun, ended) {
            self.board.told().exempt += 1;
            return;
        }
        let took = ended - begun;
        match judged {
            Err(why) => self.board.wrong(format!("{method} {path} at node {door}, {took:?}: {why}")),
            Ok(answer) if took > ANSWER + late => {
                self.board.wrong(format!("{method} {path} at node {door} took {took:?}: {answer}"));
            }
            Ok(answer) => {
                let mut told = self.board.told();
                *told.answers.entry((what, answer)).or_default() += 1;
                told.slowest = told.slowest.max(took);
            }
        }
        if let (Ok(reply), "events") = (&reply, what)
            && reply.status == 200
        {
            self.note(&session, &reply.json());
        }
    }

    /// What was shown has to be somewhere afterwards.
    fn note(&self, session: &str, page: &Value) {
        let mut told = self.board.told();
        for event in page["events"].as_array().into_iter().flatten() {
            let seq = event["seq"].as_u64().expect("each event has a number");
            told.shown.entry((session.to_owned(), seq)).or_default().insert(event.to_string());
        }
    }
}
