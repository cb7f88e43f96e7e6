//! The sessions of a daemon: finding them, and ending them.

use super::error::DaemonError;
use super::listing::SessionFilter;
use super::request::Daemon;
use super::sending::Download;
use crate::address::encoded;
use crate::clean::line;
use crate::moment::Moment;
use acpd_host::{ExportForm, PermissionMode, ShownUsage};
use acpd_record::BriefEnd;
use backon::{ExponentialBuilder, Retryable};
use bytes::Bytes;
use futures_util::Stream;
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// How long it is waited before what was lost is sent again, the first time; twice as long each time after.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// How often it is sent again: for some ten seconds, in which a daemon has started anew.
const TRIES: usize = 6;

/// What acpd shows of a session; all that is not known to it is in [`raw`](Self::raw).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Session {
    pub(crate) session_id: String,
    pub(crate) agent: String,
    pub(crate) cwd: String,
    pub(crate) title: Option<String>,
    /// The words that it began with.
    pub(crate) first_prompt: Option<String>,
    pub(crate) ended: bool,
    pub(crate) created_at: Moment,
    pub(crate) updated_at: Moment,
    pub(crate) event_count: u64,
    pub(crate) model: Option<String>,
    pub(crate) mode: Option<String>,
    pub(crate) native_session_id: Option<String>,
    pub(crate) state: String,
    pub(crate) usage: Option<ShownUsage>,
    pub(crate) turn_started_at: Option<Moment>,
    pub(crate) last_turn: Option<LastTurn>,
    /// Questions of its agent that wait for an answer.
    pub(crate) open_questions: u64,
    pub(crate) termination_info: Part,
    /// Since when its agent waits for the next daemon.
    pub(crate) detached_since: Option<Moment>,
    /// Until when it does, where that is known.
    #[serde(skip)]
    pub(crate) detached_until: Option<Moment>,
    /// Its node, in a fleet.
    pub(crate) node: Option<String>,
    /// Since when that cannot be reached.
    pub(crate) unreachable_since: Option<Moment>,
    pub(crate) metadata: Part,
    /// Why it ended, where that is all that was read of its end.
    #[serde(skip)]
    pub(crate) reason: Option<String>,
    /// The object as the daemon wrote it.
    #[serde(skip)]
    pub(crate) raw: Option<Box<RawValue>>,
}

/// A member of a session that is read when it is needed: a list of thousands needs little of each.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Part(Option<Box<RawValue>>);

impl Part {
    /// Reads it; `None` where there is none, or one of another shape.
    pub(crate) fn read<'a, T: Deserialize<'a>>(&'a self) -> Option<T> {
        serde_json::from_str(self.0.as_ref()?.get()).ok()
    }
}

#[cfg(test)]
impl From<Value> for Part {
    fn from(value: Value) -> Self {
        Self(to_raw_value(&value).ok())
    }
}

/// How the last turn of a session ended.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct LastTurn {
    pub(crate) stop_reason: Option<String>,
    pub(crate) duration_ms: u64,
    pub(crate) ended_at: Moment,
}

impl Session {
    pub(crate) fn read(raw: Box<RawValue>) -> Result<Self, serde_json::Error> {
        let session: Self = acpd_wire::read(raw.get().as_bytes())?;
        Ok(Self { raw: Some(raw), ..session })
    }

    /// What people know it by: its title, else the words that it began with.
    pub(crate) fn known_as(&self) -> Option<&str> {
        self.title.as_deref().or(self.first_prompt.as_deref())
    }

    /// Why it ended: `completed`, `error` or `terminated`.
    pub(crate) fn end_reason(&self) -> Option<Cow<'_, str>> {
        let told = || self.termination_info.read::<BriefEnd<'_>>()?.reason;
        self.reason.as_deref().map(Cow::Borrowed).or_else(told)
    }

    /// A session of this process, as a daemon would show it.
    pub(crate) fn of(shown: &impl Serialize) -> Result<Self, serde_json::Error> {
        Self::read(to_raw_value(shown)?)
    }
}

impl Daemon {
    /// One session, by its id or by an end or beginning of it that no other one has.
    pub(crate) async fn session(&self, id: &str) -> Result<Session, FindError> {
        match self.session_facts(id).await {
            Err(error) if error.is_not_found() => {
                let full = self.full_id(id).await?;
                Ok(self.session_facts(&full).await?)
            }
            found => Ok(found?),
        }
    }

    /// One session by its whole id.
    pub(super) async fn session_facts(&self, id: &str) -> Result<Session, DaemonError> {
        let raw: Box<RawValue> = self.get(&format!("/v1/sessions/{}", encoded(id))).await?;
        Session::read(raw).map_err(|error| self.unreadable(&error))
    }

    /// The number of events that are recorded of a session, by its whole id. While its node cannot be reached that is not known:
    /// other nodes have what had come to them.
    pub(crate) async fn count_events(&self, id: &str) -> Result<u64, DaemonError> {
        let session = self.session_facts(id).await?;
        match session.unreachable_since {
            Some(_) => Err(DaemonError::NodeLost { node: session.node.unwrap_or_default() }),
            None => Ok(session.event_count),
        }
    }

    /// The only session whose id ends or begins like this.
    async fn full_id(&self, part: &str) -> Result<String, FindError> {
        let (sessions, _) = self.sessions(&SessionFilter::default(), usize::MAX).await?;
        meant(part, sessions).map(|session| session.session_id)
    }

    /// Ends a session.
    pub(crate) async fn end(&self, id: &str, end: End) -> Result<(), DaemonError> {
        let (method, then) = match end {
            End::Close => (Method::POST, "/close"),
            End::Terminate => (Method::POST, "/terminate"),
            End::Delete => (Method::DELETE, ""),
        };
        self.act(method, &format!("/v1/sessions/{}{then}", encoded(id))).await
    }
}

/// What became of a prompt.
#[derive(Debug, Deserialize)]
pub(crate) struct Prompted {
    /// Its turn, which has begun.
    pub(crate) turn: Option<u64>,
    /// Else the prompts before it.
    #[serde(default)]
    pub(crate) waiting: u64,
    /// The object as the daemon wrote it.
    #[serde(skip)]
    pub(crate) raw: Box<RawValue>,
}

impl Daemon {
    /// Prompts a session with text or content blocks, and waits for nothing else. A lost answer is asked for again: the prompt runs once.
    pub(crate) async fn prompt(&self, id: &str, prompt: &impl Serialize) -> Result<Prompted, DaemonError> {
        let (path, key) = (format!("/v1/sessions/{}/prompt", encoded(id)), uuid::Uuid::new_v4().to_string());
        let body = PromptBody { prompt };
        let sent = || self.post(&path, Some(&key), &body);
        let again = ExponentialBuilder::default().with_min_delay(FIRST_WAIT).with_max_times(TRIES);
        let raw: Box<RawValue> =
            sent.retry(again).sleep(tokio::time::sleep).when(DaemonError::is_away).await?;
        let prompted = serde_json::from_str(raw.get()).map_err(|error| self.unreadable(&error))?;
        Ok(Prompted { raw, ..prompted })
    }

    /// Forks a session: the new one.
    pub(crate) async fn fork(&self, id: &str, setup: &ForkSetup) -> Result<Session, DaemonError> {
        let raw = self.post(&format!("/v1/sessions/{}/fork", encoded(id)), None, setup).await?;
        Session::read(raw).map_err(|error| self.unreadable(&error))
    }

    /// Cancels the turn of a session.
    pub(crate) async fn cancel(&self, id: &str) -> Result<(), DaemonError> {
        self.act(Method::POST, &format!("/v1/sessions/{}/cancel", encoded(id))).await
    }

    /// Answers a question of a session's agent.
    pub(crate) async fn answer_question(&self, id: &str, answer: &Value) -> Result<(), DaemonError> {
        self.post(&format!("/v1/sessions/{}/answer", encoded(id)), None, answer).await
    }

    /// A session as a file.
    pub(crate) async fn export(&self, id: &str, form: ExportForm) -> Result<Download, DaemonError> {
        let details =
            if matches!(form, ExportForm::Markdown { details: true }) { "&details=true" } else { "" };
        let form: &str = form.into();
        self.download(&format!("/v1/sessions/{}/export?format={form}{details}", encoded(id))).await
    }

    /// Takes over a session from a file.
    pub(crate) async fn import(
        &self,
        pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    ) -> Result<Box<RawValue>, DaemonError> {
        self.upload("/v1/import", pieces).await
    }
}

#[derive(Serialize)]
struct PromptBody<'a, P> {
    /// Text, or content blocks.
    prompt: &'a P,
}

/// What a fork has of its own. What is absent is as in its source.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ForkSetup {
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) permission_mode: Option<PermissionMode>,
}

/// The ways to end a session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Nothing uses it any more; it stays listed and can be activated again.
    Close,
    /// For good.
    Terminate,
    /// And remove it.
    Delete,
}

/// The one of these that has this id, or the only one whose id ends or begins so, capitals or not.
pub(crate) fn meant(part: &str, mut sessions: Vec<Session>) -> Result<Session, FindError> {
    if let Some(at) = sessions.iter().position(|session| session.session_id == part) {
        return Ok(sessions.swap_remove(at));
    }
    let same = |id: Option<&str>| id.is_some_and(|id| id.eq_ignore_ascii_case(part));
    let is_meant = |session: &Session| {
        let id = &session.session_id;
        same(id.get(..part.len())) || same(id.len().checked_sub(part.len()).and_then(|from| id.get(from..)))
    };
    let mut found = sessions.into_iter().filter(is_meant);
    let part = part.to_owned();
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(FindError::Unknown { id: part }),
        (Some(first), Some(second)) => {
            let candidates = [first, second].into_iter().chain(found).collect();
            Err(FindError::Ambiguous { part, candidates })
        }
    }
}

/// Why there is no one session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FindError {
    #[error("no session has the id \"{}\" or one that ends or begins so", line(id, 60))]
    Unknown { id: String },
    #[error("{} sessions end or begin with \"{}\"{}", candidates.len(), line(part, 60), listed(candidates))]
    Ambiguous { part: String, candidates: Vec<Session> },
    #[error(transparent)]
    Daemon(#[from] DaemonError),
}

/// Candidates that are listed.
const LISTED: usize = 10;

fn listed(candidates: &[Session]) -> String {
    let one = |session: &Session| {
        let title = session.title.as_deref().unwrap_or_default();
        let told = format!("{} {} {} {title}", session.session_id, session.state, session.agent);
        format!("\n  {}", line(&told, 120))
    };
    let more = candidates.len().checked_sub(LISTED).filter(|more| *more > 0);
    let more = more.map(|more| format!("\n  and {more} more"));
    candidates.iter().take(LISTED).map(one).chain(more).collect()
}

/// A cursor as text, however it is written.
pub(super) fn plain(cursor: &Value) -> Option<String> {
    match cursor {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 1.3: what is not known, or not there, is no error
    #[test]
    fn a_session_is_read_with_whatever_else_it_has() {
        let raw = r#"{"sessionId":"s","state":"idle","eventCount":3,"title":null,"new":{"x":1.0}}"#;
        let session = Session::read(RawValue::from_string(raw.to_owned()).expect("JSON")).expect("a session");
        assert_eq!((session.session_id.as_str(), session.event_count, session.title), ("s", 3, None));
        assert_eq!(session.raw.expect("it is kept").get(), raw);
    }

    // contract 7.1: ids may be shortened to what is unique of their end or beginning
    #[test]
    fn an_end_or_a_beginning_names_a_session() {
        let sessions = || {
            let session = |id: &str| Session { session_id: id.to_owned(), ..Session::default() };
            ["0199-aa11", "0199-bb22", "aa11-cc22", "ABC", "ABCD"].map(session).to_vec()
        };
        for (part, id) in [
            ("bb22", "0199-bb22"),
            ("C22", "aa11-cc22"),
            ("aa11-", "aa11-cc22"),
            ("199-", ""),
            ("abcd", "ABCD"),
            // All of one, and the beginning of another.
            ("ABC", "ABC"),
        ] {
            let found = meant(part, sessions()).map(|session| session.session_id);
            assert_eq!(found.as_deref().unwrap_or_default(), id, "{part}");
        }
        // An end of one and the beginning of another; the end of two; the beginning of two.
        for part in ["aa11", "22", "0199", "abc"] {
            let error = meant(part, sessions()).expect_err(part);
            assert!(
                matches!(&error, FindError::Ambiguous { candidates, .. } if candidates.len() == 2),
                "{error}"
            );
        }
    }

    // contract 7.1: what may mean several lists them, bounded and clean
    #[test]
    fn candidates_are_listed() {
        let candidate = |n: usize| Session {
            session_id: format!("ab{n}"),
            title: Some("\u{1b}[2J".into()),
            ..Session::default()
        };
        let error = FindError::Ambiguous { part: "ab".into(), candidates: (0..12).map(candidate).collect() };
        let text = error.to_string();
        assert!(text.starts_with("12 sessions end or begin with \"ab\"\n  ab0 "), "{text}");
        assert!(text.ends_with("\n  and 2 more") && !text.contains('\u{1b}'), "{text}");
    }
}
