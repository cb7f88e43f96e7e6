//! The watch of the directory: all entries of both buckets, then what becomes of them.
//!
//! Each bucket has a consumer on the server that numbers what it sends, and says every second what its last number was. A number
//! that is missing, silence, or a connection that was lost end the consumers; what is there is then told anew. A consumer is on one
//! server, which may be behind the leader: all is told when it has come as far as the leader was. Invariant: between two `Again`
//! nothing is left out. Not here: what is made of it; that is the directory's fold.

mod count;

use crate::entries::{Bucket, is_removal};
use crate::key;
use crate::link::Link;
use acpd_fleet::{Change, EngineError, NodeName, Revision};
use acpd_record::SessionId;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, push};
use async_nats::jetstream::{Context, ContextBuilder, Message as Delivered};
use async_nats::{Message, StatusCode, Subject, Subscriber};
use bytes::Bytes;
use count::{Count, Lost};
use futures_util::StreamExt;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tracing::{debug, warn};

/// Changes that wait for the one who watches. When it is full the server waits, and what has been replaced by then is not told.
pub(crate) const WAITING: usize = 1024;

/// How often the server says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How long it may be silent.
const SILENCE: Duration = Duration::from_secs(3);
/// How long between two tries to begin anew.
const BETWEEN_TRIES: Duration = Duration::from_millis(500);
/// How long the server keeps a consumer without a listener. By then one that was cut off has begun anew.
const FORGOTTEN: Duration = SILENCE;

/// On a heartbeat: the number of the last message before it.
const LAST_NUMBER: &str = "Nats-Last-Consumer";
/// On a heartbeat: the server waits until what it has sent was taken.
const STALLED: &str = "Nats-Consumer-Stalled";

/// What the keys of the nodes that belong to the fleet begin with, in the bucket of the nodes that are there.
pub(crate) const MEMBER: &str = "member.";

/// What is watched.
#[derive(Debug)]
pub(crate) struct Watched {
    link: Link,
    context: Context,
    nodes: Bucket,
    sessions: Bucket,
}

/// How entries of a bucket become changes, by their keys: what is there, and what has gone.
type Read = fn(&str, Option<(&[u8], Revision)>) -> Result<Change, String>;

/// What one consumer sends.
#[derive(Debug)]
pub(crate) struct Feed {
    subscriber: Subscriber,
    context: Context,
    root: String,
    read: Read,
    count: Count,
    /// When the server will have been silent for too long.
    silent_at: Instant,
}

/// What a message of a consumer is.
enum Told {
    Change(Change),
    /// Something to answer, so that more is sent.
    Answer(Subject),
    Nothing,
}

/// Why a watch goes on no longer.
enum End {
    Lost(Lost),
    Unwatched,
}

impl Watched {
    pub(crate) fn new(link: Link, nodes: Bucket, sessions: Bucket) -> Self {
        let context = ContextBuilder::new().timeout(link.patience).build(link.client.clone());
        Self { link, context, nodes, sessions }
    }

    /// Begins to watch.
    ///
    /// # Cancel safety
    /// The server forgets consumers without a listener.
    pub(crate) async fn open(&self) -> Result<[Feed; 2], EngineError> {
        Ok([self.feed(&self.nodes, node).await?, self.feed(&self.sessions, session).await?])
    }

    async fn feed(&self, bucket: &Bucket, read: Read) -> Result<Feed, EngineError> {
        if *self.link.is_lost.borrow() {
            return Err(EngineError::Unavailable("there is no connection".to_owned()));
        }
        let (root, last) = (bucket.root(), bucket.last().await?);
        let inbox = self.link.client.new_inbox();
        let subscriber = self.link.client.subscribe(inbox.clone()).await;
        let subscriber = subscriber.map_err(|error| EngineError::Unavailable(error.to_string()))?;
        let config = push::Config {
            deliver_subject: inbox,
            deliver_policy: DeliverPolicy::LastPerSubject,
            ack_policy: AckPolicy::None,
            max_deliver: 1,
            filter_subject: format!("{root}>"),
            flow_control: true,
            idle_heartbeat: HEARTBEAT,
            inactive_threshold: FORGOTTEN,
            num_replicas: 1,
            memory_storage: true,
            ..push::Config::default()
        };
        let consumer = self.context.create_consumer_on_stream(config, bucket.stream()).await;
        let consumer = consumer.map_err(|error| EngineError::Unavailable(error.to_string()))?;
        let silent_at = Instant::now() + SILENCE;
        // What the consumer has sent by now is not counted here, but then its messages say what is behind them.
        let info = consumer.cached_info();
        let count = Count::new(info.num_pending == 0 && info.delivered.consumer_sequence == 0, last);
        Ok(Feed { subscriber, context: self.context.clone(), root, read, count, silent_at })
    }

    /// Tells what the feeds give, and begins anew when they cannot, until there is no watcher.
    pub(crate) async fn run(self, mut feeds: [Feed; 2], changes: mpsc::Sender<Change>) {
        let mut is_lost = self.link.is_lost.clone();
        loop {
            match follow(feeds, &mut is_lost, &changes).await {
                End::Unwatched => return,
                End::Lost(Lost(why)) => debug!("the directory is told anew: {why}"),
            }
            if changes.send(Change::Again).await.is_err() {
                return;
            }
            feeds = loop {
                match self.link.within(self.open()).await {
                    Ok(feeds) => break feeds,
                    Err(error) => debug!("the directory cannot be watched: {error}"),
                }
                tokio::select! {
                    () = changes.closed() => return,
                    () = tokio::time::sleep(BETWEEN_TRIES) => {}
                }
            };
        }
    }
}

/// Tells what the feeds give.
async fn follow(
    [mut nodes, mut sessions]: [Feed; 2],
    is_lost: &mut watch::Receiver<bool>,
    changes: &mpsc::Sender<Change>,
) -> End {
    enum Happened {
        Node(Result<Message, Lost>),
        Session(Result<Message, Lost>),
        Connection,
        Unwatched,
    }
    // A connection that was lost before the feeds were opened is not theirs.
    is_lost.mark_unchanged();
    if *is_lost.borrow() {
        return End::Lost(Lost("there is no connection"));
    }
    let mut is_complete = false;
    loop {
        if !is_complete && nodes.count.is_told() && sessions.count.is_told() {
            is_complete = true;
            if changes.send(Change::Complete).await.is_err() {
                return End::Unwatched;
            }
        }
        let happened = tokio::select! {
            message = nodes.next() => Happened::Node(message),
            message = sessions.next() => Happened::Session(message),
            _ = is_lost.changed() => Happened::Connection,
            () = changes.closed() => Happened::Unwatched,
        };
        let (feed, message) = match happened {
            Happened::Node(message) => (&mut nodes, message),
            Happened::Session(message) => (&mut sessions, message),
            Happened::Connection => return End::Lost(Lost("the connection was lost")),
            Happened::Unwatched => return End::Unwatched,
        };
        match message.and_then(|message| feed.take(message)) {
            Err(lost) => return End::Lost(lost),
            Ok(Told::Nothing) => {}
            Ok(Told::Change(change)) => {
                if changes.send(change).await.is_err() {
                    return End::Unwatched;
                }
            }
            Ok(Told::Answer(subject)) => feed.answer(subject).await,
        }
    }
}

impl Feed {
    /// # Cancel safety
    /// A message is taken as a whole or not at all, and the time of silence goes on.
    async fn next(&mut self) -> Result<Message, Lost> {
        match tokio::time::timeout_at(self.silent_at, self.subscriber.next()).await {
            Ok(Some(message)) => Ok(message),
            Ok(None) => Err(Lost("the connection has ended")),
            Err(_) => Err(Lost("the server is silent")),
        }
    }

    fn take(&mut self, message: Message) -> Result<Told, Lost> {
        self.silent_at = Instant::now() + SILENCE;
        match message.status {
            None => self.entry(message),
            Some(StatusCode::IDLE_HEARTBEAT) => self.heartbeat(message),
            Some(_) => Err(Lost("the consumer has ended")),
        }
    }

    fn heartbeat(&mut self, message: Message) -> Result<Told, Lost> {
        let header = |name| message.headers.as_ref().and_then(|headers| headers.get(name));
        let last = header(LAST_NUMBER).and_then(|value| value.as_str().parse::<u64>().ok());
        let stalled = header(STALLED).map(|value| Subject::from(value.as_str()));
        self.count.heartbeat(last, stalled.is_some())?;
        // One that asks for an answer wants to know how far its messages have come.
        Ok(message.reply.or(stalled).map_or(Told::Nothing, Told::Answer))
    }

    fn entry(&mut self, message: Message) -> Result<Told, Lost> {
        let message = Delivered { message, context: self.context.clone() };
        let info = message.info().map_err(|_| Lost("a message has no number"))?;
        self.count.entry(info.consumer_sequence, info.pending, info.stream_sequence)?;
        let revision = Revision(info.stream_sequence);
        let key = message.subject.strip_prefix(&self.root).unwrap_or_default();
        let is_removed = is_removal(message.headers.as_ref());
        let entry = (!is_removed).then_some((&message.payload[..], revision));
        match (self.read)(key, entry) {
            Ok(change) => Ok(Told::Change(change)),
            Err(why) => {
                warn!("an entry of the directory is left out: {why}");
                Ok(Told::Nothing)
            }
        }
    }

    async fn answer(&self, subject: Subject) {
        if let Err(error) = self.context.client().publish(subject, Bytes::new()).await {
            // Then the server goes silent, which is seen.
            debug!("the consumer gets no answer: {error}");
        }
    }
}

fn node(key: &str, entry: Option<(&[u8], Revision)>) -> Result<Change, String> {
    let (is_member, key) = key.strip_prefix(MEMBER).map_or((false, key), |key| (true, key));
    let name = NodeName::try_from(name_of(key)?).map_err(|error| error.to_string())?;
    let Some((json, revision)) = entry else {
        return Ok(if is_member { Change::MemberGone(name) } else { Change::NodeGone(name) });
    };
    match serde_json::from_slice(json) {
        Ok(node) if is_member => Ok(Change::Member(Box::new(node))),
        Ok(node) => Ok(Change::Node(Box::new(node), revision)),
        Err(error) => Err(format!("node {name}: {error}")),
    }
}

fn session(key: &str, entry: Option<(&[u8], Revision)>) -> Result<Change, String> {
    let name = name_of(key)?;
    let id = SessionId::parse(&name).ok_or_else(|| format!("\"{name}\" is no id of a session"))?;
    match entry {
        None => Ok(Change::SessionGone(id)),
        Some((json, revision)) => match serde_json::from_slice(json) {
            Ok(session) => Ok(Change::Session(Box::new(session), revision)),
            Err(error) => Err(format!("session {id}: {error}")),
        },
    }
}

fn name_of(key: &str) -> Result<String, String> {
    key::decode(key).ok_or_else(|| format!("{key} is no key of a fleet"))
}
