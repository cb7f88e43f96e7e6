//! The end of `acpd run` with a daemon: the session is closed, as it would be without one, or lives on.

use super::catching_up::CATCHES_UP;
use super::conversation::Conversation;
use super::home::Home;
use crate::clean;
use crate::client::Incoming;
use crate::exit::Failure;
use crate::runtime::if_any;
use crate::signals::StopSignals;
use crate::streams::remark;
use crate::view::short_id;
use acpd_host::method;
use serde_json::{Value, json};
use tokio::time::Instant;

impl Conversation {
    /// Closes the session, so that nothing is left running without need; or says that it lives on, when the
    /// person leaves in the middle of the turn, or the daemon is lost.
    pub(super) async fn leave_daemon(&mut self, signals: &mut StopSignals) -> Result<(), Failure> {
        let Some(session) = self.session.clone() else {
            self.client.hang_up();
            return match (self.client_trouble().await, &self.outcome) {
                (Some(trouble), None) => Err(Failure::Failed(trouble)),
                _ => Ok(()),
            };
        };
        let shown = short_id(&session);
        let mut trouble = None;
        let reach = match &self.home {
            Home::Daemon { reach, .. } => reach.clone(),
            Home::Here(_) => String::new(),
        };
        if self.words.detached.is_some() && matches!(self.outcome, Some(Ok(()))) {
            self.announce(&format!("`acpd sessions events {shown} --follow{reach}` shows it"))?;
        } else if self.joined && !self.ended && self.outcome.is_some() {
            self.announce(&format!("session {shown} lives on"))?;
        } else if !self.ended
            && (matches!(self.outcome, Some(Ok(())))
                || (self.outcome.is_some() && self.client.may_come_back()))
        {
            match self.close_session(&session, signals).await {
                Some(Ok(_)) => {
                    let end = self.look_at_the_end(&session).await?;
                    self.announce(&format!(
                        "session {shown} {end}; `acpd sessions events {shown}{reach}` shows it"
                    ))?;
                }
                Some(Err(error)) => {
                    let why = clean::line(error["message"].as_str().unwrap_or("no message"), 200);
                    self.say(&format!("session {shown} could not be closed: {why}"))?;
                }
                None if self.client.is_connected() => {
                    self.say(&format!("session {shown} is being closed"))?;
                }
                None => {
                    let away = self.client.away().map(str::to_owned);
                    let why = match away {
                        Some(why) => why,
                        None => {
                            trouble = self.client_trouble().await;
                            trouble.clone().unwrap_or_else(|| "the daemon was lost".to_owned())
                        }
                    };
                    self.say(&format!(
                        "session {shown} could not be closed: {why}; once the daemon is back, `acpd sessions \
                         terminate {shown}{reach}` ends it"
                    ))?;
                }
            }
        } else if self.ended {
            self.announce(&format!(
                "session {shown} has ended; `acpd sessions show {shown}{reach}` has the record"
            ))?;
        }
        self.client.hang_up();
        let trouble = match trouble {
            None => self.client_trouble().await,
            told => told,
        };
        let taken = !self.turn.is_to_come();
        match (&trouble, &self.outcome) {
            // The person left.
            (None, None) => {
                if let Some(view) = self.show.view() {
                    view.interrupted()?;
                }
                let failure = self.left(Some(lives_on(&shown, &reach)));
                self.outcome = Some(Err(failure));
            }
            (Some(trouble), None) => {
                self.outcome =
                    Some(Err(Failure::Failed(format!("{trouble}; {}", lost(&shown, &reach, taken)))));
            }
            (Some(_), Some(Err(_))) => self.say(&lost(&shown, &reach, taken))?,
            _ => {}
        }
        Ok(())
    }

    /// The answer to the request to close the session, if it comes. A daemon that is away for a moment does it when it is back.
    pub(super) async fn close_session(
        &mut self,
        session: &str,
        signals: &mut StopSignals,
    ) -> Option<Result<Value, Value>> {
        self.ask_about(method::SESSION_CLOSE, session, signals).await
    }

    /// The answer to a request that is about a session alone and ends it, if it comes.
    pub(super) async fn ask_about(
        &mut self,
        method: &str,
        session: &str,
        signals: &mut StopSignals,
    ) -> Option<Result<Value, Value>> {
        if !self.client.may_come_back() {
            return None;
        }
        let asked = self.client.request(method, &json!({"sessionId": session})).await;
        let mut until = (!self.client.is_connected()).then(|| Instant::now() + CATCHES_UP);
        loop {
            tokio::select! {
                incoming = self.client.next() => match incoming? {
                    Incoming::Answer { id, outcome } if id == asked => return Some(outcome),
                    // Another was faster, as a daemon that stops: what it says of the session comes before it leaves, the answer
                    // may not.
                    Incoming::Notification { method: notified, params }
                        if method == method::SESSION_CLOSE
                            && notified == method::SESSION_ENDED
                            && is_of(&params, session) =>
                    {
                        return Some(Ok(Value::Null));
                    }
                    Incoming::News(_) => {
                        let away = || until.unwrap_or_else(|| Instant::now() + CATCHES_UP);
                        until = (!self.client.is_connected()).then(away);
                    }
                    _ => {}
                },
                () = if_any(until.map(tokio::time::sleep_until)) => return None,
                _ = signals.next() => return None,
            }
        }
    }

    /// How the session ended that was asked to close just now, in words, with what it left behind.
    async fn look_at_the_end(&mut self, session: &str) -> Result<String, Failure> {
        let ended = match self.show.tells() {
            // It would be told to no reader.
            false => None,
            // A daemon that does not answer has said what matters.
            true => {
                self.home.look(session).await.and_then(|session| session.termination_info.read::<Value>())
            }
        };
        self.report_leftovers(ended.as_ref())?;
        Ok(spoken_end(ended.as_ref(), self.words.name))
    }

    pub(super) async fn client_trouble(&mut self) -> Option<String> {
        // What still comes is dropped; the connection ends behind it.
        while self.client.next().await.is_some() {}
        self.client.trouble().await
    }

    /// Tells the person, whatever reads stdout.
    pub(super) fn say(&mut self, text: &str) -> Result<(), Failure> {
        match self.show.tells() {
            _ if self.unread => Ok(()),
            true => self.announce(text),
            false => {
                remark(text);
                Ok(())
            }
        }
    }
}

/// Whether the end of a session that is told is that of this one.
fn is_of(params: &[u8], session: &str) -> bool {
    acpd_wire::value(params)["session_id"] == session
}

/// How a session ended that was asked to close, by its record: another may have ended it before.
fn spoken_end(ended: Option<&Value>, own: &str) -> String {
    let text = |key: &str| ended.and_then(|info| info[key].as_str());
    let by = || clean::line(text("initiator").unwrap_or("another client"), 100);
    match text("cause") {
        Some("client_close") if text("initiator") != Some(own) => format!("was closed by {}", by()),
        Some("client_close") => "is closed".to_owned(),
        Some("client_terminate") => format!("was terminated by {}", by()),
        Some("daemon_shutdown") => "ended with the daemon, which was stopped".to_owned(),
        Some(other) => format!("has ended ({})", clean::line(&other.replace('_', " "), 60)),
        None => "has ended".to_owned(),
    }
}

fn lives_on(session: &str, reach: &str) -> String {
    format!(
        "session {session} lives on in the daemon: `acpd sessions events {session} --follow{reach}` shows it, \
         `acpd sessions terminate {session}{reach}` ends it"
    )
}

/// The daemon, or the node that has the session, is not there to say whether it lives.
fn lost(session: &str, reach: &str, taken: bool) -> String {
    let prompt = match taken {
        true => "the prompt was taken, and its turn may go on",
        false => "the prompt may have been taken",
    };
    format!(
        "{prompt}: once it is back, `acpd sessions show {session}{reach}` tells what became of the session, \
         and `acpd sessions events {session} --follow{reach}` shows it"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 1.2, contract 6: the client that ended a session is named to those whose turn ended with it
    #[test]
    fn another_end_is_told_apart_from_ours() {
        let told =
            |cause: &str, by: &str| spoken_end(Some(&json!({"cause": cause, "initiator": by})), "acpd run");
        assert_eq!(told("client_close", "acpd run"), "is closed");
        assert_eq!(told("client_close", "editor"), "was closed by editor");
        assert_eq!(told("client_terminate", "command line"), "was terminated by command line");
        assert_eq!(told("daemon_shutdown", "daemon"), "ended with the daemon, which was stopped");
        assert_eq!(told("agent_exit", "x"), "has ended (agent exit)");
        assert_eq!(
            spoken_end(Some(&json!({"cause": "client_terminate"})), "acpd run"),
            "was terminated by another client"
        );
        assert!(lost("s", "", true).starts_with("the prompt was taken, and its turn may go on: "));
        assert!(lost("s", " -x", false).contains("`acpd sessions events s --follow -x`"));
        // A daemon that stops may say no more.
        assert_eq!(spoken_end(None, "acpd run"), "has ended");
    }
}
