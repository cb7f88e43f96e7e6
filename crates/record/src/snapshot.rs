//! What a late viewer needs to know of a session's state (contract 1.5), kept while its updates pass by.
//!
//! Chunks of text, which are nearly all of the traffic, are told apart by their kind and never parsed here.

use crate::ids::SessionId;
use crate::json::{self, Json};
use crate::message::{update_kind, update_value};
use crate::state::{AgentState, ExactState};
use crate::title::title_line;
use acpd_wire::{Member, UpdateKind, member, scan};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The member of `_meta` that is acpd's own.
pub const META: &str = "sandboxagent.dev";

/// The state of one session as its agent described it. Values are the agent's own, unchanged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    title: Option<Box<str>>,
    /// A client chose the title: what the agent calls the session later does not replace it.
    title_is_chosen: bool,
    /// What answers tell, and updates change.
    #[serde(with = "ExactState")]
    agent: AgentState,
    #[serde(with = "json::exact")]
    available_commands: Option<Json>,
    #[serde(with = "json::exact")]
    plan: Option<Json>,
    #[serde(with = "json::exact")]
    usage: Option<Json>,
    /// Tool calls that are not finished, by id, in the order of their appearance.
    open_calls: Map<String, Value>,
}

/// What a list shows of a session's state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// Its title.
    pub title: Option<String>,
    /// The model that it works with.
    pub model: Option<String>,
    /// The id of its mode.
    pub mode: Option<String>,
}

/// What the answers to `session/load` and `session/resume` carry of the state.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleState {
    /// The modes, and the current one.
    pub modes: Option<Json>,
    /// The options, with their values.
    pub config_options: Option<Json>,
}

/// A snapshot as clients see it: the latest of what the agent said of its state, and what is open.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Shown<'a> {
    available_commands: Option<&'a Json>,
    config_options: Option<&'a Json>,
    current_mode_id: Option<&'a Json>,
    models: Option<&'a Json>,
    modes: Option<&'a Json>,
    plan: Option<&'a Json>,
    tools: Option<&'a Json>,
    usage: Option<&'a Json>,
    title: Option<&'a str>,
    /// Tool calls that are not finished, as the agent described them.
    open_tool_calls: Vec<&'a Value>,
    /// Permission requests that wait for an answer: `request` is the number, `message` the raw request.
    open_permission_requests: Vec<Json>,
    /// Forms that wait to be filled in, likewise; left out when there is none. What one client alone is asked is not here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    open_elicitations: Vec<Json>,
}

/// The questions that clients are asked, as a snapshot shows them.
#[derive(Default)]
pub(crate) struct OpenQuestions {
    pub(crate) permissions: Vec<Json>,
    pub(crate) elicitations: Vec<Json>,
}

impl Snapshot {
    /// Whether a `session/update` line says something that is not known yet.
    pub fn would_change(&self, line: &[u8]) -> bool {
        let mut changed = self.clone();
        changed.see_update(update_kind(line), line);
        changed != *self
    }

    /// Keeps what matters of a `session/update` line of a kind. Gives whether it tells what was used.
    pub(crate) fn see_update(&mut self, kind: UpdateKind, line: &[u8]) -> bool {
        if matches!(
            kind,
            UpdateKind::AgentMessageChunk
                | UpdateKind::AgentThoughtChunk
                | UpdateKind::UserMessageChunk
                | UpdateKind::Notice
                | UpdateKind::Other
        ) {
            return false;
        }
        if let Some(update) = update_value(line) {
            self.see(kind, update);
        }
        kind == UpdateKind::UsageUpdate
    }

    fn see(&mut self, kind: UpdateKind, update: Value) {
        let member = |name: &str| update.get(name).map(Json::new);
        match kind {
            UpdateKind::AvailableCommandsUpdate => {
                replace(&mut self.available_commands, member("availableCommands"))
            }
            UpdateKind::CurrentModeUpdate => {
                if let Some(mode) = update.get("currentModeId") {
                    self.agent.set_mode(mode);
                }
            }
            UpdateKind::ConfigOptionUpdate => {
                replace(&mut self.agent.config_options, member("configOptions"));
            }
            UpdateKind::Plan => replace(&mut self.plan, member("entries")),
            UpdateKind::UsageUpdate => {
                let mut usage = update;
                if let Value::Object(usage) = &mut usage {
                    usage.remove("sessionUpdate");
                }
                self.usage = Some(Json::new(&usage));
            }
            UpdateKind::SessionInfoUpdate => {
                let is_chosen = update["_meta"][META]["titleChosen"] == true;
                // Absent means unchanged, null clears (ACP schema).
                if let Some(title) = update.get("title").filter(|_| is_chosen || !self.title_is_chosen) {
                    self.title = title.as_str().and_then(title_line).map(Into::into);
                    self.title_is_chosen = is_chosen;
                }
            }
            UpdateKind::ToolCall | UpdateKind::ToolCallUpdate => self.see_call(update),
            _ => {}
        }
    }

    /// A member that is there replaces; a call that is over is not open any more.
    fn see_call(&mut self, update: Value) {
        let Some(id) = update["toolCallId"].as_str().map(str::to_owned) else { return };
        if matches!(update["status"].as_str(), Some("completed" | "failed")) {
            self.open_calls.remove(&id);
            return;
        }
        let call = self.open_calls.entry(id).or_insert_with(|| Value::Object(Map::new()));
        if let (Value::Object(call), Value::Object(members)) = (call, update) {
            call.extend(members.into_iter().filter(|(name, _)| name != "sessionUpdate"));
        }
    }

    /// Takes over what an answer says.
    pub(crate) fn see_state(&mut self, state: &AgentState) {
        self.agent.merge(state);
    }

    /// The tools list of a `session/started` notification.
    pub(crate) fn see_tools(&mut self, notification: &[u8]) {
        let params = scan(notification).ok().and_then(|scan| scan.value(Member::Params));
        let tools = params.and_then(|params| member(params, "tools"));
        if let Some(tools) = tools.filter(|tools| tools.get().starts_with('[')).and_then(Json::compact) {
            self.agent.tools = Some(tools);
        }
    }

    /// No turn is running any more: what is still open was abandoned.
    pub(crate) fn turn_ended(&mut self) {
        self.open_calls = Map::new();
    }

    /// What is known from answers.
    pub fn state(&self) -> &AgentState {
        &self.agent
    }

    /// Its title.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// The kind of an open tool call.
    pub fn kind_of_call(&self, call: &str) -> Option<String> {
        self.open_calls.get(call)?["kind"].as_str().map(str::to_owned)
    }

    /// What a list shows.
    pub fn glance(&self) -> Glance {
        let value = |json: &Option<Json>| json.as_ref().map(Json::value).unwrap_or_default();
        let options = value(&self.agent.config_options);
        let chosen = |what: &str| {
            let options = options.as_array()?;
            let option = options.iter().find(|option| option["category"] == what);
            let option = option.or_else(|| options.iter().find(|option| option["id"] == what));
            option?["currentValue"].as_str()
        };
        let (mode, models) = (value(&self.agent.current_mode_id), value(&self.agent.models));
        let (mode, model) = (mode.as_str(), models["currentModelId"].as_str());
        Glance {
            title: self.title.as_deref().map(str::to_owned),
            model: chosen("model").or(model).map(str::to_owned),
            mode: mode.or_else(|| chosen("mode")).map(str::to_owned),
        }
    }

    /// `modes` and `configOptions`, as the answer to a load or resume has them.
    pub fn lifecycle(&self) -> LifecycleState {
        LifecycleState { modes: self.agent.modes.clone(), config_options: self.agent.config_options.clone() }
    }

    /// Everything, as clients see it (contract 1.5).
    pub(crate) fn shown(&self, open: OpenQuestions) -> Json {
        let AgentState { modes, config_options, models, current_mode_id, tools } = &self.agent;
        let shown = Shown {
            available_commands: self.available_commands.as_ref(),
            config_options: config_options.as_ref(),
            current_mode_id: current_mode_id.as_ref(),
            models: models.as_ref(),
            modes: modes.as_ref(),
            plan: self.plan.as_ref(),
            tools: tools.as_ref(),
            usage: self.usage.as_ref(),
            title: self.title(),
            open_tool_calls: self.open_calls.values().collect(),
            open_permission_requests: open.permissions,
            open_elicitations: open.elicitations,
        };
        Json::new(&shown)
    }
}

/// The `session/update` by which a client's choice of a title stands in the log of session `id`.
pub fn chosen_title(id: &SessionId, title: &str) -> Vec<u8> {
    let update = json!({
        "sessionUpdate": "session_info_update",
        "title": title,
        "_meta": {META: {"titleChosen": true}},
    });
    let params = json!({"sessionId": id, "update": update});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string().into_bytes()
}

/// The `session/update` by which acpd warns those who watch session `id`, a notice of ACP.
pub fn warning(id: &SessionId, title: &str, description: &str) -> Vec<u8> {
    let update = json!({
        "sessionUpdate": "notice",
        "severity": "warning",
        "title": title,
        "description": description,
    });
    let params = json!({"sessionId": id, "update": update});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string().into_bytes()
}

fn replace(known: &mut Option<Json>, said: Option<Json>) {
    if said.is_some() {
        *known = said;
    }
}

#[cfg(test)]
mod tests;
