//! What a session is set to before its prompt: model, mode and options, by the agent's own ids and names.
//!
//! Pure. An agent offers them in its answer to `session/new` and the like, as config options or, before ACP had those, as modes
//! and models of their own. Not here: the requests.

use crate::clean::line;
use crate::cli::{OptionValue, SessionChoice};
use crate::nearest::unlisted;
use acpd_host::method;
use serde::Deserialize;
use serde_json::{Value, json};

/// One setting of the person's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Setting {
    Model(String),
    Mode(String),
    Option(OptionValue),
}

impl Setting {
    /// What the flags say. The model first: what else there is may depend on it.
    pub(super) fn of(choice: &SessionChoice) -> Vec<Self> {
        let (model, mode) = (choice.model.iter().cloned(), choice.mode.iter().cloned());
        let options = choice.options.iter().cloned().map(Self::Option);
        model.map(Self::Model).chain(mode.map(Self::Mode)).chain(options).collect()
    }

    /// As it was typed.
    pub(super) fn flag(&self) -> String {
        match self {
            Self::Model(model) => format!("--model {}", line(model, 100)),
            Self::Mode(mode) => format!("--mode {}", line(mode, 100)),
            Self::Option(OptionValue { id, value }) => {
                format!("--option {}={}", line(id, 60), line(value, 100))
            }
        }
    }

    fn value(&self) -> &str {
        match self {
            Self::Model(value) | Self::Mode(value) | Self::Option(OptionValue { value, .. }) => value,
        }
    }

    fn is_of(&self, selector: &Selector) -> bool {
        let category = match self {
            Self::Model(_) => "model",
            Self::Mode(_) => "mode",
            Self::Option(option) => return selector.by == By::ConfigOption && option.id == selector.id,
        };
        selector.category.as_deref() == Some(category) || selector.id == category
    }
}

/// The request that brings a setting about, but for the session's id.
#[derive(Debug, PartialEq)]
pub(super) struct Change {
    pub(super) method: &'static str,
    pub(super) params: Value,
}

/// What an agent offers.
#[derive(Debug)]
pub(super) struct Offer {
    selectors: Vec<Selector>,
}

/// One thing that can be set.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Selector {
    id: String,
    #[serde(default)]
    category: Option<String>,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    current_value: Value,
    /// Choices, or groups of them.
    #[serde(default)]
    options: Vec<Value>,
    #[serde(skip)]
    by: By,
}

/// The method that sets it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum By {
    #[default]
    ConfigOption,
    Mode,
    Model,
}

/// A value of a selector.
#[derive(Debug, Deserialize)]
struct Choice {
    #[serde(alias = "id", alias = "modelId")]
    value: String,
    #[serde(default)]
    name: String,
}

impl Offer {
    /// Reads the answer to `session/new` and the like; what is odd in it is not offered.
    pub(super) fn of(answer: &Value) -> Self {
        let selectors = items(&answer["configOptions"]).chain(older(&answer["modes"], By::Mode));
        Self { selectors: selectors.chain(older(&answer["models"], By::Model)).collect() }
    }

    /// Reads the answer to a change: the complete list of config options, if it has one.
    pub(super) fn update(&mut self, answer: &Value) {
        if answer["configOptions"].is_array() {
            self.selectors.retain(|selector| selector.by != By::ConfigOption);
            // In front: where there are both, the older ones count less.
            self.selectors.splice(0..0, items(&answer["configOptions"]));
        }
    }

    /// The request for a setting; none when it is so already.
    pub(super) fn change(&self, setting: &Setting) -> Result<Option<Change>, String> {
        let wrong = |why: String| format!("{}: {why}", setting.flag());
        let selector = self.selectors.iter().find(|selector| setting.is_of(selector));
        let selector = selector.ok_or_else(|| wrong(self.lacks(setting)))?;
        let value = selector.value(setting.value()).map_err(wrong)?;
        if value == selector.current_value {
            return Ok(None);
        }
        let (method, params) = match selector.by {
            By::ConfigOption if value.is_boolean() => (
                method::SET_CONFIG_OPTION,
                json!({"configId": selector.id, "type": "boolean", "value": value}),
            ),
            By::ConfigOption => (method::SET_CONFIG_OPTION, json!({"configId": selector.id, "value": value})),
            By::Mode => (method::SET_MODE, json!({"modeId": value})),
            By::Model => (method::SET_MODEL, json!({"modelId": value})),
        };
        Ok(Some(Change { method, params }))
    }

    fn lacks(&self, setting: &Setting) -> String {
        let of_options = || self.selectors.iter().filter(|selector| selector.by == By::ConfigOption);
        match setting {
            Setting::Model(_) => "the agent offers no models".to_owned(),
            Setting::Mode(_) => "the agent offers no modes".to_owned(),
            Setting::Option(_) if of_options().next().is_none() => "the agent has no options".to_owned(),
            Setting::Option(option) => {
                let ids = of_options().map(|selector| selector.id.as_str());
                unlisted("the agent has no such option", &option.id, ids.clone(), ids.map(|id| line(id, 60)))
            }
        }
    }
}

impl Selector {
    /// The value that is meant by its id or name.
    fn value(&self, said: &str) -> Result<Value, String> {
        if self.kind.as_deref() == Some("boolean") {
            return match said {
                "true" | "on" | "yes" => Ok(Value::Bool(true)),
                "false" | "off" | "no" => Ok(Value::Bool(false)),
                _ => Err("true or false is required".to_owned()),
            };
        }
        let choices = self.choices();
        let by_name = || {
            let is_meant = |choice: &&Choice| {
                choice.name.eq_ignore_ascii_case(said) || choice.value.eq_ignore_ascii_case(said)
            };
            let mut meant = choices.iter().filter(is_meant);
            // Of two with one name neither is meant for certain.
            meant.next().filter(|_| meant.next().is_none())
        };
        let found = choices.iter().find(|choice| choice.value == said).or_else(by_name);
        let found = found.ok_or_else(|| {
            let words = choices.iter().flat_map(|choice| [choice.value.as_str(), choice.name.as_str()]);
            unlisted("the agent has no such value", said, words, choices.iter().map(Choice::shown))
        })?;
        Ok(Value::String(found.value.clone()))
    }

    fn choices(&self) -> Vec<Choice> {
        let of_group =
            |item: &Value| item["options"].as_array().cloned().unwrap_or_else(|| vec![item.clone()]);
        self.options.iter().flat_map(of_group).filter_map(|item| Choice::deserialize(&item).ok()).collect()
    }
}

impl Choice {
    /// Its id, and its name where that says more.
    fn shown(&self) -> String {
        match self.name.is_empty() || self.name.eq_ignore_ascii_case(&self.value) {
            true => line(&self.value, 100),
            false => format!("{} ({})", line(&self.value, 100), line(&self.name, 60)),
        }
    }
}

fn items(options: &Value) -> impl Iterator<Item = Selector> + '_ {
    options.as_array().into_iter().flatten().filter_map(|option| Selector::deserialize(option).ok())
}

/// What was offered before there were config options: `modes` or `models`.
fn older(state: &Value, by: By) -> Option<Selector> {
    let (id, current, choices) = match by {
        By::Model => ("model", "currentModelId", "availableModels"),
        By::Mode | By::ConfigOption => ("mode", "currentModeId", "availableModes"),
    };
    let options = state[choices].as_array()?.clone();
    let current_value = state[current].clone();
    Some(Selector { id: id.to_owned(), category: None, kind: None, current_value, options, by })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(id: &str, value: &str) -> Setting {
        Setting::Option(OptionValue { id: id.to_owned(), value: value.to_owned() })
    }

    /// An offer as agents make it: grouped choices, a boolean, odd items, and modes of the older kind.
    fn offer() -> Offer {
        Offer::of(&json!({
            "configOptions": [
                {"id": "llm", "category": "model", "type": "select", "currentValue": "a/small",
                 "options": [{"group": "a", "name": "A", "options": [
                     {"value": "a/small", "name": "Small"}, {"value": "a/large", "name": "Large"}]},
                     {"group": "b", "name": "B", "options": [{"value": "b/large", "name": "Large"}]}]},
                {"id": "effort", "type": "select", "currentValue": "low",
                 "options": [{"value": "low", "name": "low"}, {"value": "high", "name": "high"}, 5]},
                {"id": "shout", "type": "boolean", "currentValue": false},
                {"name": "without an id"},
            ],
            "modes": {"currentModeId": "default", "availableModes": [
                {"id": "default", "name": "Default"}, {"id": "plan", "name": "Plan"}]},
        }))
    }

    // contract 7.1: model, mode and options by the agent's own ids and names
    #[test]
    fn a_setting_becomes_a_request() {
        let config =
            |id: &str, value: Value| (method::SET_CONFIG_OPTION, json!({"configId": id, "value": value}));
        let rows = [
            (Setting::Model("a/large".into()), config("llm", json!("a/large"))),
            (option("effort", "HIGH"), config("effort", json!("high"))),
            (Setting::Mode("Plan".into()), (method::SET_MODE, json!({"modeId": "plan"}))),
            (
                option("shout", "on"),
                (method::SET_CONFIG_OPTION, json!({"configId": "shout", "type": "boolean", "value": true})),
            ),
        ];
        for (setting, (method, params)) in rows {
            assert_eq!(offer().change(&setting), Ok(Some(Change { method, params })), "{setting:?}");
        }
        for same in
            [Setting::Model("small".into()), option("shout", "false"), Setting::Mode("default".into())]
        {
            assert_eq!(offer().change(&same), Ok(None), "{same:?}");
        }
    }

    // contract 7.1: what the agent offers is listed when there is no such one
    #[test]
    fn a_wrong_setting_lists_what_there_is() {
        let wrong = |setting: Setting| offer().change(&setting).unwrap_err();
        assert_eq!(
            wrong(Setting::Model("a/larg".into())),
            "--model a/larg: the agent has no such value; it has a/small (Small), a/large (Large), b/large (Large); \
             did you mean a/large?"
        );
        // Two have this name.
        assert!(wrong(Setting::Model("Large".into())).contains("no such value"));
        assert_eq!(
            wrong(option("efort", "high")),
            "--option efort=high: the agent has no such option; it has llm, effort, shout; did you mean effort?"
        );
        assert_eq!(wrong(option("shout", "loud")), "--option shout=loud: true or false is required");
        let none = Offer::of(&json!({}));
        let none = |setting: Setting| none.change(&setting).unwrap_err();
        assert_eq!(none(Setting::Model("x".into())), "--model x: the agent offers no models");
        assert_eq!(none(Setting::Mode("x".into())), "--mode x: the agent offers no modes");
        assert_eq!(none(option("x", "y")), "--option x=y: the agent has no options");
    }

    // contract 7.1: one option may change what another has: the answer to a change is the complete list
    #[test]
    fn an_answer_replaces_the_options() {
        let mut offer = offer();
        offer.update(&json!({"configOptions": [{"id": "effort", "type": "select", "currentValue": "max",
            "options": [{"value": "max", "name": "Max"}]}]}));
        assert_eq!(offer.change(&option("effort", "max")), Ok(None));
        assert!(offer.change(&Setting::Model("a/large".into())).is_err());
        assert!(matches!(offer.change(&Setting::Mode("plan".into())), Ok(Some(_))));
        offer.update(&json!({}));
        assert_eq!(offer.change(&option("effort", "max")), Ok(None));
    }
}
