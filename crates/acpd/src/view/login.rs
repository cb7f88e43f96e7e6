//! What an agent says of how to log in to it: the `authMethods` of its answer to `initialize`, and the data of an
//! error.
//!
//! Pure. Nothing of an agent gets past [`line`].

use serde_json::Value;

use crate::clean::line;

const WIDTH: usize = 300;
/// Ways that are told.
const TOLD: usize = 8;
/// Where agents put the words that say more than the message.
const WORDS: [&str; 5] = ["details", "detail", "message", "description", "reason"];

/// The ways to log in, each in one line.
pub(crate) fn logins(methods: &Value) -> Vec<String> {
    let methods = methods.as_array().into_iter().flatten();
    methods.filter_map(way).take(TOLD).collect()
}

/// `NAME: DESCRIPTION (COMMAND)`, as far as the agent says each.
fn way(method: &Value) -> Option<String> {
    let text = |key: &str| Some(line(method[key].as_str()?, WIDTH)).filter(|text| !text.is_empty());
    let mut way = text("name").or_else(|| text("id"))?;
    if let Some(description) = text("description").filter(|description| *description != way) {
        way.push_str(": ");
        way.push_str(&description);
    }
    if let Some(how) = how(method).filter(|how| !way.contains(how.trim_matches('`'))) {
        way.push_str(&format!(" ({how})"));
    }
    Some(way)
}

/// What to type or to set, if the agent says that.
fn how(method: &Value) -> Option<String> {
    let names = |list: &Value| -> Vec<String> {
        let list = list.as_array().into_iter().flatten();
        list.filter_map(|one| Some(line(one.as_str().or(one["name"].as_str())?, WIDTH))).collect()
    };
    let told = &method["_meta"]["terminal-auth"];
    if let Some(command) = told["command"].as_str() {
        let words = std::iter::once(line(command, WIDTH)).chain(names(&told["args"]));
        return Some(format!("`{}`", words.collect::<Vec<_>>().join(" ")));
    }
    match method["type"].as_str() {
        Some("env_var") => {
            let variables = names(&method["vars"]);
            (!variables.is_empty()).then(|| format!("`env: {}`", variables.join(", ")))
        }
        Some("terminal") => {
            let args = names(&method["args"]);
            (!args.is_empty()).then(|| format!("the agent's command with `{}`", args.join(" ")))
        }
        _ => None,
    }
}

/// What the data of an agent's error says in words, if it says any that its message does not.
pub(crate) fn said(data: &Value, message: &str) -> Option<String> {
    let words = data.as_str().or_else(|| WORDS.iter().find_map(|key| data[*key].as_str()))?;
    let words = line(words, WIDTH);
    (!words.is_empty() && !message.contains(&words)).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // contract 6, AU-1: what an agent says of how to log in to it: name, description, command
    #[test]
    fn ways_to_log_in_are_told() {
        let methods = json!([
            {"id": "a", "name": "Log in with A", "description": "Run `a login` in the terminal"},
            {"id": "b", "name": "B", "_meta": {"terminal-auth": {"command": "/bin/b", "args": ["auth", "login"]}}},
            {"id": "c", "name": "Key", "type": "env_var", "vars": [{"name": "C_KEY"}, {"name": "C_URL"}]},
            {"id": "d", "name": "D", "type": "terminal", "args": ["--login"]},
            {"id": "e", "description": "e"},
            {"name": 7},
        ]);
        assert_eq!(
            logins(&methods),
            [
                "Log in with A: Run `a login` in the terminal",
                "B (`/bin/b auth login`)",
                "Key (`env: C_KEY, C_URL`)",
                "D (the agent's command with `--login`)",
                "e",
            ]
        );
        assert!(logins(&json!(null)).is_empty());
    }

    // contract 6: the data of an error is told where its message says less
    #[test]
    fn the_data_of_an_error_is_told() {
        for (data, words) in [
            (json!("no key"), Some("no key")),
            (json!({"details": "no\nkey"}), Some("no key")),
            (json!({"message": "Internal error"}), None),
            (json!({"other": "x"}), None),
            (json!(null), None),
        ] {
            assert_eq!(said(&data, "Internal error").as_deref(), words, "{data}");
        }
    }

    // contract 6: nothing of an agent reaches the terminal unfiltered
    #[test]
    fn hostile_ways_are_harmless() {
        let hostile = "x\u{1b}[2J\n\u{7}";
        let method =
            json!({"name": hostile, "description": hostile, "type": "env_var", "vars": [{"name": hostile}]});
        for text in logins(&json!([method])).iter().chain(&said(&json!({"details": hostile}), "")) {
            assert!(!text.contains(char::is_control), "{text:?}");
        }
    }
}
