//! Which option of a permission request a mode chooses by itself (contract 2.1).
//!
//! Pure: the request comes in, the choice goes out. Nothing is ever allowed that no option allows, and the kind of an
//! option decides, never its place or its name: real agents order and name them as they like.

use crate::acp::view;
use acpd_record::PermissionMode;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What a permission request offers, in its order: ids and kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    options: Vec<(String, String)>,
    /// The tool call that it is about.
    call: Option<String>,
    /// The kind of the tool call, if the agent says it.
    tool_kind: Option<String>,
}

/// What a mode does about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// It answers with this outcome.
    Answer(Bytes),
    /// The clients are asked.
    Ask,
}

/// The params of `session/request_permission`, as far as a choice depends on them.
#[derive(Deserialize)]
struct RequestView<'a> {
    #[serde(borrow)]
    options: Vec<OptionView<'a>>,
    #[serde(borrow, default, rename = "toolCall")]
    tool_call: ToolCallView<'a>,
}

#[derive(Deserialize)]
struct OptionView<'a> {
    #[serde(borrow, rename = "optionId")]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
struct ToolCallView<'a> {
    #[serde(borrow, default, rename = "toolCallId")]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    kind: Option<Cow<'a, str>>,
}

/// Reads what a request offers; nothing, when it is not readable.
pub(crate) fn offer(params: &[u8]) -> Offer {
    let Some(request) = view::<RequestView<'_>>(params) else { return Offer::default() };
    let option = |option: OptionView<'_>| {
        (option.id.into_owned(), option.kind.map(Cow::into_owned).unwrap_or_default())
    };
    Offer {
        options: request.options.into_iter().map(option).collect(),
        call: request.tool_call.id.map(Cow::into_owned),
        tool_kind: request.tool_call.kind.map(Cow::into_owned),
    }
}

impl Offer {
    /// Whether nothing is offered.
    pub(crate) fn is_empty(&self) -> bool {
        self.options.is_empty()
    }

    /// The same with the kind that its tool call had before, if the request does not say one: real agents leave it out.
    pub(crate) fn with_kind(self, known: impl FnOnce(&str) -> Option<String>) -> Self {
        let tool_kind = self.tool_kind.clone().or_else(|| known(self.call.as_deref()?));
        Self { tool_kind, ..self }
    }

    /// Whether an option has this id.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.options.iter().any(|(offered, _)| offered == id)
    }

    /// The first option of the first kind that there is.
    fn first(&self, kinds: [&str; 2]) -> Option<&str> {
        let of_kind = |kind: &str| self.options.iter().find(|(_, offered)| offered == kind);
        kinds.into_iter().find_map(of_kind).map(|(id, _)| id.as_str())
    }

    /// A refusal in the agent's own words; without one, the request is cancelled (PE-4).
    pub(crate) fn rejection(&self) -> Bytes {
        self.first(["reject_once", "reject_always"]).map_or_else(cancelled, selected)
    }

    /// What `mode` does.
    pub(crate) fn choose(&self, mode: PermissionMode) -> Choice {
        let allow = || {
            self.first(["allow_once", "allow_always"]).map_or(Choice::Ask, |id| Choice::Answer(selected(id)))
        };
        match mode {
            PermissionMode::Default => Choice::Ask,
            PermissionMode::AcceptEdits => match self.tool_kind.as_deref() {
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
        let ids: Vec<&str> = self.options.iter().map(|(id, _)| id.as_str()).collect();
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
