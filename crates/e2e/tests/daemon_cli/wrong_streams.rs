//! `acpd sessions events --follow` with a server that breaks the contract: what it says is not taken for the truth.

use crate::cli::start;
use acpd_e2e::{Exit, Scratch};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

/// Answers requests for a session that has ended with `events` events, and for its streams with `streams`, one after
/// the other. Gives its URL, and the places that streams were asked for behind.
fn server(events: u64, streams: Vec<String>) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("it has an address"));
    let answering = std::thread::spawn(move || {
        let mut asked = Vec::new();
        let mut streams = streams.into_iter();
        let mut next = streams.next();
        while let Some(stream) = next.take() {
            let (client, _) = listener.accept().expect("acpd connects");
            let request = request_on(&client);
            let (kind, body) = match request.split_once("/events?after=") {
                Some((_, place)) => {
                    asked.push(place.split(' ').next().expect("a place").to_owned());
                    next = streams.next();
                    ("text/event-stream", stream)
                }
                None => {
                    next = Some(stream);
                    let session =
                        format!(r#"{{"sessionId":"s","ended":true,"state":"ended","eventCount":{events}}}"#);
                    ("application/json", session)
                }
            };
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n");
            (&client).write_all((head + &body).as_bytes()).expect("acpd reads");
        }
        // The last question is whether that was all.
        if let Ok((client, _)) = listener.accept() {
            request_on(&client);
            let body = format!(r#"{{"sessionId":"s","ended":true,"state":"ended","eventCount":{events}}}"#);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            // Whoever has had enough does not ask.
            let _gone = (&client).write_all(head.as_bytes());
        }
        asked
    });
    (url, answering)
}

/// Takes a request; gives its first line.
fn request_on(client: &TcpStream) -> String {
    let mut lines = BufReader::new(client).lines();
    let request = lines.next().expect("a request").expect("text");
    while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
    request
}

fn event(seq: u64) -> String {
    format!("id: {seq}\nevent: update\ndata: {{\"seq\":{seq},\"kind\":\"update\"}}\n\n")
}

fn events(seqs: &[u64]) -> String {
    seqs.iter().map(|seq| event(*seq)).collect()
}

// contract 1.6: left out events are asked for, repeated ones are not shown twice, a stated reason is told, a torn event
// is none
#[test]
fn a_stream_with_holes_is_mended() {
    let scratch = Scratch::new();
    let closed =
        "event: closed\ndata: {\"reason\":\"stalled\",\"detail\":\"nothing was\\u001b[2J taken\"}\n\n";
    let (url, answering) = server(
        6,
        vec![
            events(&[1, 2, 4]),
            events(&[1, 2, 3]) + closed,
            event(4) + "id: 5\nevent: update\ndata: {\"seq\":5,\"kind\":\"upd",
            ": nothing new\n\n".to_owned(),
            events(&[5, 6]),
        ],
    );
    let follow = start(&scratch, &["sessions", "events", "s", "--follow", "--json", "--connect", &url]);
    let (exit, out, err) = follow.end();
    assert_eq!(exit, Exit::Code(0), "{err}");
    let expected: Vec<String> = (1..=6).map(|seq| format!("{{\"seq\":{seq},\"kind\":\"update\"}}")).collect();
    assert_eq!(out.lines().collect::<Vec<_>>(), expected, "{err}");
    assert!(err.contains("event 4 follows on 2") && err.contains("stalled, nothing was␛[2J taken"), "{err}");
    assert_eq!(answering.join().expect("it answered"), ["0", "2", "3", "4", "4"]);
}

// contract 1.6: a hole that stays is an error, and nothing behind it is shown
#[test]
fn a_hole_that_stays_is_an_error() {
    let scratch = Scratch::new();
    let (url, answering) = server(4, vec![events(&[1, 2, 4]), events(&[4])]);
    let follow = start(&scratch, &["sessions", "events", "s", "--follow", "--json", "--connect", &url]);
    let (exit, out, err) = follow.end();
    assert_eq!((exit, out.lines().count()), (Exit::Code(1), 2), "{err}");
    assert!(err.contains("cannot read: event 4 follows on 2"), "{err}");
    drop(answering);
}
