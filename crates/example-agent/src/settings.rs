//! The modes and config options of a session, owned by the session.
//!
//! Invariant: an answer always shows the complete list of config options that this client can understand.
//! Not stored as such: history replays the changes onto the defaults.

use serde_json::{Value, json};

/// What a session is set to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) mode: String,
    model: String,
    /// Echo in capitals.
    pub(crate) shout: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { mode: "default".to_owned(), model: MODELS[0].0.to_owned(), shout: false }
    }
}

const MODES: [(&str, &str); 2] = [("default", "Default"), ("plan", "Plan")];
const MODELS: [(&str, &str); 2] = [("example-small", "Example Small"), ("example-large", "Example Large")];

impl Settings {
    pub(crate) fn knows_mode(mode: &str) -> bool {
        MODES.iter().any(|(id, _)| *id == mode)
    }

    pub(crate) fn modes(&self) -> Value {
        let available: Vec<Value> = MODES.iter().map(|(id, name)| json!({"id": id, "name": name})).collect();
        json!({"currentModeId": self.mode, "availableModes": available})
    }

    /// All options; the boolean one only for clients that said they know booleans.
    pub(crate) fn config_options(&self, booleans: bool) -> Value {
        let models: Vec<Value> =
            MODELS.iter().map(|(value, name)| json!({"value": value, "name": name})).collect();
        let mut options = vec![json!({"id": "model", "name": "Model", "category": "model", "type": "select",
            "currentValue": self.model, "options": models})];
        if booleans {
            options.push(json!({"id": "shout", "name": "Shout", "description": "Echo in capitals",
                "type": "boolean", "currentValue": self.shout}));
        }
        Value::Array(options)
    }

    /// Sets one option; the error says what is wrong with the request.
    pub(crate) fn set_option(&mut self, id: &str, value: &Value) -> Result<(), &'static str> {
        match id {
            "model" => {
                let known = MODELS.iter().find(|(model, _)| value == model);
                self.model = known.ok_or("the value is not an option of model")?.0.to_owned();
            }
            "shout" => self.shout = value.as_bool().ok_or("the value of shout is a boolean")?,
            _ => return Err("there is no such config option"),
        }
        Ok(())
    }
}
