//! What a late viewer needs to know of a session (contract 1.5), kept while its updates pass by.
//!
//! Pure: updates and lifecycle answers come in, the current state can be read at any time. Chunks of text, which are
//! nearly all of the traffic, are told apart by a look at their bytes and never parsed here.

use acpd_record::{Glance, update_kind};
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

impl Snapshot {
    /// Whether a `session/update` line says something that is not known yet.
    pub(crate) fn would_change(&self, line: &[u8]) -> bool {
        let mut changed = self.clone();
        changed.see_line(line);
        changed != *self
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

    /// The answer to `session/new`, `load`, `resume` or `fork`.
    pub(crate) fn see_lifecycle(&mut self, result: &Value) {
        self.see_state(&Self::state_in(result));
    }

    /// What the answer to `session/new`, `load`, `resume` or `fork` says of the state.
    pub(crate) fn state_in(result: &Value) -> Value {
        let mut state = Map::new();
        for name in ["modes", "configOptions", "models"] {
            if let Some(value) = result.get(name).filter(|value| !value.is_null()) {
                state.insert(name.to_owned(), value.clone());
            }
        }
        if let Some(mode) = result["modes"].get("currentModeId") {
            state.insert("currentModeId".to_owned(), mode.clone());
        }
        if result["_meta"]["tools"].is_array() {
            state.insert("tools".to_owned(), result["_meta"]["tools"].clone());
        }
        Value::Object(state)
    }

    /// What is known from answers, as [`Snapshot::see_state`] takes it.
    pub(crate) fn state(&self) -> Map<String, Value> {
        self.values_of(&ANSWERED)
    }

    /// Takes over what is known from answers.
    pub(crate) fn see_state(&mut self, state: &Value) {
        for name in ANSWERED {
            if let Some(value) = state.get(name) {
                self.latest.insert(name, Text::of(value));
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use acpd_record::SessionMeta;

    fn line(update: &Value) -> Vec<u8> {
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
            .to_string()
            .into_bytes()
    }

    fn seen(updates: &[Value]) -> Value {
        let mut snapshot = Snapshot::default();
        for update in updates {
            snapshot.see_line(&line(update));
        }
        snapshot.to_json()
    }

    // UP-4: the latest whole value counts
    #[test]
    fn the_latest_value_counts() {
        let got = seen(&[
            json!({"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "a"}]}),
            json!({"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "b"}]}),
            json!({"sessionUpdate": "plan", "entries": [{"content": "x"}]}),
            json!({"sessionUpdate": "usage_update", "used": 1, "size": 2}),
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}),
        ]);
        let expected = json!({
            "availableCommands": [{"name": "b"}], "plan": [{"content": "x"}], "usage": {"used": 1, "size": 2},
            "openToolCalls": [],
        });
        assert_eq!(got, expected);
    }

    // SE-11: title follows session_info_update; null clears, absent leaves it
    #[test]
    fn the_title_follows() {
        let mut snapshot = Snapshot::default();
        let mut see = |update: Value| snapshot.see_line(&line(&update));
        assert!(see(json!({"sessionUpdate": "session_info_update", "title": "one"})));
        assert!(!see(json!({"sessionUpdate": "session_info_update", "updatedAt": "x"})));
        assert!(!see(json!({"sessionUpdate": "session_info_update", "title": "one"})));
        assert!(see(json!({"sessionUpdate": "session_info_update", "title": null})));
        assert_eq!(snapshot.title(), None);
    }

    // UP-4: a tool call is open until it is completed or failed, and members replace
    #[test]
    fn open_calls_are_merged_and_closed() {
        let call = |id: &str, more: Value| {
            let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": id});
            if let (Value::Object(update), Value::Object(more)) = (&mut update, more) {
                update.extend(more);
            }
            update
        };
        let got = seen(&[
            call("1", json!({"title": "a", "status": "pending", "content": [1]})),
            call("2", json!({"status": "in_progress"})),
            call("1", json!({"status": "in_progress", "content": []})),
            call("2", json!({"status": "completed"})),
        ]);
        let open = json!([{"toolCallId": "1", "title": "a", "status": "in_progress", "content": []}]);
        assert_eq!(got["openToolCalls"], open);
    }

    // SE-7: what a replay says of the state is news or not
    #[test]
    fn news_is_what_changes_something() {
        let mut snapshot = Snapshot::default();
        let plan = line(&json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"}));
        assert!(snapshot.would_change(&plan));
        snapshot.see_line(&plan);
        assert!(!snapshot.would_change(&plan));
        assert!(snapshot.would_change(&line(&json!({"sessionUpdate": "session_info_update", "title": "x"}))));
        assert!(!snapshot.would_change(&line(&json!({"sessionUpdate": "session_info_update"}))));
    }

    // contract 1.3: the model and the mode of a list entry, however the agent tells them
    #[test]
    fn model_and_mode_are_found_wherever_they_are() {
        let model = |category: &str| {
            json!([
                {"id": "a", "currentValue": "no"}, {"id": "m", "category": category, "currentValue": "large"},
            ])
        };
        let glance = |result: &Value| {
            let mut snapshot = Snapshot::default();
            snapshot.see_lifecycle(result);
            let mut meta = SessionMeta::read(br#"{"title": "old", "mode": "old", "kept": 1}"#);
            meta.describe(snapshot.glance());
            serde_json::to_value(&meta).expect("JSON")
        };
        assert_eq!(glance(&json!({})), json!({"kept": 1}));
        assert_eq!(glance(&json!({"configOptions": model("model")})), json!({"kept": 1, "model": "large"}));
        assert_eq!(glance(&json!({"configOptions": model("mode")})), json!({"kept": 1, "mode": "large"}));
        let by_id = json!({"configOptions": [{"id": "model", "currentValue": "small"}]});
        assert_eq!(glance(&by_id), json!({"kept": 1, "model": "small"}));
        let both = json!({"modes": {"currentModeId": "plan"}, "models": {"currentModelId": "x"}});
        assert_eq!(glance(&both), json!({"kept": 1, "mode": "plan", "model": "x"}));
    }

    // contract 1.5: what was known from answers is known again from what is stored of it
    #[test]
    fn what_answers_told_can_be_stored() {
        let mut snapshot = Snapshot::default();
        snapshot.see_lifecycle(&json!({
            "sessionId": "x", "modes": {"currentModeId": "a", "availableModes": []}, "configOptions": [],
            "_meta": {"tools": ["t"], "other": 1},
        }));
        snapshot.set_mode(&json!("b"));
        let mut again = Snapshot::default();
        again.see_state(&Value::Object(snapshot.state()));
        assert_eq!(again, snapshot);
        assert_eq!(again.to_json()["modes"]["currentModeId"], "b");
        assert_eq!(again.to_json()["tools"], json!(["t"]));
    }

    // UP-6: mode and modes agree
    #[test]
    fn a_mode_update_reaches_the_modes() {
        let mut snapshot = Snapshot::default();
        snapshot.see_lifecycle(&json!({"modes": {"currentModeId": "a", "availableModes": []}}));
        snapshot.see_line(&line(&json!({"sessionUpdate": "current_mode_update", "currentModeId": "b"})));
        assert_eq!(snapshot.to_json()["modes"]["currentModeId"], "b");
        assert_eq!(snapshot.lifecycle_result()["modes"]["currentModeId"], "b");
    }
}
