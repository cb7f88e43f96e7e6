//! The frames of a WebSocket, on a socket in memory and with a clock that winds itself.

use super::*;
use crate::connection::Arrival;
use bytes::Bytes;
use futures_util::SinkExt;
use tokio::io::DuplexStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;

fn care() -> Care {
    Care {
        message_bytes: 1024 * 1024,
        stall: Duration::from_secs(30),
        ping: Duration::from_secs(15),
        silence: Duration::from_secs(45),
    }
}

/// The pulse of a process that runs.
fn pulse() -> Arc<Pulse> {
    let pulse = Arc::new(Pulse::new());
    let beat = Arc::clone(&pulse);
    TaskScope::default().spawn("pulse", async move { beat.keep().await });
    pulse
}

/// A socket with `room` bytes on the way, and a task that serves its other end.
async fn socket<F>(
    room: usize,
    stop: &CancellationToken,
    serve: impl FnOnce(ConnectionIo) -> F + Send + 'static,
) -> (WebSocketStream<DuplexStream>, tokio::task::JoinHandle<Option<()>>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (near, far) = tokio::io::duplex(room);
    let stop = stop.clone();
    let serving = TaskScope::default().spawn("socket", async move {
        let socket = server_side(far, care()).await;
        let ends = Ends { stop: &stop, farewell: &Farewell::default(), revoked: &CancellationToken::new() };
        converse(socket, (care(), pulse()), &TaskScope::default(), ends, serve).await;
    });
    (WebSocketStream::from_raw_socket(near, Role::Client, None).await, serving)
}

/// A connection that only waits for its client to be gone.
async fn listen(mut io: ConnectionIo) {
    while io.arrivals.recv().await.is_some() {}
}

async fn close_code(socket: &mut WebSocketStream<DuplexStream>) -> Option<CloseCode> {
    loop {
        match socket.next().await? {
            Ok(Message::Close(frame)) => return frame.map(|frame| frame.code),
            Ok(_) => {}
            Err(error) => panic!("the socket broke: {error}"),
        }
    }
}

// WS-3: the server pings, and a client that answers no ping is detached
#[tokio::test(start_paused = true)]
async fn a_client_that_answers_no_ping_is_detached() {
    let stop = CancellationToken::new();
    let (near, far) = tokio::io::duplex(1024);
    let (detached, seen) = tokio::sync::oneshot::channel();
    let begun = tokio::time::Instant::now();
    let ended = stop.clone();
    TaskScope::default().spawn("socket", async move {
        let socket = server_side(far, care()).await;
        let serve = async move |io: ConnectionIo| {
            listen(io).await;
            let _heard = detached.send(begun.elapsed());
        };
        let ends = Ends { stop: &ended, farewell: &Farewell::default(), revoked: &CancellationToken::new() };
        converse(socket, (care(), pulse()), &TaskScope::default(), ends, serve).await;
    });
    let after = seen.await.expect("the connection ended");
    assert_eq!(after.as_secs(), 45);
    // What a raw socket has got meanwhile: pings, and why it ends.
    let mut socket = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
    assert!(matches!(socket.next().await, Some(Ok(Message::Ping(_)))));
    assert_eq!(close_code(&mut socket).await, Some(CloseCode::Policy));
}

// WS-3: one that answers stays
#[tokio::test(start_paused = true)]
async fn a_client_that_answers_pings_stays() {
    let stop = CancellationToken::new();
    let (mut socket, serving) = socket(1024, &stop, listen).await;
    socket.send(Message::text(INITIALIZE)).await.expect("it is open");
    for _ in 0..20 {
        // Reading answers it.
        assert!(matches!(socket.next().await, Some(Ok(Message::Ping(_)))));
    }
    socket.close(None).await.expect("it is open");
    assert_eq!(close_code(&mut socket).await, None);
    assert_eq!(serving.await.expect("no panic"), Some(()));
}

// WS-3: a client is not silent because acpd itself was stopped, however long
#[tokio::test(start_paused = true)]
async fn a_client_is_not_lost_because_acpd_stood_still() {
    let stop = CancellationToken::new();
    let (mut socket, _serving) = socket(1024, &stop, listen).await;
    socket.send(Message::text(INITIALIZE)).await.expect("it is open");
    assert!(matches!(socket.next().await, Some(Ok(Message::Ping(_)))));
    for gap in [40, 44, 60, 3600] {
        // Nothing runs meanwhile, and the clock goes on.
        tokio::time::advance(Duration::from_secs(gap)).await;
        for _ in 0..4 {
            let heard = socket.next().await;
            assert!(matches!(heard, Some(Ok(Message::Ping(_)))), "after {gap} s: {heard:?}");
        }
    }
}

// WS-2, HT-12: a client that asks with pings and takes no answers is read no further, and disconnected as stalled
#[tokio::test(start_paused = true)]
async fn answers_to_pings_are_owed() {
    let stop = CancellationToken::new();
    let (mut socket, _serving) = socket(64 * 1024, &stop, listen).await;
    socket.send(Message::text(INITIALIZE)).await.expect("it is open");
    let until = tokio::time::Instant::now() + Duration::from_secs(40);
    let mut sent = 0u64;
    // The sink only writes: answers fill the way back, then nothing more is read.
    while tokio::time::timeout_at(until, socket.send(Message::Ping(vec![b'x'; 125].into())))
        .await
        .is_ok_and(|sent| sent.is_ok())
    {
        sent += 1;
    }
    assert!(sent * 131 < 256 * 1024, "{sent} pings were read");
    assert_eq!(close_code(&mut socket).await, Some(CloseCode::Policy));
}

// WS-2: a client that takes the answers may ask as often as it likes
#[tokio::test(start_paused = true)]
async fn a_client_that_takes_answers_may_ask() {
    let stop = CancellationToken::new();
    let (mut socket, _serving) = socket(1024, &stop, listen).await;
    socket.send(Message::text(INITIALIZE)).await.expect("it is open");
    for number in 0..1_000u32 {
        socket.send(Message::Ping(number.to_be_bytes().to_vec().into())).await.expect("it is read");
        match socket.next().await {
            Some(Ok(Message::Pong(answer))) => assert_eq!(answer[..], number.to_be_bytes()),
            other => panic!("{other:?}"),
        }
    }
}

// WS-1: what is no message is not initialize either
#[tokio::test(start_paused = true)]
async fn a_first_message_that_is_none_ends_it() {
    let stop = CancellationToken::new();
    let first = r#"{"jsonrpc":"2.0","id":1,"method":"session/list"}"#;
    for text in ["nonsense", "", "[]", "{\"jsonrpc\":", "{}", first] {
        let (mut socket, _serving) = socket(1024, &stop, listen).await;
        socket.send(Message::text(text)).await.expect("it is open");
        assert_eq!(close_code(&mut socket).await, Some(CloseCode::Protocol), "{text:?}");
    }
    let (mut socket, _serving) = socket(1024, &stop, listen).await;
    for text in [INITIALIZE, "nonsense"] {
        socket.send(Message::text(text)).await.expect("it is open");
    }
    assert!(matches!(socket.next().await, Some(Ok(Message::Ping(_)))), "later ones are answered");
}

// WS-1, HT-12: to answer pings is not enough; a client that does not initialize holds no connection
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_initialize_is_let_go_of() {
    let stop = CancellationToken::new();
    let (mut socket, _) = socket(1024, &stop, listen).await;
    assert_eq!(close_code(&mut socket).await, Some(CloseCode::Protocol));
}

// WS-2: a defect is 1011, the end of the daemon 1001, behind what was still to be said
#[tokio::test(start_paused = true)]
async fn the_close_code_says_why() {
    let stop = CancellationToken::new();
    let (mut broken, _) = socket(1024, &stop, async |_io| panic!("on purpose")).await;
    assert_eq!(close_code(&mut broken).await, Some(CloseCode::Error));

    let (mut ending, serving) = socket(1024, &stop, async |io: ConnectionIo| {
        let ConnectionIo { mut arrivals, gone, outbox, .. } = io;
        gone.cancelled().await;
        while arrivals.recv().await.is_some() {}
        outbox.send(Bytes::from_static(b"{\"last\":1}\n{\"last\":2}\n")).await.expect("it is written");
    })
    .await;
    ending.send(Message::text(INITIALIZE)).await.expect("it is open");
    stop.cancel();
    let mut last = Vec::new();
    let code = loop {
        match ending.next().await.expect("it ends with a frame").expect("in order") {
            Message::Text(text) => last.push(text.to_string()),
            Message::Close(frame) => break frame.expect("with a reason").code,
            _ => {}
        }
    };
    assert_eq!((last, code), (vec!["{\"last\":1}".into(), "{\"last\":2}".into()], CloseCode::Away));
    drop(ending);
    assert_eq!(serving.await.expect("no panic"), Some(()));
}

// WS-2, UP-2: a client that takes nothing is closed after its time, and told why when it reads again
#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_is_let_go_of() {
    let stop = CancellationToken::new();
    let begun = tokio::time::Instant::now();
    let (ended, seen) = tokio::sync::oneshot::channel();
    let (mut socket, _) = socket(1024, &stop, async move |io: ConnectionIo| {
        let line = Bytes::from(format!("{{\"text\":\"{}\"}}\n", "x".repeat(60 * 1024)));
        while io.outbox.send(line.clone()).await.is_ok() {}
        let _heard = ended.send(begun.elapsed());
    })
    .await;
    let after = seen.await.expect("the connection ended");
    assert!((30..=32).contains(&after.as_secs()), "{after:?}");
    assert_eq!(close_code(&mut socket).await, Some(CloseCode::Policy));
}

// WS-4: what the client says arrives while nothing can be written to it
#[tokio::test(start_paused = true)]
async fn reading_goes_on_while_writing_is_blocked() {
    let stop = CancellationToken::new();
    let (heard, seen) = tokio::sync::oneshot::channel();
    let (mut socket, _) = socket(4096, &stop, async move |io: ConnectionIo| {
        let ConnectionIo { mut arrivals, outbox, .. } = io;
        let line = Bytes::from(format!("{{\"text\":\"{}\"}}\n", "x".repeat(60 * 1024)));
        let flood = async { while outbox.send(line.clone()).await.is_ok() {} };
        let lines = async {
            let mut lines = Vec::new();
            while lines.len() < 2
                && let Some(Arrival::Line(line)) = arrivals.recv().await
            {
                lines.push(String::from_utf8(line.to_vec()).expect("text"));
            }
            let _heard = heard.send(lines);
        };
        tokio::join!(flood, lines);
    })
    .await;
    for text in [INITIALIZE, r#"{"method":"session/cancel"}"#] {
        socket.send(Message::text(text)).await.expect("it is read");
    }
    assert_eq!(seen.await.expect("they arrive").len(), 2);
}
