//! Requests of one node to another, each on the subject of the node that is asked.
//!
//! A node is asked once, by one of those who answer in its name: they share a queue. What it does not answer it says so of, and
//! the one who asks need not wait. What is under way at the moment at which a node ceases to listen is lost: then it cannot be
//! said whether it was done. Not here: what is asked.

use crate::key;
use crate::link::{Failed, Link};
use acpd_fleet::{Asked, EngineError, NodeName};
use async_nats::header::HeaderMap;
use async_nats::{Client, Message, Subject, Subscriber};
use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{mpsc, oneshot};
use tracing::warn;

/// On an answer that is none.
const UNANSWERED: &str = "Acpd-Unanswered";

/// Requests that wait to be taken, and those that were taken and wait for their answer. More are told at once that they are not
/// answered.
const WAITING: usize = 256;

pub(crate) fn subject(prefix: &str, node: &NodeName) -> String {
    format!("{prefix}.node.{}", key::encode(node.as_str()))
}

/// Asks a node.
///
/// # Cancel safety
/// It may have been asked.
pub(crate) async fn call(
    link: &Link,
    prefix: &str,
    node: &NodeName,
    body: Bytes,
) -> Result<Bytes, EngineError> {
    let unanswered = || EngineError::NoSuchNode(node.clone());
    match link.request(subject(prefix, node), None, body).await {
        Ok(answer) if answer.headers.as_ref().is_some_and(|headers| headers.get(UNANSWERED).is_some()) => {
            Err(unanswered())
        }
        Ok(answer) => Ok(answer.payload),
        Err(Failed::Unheard) => Err(unanswered()),
        Err(failed) => Err(failed.into()),
    }
}

/// Begins to listen; from here on requests arrive.
///
/// # Cancel safety
/// Dropped, it listens no more.
pub(crate) async fn listen(link: &Link, prefix: &str, node: &NodeName) -> Result<Subscriber, EngineError> {
    let subject = subject(prefix, node);
    let gone = |error: &dyn std::error::Error| EngineError::Unavailable(error.to_string());
    let listening =
        link.client.queue_subscribe(subject.clone(), subject).await.map_err(|error| gone(&error))?;
    // The server takes what comes over one connection in its order: with an answer to this it has taken the subscription.
    let inbox = link.client.new_inbox();
    let mut echo = link.client.subscribe(inbox.clone()).await.map_err(|error| gone(&error))?;
    link.client.publish(inbox, Bytes::new()).await.map_err(|error| gone(&error))?;
    match echo.next().await {
        Some(_) => Ok(listening),
        None => Err(EngineError::Unavailable("the connection has ended".to_owned())),
    }
}

/// Hands requests over until they are not taken any more and those that were taken are answered.
pub(crate) async fn serve(client: Client, listening: Subscriber, asked: mpsc::Sender<Asked>) {
    enum Happened {
        Asked(Option<Message>),
        Answered(Subject, Result<Bytes, oneshot::error::RecvError>),
        Left,
    }
    let mut listening = Some(listening);
    let mut taken = FuturesUnordered::new();
    while listening.is_some() || !taken.is_empty() {
        let happened = tokio::select! {
            request = next(&mut listening), if listening.is_some() => Happened::Asked(request),
            Some((reply, answer)) = taken.next() => Happened::Answered(reply, answer),
            () = asked.closed(), if listening.is_some() => Happened::Left,
        };
        match happened {
            Happened::Left | Happened::Asked(None) => listening = None,
            Happened::Answered(reply, answer) => reply_with(&client, reply, answer.ok()).await,
            Happened::Asked(Some(Message { reply: Some(reply), payload: body, .. })) => {
                let (answer, answered) = oneshot::channel();
                let has_room = taken.len() < WAITING;
                if has_room && asked.try_send(Asked { body, answer }).is_ok() {
                    taken.push(async move { (reply, answered.await) });
                } else {
                    reply_with(&client, reply, None).await;
                }
            }
            // No caller waits for an answer.
            Happened::Asked(Some(_)) => {}
        }
    }
}

/// A queue for a node's requests.
pub(crate) fn queue() -> (mpsc::Sender<Asked>, mpsc::Receiver<Asked>) {
    mpsc::channel(WAITING)
}

/// # Cancel safety
/// A message is taken as a whole or not at all.
async fn next(listening: &mut Option<Subscriber>) -> Option<Message> {
    listening.as_mut()?.next().await
}

async fn reply_with(client: &Client, reply: Subject, answer: Option<Bytes>) {
    let sent = match answer {
        Some(answer) => client.publish(reply, answer).await,
        None => {
            let mut headers = HeaderMap::new();
            headers.insert(UNANSWERED, "1");
            client.publish_with_headers(reply, headers, Bytes::new()).await
        }
    };
    if let Err(error) = sent {
        warn!("an answer to another node was not sent: {error}");
    }
}
