//! A form of the agent's (`elicitation/create`), asked field by field.
//!
//! Pure. Invariants: what goes back is of the type that the schema names; all that is shown is clean. What is no field that
//! can be filled is left out, unless it is required: then the form is declined. Not here: what a field takes.

use crate::clean::line;
use crate::form::{Field, Form as Fields};
use serde::Deserialize;
use serde_json::{Map, Value};

const WIDTH: usize = 100;

/// What is asked for.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) message: String,
    /// Those that are asked for.
    fields: Vec<Field>,
    at: usize,
    content: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    #[serde(default)]
    message: String,
    requested_schema: Value,
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
        let Params { message, requested_schema } = acpd_wire::read(params).ok()?;
        let all = Fields::read(&requested_schema);
        if all.fields().iter().any(|field| field.is_required && !field.can_be_filled()) {
            return None;
        }
        let fields = all.fields().iter().filter(|field| field.can_be_filled()).cloned().collect();
        Some(Self { message: line(&message, 1_000), fields, at: 0, content: Map::new() })
    }

    /// What stands before the line.
    pub(super) fn label(&self) -> String {
        self.fields.get(self.at).map_or_else(|| "Enter agrees ".to_owned(), label)
    }

    /// What can be chosen from, a line each.
    pub(super) fn choices(&self) -> Vec<String> {
        let choices = self.fields.get(self.at).map(Field::choices).unwrap_or_default();
        (1..).zip(choices).map(|(place, shown): (u32, _)| format!("  {place} {shown}")).collect()
    }

    /// A line for the field that is asked for.
    pub(super) fn fill(&mut self, text: &str) -> Filled {
        if let Some(field) = self.fields.get(self.at) {
            match field.value(&typed(field, text.trim())) {
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

/// The values that a line has; none of an empty one.
fn typed<'a>(field: &'a Field, text: &'a str) -> Vec<&'a str> {
    match field.takes_several() {
        _ if text.is_empty() => Vec::new(),
        false => vec![field.by_place(text)],
        true => text.split(',').map(|one| field.by_place(one.trim())).collect(),
    }
}

fn label(field: &Field) -> String {
    let kind = match field.choices().len() {
        0 => Some(field.takes()).filter(|takes| takes != "text"),
        many if field.takes_several() => Some(format!("some of 1 to {many}, with commas")),
        many => Some(format!("1 to {many}")),
    };
    let default = field.default.as_ref().map(|default| match default {
        Value::String(text) => format!("Enter: {}", line(text, WIDTH)),
        other => format!("Enter: {}", line(&other.to_string(), WIDTH)),
    });
    let optional = (!field.is_required && field.default.is_none()).then(|| "may be empty".to_owned());
    let notes: Vec<String> = [kind, default, optional].into_iter().flatten().collect();
    match notes.is_empty() {
        true => format!("{}: ", field.label()),
        false => format!("{} ({}): ", field.label(), notes.join(", ")),
    }
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
        let days = json!({"type": "array", "maxItems": 2, "items": {"enum": ["mon", "tue", "wed"]}});
        for (property, label, text, value) in [
            (json!({"type": "string", "title": "Name"}), "Name: ", "a b", Some(json!("a b"))),
            (json!({"type": "string", "minLength": 3}), "x: ", "ab", None),
            (json!({"type": "integer"}), "x (a whole number): ", "-3", Some(json!(-3))),
            (json!({"type": "integer"}), "x (a whole number): ", "3.5", None),
            (number["x"].clone(), "x (a number): ", "3.5", Some(json!(3.5))),
            (number["x"].clone(), "x (a number): ", "inf", None),
            (json!({"type": "boolean"}), "x (true or false): ", "Yes", Some(json!(true))),
            (json!({"type": "boolean"}), "x (true or false): ", "maybe", None),
            (json!({"type": "string", "enum": ["a", "b"]}), "x (1 to 2): ", "2", Some(json!("b"))),
            (json!({"type": "string", "enum": ["a", "b"]}), "x (1 to 2): ", "a", Some(json!("a"))),
            (json!({"type": "string", "enum": ["a", "b"]}), "x (1 to 2): ", "3", None),
            // A value goes over a place.
            (json!({"type": "string", "enum": ["2", "1"]}), "x (1 to 2): ", "2", Some(json!("2"))),
            (json!({"oneOf": [{"const": "k", "title": "Kay"}]}), "x (1 to 1): ", "Kay", Some(json!("k"))),
            (days.clone(), "x (some of 1 to 3, with commas): ", "wed, 1", Some(json!(["wed", "mon"]))),
            (days, "x (some of 1 to 3, with commas): ", "1,2,3", None),
            (json!({"type": "string", "default": "d"}), "x (Enter: d): ", "", Some(json!("d"))),
            (json!({"type": "string"}), "x: ", "", None),
            (json!({"type": "string", "title": "a\u{1b}[2J"}), "a␛[2J: ", "v", Some(json!("v"))),
        ] {
            let mut form = form(json!({"x": property}), json!(["x"])).expect("a form");
            assert_eq!(form.label(), label);
            let filled = form.fill(text);
            match value {
                Some(value) => assert_eq!(filled, Filled::Done(Map::from_iter([("x".to_owned(), value)]))),
                None => {
                    assert!(matches!(&filled, Filled::Wrong(why) if why.starts_with("x: ")), "{filled:?}")
                }
            }
        }
    }

    // contract 7.1: a field after the other; what may be left out may be empty; what cannot be asked for is not
    #[test]
    fn a_form_is_asked_field_by_field() {
        let properties = json!({"a": {"type": "string"}, "b": {"type": "array"},
            "c": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "b"}]}});
        let mut asked = form(properties.clone(), json!(["c"])).expect("a form");
        assert_eq!((asked.label().as_str(), asked.choices()), ("a (may be empty): ", Vec::new()));
        assert_eq!(asked.fill(" "), Filled::Next);
        assert_eq!(asked.choices(), ["  1 r (Red)", "  2 b"]);
        assert_eq!(asked.fill("1"), Filled::Done(Map::from_iter([("c".to_owned(), json!("r"))])));
        assert!(form(properties, json!(["b"])).is_none());
        let mut empty = form(json!({}), json!([])).expect("a form");
        assert_eq!(empty.label(), "Enter agrees ");
        assert_eq!(empty.fill(""), Filled::Done(Map::new()));
        assert!(Form::read(b"{}").is_none());
    }
}
