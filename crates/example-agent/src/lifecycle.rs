//! The methods that begin, take up, set and end sessions. Run by the reading thread, replays by their own.
//!
//! Invariants: a load answers after the last replayed update; a resume replays nothing; a close or delete of a
//! session with a running turn cancels it and is answered after the prompt.
//! Not the turn: it only cancels one.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::agent::{Agent, Answer, session_id};
use crate::failure::Failure;
use crate::history::{Past, Record};
use crate::session::{Farewell, Session};
use crate::settings::Settings;
use crate::store::StoreError;
use crate::wire::Raw;

impl Agent {
    pub(crate) fn new_session(&self, params: Value) -> Result<Value, Failure> {
        let opened = opened(&params, McpServers::Required)?;
        let id = self.store.create(&opened.to_line()).map_err(not_kept)?;
        if self.options.early_updates {
            self.send_early_updates(&id);
        }
        Ok(self.start(id.clone(), params, &Past::default(), Some(&id)))
    }

    pub(crate) fn load(self: &Arc<Self>, request: &Raw, params: Value) -> Answer {
        let (id, past) = self.stored(&params, McpServers::Required)?;
        let (agent, request) = (Arc::clone(self), request.clone());
        std::thread::spawn(move || {
            past.replay(&agent.output, &id);
            let result = agent.start(id, params, &past, None);
            agent.output.answer(Some(&request), Ok(result));
        });
        Ok(None)
    }

    pub(crate) fn resume(&self, params: Value) -> Result<Value, Failure> {
        let (id, past) = self.stored(&params, McpServers::Optional)?;
        Ok(self.start(id, params, &past, None))
    }

    pub(crate) fn fork(&self, params: Value) -> Result<Value, Failure> {
        let (_, past) = self.stored(&params, McpServers::Optional)?;
        let opened = opened(&params, McpServers::Optional)?;
        let id = self.store.create(&past.copied_to(&opened)).map_err(not_kept)?;
        Ok(self.start(id.clone(), params, &past, Some(&id)))
    }

    pub(crate) fn close(&self, request: &Raw, params: &Value) -> Answer {
        let id = session_id(params)?;
        if self.live(id).is_none() && self.store.read(id).is_none() {
            return Err(Failure::session_not_found(id));
        }
        self.part(id, Farewell { request: request.clone(), deletes: false })
    }

    pub(crate) fn delete(&self, request: &Raw, params: &Value) -> Answer {
        self.part(session_id(params)?, Farewell { request: request.clone(), deletes: true })
    }

    pub(crate) fn set_mode(&self, params: &Value) -> Result<Value, Failure> {
        let session = self.session(params)?;
        let mode = params["modeId"].as_str().filter(|mode| Settings::knows_mode(mode));
        let mode = mode.ok_or_else(|| Failure::invalid_params("modeId is one of the session's modes"))?;
        mode.clone_into(&mut session.state().settings.mode);
        let update = json!({"sessionUpdate": "current_mode_update", "currentModeId": mode});
        self.keep(&session.id, &Record::Update(update.clone()).to_line());
        self.output.update(&session.id, &update);
        Ok(json!({}))
    }

    pub(crate) fn set_config_option(&self, params: &Value) -> Result<Value, Failure> {
        let session = self.session(params)?;
        let id =
            params["configId"].as_str().ok_or_else(|| Failure::invalid_params("configId is a string"))?;
        let value = &params["value"];
        let mut state = session.state();
        state.settings.set_option(id, value).map_err(Failure::invalid_params)?;
        self.keep(&session.id, &Record::Config { id: id.to_owned(), value: value.clone() }.to_line());
        Ok(json!({"configOptions": state.settings.config_options(self.knows_booleans())}))
    }

    /// Adds lines to a session's history. A full disk must not end a turn: it is told on stderr.
    pub(crate) fn keep(&self, id: &str, lines: &str) {
        if let Err(error) = self.store.append(id, lines) {
            eprintln!("{error}");
        }
    }

    /// Ends a session that has no running turn (any more).
    pub(crate) fn end(&self, id: &str, deletes: bool) {
        self.remove(id);
        if deletes {
            self.store.remove(id);
        }
    }

    fn part(&self, id: &str, farewell: Farewell) -> Answer {
        if let Some(session) = self.live(id) {
            let mut state = session.state();
            if state.running.is_some() {
                session.cancel(&state);
                state.after_turn.push(farewell);
                return Ok(None);
            }
        }
        self.end(id, farewell.deletes);
        Ok(Some(json!({})))
    }

    fn stored(&self, params: &Value, servers: McpServers) -> Result<(String, Past), Failure> {
        let id = session_id(params)?;
        opened(params, servers)?;
        let lines = self.store.read(id).ok_or_else(|| Failure::session_not_found(id))?;
        Ok((id.to_owned(), Past::read(&lines)))
    }

    /// Makes the session live, unless it is, and says what it is set to.
    fn start(&self, id: String, params: Value, past: &Past, new_id: Option<&str>) -> Value {
        let mut result = json!({});
        if let Some(id) = new_id {
            result["sessionId"] = json!(id);
        }
        let settings = match self.live(&id) {
            Some(session) => session.state().settings.clone(),
            None => {
                let cwd = params["cwd"].as_str().unwrap_or(&past.cwd).to_owned();
                self.insert(Session::new(id, cwd, params, past));
                past.settings.clone()
            }
        };
        result["modes"] = settings.modes();
        result["configOptions"] = settings.config_options(self.knows_booleans());
        result
    }

    fn send_early_updates(&self, id: &str) {
        let command = json!({"name": "early", "description": "sent before the answer to session/new"});
        let content = json!({"type": "text", "text": "early"});
        for update in [
            json!({"sessionUpdate": "available_commands_update", "availableCommands": [command]}),
            json!({"sessionUpdate": "agent_message_chunk", "messageId": "early", "content": content}),
        ] {
            self.keep(id, &Record::Update(update.clone()).to_line());
            self.output.update(id, &update);
        }
    }
}

/// Whether `mcpServers` may be left out. `null` is tolerated wherever the list is.
#[derive(Clone, Copy, PartialEq)]
enum McpServers {
    Required,
    Optional,
}

fn opened(params: &Value, servers: McpServers) -> Result<Record, Failure> {
    let absolute = |path: &Value| path.as_str().filter(|path| path.starts_with('/')).map(str::to_owned);
    let cwd = absolute(&params["cwd"]).ok_or_else(|| Failure::invalid_params("cwd is an absolute path"))?;
    match params.get("mcpServers") {
        Some(Value::Array(_) | Value::Null) => {}
        None if servers == McpServers::Optional => {}
        _ => return Err(Failure::invalid_params("mcpServers is a list")),
    }
    let additional_directories = match params.get("additionalDirectories") {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(paths)) => paths.iter().map(absolute).collect(),
        Some(_) => None,
    };
    let additional_directories = additional_directories
        .ok_or_else(|| Failure::invalid_params("additionalDirectories is a list of absolute paths"))?;
    Ok(Record::Opened { cwd, additional_directories })
}

fn not_kept(error: StoreError) -> Failure {
    Failure::internal(error.to_string())
}
