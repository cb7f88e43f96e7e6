//! A form of the agent's (`elicitation/create`), asked field by field.
//!
//! Pure. Invariants: what goes back is of the type that the schema names; all that is shown is clean. What is no field that
//! can be asked for is left out, unless it is required: then the form is declined.

use crate::clean::line;
use serde::Deserialize;
use serde_json::{Map, Number, Value};

const WIDTH: usize = 100;

/// What is asked for.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) message: String,
    fields: Vec<Field>,
    at: usize,
    content: Map<String, Value>,
}

#[derive(Debug)]
struct Field {
    name: String,
    title: String,
    kind: Kind,
    required: bool,
    default: Option<Value>,
}

#[derive(Debug)]
enum Kind {
    Text,
    Number,
    Integer,
    Boolean,
    /// Values, and what is shown for them.
    Choice(Vec<(Value, String)>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    #[serde(default)]
    message: String,
    requested_schema: Schema,
}

#[derive(Deserialize)]
struct Schema {
    #[serde(default)]
    properties: Map<String, Value>,
    #[serde(default)]
    required: Vec<String>,
}

/// What a line led to.
#[derive(Debug, PartialEq)]
pub(super) enum Filled {
    /// There is another field.
    Next,
    /// The form is complete.
    Done(Map<String, Value>),
    /// What is wrong with the line.
    Wrong(String),
}

impl Form {
    /// Reads the params; None when there is something that has to be there and cannot be asked for.
    pub(super) fn read(params: &[u8]) -> Option<Self> {
        let Params { message, requested_schema } = serde_json::from_slice(params).ok()?;
        let mut fields = Vec::new();
        for (name, schema) in &requested_schema.properties {
            let required = requested_schema.required.contains(name);
            match Field::read(name, schema, required) {
                Some(field) => fields.push(field),
                None if required => return None,
                None => {}
            }
        }
        Some(Self { message: line(&message, 1_000), fields, at: 0, content: Map::new() })
    }

    /// What stands before the line.
    pub(super) fn label(&self) -> String {
        self.fields.get(self.at).map_or_else(|| "Enter agrees ".to_owned(), Field::label)
    }

    /// What can be chosen from, a line each.
    pub(super) fn choices(&self) -> Vec<String> {
        match self.fields.get(self.at).map(|field| &field.kind) {
            Some(Kind::Choice(choices)) => {
                let choice = |(at, (_, shown)): (usize, &(Value, String))| format!("  {} {shown}", at + 1);
                choices.iter().enumerate().map(choice).collect()
            }
            _ => Vec::new(),
        }
    }

    /// A line for the field that is asked for.
    pub(super) fn fill(&mut self, text: &str) -> Filled {
        if let Some(field) = self.fields.get(self.at) {
            match field.value(text.trim()) {
                Ok(Some(value)) => drop(self.content.insert(field.name.clone(), value)),
                Ok(None) => {}
                Err(wrong) => return Filled::Wrong(wrong),
            }
            self.at += 1;
        }
        match self.at < self.fields.len() {
            true => Filled::Next,
            false => Filled::Done(std::mem::take(&mut self.content)),
        }
    }
}

impl Field {
    fn read(name: &str, schema: &Value, required: bool) -> Option<Self> {
        let text = |key: &str| schema[key].as_str().map(|text| line(text, WIDTH));
        let title = text("title").filter(|title| !title.is_empty()).unwrap_or_else(|| line(name, WIDTH));
        let kind = match (schema["type"].as_str(), choices(schema)) {
            (Some("string") | None, Some(choices)) => Kind::Choice(choices),
            (Some("string"), None) => Kind::Text,
            (Some("number"), _) => Kind::Number,
            (Some("integer"), _) => Kind::Integer,
            (Some("boolean"), _) => Kind::Boolean,
            _ => return None,
        };
        let default = Some(schema["default"].clone()).filter(|default| !default.is_null());
        Some(Self { name: name.to_owned(), title, kind, required, default })
    }

    fn label(&self) -> String {
        let kind = match &self.kind {
            Kind::Text => None,
            Kind::Number => Some("number".to_owned()),
            Kind::Integer => Some("whole number".to_owned()),
            Kind::Boolean => Some("y or n".to_owned()),
            Kind::Choice(choices) => Some(format!("1 to {}", choices.len())),
        };
        let default = self.default.as_ref().map(|default| match default {
            Value::String(text) => format!("Enter: {}", line(text, WIDTH)),
            other => format!("Enter: {}", line(&other.to_string(), WIDTH)),
        });
        let optional = (!self.required && self.default.is_none()).then(|| "may be empty".to_owned());
        let notes: Vec<String> = [kind, default, optional].into_iter().flatten().collect();
        match notes.is_empty() {
            true => format!("{}: ", self.title),
            false => format!("{} ({}): ", self.title, notes.join(", ")),
        }
    }

    /// The value that was meant; None for one that is left out.
    fn value(&self, text: &str) -> Result<Option<Value>, String> {
        if text.is_empty() {
            return match (&self.default, self.required) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, false) => Ok(None),
                (None, true) => Err(format!("{} has to be there", self.title)),
            };
        }
        let wrong = |what: &str| Err(format!("this is {what}: {}", line(text, WIDTH)));
        match &self.kind {
            Kind::Text => Ok(Some(Value::String(text.to_owned()))),
            Kind::Number => match text.parse().ok().and_then(Number::from_f64) {
                Some(number) => Ok(Some(Value::Number(number))),
                None => wrong("no number"),
            },
            Kind::Integer => match text.parse::<i64>() {
                Ok(number) => Ok(Some(number.into())),
                Err(_) => wrong("no whole number"),
            },
            Kind::Boolean => match text.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(Some(true.into())),
                "n" | "no" | "false" => Ok(Some(false.into())),
                _ => wrong("neither y nor n"),
            },
            Kind::Choice(choices) => {
                let place = text.parse::<usize>().ok().and_then(|place| place.checked_sub(1));
                let named = |(value, shown): &&(Value, String)| shown == text || value.as_str() == Some(text);
                let chosen = choices.iter().find(named).or_else(|| choices.get(place?));
                match chosen {
                    Some((value, _)) => Ok(Some(value.clone())),
                    None => wrong("none of the choices"),
                }
            }
        }
    }
}

/// `enum`, or `oneOf` with titles.
fn choices(schema: &Value) -> Option<Vec<(Value, String)>> {
    let shown = |value: &Value| value.as_str().map(|text| line(text, WIDTH));
    let plain = schema["enum"].as_array().map(|values| {
        let one = |value: &Value| Some((value.clone(), shown(value)?));
        values.iter().filter_map(one).collect::<Vec<_>>()
    });
    let titled = schema["oneOf"].as_array().map(|values| {
        let one = |one: &Value| {
            Some((one["const"].clone(), shown(&one["title"]).or_else(|| shown(&one["const"]))?))
        };
        values.iter().filter_map(one).collect::<Vec<_>>()
    });
    plain.or(titled).filter(|choices| !choices.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn form(properties: Value, required: Value) -> Option<Form> {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        Form::read(json!({"message": "Well?", "requestedSchema": schema}).to_string().as_bytes())
    }

    // contract 7.1: forms are answered in place, each field by its type
    #[test]
    fn fields_are_filled_by_their_types() {
        let number = json!({"x": {"type": "number"}});
        for (property, label, text, value) in [
            (json!({"type": "string", "title": "Name"}), "Name: ", "a b", Some(json!("a b"))),
            (json!({"type": "integer"}), "x (whole number): ", "-3", Some(json!(-3))),
            (json!({"type": "integer"}), "x (whole number): ", "3.5", None),
            (number["x"].clone(), "x (number): ", "3.5", Some(json!(3.5))),
            (number["x"].clone(), "x (number): ", "inf", None),
            (json!({"type": "boolean"}), "x (y or n): ", "Yes", Some(json!(true))),
            (json!({"type": "boolean"}), "x (y or n): ", "maybe", None),
            (json!({"type": "string", "enum": ["a", "b"]}), "x (1 to 2): ", "2", Some(json!("b"))),
            (json!({"type": "string", "enum": ["a", "b"]}), "x (1 to 2): ", "a", Some(json!("a"))),
            (json!({"type": "string", "enum": ["a", "b"]}), "x (1 to 2): ", "3", None),
            (json!({"oneOf": [{"const": "k", "title": "Kay"}]}), "x (1 to 1): ", "Kay", Some(json!("k"))),
            (json!({"type": "string", "default": "d"}), "x (Enter: d): ", "", Some(json!("d"))),
            (json!({"type": "string"}), "x: ", "", None),
            (json!({"type": "string", "title": "a\u{1b}[2J"}), "a␛[2J: ", "v", Some(json!("v"))),
        ] {
            let mut form = form(json!({"x": property}), json!(["x"])).expect("a form");
            assert_eq!(form.label(), label);
            let filled = form.fill(text);
            match value {
                Some(value) => assert_eq!(filled, Filled::Done(Map::from_iter([("x".to_owned(), value)]))),
                None => assert!(matches!(filled, Filled::Wrong(_)), "{filled:?}"),
            }
        }
    }

    // contract 7.1: a field after the other; what may be left out may be empty; what cannot be asked for is not
    #[test]
    fn a_form_is_asked_field_by_field() {
        let properties = json!({"a": {"type": "string"}, "b": {"type": "array"}, "c": {"type": "boolean"}});
        let mut asked = form(properties.clone(), json!(["c"])).expect("a form");
        assert_eq!(asked.label(), "a (may be empty): ");
        assert_eq!(asked.fill(" "), Filled::Next);
        assert_eq!(asked.fill("n"), Filled::Done(Map::from_iter([("c".to_owned(), json!(false))])));
        assert!(form(properties, json!(["b"])).is_none());
        let mut empty = form(json!({}), json!([])).expect("a form");
        assert_eq!(empty.label(), "Enter agrees ");
        assert_eq!(empty.fill(""), Filled::Done(Map::new()));
        assert!(Form::read(b"{}").is_none());
    }
}
