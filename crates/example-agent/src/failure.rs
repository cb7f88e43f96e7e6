//! JSON-RPC errors that the agent answers with, owned by the code that refuses a request.
//!
//! Invariant: codes are those of JSON-RPC and ACP; messages are one sentence without line breaks.
//! Not an error type of the program: nothing here stops the agent.

use serde_json::{Value, json};

/// The `error` member of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    code: i64,
    message: String,
    data: Option<Value>,
}

impl Failure {
    pub(crate) fn parse_error() -> Self {
        Self::new(-32700, "the line is not JSON")
    }

    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(-32600, message)
    }

    pub(crate) fn method_not_found(method: &str) -> Self {
        Self::new(-32601, format!("method not found: {method}"))
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(-32603, message)
    }

    pub(crate) fn session_not_found(id: &str) -> Self {
        Self { data: Some(json!({"sessionId": id})), ..Self::new(-32002, "session not found") }
    }

    pub(crate) fn login_required() -> Self {
        Self::new(-32000, "Authentication required")
    }

    /// An error that is written out.
    pub(crate) fn from_json(error: &Value) -> Self {
        let data = error.get("data").cloned();
        let message = error["message"].as_str().unwrap_or_default();
        Self { data, ..Self::new(error["code"].as_i64().unwrap_or_default(), message) }
    }

    fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        error
    }
}
