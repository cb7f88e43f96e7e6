//! What acpd serves an agent by itself, as its client: files and terminals (contract 2.2, 2.3).
//!
//! One [`Services`] belongs to one run of a session. A request becomes a future; the session runs it beside everything
//! else and gets the answer back, so that a command that runs for an hour delays nothing else. Not here: when an agent is
//! answered and what is recorded of it, which is the session's business.

mod error;
mod terminal;

pub(crate) use error::{Notice, ServiceError};
pub(crate) use terminal::exit_status;

use crate::files::{FileError, Files};
use crate::journal;
use acpd_record::{Json, SessionId};
use acpd_terminal::{Keeping, TerminalEvent, TerminalId, Terminals};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;

/// Which of them an agent is offered. A method of one that is not is answered -32601.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered {
    /// `fs/read_text_file` and `fs/write_text_file`.
    pub files: bool,
    /// `terminal/*`.
    pub terminals: bool,
    /// A transcript as an embedded resource, if it takes those; else as text.
    pub transcript_resources: bool,
    /// Logins in a terminal, which a command of acpd's shows; then nothing else that needs a person.
    pub terminal_logins: bool,
}

impl Default for Offered {
    fn default() -> Self {
        Self { files: true, terminals: true, transcript_resources: true, terminal_logins: false }
    }
}

const WRITE: &str = "fs/write_text_file";

/// A method that is served here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    Read,
    Write,
    Create,
    Output,
    Wait,
    Kill,
    Release,
    Resize,
}

/// The result of a service, and what the session has to know of it.
#[derive(Debug)]
pub(crate) struct Served {
    /// The raw result.
    pub(crate) result: Bytes,
    /// What the log says of the answer; nothing of what would only fill it.
    pub(crate) summary: Json,
}

impl Served {
    /// A terminal was created.
    pub(crate) fn created(terminal: &TerminalId) -> Self {
        Self::plain(&terminal::Created { terminal_id: terminal.as_str() })
    }

    fn plain(result: &impl Serialize) -> Self {
        let summary = Json::new(result);
        Self { result: Bytes::copy_from_slice(summary.get().as_bytes()), summary }
    }
}

/// The services of one session.
#[derive(Clone, Debug)]
pub(crate) struct Services {
    pub(crate) files: Files,
    pub(crate) terminals: Arc<Terminals>,
    /// The owner of its terminals.
    pub(crate) owner: String,
    /// The name of its agent, for which its commands run.
    pub(crate) agent: Arc<str>,
    /// Where its commands run unless they say otherwise.
    pub(crate) cwd: PathBuf,
    /// It was said that a file outside the session's directories was refused.
    pub(crate) told_outside: Arc<AtomicBool>,
}

impl Services {
    /// Serves a request; a terminal's output goes to `feed`, and it outlives this host as `keeping` says. Requests take effect in the order in which their futures are
    /// first polled.
    ///
    /// # Cancel safety
    /// As the service: a file is written as a whole or not at all, a terminal that is being created is not there, a
    /// wait or a look changes nothing.
    pub(crate) async fn serve(
        self,
        service: Service,
        params: Bytes,
        (feed, keeping): (mpsc::Sender<TerminalEvent>, Option<Keeping>),
    ) -> Result<Served, ServiceError> {
        match service {
            Service::Read => {
                let result = self.files.read(params).await.map_err(|error| self.refused(error))?;
                let bytes = result.len();
                Ok(Served { result, summary: Json::new(&ReadSummary { result_bytes: bytes }) })
            }
            Service::Write => {
                self.files.write(params).await.map_err(|error| self.refused(error))?;
                Ok(Served::plain(&Nothing {}))
            }
            Service::Create => self.create(&params, feed, keeping).await,
            Service::Output => self.output(&params).await,
            Service::Wait => self.wait(&params).await,
            Service::Kill => self.kill(&params).await,
            Service::Release => self.release(&params).await,
            Service::Resize => self.resize(&params).await,
        }
    }

    /// A file that was refused. The first one outside the session's directories is news for people, too: the agent may keep
    /// files of its own elsewhere, and its model alone would learn of it.
    fn refused(&self, error: FileError) -> ServiceError {
        let FileError::Outside(path) = &error else { return error.into() };
        if self.told_outside.swap(true, Ordering::Relaxed) {
            return error.into();
        }
        let remedy = format!(
            "files = false in [agents.{}] has the agent read and write by itself, confine = false in [files] serves any file",
            self.agent
        );
        journal::file_refused(path, &remedy);
        let notice = Notice {
            title: format!("{path:?} is outside the session's directories and was refused"),
            description: remedy,
        };
        ServiceError { notice: Some(notice), ..error.into() }
    }
}

impl Service {
    /// The service behind a method, if the agent is offered it.
    pub(crate) fn of_method(method: &str, offered: Offered) -> Option<Self> {
        let (service, is_offered) = match method {
            "fs/read_text_file" => (Self::Read, offered.files),
            WRITE => (Self::Write, offered.files),
            "terminal/create" => (Self::Create, offered.terminals),
            "terminal/output" => (Self::Output, offered.terminals),
            "terminal/wait_for_exit" => (Self::Wait, offered.terminals),
            "terminal/kill" => (Self::Kill, offered.terminals),
            "terminal/release" => (Self::Release, offered.terminals),
            "_acpd/terminal/resize" => (Self::Resize, offered.terminals),
            _ => return None,
        };
        is_offered.then_some(service)
    }

    /// Whether its requests are worth an event each. Agents look at output many times a second, and what they see is in
    /// the log already.
    pub(crate) fn is_recorded(self) -> bool {
        !matches!(self, Self::Output | Self::Wait)
    }

    /// The request as the log has it, if that is not the agent's own: without the content of a file, which may be large
    /// and is in the file.
    pub(crate) fn recorded_message(self, params: &[u8], session: &SessionId) -> Option<Json> {
        #[derive(Deserialize)]
        struct Write<'a> {
            #[serde(borrow)]
            path: Option<&'a RawValue>,
            content: String,
            #[serde(borrow, default, rename = "_meta")]
            meta: Option<&'a RawValue>,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Recorded<'a> {
            session_id: &'a SessionId,
            #[serde(skip_serializing_if = "Option::is_none")]
            path: Option<&'a RawValue>,
            #[serde(skip_serializing_if = "Option::is_none", rename = "_meta")]
            meta: Option<&'a RawValue>,
            content_bytes: usize,
        }
        #[derive(Serialize)]
        struct Message<'a> {
            method: &'static str,
            params: Recorded<'a>,
        }
        if self != Self::Write {
            return None;
        }
        let Write { path, content, meta } = serde_json::from_slice(params).ok()?;
        let params = Recorded { session_id: session, path, meta, content_bytes: content.len() };
        Some(Json::new(&Message { method: WRITE, params }))
    }
}

/// What the log has of a read: what is in a file is in the file.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReadSummary {
    result_bytes: usize,
}

/// The result of a request that has nothing to say.
#[derive(Serialize)]
struct Nothing {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_of_a_file_is_not_recorded() {
        let params = br#"{"sessionId":"s","path":"/a","content":"secret words"}"#;
        let ours = SessionId::parse("ours").expect("an id");
        let recorded = Service::Write.recorded_message(params, &ours).expect("it is a write");
        assert_eq!(
            recorded.get(),
            r#"{"method":"fs/write_text_file","params":{"sessionId":"ours","path":"/a","contentBytes":12}}"#
        );
        assert_eq!(Service::Read.recorded_message(params, &ours), None);
        assert_eq!(Service::Write.recorded_message(b"{}", &ours), None);
    }
}
