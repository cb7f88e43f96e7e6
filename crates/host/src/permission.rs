//! Which option of a permission request a mode chooses by itself (contract 2.1).
//!
//! Pure: the request comes in, the choice goes out. Nothing is ever allowed that no option allows, and the kind of an
//! option decides, never its place or its name: real agents order and name them as they like.

use crate::acp::view;
use serde::Deserialize;
use std::borrow::Cow;

/// Who answers an agent's permission requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// Ask the viewers.
    #[default]
    Default,
    /// Allow edits, deletions and moves, ask for the rest.
    AcceptEdits,
    /// Allow whatever can be allowed.
    BypassPermissions,
    /// Reject.
    Deny,
}

impl PermissionMode {
    /// The name that clients and configuration use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::BypassPermissions => "bypassPermissions",
            Self::Deny => "deny",
        }
    }
}

/// The params of `session/request_permission`, as far as a mode looks at them.
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
    #[serde(borrow)]
    kind: Cow<'a, str>,
}

#[derive(Default, Deserialize)]
struct ToolCallView<'a> {
    #[serde(borrow, default)]
    kind: Option<Cow<'a, str>>,
}

/// The id of the option that `mode` chooses; None when somebody has to be asked.
pub(crate) fn choose(mode: PermissionMode, params: &[u8]) -> Option<String> {
    let request: RequestView<'_> = view(params)?;
    let first = |kinds: [&str; 2]| {
        let of_kind = |kind: &str| request.options.iter().find(|option| option.kind == kind);
        kinds.into_iter().find_map(of_kind).map(|option| option.id.clone().into_owned())
    };
    let allow = || first(["allow_once", "allow_always"]);
    match mode {
        PermissionMode::Default => None,
        PermissionMode::AcceptEdits => match request.tool_call.kind.as_deref() {
            Some("edit" | "delete" | "move") => allow(),
            _ => None,
        },
        PermissionMode::BypassPermissions => allow(),
        PermissionMode::Deny => first(["reject_once", "reject_always"]),
    }
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
    fn without_a_fitting_option_somebody_is_asked() {
        let rejects = request("edit", &[("no", "reject_once")]);
        assert_eq!(choose(BypassPermissions, &rejects), None);
        assert_eq!(choose(AcceptEdits, &rejects), None);
        assert_eq!(choose(Deny, &request("edit", &[("a", "allow_always")])), None);
        assert_eq!(
            choose(BypassPermissions, &request("edit", &[("a", "allow_always")])).as_deref(),
            Some("a")
        );
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
