//! The event stream in frames, on a socket in memory.

use super::*;
use acpd_host::TaskScope;
use futures_util::stream;
use std::convert::Infallible;
use tokio::io::DuplexStream;

/// Comments, events and a last word, with characters of two and of four bytes.
const STREAM: &str =
    ": here\n\nid: 1\nevent: update\ndata: {\"a\":\"é😀\"}\n\nid: 2\ndata: {}\n\nevent: closed\ndata: {}\n\n";

fn pieces(of: &[u8], length: usize) -> impl Stream<Item = Result<Bytes, Infallible>> + Unpin {
    stream::iter(of.chunks(length).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect::<Vec<_>>())
}

// contract 1.6: a frame has whole messages, however the stream is cut on its way from another node
#[tokio::test]
async fn frames_have_whole_messages_however_a_stream_is_cut() {
    for length in 1..=STREAM.len() {
        let frames: Vec<_> = frames(pieces(STREAM.as_bytes(), length)).collect().await;
        let text: String = frames.iter().map(|frame| frame.as_str()).collect();
        assert_eq!(text, STREAM, "in pieces of {length}");
        assert!(frames.iter().all(|frame| frame.as_str().ends_with("\n\n")), "{frames:?}");
    }
}

// contract 1.6: what breaks off in the middle of a message is not half a message
#[tokio::test]
async fn an_unfinished_message_is_none() {
    let broken = &STREAM.as_bytes()[..STREAM.len() - 3];
    let frames: Vec<_> = frames(pieces(broken, 7)).collect().await;
    let text: String = frames.iter().map(|frame| frame.as_str()).collect();
    assert_eq!(text, STREAM[..STREAM.find("event: closed").expect("it is there")]);
}

/// A socket on which a stream is carried, and a task that does.
async fn socket(stream: Body) -> (WebSocketStream<DuplexStream>, tokio::task::JoinHandle<Option<()>>) {
    let (near, far) = tokio::io::duplex(1024);
    let carrying =
        TaskScope::default().spawn("socket", async move { carry(stream, server_side(far).await).await });
    (WebSocketStream::from_raw_socket(near, Role::Client, None).await, carrying)
}

// contract 1.6: the socket is closed when the stream has ended, behind its last word
#[tokio::test(start_paused = true)]
async fn the_end_of_the_stream_closes_the_socket() {
    let (mut socket, carrying) = socket(Body::from_stream(pieces(STREAM.as_bytes(), 50))).await;
    let mut text = String::new();
    let close = loop {
        match socket.next().await.expect("a frame").expect("a whole one") {
            Message::Text(frame) => text.push_str(frame.as_str()),
            Message::Close(frame) => break frame.expect("a code"),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((text.as_str(), close.code), (STREAM, CloseCode::Normal));
    assert!(socket.next().await.is_none());
    carrying.await.expect("it ends");
}

// contract 1.6: a client that says goodbye, or too much, gives up its stream at once
#[tokio::test(start_paused = true)]
async fn the_end_of_the_socket_drops_the_stream() {
    for last in [Message::Close(None), Message::Binary(vec![0; CLIENT_BYTES + 1].into())] {
        let (held, stream) = tokio::sync::mpsc::channel::<Result<Bytes, Infallible>>(1);
        let stream = stream::unfold(stream, async |mut stream| Some((stream.recv().await?, stream)));
        let (mut socket, carrying) = socket(Body::from_stream(stream)).await;
        socket.send(Message::Ping(Bytes::from_static(b"?"))).await.expect("it is read");
        assert_eq!(socket.next().await.expect("a frame").expect("a pong"), Message::Pong("?".into()));
        // What is too long is not read to its end.
        let _broken_off = socket.send(last).await;
        held.closed().await;
        drop(socket);
        carrying.await.expect("it ends");
    }
}
