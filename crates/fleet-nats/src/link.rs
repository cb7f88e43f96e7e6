//! The connection to the servers: a request and its answer, and what it means when there is none.
//!
//! Invariant: nothing is sent while it is known that there is no connection, since the client would keep it and send it whenever
//! there is one again. What was on its way when it was lost may still come late. Not here: what is asked.

use acpd_fleet::EngineError;
use async_nats::connection::State;
use async_nats::header::{HeaderMap, HeaderValue, NATS_EXPECTED_LAST_SUBJECT_SEQUENCE};
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::response::Response;
use async_nats::jetstream::stream::RawMessage;
use async_nats::jetstream::{Error as ServerError, ErrorCode};
use async_nats::{Client, Message, Request, RequestErrorKind};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::sync::watch;

/// A connection, and how long a call may take over it.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) client: Client,
    pub(crate) patience: Duration,
    /// Whether there is no connection at the moment; it changes with each one that is lost or made again.
    pub(crate) is_lost: watch::Receiver<bool>,
}

/// Why a request has no good answer.
#[derive(Debug)]
pub(crate) enum Failed {
    /// It may have been done.
    Unanswered(String),
    /// No server answers for the stream.
    Unheard,
    /// It was not sent, or is not understood.
    Unfit(String),
    /// What the server says.
    Refused(ServerError),
}

impl Failed {
    /// Whether the server says this.
    pub(crate) fn is(&self, code: ErrorCode) -> bool {
        matches!(self, Self::Refused(error) if error.error_code() == code)
    }

    /// Whether something else was there than the write expected.
    pub(crate) fn is_conflict(&self) -> bool {
        // The second one where the server names no sequence.
        self.is(ErrorCode::STREAM_WRONG_LAST_SEQUENCE)
            || self.is(ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT)
    }
}

impl From<Failed> for EngineError {
    fn from(failed: Failed) -> Self {
        match failed {
            _ if failed.is_conflict() => Self::Conflict,
            Failed::Unanswered(why) => Self::Unavailable(why),
            Failed::Unheard => Self::Unavailable("no server answers for the stream".to_owned()),
            Failed::Unfit(why) => Self::Refused(why),
            // The cluster has no leader at the moment, no room, or has the same message in its hands already.
            Failed::Refused(error)
                if error.code() == 503
                    || error.error_code() == ErrorCode::STREAM_DUPLICATE_MESSAGE_CONFLICT =>
            {
                Self::Unavailable(error.to_string())
            }
            Failed::Refused(error) => Self::Refused(error.to_string()),
        }
    }
}

/// Bytes of a message that its headers may take: the longest are those of a piece of the archive, with the id of its session.
pub(crate) const HEADERS: usize = 2 * 1024;

impl Link {
    /// The most bytes of a message beside its headers, as the server that is connected takes them.
    pub(crate) fn most_bytes(&self) -> usize {
        self.client.max_payload().saturating_sub(HEADERS)
    }

    /// A call with its limit.
    pub(crate) async fn within<T>(
        &self,
        call: impl Future<Output = Result<T, EngineError>>,
    ) -> Result<T, EngineError> {
        // A call that is dropped is one whose outcome is not known.
        let unanswered = || EngineError::Unavailable(format!("no answer in {:?}", self.patience));
        tokio::time::timeout(self.patience, call).await.unwrap_or_else(|_| Err(unanswered()))
    }

    /// A request and its answer, without a limit of its own.
    ///
    /// # Cancel safety
    /// The request may have been sent.
    pub(crate) async fn request(
        &self,
        subject: String,
        headers: Option<HeaderMap>,
        body: Bytes,
    ) -> Result<Message, Failed> {
        if self.client.connection_state() != State::Connected {
            return Err(Failed::Unanswered("there is no connection".to_owned()));
        }
        let request = Request::new().payload(body).timeout(None);
        let request = match headers {
            Some(headers) => request.headers(headers),
            None => request,
        };
        self.client.send_request(subject, request).await.map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => Failed::Unheard,
            RequestErrorKind::InvalidSubject | RequestErrorKind::MaxPayloadExceeded => {
                Failed::Unfit(error.to_string())
            }
            RequestErrorKind::TimedOut | RequestErrorKind::Other => Failed::Unanswered(error.to_string()),
        })
    }

    /// Asks the servers' own interface.
    ///
    /// # Cancel safety
    /// As [`Link::request`].
    pub(crate) async fn api<T: DeserializeOwned>(
        &self,
        call: &str,
        body: &(impl Serialize + Sync),
    ) -> Result<T, Failed> {
        let body = serde_json::to_vec(body).map_err(|error| Failed::Unfit(error.to_string()))?;
        let message = self.request(format!("$JS.API.{call}"), None, body.into()).await?;
        answer(&message)
    }

    /// Writes to a stream behind what has to be the last message of the subject; 0: none.
    ///
    /// # Cancel safety
    /// As [`Link::request`].
    pub(crate) async fn publish(
        &self,
        subject: String,
        mut headers: HeaderMap,
        body: Bytes,
        behind: u64,
    ) -> Result<PublishAck, Failed> {
        headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, HeaderValue::from(behind));
        answer(&self.request(subject, Some(headers), body).await?)
    }

    /// A message of a stream, as its leader has it: replicas may lag.
    ///
    /// # Cancel safety
    /// As [`Link::request`]; it changes nothing.
    pub(crate) async fn message(&self, stream: &str, which: &Which<'_>) -> Result<Option<Stored>, Failed> {
        #[derive(serde::Deserialize)]
        struct Got {
            message: RawMessage,
        }
        match self.api::<Got>(&format!("STREAM.MSG.GET.{stream}"), which).await {
            Ok(got) => {
                let stored = got.message.try_into();
                stored.map(Some).map_err(|error: async_nats::Error| Failed::Unfit(error.to_string()))
            }
            Err(failed) if failed.is(ErrorCode::NO_MESSAGE_FOUND) => Ok(None),
            Err(failed) => Err(failed),
        }
    }
}

/// A message as it is stored.
pub(crate) type Stored = async_nats::jetstream::message::StreamMessage;

/// Which message of a stream.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Which<'a> {
    /// The last one of a subject.
    Last {
        /// The subject.
        last_by_subj: &'a str,
    },
    /// The first one of a subject that has at least this sequence.
    Next {
        /// The sequence.
        seq: u64,
        /// The subject.
        next_by_subj: &'a str,
    },
}

fn answer<T: DeserializeOwned>(message: &Message) -> Result<T, Failed> {
    match serde_json::from_slice(&message.payload) {
        Ok(Response::Ok(answer)) => Ok(answer),
        Ok(Response::Err { error }) => Err(Failed::Refused(error)),
        Err(error) => Err(Failed::Unanswered(format!("an answer that cannot be read: {error}"))),
    }
}
