//! What an agent says of a session's state in the answer to a request.

use crate::json::{Json, exact, present};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// What an agent says of a session's state in the answer to a request: its own values, unchanged. What is absent was not
/// said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentState {
    /// The modes that it offers, and the current one.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub modes: Option<Json>,
    /// The options that it offers, with their values.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub config_options: Option<Json>,
    /// The models that it offers, and the current one.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub models: Option<Json>,
    /// The id of its mode.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub current_mode_id: Option<Json>,
    /// Its tools.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub tools: Option<Json>,
}

/// An [`AgentState`] in a checkpoint: the values as they are, and null as a value.
#[derive(Serialize, Deserialize)]
#[serde(remote = "AgentState")]
pub(crate) struct ExactState {
    #[serde(with = "exact")]
    modes: Option<Json>,
    #[serde(with = "exact")]
    config_options: Option<Json>,
    #[serde(with = "exact")]
    models: Option<Json>,
    #[serde(with = "exact")]
    current_mode_id: Option<Json>,
    #[serde(with = "exact")]
    tools: Option<Json>,
}

impl AgentState {
    /// What the result of `session/new`, `load`, `resume` or `fork` says of the state.
    pub fn of_lifecycle(result: &[u8]) -> Self {
        let result = readable_value(result);
        let said = |name: &str| result.get(name).filter(|value| !value.is_null()).map(Json::new);
        Self {
            modes: said("modes"),
            config_options: said("configOptions"),
            models: said("models"),
            current_mode_id: result["modes"].get("currentModeId").map(Json::new),
            tools: Some(&result["_meta"]["tools"]).filter(|tools| tools.is_array()).map(Json::new),
        }
    }

    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes over what `later` says.
    pub fn merge(&mut self, later: &Self) {
        for (known, said) in self.beside(later) {
            if said.is_some() {
                known.clone_from(said);
            }
        }
    }

    /// What is not as in `before`.
    pub fn since(mut self, before: &Self) -> Self {
        for (new, old) in self.beside(before) {
            if new == old {
                *new = None;
            }
        }
        self
    }

    /// After the client set mode `mode` and the agent accepted it; some agents send no update for it.
    pub fn with_mode(mut self, mode: &RawValue) -> Self {
        if let Ok(mode @ Value::String(_)) = acpd_wire::read(mode.get().as_bytes()) {
            self.set_mode(&mode);
        }
        self
    }

    /// After the client set model `model` and the agent accepted it.
    pub fn with_model(mut self, model: &RawValue) -> Self {
        if let Ok(model) = acpd_wire::read(model.get().as_bytes()) {
            put_in(&mut self.models, "currentModelId", &model);
        }
        self
    }

    /// After the agent's answer to `session/set_config_option`, which is the complete list.
    pub fn with_config_options(mut self, result: &[u8]) -> Self {
        let result = readable_value(result);
        if result["configOptions"].is_array() {
            self.config_options = Some(Json::new(&result["configOptions"]));
        }
        self
    }

    /// The mode, also in the modes.
    pub(crate) fn set_mode(&mut self, mode: &Value) {
        self.current_mode_id = Some(Json::new(mode));
        put_in(&mut self.modes, "currentModeId", mode);
    }

    /// Each member, and the same one of another.
    fn beside<'a>(&'a mut self, other: &'a Self) -> [(&'a mut Option<Json>, &'a Option<Json>); 5] {
        [
            (&mut self.modes, &other.modes),
            (&mut self.config_options, &other.config_options),
            (&mut self.models, &other.models),
            (&mut self.current_mode_id, &other.current_mode_id),
            (&mut self.tools, &other.tools),
        ]
    }
}

/// An answer in the form that every reader takes, whatever it is in: what is kept of it becomes part of an event, which has
/// more levels.
fn readable_value(result: &[u8]) -> Value {
    acpd_wire::value(&acpd_wire::readable(result))
}

/// Sets a member of an object that is known.
fn put_in(known: &mut Option<Json>, member: &str, value: &Value) {
    if let Some(Value::Object(mut object)) = known.as_ref().map(Json::value) {
        object.insert(member.to_owned(), value.clone());
        *known = Some(Json::new(&Value::Object(object)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(value: &Value) -> AgentState {
        AgentState::of_lifecycle(value.to_string().as_bytes())
    }

    // contract 1.5: what was known from answers is known again from what is stored of it
    #[test]
    fn a_state_survives_the_log() {
        let state = of(&json!({
            "sessionId": "x", "modes": {"currentModeId": "a", "availableModes": []}, "configOptions": [],
            "models": null, "_meta": {"tools": ["t"], "other": 1},
        }));
        let stored = serde_json::to_string(&state).expect("JSON");
        assert_eq!(
            stored,
            r#"{"modes":{"currentModeId":"a","availableModes":[]},"configOptions":[],"currentModeId":"a","tools":["t"]}"#
        );
        assert_eq!(serde_json::from_str::<AgentState>(&stored).expect("JSON"), state);
    }

    // UP-6: mode and modes agree; what is not an object is left alone
    // quirk mode-told-twice
    #[test]
    fn a_client_changes_mode_and_model() {
        let before = of(
            &json!({"modes": {"currentModeId": "a"}, "models": {"currentModelId": "x"}, "configOptions": []}),
        );
        let raw = |text: &str| serde_json::from_str::<Box<RawValue>>(text).expect("JSON");
        let after = before.clone().with_mode(&raw("\"b\"")).with_model(&raw("\"y\""));
        let changed = after.since(&before);
        assert_eq!(
            serde_json::to_string(&changed).expect("JSON"),
            r#"{"modes":{"currentModeId":"b"},"models":{"currentModelId":"y"},"currentModeId":"b"}"#
        );
        assert!(before.clone().with_mode(&raw("7")).since(&before).is_empty());
        let options = before.clone().with_config_options(br#"{"configOptions":[1]}"#).since(&before);
        assert_eq!(serde_json::to_string(&options).expect("JSON"), r#"{"configOptions":[1]}"#);
        assert!(before.clone().with_config_options(b"{}").since(&before).is_empty());
    }
}
