//! What is told when there is an error instead of a session or of a turn.

use super::conversation::Conversation;
use super::home::Home;
use super::lines::ErrorLine;
use super::talking::Phase;
use crate::clean;
use crate::exit::{Code, Failure};
use crate::flag_names::in_flags;
use crate::verdict::{Cause, Turn, verdict};
use crate::view::{Failed, Step, logins, said};
use acpd_host::{error_code, login_command, without_login_command};
use acpd_wire::codes;
use serde::Deserialize;
use serde_json::{Map, Value};

impl Conversation {
    /// A request of ours was answered with an error.
    pub(super) fn failed(&mut self, phase: Phase, error: &Value) -> Result<(), Failure> {
        let message = error["message"].as_str().unwrap_or("the agent answered an error without a message");
        let code = error["code"].as_i64();
        // What acpd says of its own members is about flags; what an agent says stays as it is.
        let named = if code == Some(codes::INVALID_PARAMS) { in_flags(message) } else { message.into() };
        let message = named.as_ref();
        // A daemon knows its agents; without one, the name was looked up before.
        let is_wrong = phase == Phase::Initialize && error["code"].as_i64() == Some(codes::INVALID_PARAMS);
        if let (true, Home::Daemon { configuration, .. }) = (is_wrong, &self.home) {
            let message = clean::line(message, 300);
            // One that is only not installed is no matter of the configuration.
            let text = match error["data"]["agent"].is_string() {
                true => message,
                false => format!("{message}; {configuration}"),
            };
            self.result.error = Some(told_once(error));
            self.outcome = Some(Err(self.of_code(Cause::UnknownAgent, text)));
            return Ok(());
        }
        let data = &error["data"];
        let info = &data["terminationInfo"];
        self.ended |= info.is_object();
        self.result.termination_info = Some(info.clone()).filter(Value::is_object);
        self.result.error = Some(told_once(error));
        self.forget_questions();
        self.know_agent(&data["agent"]);
        let step = match (error["code"].as_i64(), phase) {
            (Some(error_code::AUTH_REQUIRED), _) => Step::Login,
            (_, Phase::Prompt) => Step::Turn,
            (_, Phase::Resume) => Step::Resume,
            (_, Phase::Set) => Step::Setting,
            (_, Phase::Initialize | Phase::New) => Step::Start,
        };
        let ways = match step {
            Step::Login => {
                let told = data["authMethods"].as_array().is_some_and(|methods| !methods.is_empty());
                logins(if told { &data["authMethods"] } else { &self.auth_methods })
            }
            Step::Start | Step::Resume | Step::Setting | Step::Turn => Vec::new(),
        };
        let command = (step == Step::Login).then(|| self.login_command()).flatten();
        // The host has said it, which does not know how acpd is called here.
        let message = match &self.agent {
            Some(agent) => without_login_command(message, agent),
            None => message,
        };
        let details = said(data, message).filter(|details| !ways.iter().any(|way| way.contains(details)));
        let took = self.took();
        let cause = match code {
            _ if data["required"].is_string() || data["limit"].is_string() => Cause::Scope,
            Some(codes::INVALID_PARAMS) if message.starts_with("--") => Cause::Usage,
            code => Cause::Code(code),
        };
        let ended = Some(info).filter(|info| info.is_object());
        let mut text = in_a_line(self.agent.as_deref(), step, message);
        let log_in = command.as_ref().map(|command| format!("log in by {command}"));
        for more in details.iter().chain(&log_in).chain(&ways) {
            text.push_str("; ");
            text.push_str(more);
        }
        if let Some(why) = info["message"].as_str().filter(|why| !text.contains(why)) {
            text.push_str(&format!(": {}", clean::line(why, 300)));
        }
        if let Some(view) = self.show.view() {
            view.failed(&Failed { step, message, details, ended, logins: &ways, command }, took)?;
        }
        let failure = match self.show.tells() {
            true => Failure::Told(self.code(cause)),
            false => self.of_code(cause, text),
        };
        self.outcome = Some(Err(failure));
        Ok(())
    }

    /// What to type for a login, if the agent has a name to type.
    fn login_command(&self) -> Option<String> {
        let agent = self.agent.as_deref().filter(|_| self.words.agent_is_named)?;
        let command = login_command(&clean::line(agent, 64));
        Some(match &self.home {
            Home::Daemon { daemon, .. } if !daemon.address().is_here() => {
                format!("`{command}` on the machine of the daemon")
            }
            // It takes no address of a daemon.
            Home::Daemon { reach, .. } if reach.contains("--connect") => format!("`{command}`"),
            Home::Daemon { .. } | Home::Here(_) => format!("`{command}{}`", self.words.reach),
        })
    }

    fn code(&self, cause: Cause) -> Code {
        verdict(Turn::Failed(cause), self.stop, self.refused).unwrap_or(Code::Failed)
    }

    fn of_code(&self, cause: Cause, text: String) -> Failure {
        Failure::Of(self.code(cause), self.with_stop(text))
    }

    /// The name of the agent, if only the host knew it so far.
    pub(super) fn know_agent(&mut self, name: &Value) {
        let (None, Some(name)) = (&self.agent, name.as_str()) else { return };
        self.agent = Some(name.to_owned());
        if let Some(view) = self.show.view() {
            view.named(name);
        }
    }
}

/// An error for a program. The record of an end is beside it, and not in its data.
fn told_once(error: &Value) -> ErrorLine {
    let mut told = ErrorLine::deserialize(error).unwrap_or_default();
    if let Some(Value::Object(data)) = &mut told.data {
        data.remove("terminationInfo");
    }
    told.data = told.data.filter(|data| *data != Value::Object(Map::new()));
    told
}

/// What failed, with the name of the agent, for a reader without a view.
fn in_a_line(agent: Option<&str>, step: Step, message: &str) -> String {
    let agent =
        agent.map_or_else(|| "the agent".to_owned(), |agent| format!("agent {}", clean::line(agent, 60)));
    match step {
        Step::Login => format!("{agent} wants a login: {message}"),
        _ if message.contains(&agent) => message.to_owned(),
        _ => format!("{agent}: {message}"),
    }
}
