//! What acpd serves an agent by itself, as its client: files and terminals (contract 2.2, 2.3).
//!
//! One [`Services`] belongs to one run of a session. A request becomes a future; the session runs it beside everything
//! else and gets the answer back, so that a command that runs for an hour delays nothing else. Not here: when an agent is
//! answered and what is recorded of it, which is the session's business.

mod error;
mod terminal;

pub(crate) use error::ServiceError;
pub(crate) use terminal::exit_status;

use crate::files::Files;
use acpd_terminal::{TerminalEvent, TerminalId, Terminals};
use bytes::Bytes;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Which of them an agent is offered. A method of one that is not is answered -32601.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered {
    /// `fs/read_text_file` and `fs/write_text_file`.
    pub files: bool,
    /// `terminal/*`.
    pub terminals: bool,
}

impl Default for Offered {
    fn default() -> Self {
        Self { files: true, terminals: true }
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
    /// The terminal that was created.
    pub(crate) created: Option<TerminalId>,
    /// What the log says of the answer; nothing of what would only fill it.
    pub(crate) summary: Value,
}

impl Served {
    fn plain(result: &Value) -> Self {
        Self { result: result.to_string().into(), created: None, summary: result.clone() }
    }
}

/// The services of one session.
#[derive(Clone, Debug)]
pub(crate) struct Services {
    pub(crate) offered: Offered,
    /// Clients that serve files themselves are asked first.
    pub(crate) forwards_files: bool,
    pub(crate) files: Files,
    pub(crate) terminals: Arc<Terminals>,
    /// The owner of its terminals.
    pub(crate) owner: String,
    /// The name of its agent, for which its commands run.
    pub(crate) agent: Arc<str>,
    /// Where its commands run unless they say otherwise.
    pub(crate) cwd: PathBuf,
}

impl Services {
    /// The service behind a method, if the agent is offered it.
    pub(crate) fn of_method(&self, method: &str) -> Option<Service> {
        let (service, offered) = match method {
            "fs/read_text_file" => (Service::Read, self.offered.files),
            WRITE => (Service::Write, self.offered.files),
            "terminal/create" => (Service::Create, self.offered.terminals),
            "terminal/output" => (Service::Output, self.offered.terminals),
            "terminal/wait_for_exit" => (Service::Wait, self.offered.terminals),
            "terminal/kill" => (Service::Kill, self.offered.terminals),
            "terminal/release" => (Service::Release, self.offered.terminals),
            "_acpd/terminal/resize" => (Service::Resize, self.offered.terminals),
            _ => return None,
        };
        offered.then_some(service)
    }

    /// Serves a request; a terminal's output goes to `feed`. Requests take effect in the order in which their futures are
    /// first polled.
    ///
    /// # Cancel safety
    /// As the service: a file is written as a whole or not at all, a terminal that is being created is not there, a
    /// wait or a look changes nothing.
    pub(crate) async fn serve(
        self,
        service: Service,
        params: Bytes,
        feed: mpsc::Sender<TerminalEvent>,
    ) -> Result<Served, ServiceError> {
        match service {
            Service::Read => {
                let result = self.files.read(params).await?;
                let bytes = result.len();
                Ok(Served { result, created: None, summary: json!({"resultBytes": bytes}) })
            }
            Service::Write => {
                self.files.write(params).await?;
                Ok(Served::plain(&json!({})))
            }
            Service::Create => self.create(&params, feed).await,
            Service::Output => self.output(&params).await,
            Service::Wait => self.wait(&params).await,
            Service::Kill => self.kill(&params).await,
            Service::Release => self.release(&params).await,
            Service::Resize => self.resize(&params).await,
        }
    }
}

impl Service {
    /// Whether its requests are worth an event each. Agents look at output many times a second, and what they see is in
    /// the log already.
    pub(crate) fn is_recorded(self) -> bool {
        !matches!(self, Self::Output | Self::Wait)
    }

    /// The request as the log has it, if that is not the agent's own: without the content of a file, which may be large
    /// and is in the file.
    pub(crate) fn recorded_message(self, params: &[u8], session: &str) -> Option<Value> {
        if self != Self::Write {
            return None;
        }
        let mut params: Value = serde_json::from_slice(params).ok()?;
        let content = params.as_object_mut()?.remove("content")?;
        params["contentBytes"] = json!(content.as_str().map_or(0, str::len));
        params["sessionId"] = json!(session);
        Some(json!({"method": WRITE, "params": params}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_of_a_file_is_not_recorded() {
        let params = br#"{"sessionId":"s","path":"/a","content":"secret words"}"#;
        let expected = json!({"sessionId": "ours", "path": "/a", "contentBytes": 12});
        let recorded = Service::Write.recorded_message(params, "ours");
        assert_eq!(recorded, Some(json!({"method": WRITE, "params": expected})));
        assert_eq!(Service::Read.recorded_message(params, "ours"), None);
        assert_eq!(Service::Write.recorded_message(b"{}", "ours"), None);
    }
}
