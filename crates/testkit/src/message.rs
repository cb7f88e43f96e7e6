//! One line that a client got, as it came and as JSON; and requests as JSON.

use serde_json::{Value, json};

/// A message from acpd or an agent.
#[derive(Clone, Debug)]
pub struct Message {
    /// The line without its newline, byte for byte.
    pub raw: String,
    /// The same as a value.
    pub json: Value,
}

impl Message {
    /// Reads a line.
    ///
    /// # Errors
    /// The line, when it is not one JSON object in UTF-8.
    pub fn read(line: Vec<u8>) -> Result<Self, String> {
        let raw = String::from_utf8(line).map_err(|error| format!("not UTF-8: {error}"))?;
        match serde_json::from_str(&raw) {
            Ok(json @ Value::Object(_)) => Ok(Self { raw, json }),
            _ => Err(raw),
        }
    }

    /// The method of a request or notification.
    pub fn method(&self) -> Option<&str> {
        self.json["method"].as_str()
    }

    /// It answers a request.
    pub fn is_answer(&self) -> bool {
        self.json.get("method").is_none()
    }

    /// The kind of a `session/update`.
    pub fn update_kind(&self) -> Option<&str> {
        self.json["params"]["update"]["sessionUpdate"].as_str()
    }

    /// The text of an `agent_message_chunk`.
    pub fn text(&self) -> Option<&str> {
        let update = &self.json["params"]["update"];
        (update["sessionUpdate"] == "agent_message_chunk").then(|| update["content"]["text"].as_str())?
    }

    /// The session that it belongs to.
    pub fn session(&self) -> Option<&str> {
        let params = &self.json["params"];
        params["sessionId"].as_str().or_else(|| params["session_id"].as_str())
    }
}

/// A request, for a test that writes its messages itself.
pub fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// `initialize` of a client that can do nothing in particular. Its id is 1.
pub fn initialize() -> Value {
    request(1, "initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}}))
}
