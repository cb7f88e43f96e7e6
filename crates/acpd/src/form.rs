//! A form that an agent wants filled in (ACP, elicitation): its fields, and what is typed as their values.
//!
//! Pure. Not here: how a person is asked.

use crate::clean::line;
use crate::nearest::unlisted;
use serde_json::{Map, Number, Value};

/// A form.
#[derive(Debug, Clone, Default)]
pub(crate) struct Form {
    fields: Vec<Field>,
}

/// One of its fields.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// What it is called, and what there is to know of it, for people; may be empty.
    pub(crate) title: String,
    pub(crate) is_required: bool,
    pub(crate) default: Option<Value>,
    kind: Kind,
}

/// What it takes.
#[derive(Debug, Clone)]
enum Kind {
    Text { least: u64, most: u64 },
    Whole { least: Option<i64>, most: Option<i64> },
    Number { least: Option<f64>, most: Option<f64> },
    Boolean,
    One(Vec<Choice>),
    Some { of: Vec<Choice>, least: u64, most: u64 },
}

/// A value that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Choice {
    value: String,
    title: String,
}

impl Form {
    /// Reads a `requestedSchema`.
    pub(crate) fn read(schema: &Value) -> Self {
        let required = |name: &str| {
            schema["required"].as_array().is_some_and(|required| required.iter().any(|one| one == name))
        };
        let field = |(name, schema): (&String, &Value)| Field::read(name, schema, required(name));
        Self { fields: schema["properties"].as_object().into_iter().flatten().map(field).collect() }
    }

    pub(crate) fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The content of an answer, from `(field, value)` as they were typed; a field that takes several values may be there
    /// several times. What was not given has its default.
    pub(crate) fn content(&self, typed: &[(String, String)]) -> Result<Value, String> {
        for (name, _) in typed {
            if !self.fields.iter().any(|field| field.name == *name) {
                return Err(self.unknown(name));
            }
        }
        let mut content = Map::new();
        for field in &self.fields {
            let values: Vec<&str> = typed
                .iter()
                .filter(|(name, _)| *name == field.name)
                .map(|(_, value)| value.as_str())
                .collect();
            if let Some(value) = field.value(&values)? {
                content.insert(field.name.clone(), value);
            }
        }
        Ok(Value::Object(content))
    }

    fn unknown(&self, name: &str) -> String {
        let names = || self.fields.iter().map(|field| field.name.as_str());
        let none = format!("the form has no field {}", line(name, 60));
        unlisted(&none, name, names(), names().map(|name| line(name, 60)))
    }
}

impl Field {
    fn read(name: &str, schema: &Value, is_required: bool) -> Self {
        let words = |key: &str| schema[key].as_str().map(|text| line(text, 200)).unwrap_or_default();
        let title = match (words("title"), words("description")) {
            (title, more) if title.is_empty() || more.is_empty() => title + &more,
            (title, more) => format!("{title}: {more}"),
        };
        let default = Some(schema["default"].clone()).filter(|default| !default.is_null());
        Self { name: name.to_owned(), title, is_required, default, kind: Kind::read(schema) }
    }

    /// What may be typed, in words.
    pub(crate) fn takes(&self) -> String {
        let shown = |choices: &[Choice]| choices.iter().map(Choice::shown).collect::<Vec<_>>().join(", ");
        match &self.kind {
            Kind::Text { .. } => "text".to_owned(),
            Kind::Whole { .. } => "a whole number".to_owned(),
            Kind::Number { .. } => "a number".to_owned(),
            Kind::Boolean => "true or false".to_owned(),
            Kind::One(choices) => format!("one of {}", shown(choices)),
            Kind::Some { of, .. } => format!("some of {}", shown(of)),
        }
    }

    /// What it is called, for people.
    pub(crate) fn label(&self) -> String {
        if self.title.is_empty() { line(&self.name, 60) } else { self.title.clone() }
    }

    /// What can be chosen from, as it is shown.
    pub(crate) fn choices(&self) -> Vec<String> {
        self.kind.choices().iter().map(Choice::shown).collect()
    }

    /// The choice that was typed by its place from 1, unless that is a value or title itself.
    pub(crate) fn by_place<'a>(&'a self, typed: &'a str) -> &'a str {
        let choices = self.kind.choices();
        let place = typed.parse::<usize>().ok().and_then(|place| place.checked_sub(1));
        match place.and_then(|place| choices.get(place)) {
            Some(choice) if meant(choices, typed).is_none() => &choice.value,
            _ => typed,
        }
    }

    pub(crate) fn takes_several(&self) -> bool {
        matches!(self.kind, Kind::Some { .. })
    }

    /// Whether there is anything that it takes: not where it is of choices and has none.
    pub(crate) fn can_be_filled(&self) -> bool {
        !self.takes_several() || !self.kind.choices().is_empty()
    }

    /// The value of what was typed, once or several times; none of one that may be left out.
    pub(crate) fn value(&self, typed: &[&str]) -> Result<Option<Value>, String> {
        let wrong = |why: String| format!("{}: {why}", line(&self.name, 60));
        let several = self.takes_several();
        match typed {
            [] => match (&self.default, self.is_required) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, false) => Ok(None),
                (None, true) => Err(wrong(format!("{} is required", self.takes()))),
            },
            [one] if !several => self.kind.one(one).map(Some).ok_or_else(|| wrong(self.refuses(one))),
            many if several => {
                self.kind.some(many).map(Some).ok_or_else(|| wrong(self.refuses(&many.join(", "))))
            }
            _ => Err(wrong("it takes one value".to_owned())),
        }
    }

    fn refuses(&self, typed: &str) -> String {
        let bounds = |least: Option<String>, most: Option<String>| match (least, most) {
            (Some(least), Some(most)) => format!(" from {least} to {most}"),
            (Some(least), None) => format!(" from {least}"),
            (None, Some(most)) => format!(" up to {most}"),
            (None, None) => String::new(),
        };
        let bounds = match &self.kind {
            Kind::Whole { least, most } => bounds(least.map(|n| n.to_string()), most.map(|n| n.to_string())),
            Kind::Number { least, most } => bounds(least.map(|n| n.to_string()), most.map(|n| n.to_string())),
            Kind::Text { least, most } | Kind::Some { least, most, .. } => {
                let most = Some(*most).filter(|most| *most < u64::MAX).map(|most| most.to_string());
                let what =
                    if matches!(self.kind, Kind::Text { .. }) { " of a length" } else { ", in number" };
                let bounds = bounds(Some(least.to_string()).filter(|_| *least > 0), most);
                if bounds.is_empty() { bounds } else { format!("{what}{bounds}") }
            }
            Kind::Boolean | Kind::One(_) => String::new(),
        };
        format!("{:?} does not do; {}{bounds} is required", line(typed, 60), self.takes())
    }
}

impl Kind {
    fn read(schema: &Value) -> Self {
        let least = |key: &str| schema[key].as_u64().unwrap_or_default();
        let most = |key: &str| schema[key].as_u64().unwrap_or(u64::MAX);
        match schema["type"].as_str() {
            Some("integer") => {
                Self::Whole { least: schema["minimum"].as_i64(), most: schema["maximum"].as_i64() }
            }
            Some("number") => {
                Self::Number { least: schema["minimum"].as_f64(), most: schema["maximum"].as_f64() }
            }
            Some("boolean") => Self::Boolean,
            Some("array") => {
                Self::Some { of: choices(&schema["items"]), least: least("minItems"), most: most("maxItems") }
            }
            // A kind of a later version is text, which its agent may refuse.
            _ => match choices(schema) {
                choices if choices.is_empty() => {
                    Self::Text { least: least("minLength"), most: most("maxLength") }
                }
                choices => Self::One(choices),
            },
        }
    }

    fn choices(&self) -> &[Choice] {
        match self {
            Self::One(choices) | Self::Some { of: choices, .. } => choices,
            Self::Text { .. } | Self::Whole { .. } | Self::Number { .. } | Self::Boolean => &[],
        }
    }

    fn one(&self, typed: &str) -> Option<Value> {
        let is_in = |least: Option<f64>, most: Option<f64>, value: f64| {
            least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most)
        };
        match self {
            Self::Text { least, most } => {
                let length = typed.chars().count() as u64;
                (*least..=*most).contains(&length).then(|| Value::from(typed))
            }
            Self::Whole { least, most } => {
                let value: i64 = typed.trim().parse().ok()?;
                let fits = least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most);
                fits.then(|| Value::from(value))
            }
            Self::Number { least, most } => {
                let value: f64 = typed.trim().parse().ok()?;
                Number::from_f64(value).filter(|_| is_in(*least, *most, value)).map(Value::Number)
            }
            Self::Boolean => match typed.trim().to_ascii_lowercase().as_str() {
                "true" | "yes" | "y" | "on" => Some(Value::Bool(true)),
                "false" | "no" | "n" | "off" => Some(Value::Bool(false)),
                _ => None,
            },
            Self::One(choices) => meant(choices, typed),
            Self::Some { .. } => self.some(&[typed]),
        }
    }

    fn some(&self, typed: &[&str]) -> Option<Value> {
        let Self::Some { of, least, most } = self else { return None };
        let values: Vec<Value> = typed.iter().map(|one| meant(of, one)).collect::<Option<_>>()?;
        (*least..=*most).contains(&(values.len() as u64)).then_some(Value::Array(values))
    }
}

impl Choice {
    fn shown(&self) -> String {
        match self.title.is_empty() || self.title == self.value {
            true => line(&self.value, 60),
            false => format!("{} ({})", line(&self.value, 60), line(&self.title, 60)),
        }
    }
}

/// The choice of this value, or title.
fn meant(choices: &[Choice], typed: &str) -> Option<Value> {
    let of_value = choices.iter().find(|choice| choice.value == typed);
    let of_title = || choices.iter().find(|choice| choice.title.eq_ignore_ascii_case(typed.trim()));
    of_value.or_else(of_title).map(|choice| Value::from(choice.value.as_str()))
}

/// What a schema lets choose from: bare values, or values with titles.
fn choices(schema: &Value) -> Vec<Choice> {
    let bare = schema["enum"].as_array().into_iter().flatten();
    let bare = bare.filter_map(|value| Some((value.as_str()?, "")));
    let titled = ["oneOf", "anyOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten();
    let titled =
        titled.filter_map(|one| Some((one["const"].as_str()?, one["title"].as_str().unwrap_or_default())));
    let choice = |(value, title): (&str, &str)| Choice { value: value.to_owned(), title: title.to_owned() };
    bare.chain(titled).map(choice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn form() -> Form {
        Form::read(&json!({"type": "object", "required": ["name", "size"], "properties": {
            "name": {"type": "string", "minLength": 2, "maxLength": 5, "title": "Name"},
            "size": {"type": "integer", "minimum": 1, "maximum": 3},
            "share": {"type": "number", "minimum": 0.5},
            "sure": {"type": "boolean", "default": true},
            "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]},
            "days": {"type": "array", "maxItems": 2, "items": {"type": "string", "enum": ["mon", "tue", "wed"]}},
        }}))
    }

    fn typed(words: &str) -> Vec<(String, String)> {
        let pair = |word: &str| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        words.split_whitespace().filter_map(pair).collect()
    }

    // contract 7.1: sessions answer --field K=V; ACP, elicitation: values have the types of the schema
    #[test]
    fn what_is_typed_becomes_the_content() {
        let whole = "name=anna size=3 share=0.75 sure=no colour=red days=mon days=wed";
        let content = json!({"name": "anna", "size": 3, "share": 0.75, "sure": false, "colour": "r", "days": ["mon", "wed"]});
        assert_eq!(form().content(&typed(whole)), Ok(content));
        assert_eq!(
            form().content(&typed("name=bo size=1")),
            Ok(json!({"name": "bo", "size": 1, "sure": true})),
            "defaults are filled in, and what may be left out is"
        );
    }

    // contract 7.1: bad input names the field and what it takes
    #[test]
    fn a_wrong_value_is_told_by_its_field() {
        for (words, why) in [
            ("size=1", "name: text is required"),
            ("name=a size=1", "name: \"a\" does not do; text of a length from 2 to 5 is required"),
            ("name=anna size=4", "size: \"4\" does not do; a whole number from 1 to 3 is required"),
            ("name=anna size=x", "size: \"x\" does not do; a whole number from 1 to 3 is required"),
            ("name=anna size=1 share=0", "share: \"0\" does not do; a number from 0.5 is required"),
            ("name=anna size=1 sure=maybe", "sure: \"maybe\" does not do; true or false is required"),
            ("name=anna size=1 colour=g", "colour: \"g\" does not do; one of r (Red), b (Blue) is required"),
            ("name=anna name=bert size=1", "name: it takes one value"),
            (
                "nam=anna",
                "the form has no field nam; it has name, size, share, sure, colour, days; did you mean name?",
            ),
            (
                "name=anna size=1 days=mon days=tue days=wed",
                "days: \"mon, tue, wed\" does not do; some of mon, tue, wed, in number up to 2 is required",
            ),
        ] {
            assert_eq!(form().content(&typed(words)), Err(why.to_owned()), "{words}");
        }
    }
}
