//! MCP servers from the files that editors have: the `mcpServers` object, as ACP's list.
//!
//! Read before anything is started. Variables in it are those of this command's environment, as editors have it; what ACP
//! has no place for is left out, and said. Not here: whether the agent can use them, which it says itself.

use super::jsonc::plain_json;
use crate::clean::line;
use crate::exit::Failure;
use crate::streams::remark;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The most that a file has, in bytes.
const MOST: u64 = 1 << 20;

/// The names that files have for the object of servers.
const OBJECTS: [&str; 3] = ["mcpServers", "servers", "mcp_servers"];

/// The members of a server that mean something here; `transport` is another name of `type`.
const MEMBERS: [&str; 8] = ["type", "transport", "command", "args", "env", "url", "headers", "disabled"];

/// A variable of the environment, by its name.
type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The servers of a file.
#[derive(Debug, Default)]
struct Parsed {
    /// By name, without the disabled ones.
    servers: Vec<(String, Value)>,
    /// Members that ACP has no place for, as `NAME.MEMBER`.
    left_out: Vec<String>,
}

/// Reads them all, into a list as ACP has it. Says on stderr what is left out.
pub(super) fn read_all(files: &[PathBuf]) -> Result<Vec<Value>, Failure> {
    let (mut servers, mut names) = (Vec::new(), BTreeSet::new());
    for file in files {
        let wrong = |why: String| Failure::Usage(format!("--mcp {}: {why}", file.display()));
        let parsed = parse(&read(file).map_err(wrong)?, &|name| std::env::var(name).ok()).map_err(wrong)?;
        if !parsed.left_out.is_empty() {
            let left_out = line(&parsed.left_out.join(", "), 500);
            remark(&format!("--mcp {}: left out, as ACP has no place for it: {left_out}", file.display()));
        }
        for (name, server) in parsed.servers {
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

fn parse(bytes: &[u8], variables: Variables<'_>) -> Result<Parsed, String> {
    let form = |why: &dyn Display| {
        format!(
            "{why}; a JSON object is required: {{\"mcpServers\": {{\"NAME\": {{\"command\": ..., \"args\": [...]}}}}}}"
        )
    };
    let text = std::str::from_utf8(bytes).map_err(|error| form(&error))?;
    let mut file: Map<String, Value> =
        serde_json::from_str(&plain_json(text)).map_err(|error| form(&error))?;
    let servers = OBJECTS.into_iter().find_map(|name| file.remove(name));
    let Some(Value::Object(servers)) = servers else {
        return Err(form(&"it has no object mcpServers"));
    };
    let mut parsed = Parsed::default();
    for (name, server) in servers {
        let path = format!("mcpServers.{name}");
        let Value::Object(members) = server else { return Err(format!("{path}: an object is required")) };
        let server = Server { path, members, variables };
        if !server.flag("disabled")? {
            let unknown = server.members.keys().filter(|member| !MEMBERS.contains(&member.as_str()));
            parsed.left_out.extend(unknown.map(|member| format!("{name}.{member}")));
            let server = server.for_acp(&name)?;
            parsed.servers.push((name, server));
        }
    }
    Ok(parsed)
}

/// A server as editors write it.
struct Server<'a> {
    /// The place of the server in the file, for errors.
    path: String,
    members: Map<String, Value>,
    variables: Variables<'a>,
}

impl Server<'_> {
    fn for_acp(&self, name: &str) -> Result<Value, String> {
        let wrong = |why: &str| Err(format!("{}: {why}", self.path));
        let kind = self.text("type")?.map_or_else(|| self.text("transport"), |kind| Ok(Some(kind)))?;
        match (kind.as_deref(), self.text("command")?, self.text("url")?) {
            (None | Some("stdio"), Some(command), None) => Ok(
                json!({"name": name, "command": command, "args": self.list("args")?, "env": self.pairs("env")?}),
            ),
            // "streamable-http" is what some editors call ACP's http.
            (None | Some("http" | "streamable-http" | "streamableHttp"), None, Some(url)) => {
                Ok(json!({"type": "http", "name": name, "url": url, "headers": self.pairs("headers")?}))
            }
            (Some("sse"), None, Some(url)) => {
                Ok(json!({"type": "sse", "name": name, "url": url, "headers": self.pairs("headers")?}))
            }
            (None, None, None) => wrong("command or url is required"),
            (None, Some(_), Some(_)) => wrong("it has command and url; leave one out"),
            (Some("stdio"), ..) => wrong("a server of the type stdio has a command and no url"),
            (Some("http" | "streamable-http" | "streamableHttp" | "sse"), ..) => {
                wrong("a server of this type has a url and no command")
            }
            (Some(_), ..) => wrong("type: one of stdio, http, sse is required"),
        }
    }

    fn flag(&self, member: &str) -> Result<bool, String> {
        match self.members.get(member) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(format!("{}.{member}: true or false is required", self.path)),
        }
    }

    fn text(&self, member: &str) -> Result<Option<String>, String> {
        match self.members.get(member) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => self.expanded(text, &format!("{}.{member}", self.path)).map(Some),
            Some(_) => Err(format!("{}.{member}: a text is required", self.path)),
        }
    }

    fn list(&self, member: &str) -> Result<Vec<String>, String> {
        let path = format!("{}.{member}", self.path);
        match self.members.get(member) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(list)) => list
                .iter()
                .enumerate()
                .map(|(at, value)| self.plain(value, &format!("{path}[{at}]")))
                .collect(),
            Some(_) => Err(format!("{path}: a list of texts is required")),
        }
    }

    fn pairs(&self, member: &str) -> Result<Vec<Value>, String> {
        let path = format!("{}.{member}", self.path);
        match self.members.get(member) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Object(pairs)) => {
                let mut pairs: Vec<_> = pairs.iter().collect();
                pairs.sort_unstable_by_key(|(name, _)| name.as_str());
                let pair = |(name, value): (&String, &Value)| {
                    let value = self.plain(value, &format!("{path}.{name}"))?;
                    Ok(json!({"name": name, "value": value}))
                };
                pairs.into_iter().map(pair).collect()
            }
            Some(_) => Err(format!("{path}: an object of texts is required")),
        }
    }

    /// A text, or the text of a number or of a boolean: a variable has no other values.
    fn plain(&self, value: &Value, path: &str) -> Result<String, String> {
        match value {
            Value::String(text) => self.expanded(text, path),
            Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
            _ => Err(format!("{path}: a text is required")),
        }
    }

    /// A text with the values of its variables: `${NAME}`, `${NAME:-DEFAULT}`, and `${env:NAME}` as some editors have it.
    fn expanded(&self, text: &str, path: &str) -> Result<String, String> {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((inside, behind)) = after.split_once('}') else { break };
            expanded.push_str(before);
            let (name, default) = match inside.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (inside, None),
            };
            let name = name.strip_prefix("env:").unwrap_or(name);
            if !is_name(name) {
                return Err(format!(
                    "{path}: ${{{inside}}} is no variable of the environment; write the value"
                ));
            }
            let value = (self.variables)(name).filter(|value| default.is_none() || !value.is_empty());
            let value = value.or_else(|| default.map(str::to_owned)).ok_or_else(|| {
                format!("{path}: the variable {name} is not set; set it, or write ${{{name}:-DEFAULT}}")
            })?;
            expanded.push_str(&value);
            rest = behind;
        }
        expanded.push_str(rest);
        Ok(expanded)
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_with(text: &str, variables: &[(&str, &str)]) -> Result<Parsed, String> {
        let of =
            |name: &str| variables.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
        parse(text.as_bytes(), &of)
    }

    // contract 7.1: --mcp FILE, the mcpServers object that editors use
    #[test]
    fn servers_of_editors_become_those_of_acp() {
        let file = json!({"theme": "dark", "mcpServers": {
            "files": {"command": "npx", "args": ["-y", "files"], "env": {"ROOT": "/srv"}},
            "bare": {"type": "stdio", "command": "bare"},
            "web": {"url": "https://mcp.test", "headers": {"Authorization": "Bearer x"}},
            "events": {"type": "sse", "url": "https://sse.test"},
            "off": {"command": "${OFF}", "disabled": true},
        }});
        let parsed = parse_with(&file.to_string(), &[]).expect("it is read");
        let servers: Vec<Value> = parsed.servers.into_iter().map(|(_, server)| server).collect();
        let expected = json!([
            {"name": "files", "command": "npx", "args": ["-y", "files"], "env": [{"name": "ROOT", "value": "/srv"}]},
            {"name": "bare", "command": "bare", "args": [], "env": []},
            {"type": "http", "name": "web", "url": "https://mcp.test",
             "headers": [{"name": "Authorization", "value": "Bearer x"}]},
            {"type": "sse", "name": "events", "url": "https://sse.test", "headers": []},
        ]);
        assert_eq!(Value::Array(servers), expected);
        assert_eq!(parsed.left_out, Vec::<String>::new());
    }

    // quirk mcp-json-variables (editors): variables of the environment are put in, numbers and booleans are their text,
    // comments are skipped, and members without a place in ACP are left out and named
    #[test]
    fn a_file_of_an_editor_is_read_as_the_editor_does() {
        let file = r#"{
            // whose servers these are
            "mcpServers": {"tracker": {"command": "${RUNNER:-npx}", "args": ["tracker", "$TEAM", "${TEAM}", 7],
                "env": {"KEY": "${TRACKER_KEY}", "PORT": 8080, "ON": true, "URL": "//x", "E": "${EMPTY:-x}"},
                "cwd": "/x", "envFile": ".env"}, /* and */
              "wiki": {"type": "http", "url": "https://${env:WIKI}/mcp",
                "headers": {"Authorization": "Bearer ${WIKI_KEY}", "X": "a${b"}},
        }}"#;
        let set =
            [("TRACKER_KEY", "k"), ("TEAM", "a b"), ("WIKI", "wiki.test"), ("WIKI_KEY", ""), ("EMPTY", "")];
        let parsed = parse_with(file, &set).expect("it is read");
        let servers: Vec<Value> = parsed.servers.into_iter().map(|(_, server)| server).collect();
        let pair = |name: &str, value: &str| json!({"name": name, "value": value});
        assert_eq!(
            Value::Array(servers),
            json!([
                {"name": "tracker", "command": "npx", "args": ["tracker", "$TEAM", "a b", "7"], "env":
                    [pair("E", "x"), pair("KEY", "k"), pair("ON", "true"), pair("PORT", "8080"), pair("URL", "//x")]},
                {"type": "http", "name": "wiki", "url": "https://wiki.test/mcp",
                 "headers": [pair("Authorization", "Bearer "), pair("X", "a${b")]},
            ])
        );
        assert_eq!(parsed.left_out, ["tracker.cwd", "tracker.envFile"]);
        for (value, why) in [
            (
                "${NONE}",
                "mcpServers.x.env.A: the variable NONE is not set; set it, or write ${NONE:-DEFAULT}",
            ),
            (
                "${input:key}",
                "mcpServers.x.env.A: ${input:key} is no variable of the environment; write the value",
            ),
        ] {
            let file = json!({"mcpServers": {"x": {"command": "a", "env": {"A": value}}}});
            assert_eq!(parse_with(&file.to_string(), &set).unwrap_err(), why);
        }
    }

    // contract 7.1: bad input names the field
    #[test]
    fn a_wrong_file_is_told_where() {
        let wrong = |file: Value| parse_with(&file.to_string(), &[]).unwrap_err();
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
            (json!({"command": "a", "args": "b"}), "mcpServers.x.args: a list of texts is required"),
            (json!({"command": "a", "args": [[]]}), "mcpServers.x.args[0]: a text is required"),
            (json!({"command": "a", "env": {"A": null}}), "mcpServers.x.env.A: a text is required"),
            (json!({"command": "a", "disabled": 1}), "mcpServers.x.disabled: true or false is required"),
            (json!("a"), "mcpServers.x: an object is required"),
        ];
        for (server, why) in rows {
            assert_eq!(wrong(json!({"mcpServers": {"x": server}})), why);
        }
    }
}
