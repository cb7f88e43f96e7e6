//! A daemon with tokens, and short ways to call it.

use acpd_e2e::{Answer, Client, Daemon, Events, Http, Scratch, request};
use serde_json::Value;
use sha2::{Digest, Sha256};

pub(crate) const JSON: (&str, &str) = ("Content-Type", "application/json");

/// An entry of the configuration for a token. The token is its name and `-secret`.
pub(crate) fn entry(name: &str, keys: &str) -> String {
    let digits: String =
        Sha256::digest(format!("{name}-secret")).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("[tokens.{name}]\nhash = \"sha256:{digits}\"\n{keys}")
}

/// What a bearer sends.
pub(crate) fn bearer(name: &str) -> String {
    format!("Bearer {name}-secret")
}

/// A request under a token.
pub(crate) fn ask(daemon: &Daemon, token: &str, method: &str, path: &str) -> Answer {
    Http::on(daemon.connect()).request(method, path, &[("Authorization", &bearer(token))], "")
}

/// A request of nobody.
pub(crate) fn plain(daemon: &Daemon, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    Http::on(daemon.connect()).request(method, path, headers, "")
}

pub(crate) fn stream(daemon: &Daemon, token: &str, path: &str) -> Result<Events, Answer> {
    Http::on(daemon.connect()).events(path, &[("Authorization", &bearer(token))])
}

/// A client on a WebSocket that has said nothing yet.
pub(crate) fn silent(daemon: &Daemon, scratch: &Scratch, token: &str) -> Client {
    let mut client = daemon.over_websocket_with(scratch, "/acp", &[("Authorization", &bearer(token))]);
    client.tolerant();
    client
}

/// An initialized client on a WebSocket.
pub(crate) fn client(daemon: &Daemon, scratch: &Scratch, token: &str) -> Client {
    let mut client = silent(daemon, scratch, token);
    client.initialize();
    client
}

/// Initializes over HTTP: the answer.
pub(crate) fn initialize(daemon: &Daemon, token: &str) -> Answer {
    let body = acpd_e2e::initialize().to_string();
    Http::on(daemon.connect()).request("POST", "/acp", &[JSON, ("Authorization", &bearer(token))], &body)
}

pub(crate) fn message(id: u64, method: &str, params: &Value) -> String {
    request(id, method, params).to_string()
}
