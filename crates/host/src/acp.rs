//! The words of ACP that the host itself reads or writes.
//!
//! Messages are stored and forwarded as raw bytes; this is the one module that knows the typed schema. A view
//! that does not decode is no error: the message goes on untouched.

use crate::services::Offered;
use agent_client_protocol_schema::v1 as schema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Method names.
pub mod method {
    /// Negotiates version and capabilities; first on every connection.
    pub const INITIALIZE: &str = "initialize";
    /// Logs in with the agent, by a method that it offers.
    pub const AUTHENTICATE: &str = "authenticate";
    /// Creates a session.
    pub const SESSION_NEW: &str = "session/new";
    /// Lists sessions.
    pub const SESSION_LIST: &str = "session/list";
    /// Whether a session is open; the first draft's question.
    pub const SESSION_STATUS: &str = "session/status";
    /// Goes on with a session, and shows what was.
    pub const SESSION_LOAD: &str = "session/load";
    /// Goes on with a session, and shows what comes.
    pub const SESSION_RESUME: &str = "session/resume";
    /// Creates a session with the history of another.
    pub const SESSION_FORK: &str = "session/fork";
    /// Ends a session; it may be activated again.
    pub const SESSION_CLOSE: &str = "session/close";
    /// The first draft's name of close.
    pub const SESSION_STOP: &str = "session/stop";
    /// Forgets a session.
    pub const SESSION_DELETE: &str = "session/delete";
    /// Ends a session for good; contract 1.1.
    pub const SESSION_TERMINATE: &str = "_sandboxagent/session/terminate";
    /// Leaves a session, which goes on; contract 1.1.
    pub const SESSION_DETACH: &str = "_sandboxagent/session/detach";
    /// Changes the mode.
    pub const SET_MODE: &str = "session/set_mode";
    /// Changes the model.
    pub const SET_MODEL: &str = "session/set_model";
    /// Changes an option that the agent offers.
    pub const SET_CONFIG_OPTION: &str = "session/set_config_option";
    /// Starts a turn.
    pub const SESSION_PROMPT: &str = "session/prompt";
    /// Ends a turn; a notification.
    pub const SESSION_CANCEL: &str = "session/cancel";
    /// What happens in a session; a notification from the agent.
    pub const SESSION_UPDATE: &str = "session/update";
    /// Asks whether a tool call may go on; a request from the agent.
    pub const REQUEST_PERMISSION: &str = "session/request_permission";
    /// Asks the user for something; a request from the agent.
    pub const ELICITATION: &str = "elicitation/create";
    /// What the user was asked to do at a URL is done; a notification from the agent.
    pub const ELICITATION_COMPLETE: &str = "elicitation/complete";
    /// Tells a client that its answer to a request does not count, and why; a notification.
    pub const ANSWER_REFUSED: &str = "_sandboxagent/answer_refused";
    /// What a terminal of the session said; a notification to clients that want it.
    pub const TERMINAL: &str = "_sandboxagent/terminal";
    /// Nothing comes from the agent, or it goes on after that; a notification to clients.
    pub const SESSION_STALLED: &str = "_sandboxagent/session/stalled";
    /// Another daemon goes on with the agent; a notification to clients.
    pub const SESSION_REATTACHED: &str = "_sandboxagent/session/reattached";
    /// Withdraws a request; a notification, either way.
    pub const CANCEL_REQUEST: &str = "$/cancel_request";
    /// The end of a run; contract 1.2.
    pub const SESSION_ENDED: &str = "_sandboxagent/session/ended";
    /// Ends the agent's credentials; only for agents that advertise it.
    pub const LOGOUT: &str = "logout";

    /// Whether a method is in acpd's own namespace: what is said in it to clients, only acpd says (contract 7.3).
    pub fn is_own(method: &str) -> bool {
        method.starts_with("_sandboxagent/") || method.starts_with("_acpd/")
    }
}

/// Error codes of ACP beyond those of JSON-RPC.
pub mod error_code {
    /// The agent wants a login first.
    pub const AUTH_REQUIRED: i64 = -32000;
    /// A session or file does not exist.
    pub const NOT_FOUND: i64 = -32002;
}

/// The data of an error: what is wrong, for programs.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorData<'a> {
    /// The field of the params that is wrong.
    pub field: Option<&'a str>,
    /// The file that was asked for.
    pub path: Option<&'a str>,
    /// Which of the things that can be wrong it is.
    pub reason: Option<&'static str>,
    /// The bound that was exceeded, in bytes.
    pub limit: Option<u64>,
    /// The terminal that was asked for.
    pub terminal_id: Option<&'a str>,
}

pub use acpd_record::META;

/// The protocol version that acpd speaks.
pub(crate) const PROTOCOL_VERSION: u64 = 1;

/// The `initialize` that every agent gets, whichever client is attached (IN-4): what acpd itself can serve.
pub(crate) fn initialize_params(offered: Offered) -> Vec<u8> {
    let session = schema::ClientSessionCapabilities::new()
        .notices(schema::NoticeCapabilities::default())
        .compaction(schema::CompactionCapabilities::default())
        .config_options(
            schema::SessionConfigOptionsCapabilities::new()
                .boolean(schema::BooleanConfigOptionCapabilities::new()),
        );
    let files =
        schema::FileSystemCapabilities::new().read_text_file(offered.files).write_text_file(offered.files);
    // The viewers are asked; without one, it is declined.
    let elicitation = schema::ElicitationCapabilities::new()
        .form(schema::ElicitationFormCapabilities::default())
        .url(schema::ElicitationUrlCapabilities::default());
    let mut capabilities =
        schema::ClientCapabilities::new().session(session).fs(files).terminal(offered.terminals);
    if offered.terminal_logins {
        // By its name in the schema, and by the older one that most agents know.
        let older = serde_json::Map::from_iter([("terminal-auth".to_owned(), serde_json::Value::Bool(true))]);
        capabilities = capabilities.auth(schema::AuthCapabilities::new().terminal(true)).meta(older);
    } else {
        capabilities = capabilities.elicitation(elicitation);
    }
    let request = schema::InitializeRequest::new(agent_client_protocol_schema::ProtocolVersion::V1)
        .client_capabilities(capabilities)
        .client_info(schema::Implementation::new("acpd", env!("CARGO_PKG_VERSION")).title("acpd".to_owned()));
    serde_json::to_vec(&request).expect("the schema's own types are JSON")
}

/// What the host reads of the answer to a prompt.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PromptAnswerView<'a> {
    #[serde(borrow)]
    pub(crate) stop_reason: Cow<'a, str>,
}

/// Answers a prompt whose turn was cancelled.
pub(crate) const CANCELLED_RESULT: &[u8] = br#"{"stopReason":"cancelled"}"#;

/// Decodes a view; `None` when the message does not have that shape.
pub(crate) fn view<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Option<T> {
    serde_json::from_slice(json).ok()
}

/// The params of a message.
pub(crate) fn params_of(line: &[u8]) -> Option<&[u8]> {
    let message: &RawValue = serde_json::from_slice(line).ok()?;
    acpd_wire::member(message, "params").map(|params| params.get().as_bytes())
}

/// A JSON string as text.
pub(crate) fn text(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::Offered;

    // IN-4: what is advertised is what acpd serves
    #[test]
    fn agents_are_offered_what_is_served() {
        let offered = Offered { files: true, terminals: false, ..Offered::default() };
        let params = super::initialize_params(offered);
        let params: serde_json::Value = serde_json::from_slice(&params).expect("JSON");
        assert_eq!(params["protocolVersion"], 1);
        let offered = &params["clientCapabilities"];
        assert_eq!(offered["session"]["configOptions"]["boolean"], serde_json::json!({}));
        assert_ne!(offered["terminal"], true);
        assert_eq!(offered["fs"], serde_json::json!({"readTextFile": true, "writeTextFile": true}));
        assert!(offered["elicitation"]["form"].is_object() && offered["elicitation"]["url"].is_object());
        assert_eq!(params["clientInfo"]["name"], "acpd");
        assert!(offered["auth"]["terminal"] != true && offered["_meta"].is_null(), "{offered}");
    }

    // issue 14: for a login, and only then, agents are told that there is a terminal to show it on
    #[test]
    fn a_login_is_offered_a_terminal() {
        let offered = Offered { terminal_logins: true, ..Offered::default() };
        let params: serde_json::Value =
            serde_json::from_slice(&super::initialize_params(offered)).expect("JSON");
        let offered = &params["clientCapabilities"];
        assert_eq!(offered["auth"]["terminal"], true);
        assert_eq!(offered["_meta"], serde_json::json!({"terminal-auth": true}));
        assert!(offered["elicitation"].is_null(), "there is no session that could be asked: {offered}");
    }
}
