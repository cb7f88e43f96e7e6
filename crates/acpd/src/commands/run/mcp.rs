//! MCP servers from the files that editors have: the `mcpServers` object, as ACP's list.
//!
//! Read before anything is started. Not here: whether the agent can use them, which it says itself.

use crate::exit::Failure;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The most that a file has, in bytes.
const MOST: u64 = 1 << 20;

/// A file of an editor's; what else it has is the editor's own.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Editors {
    #[serde(alias = "servers", alias = "mcp_servers")]
    mcp_servers: Map<String, Value>,
}

/// A server as editors write it.
#[derive(Deserialize)]
struct Server {
    #[serde(default, rename = "type", alias = "transport")]
    kind: Option<String>,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    disabled: bool,
}

/// Reads them all, into a list as ACP has it.
pub(super) fn read_all(files: &[PathBuf]) -> Result<Vec<Value>, Failure> {
    let (mut servers, mut names) = (Vec::new(), BTreeSet::new());
    for file in files {
        let wrong = |why: String| Failure::Usage(format!("--mcp {}: {why}", file.display()));
        for (name, server) in parse(&read(file).map_err(wrong)?).map_err(wrong)? {
            if !names.insert(name.clone()) {
                return Err(wrong(format!("there are two servers of the name {name:?}")));
            }
            servers.push(server);
        }
    }
    Ok(servers)
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let opened = File::open(file).and_then(|file| file.take(MOST + 1).read_to_end(&mut bytes));
    match opened {
        Err(error) => Err(error.to_string()),
        Ok(_) if bytes.len() as u64 > MOST => Err("it has more than 1 MiB, which is the most".to_owned()),
        Ok(_) => Ok(bytes),
    }
}

/// The servers of a file by name, without the disabled ones.
fn parse(bytes: &[u8]) -> Result<Vec<(String, Value)>, String> {
    let file: Editors = serde_json::from_slice(bytes).map_err(|error| {
        format!("{error}; a JSON object is required: {{\"mcpServers\": {{\"NAME\": {{\"command\": ..., \"args\": [...]}}}}}}")
    })?;
    let mut servers = Vec::new();
    for (name, server) in file.mcp_servers {
        let wrong = |why: &dyn std::fmt::Display| format!("mcpServers.{name}: {why}");
        let server = Server::deserialize(server).map_err(|error| wrong(&error))?;
        if server.disabled {
            continue;
        }
        let server = server.for_acp(&name).map_err(|why| wrong(&why))?;
        servers.push((name, server));
    }
    Ok(servers)
}

impl Server {
    fn for_acp(self, name: &str) -> Result<Value, &'static str> {
        match (self.kind.as_deref(), self.command, self.url) {
            (None | Some("stdio"), Some(command), None) => {
                Ok(json!({"name": name, "command": command, "args": self.args, "env": pairs(self.env)}))
            }
            // "streamable-http" is what some editors call ACP's http.
            (None | Some("http" | "streamable-http" | "streamableHttp"), None, Some(url)) => {
                Ok(json!({"type": "http", "name": name, "url": url, "headers": pairs(self.headers)}))
            }
            (Some("sse"), None, Some(url)) => {
                Ok(json!({"type": "sse", "name": name, "url": url, "headers": pairs(self.headers)}))
            }
            (None, None, None) => Err("command or url is required"),
            (None, Some(_), Some(_)) => Err("it has command and url; leave one out"),
            (Some("stdio"), ..) => Err("a server of the type stdio has a command and no url"),
            (Some("http" | "streamable-http" | "streamableHttp" | "sse"), ..) => {
                Err("a server of this type has a url and no command")
            }
            (Some(_), ..) => Err("type: one of stdio, http, sse is required"),
        }
    }
}

fn pairs(values: BTreeMap<String, String>) -> Vec<Value> {
    values.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.1: --mcp FILE, the mcpServers object that editors use
    #[test]
    fn servers_of_editors_become_those_of_acp() {
        let file = json!({"theme": "dark", "mcpServers": {
            "files": {"command": "npx", "args": ["-y", "files"], "env": {"ROOT": "/srv"}},
            "bare": {"type": "stdio", "command": "bare"},
            "web": {"url": "https://mcp.test", "headers": {"Authorization": "Bearer x"}},
            "events": {"type": "sse", "url": "https://sse.test"},
            "off": {"command": "off", "disabled": true},
        }});
        let servers: Vec<Value> =
            parse(file.to_string().as_bytes()).unwrap().into_iter().map(|(_, server)| server).collect();
        let expected = json!([
            {"name": "files", "command": "npx", "args": ["-y", "files"], "env": [{"name": "ROOT", "value": "/srv"}]},
            {"name": "bare", "command": "bare", "args": [], "env": []},
            {"type": "http", "name": "web", "url": "https://mcp.test",
             "headers": [{"name": "Authorization", "value": "Bearer x"}]},
            {"type": "sse", "name": "events", "url": "https://sse.test", "headers": []},
        ]);
        assert_eq!(Value::Array(servers), expected);
    }

    // contract 7.1: bad input names the field
    #[test]
    fn a_wrong_file_is_told_where() {
        let wrong = |file: Value| parse(file.to_string().as_bytes()).unwrap_err();
        assert!(wrong(json!([])).contains("mcpServers"));
        assert!(wrong(json!({})).contains("mcpServers"));
        let rows = [
            (json!({}), "mcpServers.x: command or url is required"),
            (json!({"command": "a", "url": "b"}), "mcpServers.x: it has command and url; leave one out"),
            (
                json!({"type": "sse", "command": "a"}),
                "mcpServers.x: a server of this type has a url and no command",
            ),
            (
                json!({"type": "carrier", "url": "a"}),
                "mcpServers.x: type: one of stdio, http, sse is required",
            ),
        ];
        for (server, why) in rows {
            assert_eq!(wrong(json!({"mcpServers": {"x": server}})), why);
        }
        assert!(
            wrong(json!({"mcpServers": {"x": {"command": "a", "args": "b"}}}))
                .starts_with("mcpServers.x: invalid type")
        );
    }
}
