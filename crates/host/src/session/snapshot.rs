//! What a late viewer needs to know of a session (contract 1.5), kept while its updates pass by.
//!
//! Pure: updates and lifecycle answers come in, the current state can be read at any time. Chunks of text, which are
//! nearly all of the traffic, are told apart by a look at their bytes and never parsed here.

use acpd_record::{Glance, Projection, update_kind};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The state of one session as its agent described it. Values are the agent's own, unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Snapshot {
    title: Option<String>,
    /// Whole values that replace each other, by the name under which they are shown.
    latest: BTreeMap<&'static str, Text>,
    /// Tool calls that are not finished, by id, in the order of their appearance.
    open_calls: Map<String, Value>,
}

/// A value as its JSON text, a fraction of what it takes in parts: it is kept for long and looked at now and then.
#[derive(Clone, Debug, PartialEq)]
struct Text(Box<str>);

impl Text {
    fn of(value: &Value) -> Self {
        Self(value.to_string().into())
    }

    fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

/// Members that answers tell; all else comes by updates.
const ANSWERED: [&str; 5] = ["modes", "currentModeId", "configOptions", "models", "tools"];

/// All that is shown under a name of its own.
const SHOWN: [&str; 8] =
    ["availableCommands", "configOptions", "currentModeId", "models", "modes", "plan", "tools", "usage"];

impl Snapshot {
    /// That of a session whose run begins.
    pub(crate) fn of(projection: &Projection) -> Self {
        let shown: Map<String, Value> = serde_json::from_str(projection.shown(0).get()).unwrap_or_default();
        let latest = SHOWN.iter().filter_map(|name| Some((*name, Text::of(shown.get(*name)?))));
        let title = projection.snapshot().title().map(str::to_owned);
        Self { title, latest: latest.collect(), open_calls: Map::new() }
    }

    /// Looks at a `session/update` line and keeps what matters. True when what a list shows changed.
    pub(crate) fn see_line(&mut self, line: &[u8]) -> bool {
        match update_kind(line) {
            Some("agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk" | "notice") => false,
            _ => match serde_json::from_slice::<Value>(line) {
                Ok(message) => self.see(&message["params"]["update"]),
                Err(_) => false,
            },
        }
    }

    /// Keeps what matters of an update. True when what a list shows changed.
    fn see(&mut self, update: &Value) -> bool {
        match update["sessionUpdate"].as_str() {
            Some("current_mode_update" | "config_option_update" | "session_info_update") => {
                let before = self.glance();
                self.keep(update);
                self.glance() != before
            }
            _ => {
                self.keep(update);
                false
            }
        }
    }

    fn keep(&mut self, update: &Value) {
        let mut keep = |name: &'static str, member: &str| {
            if let Some(value) = update.get(member) {
                self.latest.insert(name, Text::of(value));
            }
        };
        match update["sessionUpdate"].as_str() {
            Some("available_commands_update") => keep("availableCommands", "availableCommands"),
            Some("current_mode_update") => {
                keep("currentModeId", "currentModeId");
                self.align_modes();
            }
            Some("config_option_update") => keep("configOptions", "configOptions"),
            Some("plan") => keep("plan", "entries"),
            Some("usage_update") => {
                let mut usage = update.clone();
                if let Value::Object(usage) = &mut usage {
                    usage.remove("sessionUpdate");
                }
                self.latest.insert("usage", Text::of(&usage));
            }
            Some("session_info_update") => self.see_title(update),
            Some("tool_call" | "tool_call_update") => self.see_call(update),
            _ => {}
        }
    }

    /// Absent means unchanged, null clears (ACP schema).
    fn see_title(&mut self, update: &Value) {
        if let Some(title) = update.get("title") {
            self.title = title.as_str().map(str::to_owned);
        }
    }

    /// A member that is there replaces; a call that is over is not open any more.
    fn see_call(&mut self, update: &Value) {
        let (Some(id), Some(members)) = (update["toolCallId"].as_str(), update.as_object()) else { return };
        if matches!(update["status"].as_str(), Some("completed" | "failed")) {
            self.open_calls.remove(id);
            return;
        }
        let call = self.open_calls.entry(id).or_insert_with(|| json!({}));
        if let Value::Object(call) = call {
            let members = members.iter().filter(|(name, _)| *name != "sessionUpdate");
            call.extend(members.map(|(name, value)| (name.clone(), value.clone())));
        }
    }

    /// What is known from answers, as the log has it.
    pub(crate) fn state(&self) -> Map<String, Value> {
        self.values_of(&ANSWERED)
    }

    /// What a list shows.
    pub(crate) fn glance(&self) -> Glance {
        let options = self.value("configOptions");
        let chosen = |what: &str| {
            let options = options.as_array()?;
            let option = options.iter().find(|option| option["category"] == what);
            let option = option.or_else(|| options.iter().find(|option| option["id"] == what));
            option?["currentValue"].as_str()
        };
        let (mode, models) = (self.value("currentModeId"), self.value("models"));
        let (mode, model) = (mode.as_str(), models["currentModelId"].as_str());
        let owned = |value: Option<&str>| value.map(str::to_owned);
        Glance {
            title: self.title.clone(),
            model: owned(chosen("model").or(model)),
            mode: owned(mode.or_else(|| chosen("mode"))),
        }
    }

    /// The answer to `session/set_config_option` is the complete list.
    pub(crate) fn see_config_options(&mut self, result: &Value) {
        if result["configOptions"].is_array() {
            self.latest.insert("configOptions", Text::of(&result["configOptions"]));
        }
    }

    /// A mode that a client has set and the agent accepted; some agents send no update for it.
    pub(crate) fn set_mode(&mut self, mode: &Value) {
        if mode.is_string() {
            self.latest.insert("currentModeId", Text::of(mode));
            self.align_modes();
        }
    }

    /// A model that a client has set and the agent accepted.
    pub(crate) fn set_model(&mut self, model: &Value) {
        self.put_in("models", "currentModelId", model);
    }

    /// Sets a member of an object that is known.
    fn put_in(&mut self, name: &'static str, member: &str, value: &Value) {
        if let Value::Object(mut object) = self.value(name) {
            object.insert(member.to_owned(), value.clone());
            self.latest.insert(name, Text::of(&Value::Object(object)));
        }
    }

    /// A value that is known, else null.
    fn value(&self, name: &str) -> Value {
        self.latest.get(name).map(Text::value).unwrap_or_default()
    }

    fn values_of(&self, names: &[&str]) -> Map<String, Value> {
        let known =
            names.iter().filter_map(|name| Some(((*name).to_owned(), self.latest.get(name)?.value())));
        known.collect()
    }

    fn align_modes(&mut self) {
        if self.latest.contains_key("currentModeId") {
            let mode = self.value("currentModeId");
            self.put_in("modes", "currentModeId", &mode);
        }
    }

    /// The tools list of a `session/started` notification or of a lifecycle answer's `_meta`.
    pub(crate) fn see_tools(&mut self, holder: &Value) {
        if holder["tools"].is_array() {
            self.latest.insert("tools", Text::of(&holder["tools"]));
        }
    }

    /// The kind of an open tool call.
    pub(crate) fn kind_of_call(&self, id: &str) -> Option<String> {
        self.open_calls.get(id)?["kind"].as_str().map(str::to_owned)
    }

    /// No turn is running any more: what is still open was abandoned.
    pub(crate) fn turn_ended(&mut self) {
        self.open_calls.clear();
    }

    pub(crate) fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// `modes` and `configOptions`, as the answer to a load or resume has them.
    pub(crate) fn lifecycle_result(&self) -> Map<String, Value> {
        self.values_of(&["modes", "configOptions"])
    }

    /// Everything, as clients see it.
    pub(crate) fn to_json(&self) -> Value {
        let known = self.latest.iter().map(|(name, text)| ((*name).to_owned(), text.value()));
        let mut all: Map<String, Value> = known.collect();
        if let Some(title) = &self.title {
            all.insert("title".to_owned(), json!(title));
        }
        all.insert("openToolCalls".to_owned(), self.open_calls.values().cloned().collect());
        Value::Object(all)
    }
}

/// An open permission request as clients see it in a snapshot: its number and the raw message.
pub(super) fn entry(request: u64, message: &[u8]) -> Value {
    json!({"request": request, "message": serde_json::from_slice::<Value>(message).unwrap_or_default()})
}

/// Everything of contract 1.5.
pub(super) fn with_open_requests(snapshot: &Snapshot, open: Vec<Value>) -> Value {
    let mut all = snapshot.to_json();
    all["openPermissionRequests"] = Value::Array(open);
    all
}
