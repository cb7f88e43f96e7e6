//! A node `b` with the session `b`, as another node of its fleet sees it, and how it behaves when it is called.

use super::*;
use crate::fleet::{Dial, PeerStream};
use acpd_fleet::SessionRecord;
use acpd_fleet::{
    Engine, Expected, Fence, History, Lease, Local, Member, Memory, NodeId, NodeRecord, Row, Run,
};
use acpd_host::Pending;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

/// How the node behaves when it is called.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    /// As acpd.
    Serves,
    /// No connection comes about.
    Refuses,
    /// It takes connections and says nothing.
    Silent,
    /// With this status and body, whatever it is asked.
    Answers(&'static str, &'static str),
}

pub(super) struct Node {
    member: Member,
    calls: Arc<Calls>,
    peers: mpsc::Receiver<Peer>,
}

/// Its end of an upstream.
pub(super) struct Peer {
    /// What it was called with.
    pub(super) head: String,
    socket: WebSocketStream<DuplexStream>,
}

#[derive(Debug)]
struct Calls {
    way: Mutex<Way>,
    peers: mpsc::Sender<Peer>,
    scope: TaskScope,
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.head)
    }
}

/// Of the node on which the relay is, which has no session.
#[derive(Debug)]
struct Nothing;

impl Local for Nothing {
    fn room(&self) -> u32 {
        0
    }

    fn changed(&self, _: i64) -> Pending<'_, Result<Vec<Row>, String>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn run<'a>(&'a self, _: &'a SessionId, _: u64) -> Pending<'a, Result<Option<Run>, String>> {
        Box::pin(async { Ok(None) })
    }

    fn fence(&self, _: Fence) {}

    fn counts_until(&self, _: Instant) {}

    fn supersede<'a>(&'a self, _: &'a SessionId, _: &'a NodeName) -> Pending<'a, Result<(), String>> {
        Box::pin(async { Err("there is none".to_owned()) })
    }

    fn take_up<'a>(&'a self, _: &'a SessionRecord, _: History) -> Pending<'a, Result<(), String>> {
        Box::pin(async { Err("this node takes none up".to_owned()) })
    }
}

fn record(name: &str) -> NodeRecord {
    let id = NodeId(name.to_owned());
    let mut record = NodeRecord::new(NodeName::try_from(name.to_owned()).expect("a name"), id, "1");
    record.address = Some(format!("http://{name}.test:1"));
    record
}

impl Node {
    pub(super) async fn new() -> Self {
        let lease = Duration::from_secs(3600);
        let engine = Memory::new(lease);
        let (b, session) = (record("b"), SessionId::parse("b").expect("an id"));
        engine.put_node(&b, Expected::Nothing).await.expect("written");
        let entry = SessionRecord::new(session.clone(), &b, json!({"agent": "claude-2"}));
        engine.put_session(&entry, Expected::Nothing).await.expect("written");
        let lease = Lease::new(lease / 4, lease).expect("a lease");
        let member = Member::new(Arc::new(engine), record("a"), lease);
        let (peers, connected) = mpsc::channel(16);
        let scope = TaskScope::default();
        let calls = Arc::new(Calls { way: Mutex::new(Way::Serves), peers, scope: scope.clone() });
        let running = member.clone();
        scope.spawn("fleet", async move { running.run(&Nothing).await });
        while member.elsewhere(&session).is_none() {
            tokio::task::yield_now().await;
        }
        Self { member, calls, peers: connected }
    }

    pub(super) fn fleet(&self) -> Fleet {
        Fleet::new(self.member.clone(), Arc::clone(&self.calls) as _)
    }

    pub(super) fn goes(&self, way: Way) {
        *self.calls.way.lock() = way;
    }

    pub(super) async fn connected(&mut self) -> Peer {
        self.peers.recv().await.expect("it is called")
    }
}

impl Dial for Calls {
    fn dial(&self, address: String) -> Pending<'_, Result<Box<dyn PeerStream>, String>> {
        Box::pin(async move {
            assert_eq!(address, "http://b.test:1");
            let way = *self.way.lock();
            let (near, far) = tokio::io::duplex(64 * 1024);
            match way {
                Way::Refuses => return Err("refused".to_owned()),
                Way::Silent => {
                    self.scope.spawn("silent", async move {
                        let _open = far;
                        std::future::pending::<()>().await
                    });
                }
                Way::Serves | Way::Answers(..) => {
                    let peers = self.peers.clone();
                    self.scope.spawn("called", answer(far, way, peers));
                }
            }
            Ok(Box::new(near) as Box<dyn PeerStream>)
        })
    }
}

/// Answers one request, after which the connection is closed or a WebSocket.
async fn answer(mut stream: DuplexStream, way: Way, peers: mpsc::Sender<Peer>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8(head).expect("text");
    let key = head.lines().find_map(|line| {
        line.to_ascii_lowercase().starts_with("sec-websocket-key:").then(|| line[18..].trim().to_owned())
    });
    let (status, more, body) = match (way, &key) {
        (Way::Answers(status, body), _) => (status, String::new(), body),
        (_, Some(key)) => {
            let accept = derive_accept_key(key.as_bytes());
            let more =
                format!("connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: {accept}\r\n");
            ("101 Switching Protocols", more, "")
        }
        (_, None) => ("200 OK", String::new(), ""),
    };
    let is_upgraded = status.starts_with("101");
    let length = if is_upgraded {
        String::new()
    } else {
        format!("connection: close\r\ncontent-length: {}\r\n", body.len())
    };
    let answer = format!("HTTP/1.1 {status}\r\n{more}{length}\r\n{body}");
    if stream.write_all(answer.as_bytes()).await.is_err() || !is_upgraded {
        return;
    }
    let socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
    let _over = peers.send(Peer { head, socket }).await;
}

impl Peer {
    pub(super) async fn hear(&mut self) -> Value {
        loop {
            match self.socket.next().await {
                Some(Ok(Frame::Text(text))) => return serde_json::from_str(&text).expect("JSON"),
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    pub(super) async fn say(&mut self, message: &Value) {
        // As acpd, it pings.
        self.socket.send(Frame::Ping(Bytes::new())).await.expect("it is open");
        self.socket.send(Frame::text(message.to_string())).await.expect("it is open");
    }

    /// Whether the other end ends it.
    pub(super) async fn ends(&mut self) -> bool {
        loop {
            match self.socket.next().await {
                Some(Ok(Frame::Text(text))) => panic!("{text}"),
                Some(Ok(Frame::Close(_)) | Err(_)) | None => return true,
                Some(Ok(_)) => {}
            }
        }
    }
}
