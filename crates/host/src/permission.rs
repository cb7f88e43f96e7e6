//! Which option of a permission request a mode chooses by itself (contract 2.1).
//!
//! Pure: the request comes in, the choice goes out. Nothing is ever allowed that no option allows, and the kind of an
//! option decides, never its place or its name: real agents order and name them as they like.

use crate::acp::view;
use acpd_record::PermissionMode;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// What a permission request offers, in its order: its params, as far as a choice depends on them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Offer {
    options: Vec<Offered>,
    /// The tool call that it is about.
    #[serde(default, rename = "toolCall")]
    call: ToolCall,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Offered {
    #[serde(rename = "optionId")]
    id: String,
    kind: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
struct ToolCall {
    #[serde(rename = "toolCallId")]
    id: Option<String>,
    /// Its kind, if the agent says it.
    kind: Option<String>,
}

/// What a mode does about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// It answers with this outcome.
    Answer(Bytes),
    /// The clients are asked.
    Ask,
    /// They are asked as well, and with nobody there it is cancelled: the mode says that things may be done, not which of them.
    AskWhich,
}

const ALLOWS: [&str; 2] = ["allow_once", "allow_always"];
const REJECTS: [&str; 2] = ["reject_once", "reject_always"];

/// Reads what a request offers; nothing, when it is not readable.
pub(crate) fn offer(params: &[u8]) -> Offer {
    view(params).unwrap_or_default()
}

impl Offer {
    /// Whether nothing is offered.
    pub(crate) fn is_empty(&self) -> bool {
        self.options.is_empty()
    }

    /// The same with the kind that its tool call had before, if the request does not say one: real agents leave it out.
    pub(crate) fn with_kind(mut self, known: impl FnOnce(&str) -> Option<String>) -> Self {
        self.call.kind = self.call.kind.or_else(|| known(self.call.id.as_deref()?));
        self
    }

    /// Whether an option has this id.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.options.iter().any(|option| option.id == id)
    }

    /// The first option of the first kind that there is.
    fn first(&self, kinds: [&str; 2]) -> Option<&str> {
        let of_kind = |kind| self.options.iter().find(|option| option.kind.as_deref() == Some(kind));
        kinds.into_iter().find_map(of_kind).map(|option| option.id.as_str())
    }

    /// A refusal in the agent's own words; without one, the request is cancelled (PE-4).
    pub(crate) fn rejection(&self) -> Bytes {
        self.first(REJECTS).map_or_else(cancelled, selected)
    }

    /// Whether it asks which of several things is to be done, not whether one may be: two options allow in the same way, and
    /// none rejects. Agents ask their own questions like that.
    fn is_which(&self) -> bool {
        let count = |kind| self.options.iter().filter(|option| option.kind.as_deref() == Some(kind)).count();
        ALLOWS.into_iter().any(|kind| count(kind) > 1) && self.first(REJECTS).is_none()
    }

    /// What `mode` does.
    pub(crate) fn choose(&self, mode: PermissionMode) -> Choice {
        let allow = || match self.first(ALLOWS) {
            _ if self.is_which() => Choice::AskWhich,
            Some(id) => Choice::Answer(selected(id)),
            None => Choice::Ask,
        };
        match mode {
            PermissionMode::Default => Choice::Ask,
            PermissionMode::AcceptEdits => match self.call.kind.as_deref() {
                Some("edit" | "delete" | "move") => allow(),
                _ => Choice::Ask,
            },
            PermissionMode::BypassPermissions => allow(),
            PermissionMode::Deny => Choice::Answer(self.rejection()),
        }
    }
}

impl std::fmt::Display for Offer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids: Vec<&str> = self.options.iter().map(|option| option.id.as_str()).collect();
        f.write_str(&ids.join(", "))
    }
}

/// The result that chooses an option.
#[derive(Serialize)]
struct Selected<'a> {
    outcome: Outcome<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome<'a> {
    outcome: &'static str,
    option_id: &'a str,
}

fn selected(id: &str) -> Bytes {
    let selected = Selected { outcome: Outcome { outcome: "selected", option_id: id } };
    serde_json::to_vec(&selected).expect("it is JSON").into()
}

/// The answer to a request whose turn is cancelled.
pub(crate) fn cancelled() -> Bytes {
    Bytes::from_static(br#"{"outcome":{"outcome":"cancelled"}}"#)
}

#[cfg(test)]
mod tests {
    use super::PermissionMode::{AcceptEdits, BypassPermissions, Default, Deny};
    use super::*;
    use serde_json::json;

    fn request(kind: &str, options: &[(&str, &str)]) -> Vec<u8> {
        let options: Vec<_> =
            options.iter().map(|(id, kind)| json!({"optionId": id, "kind": kind, "name": "x"})).collect();
        json!({"sessionId": "s", "toolCall": {"toolCallId": "t", "kind": kind}, "options": options})
            .to_string()
            .into_bytes()
    }

    const ALL: [(&str, &str); 5] = [
        ("always", "allow_always"),
        ("never", "reject_always"),
        ("once", "allow_once"),
        ("twice", "allow_once"),
        ("no", "reject_once"),
    ];

    /// The option that a mode chooses; None when it asks.
    fn choose(mode: PermissionMode, params: &[u8]) -> Option<String> {
        match offer(params).choose(mode) {
            Choice::Answer(answer) if answer == cancelled() => Some("cancelled".to_owned()),
            Choice::Answer(answer) => {
                let answer: serde_json::Value = serde_json::from_slice(&answer).expect("JSON");
                Some(answer["outcome"]["optionId"].as_str().expect("an id").to_owned())
            }
            Choice::Ask => None,
            Choice::AskWhich => Some("which?".to_owned()),
        }
    }

    // quirk question-as-permission (agents that ask their own questions): several options that allow and none that rejects are
    // a choice, which no mode makes
    #[test]
    fn a_choice_is_made_by_no_mode() {
        let days = ["mon", "tue", "wed", "thu"].map(|day| (day, "allow_once"));
        let two = [("once", "allow_once"), ("always", "allow_always")];
        let with = |more: &[(&'static str, &'static str)]| [&days, more].concat();
        for (mode, tool, options, choice) in [
            (BypassPermissions, "execute", days.to_vec(), Some("which?")),
            (AcceptEdits, "edit", days.to_vec(), Some("which?")),
            (AcceptEdits, "other", days.to_vec(), None),
            (Default, "edit", days.to_vec(), None),
            (Deny, "edit", days.to_vec(), Some("cancelled")),
            (BypassPermissions, "edit", with(&[("all", "allow_always"), ("odd", "later")]), Some("which?")),
            (BypassPermissions, "edit", vec![("a", "allow_always"), ("b", "allow_always")], Some("which?")),
            (BypassPermissions, "edit", with(&[("no", "reject_once")]), Some("mon")),
            (BypassPermissions, "edit", two.to_vec(), Some("once")),
        ] {
            assert_eq!(
                choose(mode, &request(tool, &options)).as_deref(),
                choice,
                "{mode:?} {tool} {options:?}"
            );
        }
    }

    // contract 2.1
    #[test]
    fn each_mode_chooses_by_kind() {
        for (mode, tool, choice) in [
            (Default, "edit", None),
            (AcceptEdits, "edit", Some("once")),
            (AcceptEdits, "delete", Some("once")),
            (AcceptEdits, "move", Some("once")),
            (AcceptEdits, "execute", None),
            (BypassPermissions, "execute", Some("once")),
            (Deny, "edit", Some("no")),
        ] {
            assert_eq!(choose(mode, &request(tool, &ALL)).as_deref(), choice, "{mode:?} {tool}");
        }
    }

    // contract 2.1: nothing is ever allowed that no option allows
    #[test]
    fn without_a_fitting_option_nothing_is_allowed() {
        let rejects = request("edit", &[("no", "reject_once")]);
        assert_eq!(choose(BypassPermissions, &rejects), None);
        assert_eq!(choose(AcceptEdits, &rejects), None);
        // PE-4
        let allows = request("edit", &[("a", "allow_always")]);
        assert_eq!(choose(Deny, &allows).as_deref(), Some("cancelled"));
        assert_eq!(
            choose(BypassPermissions, &request("edit", &[("a", "allow_always")])).as_deref(),
            Some("a")
        );
    }

    // contract 2.1: a request that does not repeat the kind of its tool call has it all the same
    #[test]
    fn the_kind_may_be_known_from_before() {
        let bare =
            br#"{"toolCall":{"toolCallId":"t"},"options":[{"optionId":"a","kind":"allow_once","name":"A"}]}"#;
        let known =
            |kind: &'static str| offer(bare).with_kind(move |id| (id == "t").then(|| kind.to_owned()));
        assert!(matches!(known("edit").choose(AcceptEdits), Choice::Answer(_)));
        assert_eq!(known("execute").choose(AcceptEdits), Choice::Ask);
        let said = offer(&request("execute", &ALL)).with_kind(|_| Some("edit".to_owned()));
        assert_eq!(said.choose(AcceptEdits), Choice::Ask, "what the request says counts");
    }

    // real agents leave out the kind, or the whole shape
    #[test]
    fn odd_requests_are_not_allowed_by_accident() {
        let bare =
            br#"{"toolCall":{"toolCallId":"t"},"options":[{"optionId":"a","kind":"allow_once","name":"A"}]}"#;
        assert_eq!(choose(AcceptEdits, bare), None);
        assert_eq!(choose(BypassPermissions, bare).as_deref(), Some("a"));
        for odd in [&b"{}"[..], b"null", br#"{"options":[{"optionId":1}]}"#] {
            assert_eq!(choose(BypassPermissions, odd), None);
        }
    }
}
