//! A permission request of an agent, as far as the decision needs it.
//!
//! Pure. Invariants: an option is told by its kind, never by its place or name; its id is kept as it came, all that is
//! shown of it is clean. Not here: what the tool call is about, see [`call`](super::call).

use serde::Deserialize;
use serde_json::Value;

use super::menu::letters;
use crate::clean::line;

const NAME_WIDTH: usize = 100;

/// What an agent asks.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    /// The `toolCall`, as an update of it.
    pub(super) call: Value,
    /// In the agent's order; at least one.
    options: Vec<Choice>,
}

/// An option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    /// Goes back to the agent as it came.
    pub(crate) id: String,
    /// Clean, and not empty.
    pub(crate) name: String,
    pub(super) kind: Kind,
}

/// What an option does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    /// One that acpd does not know.
    #[serde(other)]
    Other,
}

impl Choice {
    /// Whether the agent may not do it.
    pub(crate) fn refuses(&self) -> bool {
        matches!(self.kind, Kind::RejectOnce | Kind::RejectAlways)
    }
}

impl Question {
    /// Reads the params of `session/request_permission`; None when they offer nothing.
    pub(crate) fn read(params: &[u8]) -> Option<Self> {
        let params: Value = acpd_wire::read(params).ok()?;
        let options: Vec<Choice> = params["options"].as_array()?.iter().filter_map(choice).collect();
        (!options.is_empty()).then(|| Self { call: params["toolCall"].clone(), options })
    }

    pub(crate) fn options(&self) -> &[Choice] {
        &self.options
    }

    /// True if both ask about the same tool call.
    pub(crate) fn is_about_the_call_of(&self, other: &Self) -> bool {
        self.call["toolCallId"] == other.call["toolCallId"]
    }

    /// PE-4: the agent's own way to be refused.
    pub(crate) fn rejection(&self) -> Option<&Choice> {
        let of_kind = |kind| self.options.iter().find(|choice| choice.kind == kind);
        of_kind(Kind::RejectOnce).or_else(|| of_kind(Kind::RejectAlways))
    }

    /// Whether it asks which of several things is to be done: several options allow in the same way, and none rejects.
    pub(super) fn is_which(&self) -> bool {
        let count = |kind| self.options.iter().filter(|choice| choice.kind == kind).count();
        [Kind::AllowOnce, Kind::AllowAlways].into_iter().any(|kind| count(kind) > 1)
            && self.rejection().is_none()
    }

    /// The option that a person means: by its id, its name, a word for its kind, its letter, or a beginning of its id or
    /// name. None where there is none, or where it could be more than one.
    pub(crate) fn meant(&self, said: &str) -> Option<&Choice> {
        let only = |fits: &dyn Fn(&Choice) -> bool| {
            let mut fitting = self.options.iter().filter(|choice| fits(choice));
            fitting.next().filter(|_| fitting.next().is_none())
        };
        let of_id = self.options.iter().find(|choice| choice.id == said);
        if let Some(choice) = of_id.or_else(|| only(&|choice| choice.name.eq_ignore_ascii_case(said))) {
            return Some(choice);
        }
        let word = said.to_ascii_lowercase();
        let kinds: &[Kind] = match word.as_str() {
            "y" | "yes" | "allow" => &[Kind::AllowOnce],
            "a" | "always" => &[Kind::AllowAlways],
            "n" | "no" | "deny" | "reject" | "refuse" => &[Kind::RejectOnce, Kind::RejectAlways],
            _ => &[],
        };
        // A choice among several that allow is not made by a yes.
        let mut of_kind = kinds.iter().filter(|kind| self.options.iter().any(|choice| choice.kind == **kind));
        if let Some(kind) = of_kind.next() {
            return only(&|choice| choice.kind == *kind);
        }
        let mut letter = word.chars();
        if let (Some(letter), None) = (letter.next(), letter.next())
            && let Some(at) = letters(&self.options).iter().position(|own| *own == Some(letter))
        {
            return self.options.get(at);
        }
        let begins = |text: &str| text.to_lowercase().starts_with(&word);
        only(&|choice| kinds.is_empty() && (begins(&choice.id) || begins(&choice.name)))
    }

    /// The permission mode that would allow it without asking (contract 2.1), the narrower one first. None makes a choice.
    pub(super) fn allowed_by(&self) -> Option<&'static str> {
        let allows =
            self.options.iter().any(|choice| matches!(choice.kind, Kind::AllowOnce | Kind::AllowAlways));
        let edits = matches!(self.call["kind"].as_str(), Some("edit" | "delete" | "move"));
        (allows && !self.is_which()).then_some(if edits { "acceptEdits" } else { "bypassPermissions" })
    }
}

fn choice(option: &Value) -> Option<Choice> {
    let id = option["optionId"].as_str()?.to_owned();
    let name = line(option["name"].as_str().unwrap_or_default(), NAME_WIDTH);
    let name = if name.is_empty() { line(&id, NAME_WIDTH) } else { name };
    let kind = Kind::deserialize(&option["kind"]).unwrap_or(Kind::Other);
    Some(Choice { id, name, kind })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn question(kind: &str, options: &[(&str, &str)]) -> Option<Question> {
        let options: Vec<Value> =
            options.iter().map(|(id, kind)| json!({"optionId": id, "name": "", "kind": kind})).collect();
        let params = json!({"toolCall": {"toolCallId": "a", "kind": kind}, "options": options});
        Question::read(params.to_string().as_bytes())
    }

    // issue 28, C6: an option is named as a person would name it; what could be two is none
    #[test]
    fn options_are_named_by_people() {
        let of = |options: &[(&str, &str, &str)], said: &str| {
            let options: Vec<Value> = options
                .iter()
                .map(|(id, name, kind)| json!({"optionId": id, "name": name, "kind": kind}))
                .collect();
            let params = json!({"toolCall": {"toolCallId": "a"}, "options": options});
            let question = Question::read(params.to_string().as_bytes()).expect("it offers something");
            question.meant(said).map(|choice| choice.id.clone())
        };
        let usual = [
            ("allow-once", "Allow", "allow_once"),
            ("always", "Allow always", "allow_always"),
            ("reject", "No, tell it", "reject_once"),
        ];
        for (said, id) in [
            ("allow-once", Some("allow-once")),
            ("y", Some("allow-once")),
            ("YES", Some("allow-once")),
            ("allow", Some("allow-once")),
            ("a", Some("always")),
            ("always", Some("always")),
            ("n", Some("reject")),
            ("no", Some("reject")),
            ("deny", Some("reject")),
            ("no, t", Some("reject")),
            ("rej", Some("reject")),
            // A beginning of two.
            ("al", None),
            ("", None),
            ("d", None),
            ("maybe", None),
        ] {
            assert_eq!(of(&usual, said).as_deref(), id, "{said}");
        }
        let days =
            [("1", "Monday", "allow_once"), ("2", "Tuesday", "allow_once"), ("3", "Thursday", "allow_once")];
        for (said, id) in
            [("yes", None), ("mon", Some("1")), ("t", Some("2")), ("th", Some("3")), ("no", None)]
        {
            assert_eq!(of(&days, said).as_deref(), id, "{said}");
        }
        // A word never stands for more than it says.
        assert_eq!(of(&[("x", "Always", "allow_always"), ("r", "No", "reject_always")], "yes"), None);
        assert_eq!(of(&[("x", "Yes to all", "allow_always")], "y"), None);
        assert_eq!(
            of(&[("x", "Always", "allow_always"), ("r", "No", "reject_always")], "n").as_deref(),
            Some("r")
        );
    }

    // PE-4: a refusal is the agent's own, once before always, whatever the order; contract 2.1: what would allow it
    // quirk always-first
    #[test]
    fn the_kind_of_an_option_decides() {
        for (kind, options, rejection, mode) in [
            (
                "edit",
                vec![("x", "reject_always"), ("y", "allow_always"), ("z", "reject_once")],
                Some("z"),
                Some("acceptEdits"),
            ),
            (
                "delete",
                vec![("reject_once", "allow_once"), ("y", "reject_always")],
                Some("y"),
                Some("acceptEdits"),
            ),
            ("execute", vec![("y", "allow_once")], None, Some("bypassPermissions")),
            ("edit", vec![("y", "reject_once")], Some("y"), None),
            ("", vec![("reject_once", "surprise")], None, None),
            ("edit", vec![("mon", "allow_once"), ("tue", "allow_once")], None, None),
            (
                "edit",
                vec![("mon", "allow_once"), ("tue", "allow_once"), ("no", "reject_once")],
                Some("no"),
                Some("acceptEdits"),
            ),
        ] {
            let question = question(kind, &options).expect("it offers something");
            assert_eq!(question.rejection().map(|choice| choice.id.as_str()), rejection, "{options:?}");
            assert_eq!(question.allowed_by(), mode, "{options:?}");
        }
        assert!(question("edit", &[]).is_none());
        for params in ["", "null", "[]", "{\"options\":7}", "{\"options\":[{\"optionId\":7}]}"] {
            assert!(Question::read(params.as_bytes()).is_none(), "{params}");
        }
    }
}
