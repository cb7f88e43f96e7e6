//! The ways to log in that an agent offers, read from the `authMethods` of its answer to `initialize`.
//!
//! Pure. Nothing of an agent is shown but through [`line`]; what is run is what the agent says.

use crate::clean::line;
use crate::view::logins;
use acpd_catalog::Known;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::PathBuf;

/// A way to log in.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Way {
    /// The agent's id of it.
    pub(super) id: String,
    /// It in a line, for people.
    pub(super) words: String,
    pub(super) how: How,
}

/// Who does what.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum How {
    /// The agent does it when it is asked to.
    Agent,
    /// A program does it on a terminal.
    Terminal(Command),
    /// Variables are to be set.
    Variables(Vec<Variable>),
}

/// A program on a terminal.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Command {
    pub(super) program: String,
    pub(super) args: Vec<String>,
    /// On top of the agent's environment.
    pub(super) env: Vec<(String, String)>,
}

impl Command {
    /// As it would be typed.
    pub(super) fn shown(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.args);
        line(&words.map(|word| crate::commands::shown(word)).collect::<Vec<_>>().join(" "), 300)
    }
}

/// A variable that is a part of a login.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Variable {
    pub(super) name: String,
    /// What it is for, if the agent says that.
    pub(super) label: Option<String>,
    pub(super) optional: bool,
}

/// The ways that an agent names, which is run by `own`; without any, the command of its makers, if `find` gives its program.
pub(super) fn ways(
    methods: &Value,
    own: &Command,
    known: Option<&Known>,
    find: impl Fn(&str) -> Option<PathBuf>,
) -> Vec<Way> {
    let methods = methods.as_array().into_iter().flatten();
    let ways: Vec<Way> = methods.filter_map(|method| way(method, own)).collect();
    if !ways.is_empty() {
        return ways;
    }
    known.and_then(|known| of_makers(known, find)).into_iter().collect()
}

fn way(method: &Value, own: &Command) -> Option<Way> {
    let id = method["id"].as_str().filter(|id| !id.is_empty())?.to_owned();
    let words = logins(&Value::Array(vec![method.clone()])).pop()?;
    Some(Way { id, words, how: how(method, own) })
}

fn how(method: &Value, own: &Command) -> How {
    let told = &method["_meta"]["terminal-auth"];
    if let Some(program) = told["command"].as_str() {
        let command =
            Command { program: program.to_owned(), args: texts(&told["args"]), env: pairs(&told["env"]) };
        return How::Terminal(command);
    }
    let meta = &method["_meta"];
    match method["type"].as_str().or(meta["type"].as_str()) {
        // Behind its own arguments (ACP), but in the place of those where it says it beside the protocol.
        Some("terminal") if method["type"].is_string() => {
            let args = own.args.iter().cloned().chain(texts(&method["args"])).collect();
            How::Terminal(Command { args, env: pairs(&method["env"]), ..own.clone() })
        }
        Some("terminal") => {
            How::Terminal(Command { args: texts(&meta["args"]), env: pairs(&meta["env"]), ..own.clone() })
        }
        Some("env_var") => How::Variables(variables(&method["vars"])),
        _ => How::Agent,
    }
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|text| Some(text.as_str()?.to_owned())).collect()
}

/// Variables, as an object or as a list of names and values.
fn pairs(env: &Value) -> Vec<(String, String)> {
    let of_object = env.as_object().into_iter().flatten();
    let of_object = of_object.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    let of_list = env.as_array().into_iter().flatten();
    let of_list =
        of_list.filter_map(|one| Some((one["name"].as_str()?.to_owned(), one["value"].as_str()?.to_owned())));
    of_object.chain(of_list).filter(|(name, _)| is_variable(name)).collect()
}

fn variables(vars: &Value) -> Vec<Variable> {
    let vars = vars.as_array().into_iter().flatten();
    let variable = |var: &Value| {
        let name = var.as_str().or(var["name"].as_str()).filter(|name| is_variable(name))?.to_owned();
        let label = var["label"].as_str().map(|label| line(label, 100)).filter(|label| !label.is_empty());
        Some(Variable { name, label, optional: var["optional"] == true })
    };
    vars.filter_map(variable).collect()
}

/// A name that can be set, and shown as it is.
fn is_variable(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty()
        && name.len() <= 100
        && name.chars().all(plain)
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// What its makers say logs it in.
fn of_makers(known: &Known, find: impl Fn(&str) -> Option<PathBuf>) -> Option<Way> {
    let (program, args) = known.login.command.split_first()?;
    let file = find(program)?;
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    let command = Command { program: file.to_str()?.to_owned(), args, env: Vec::new() };
    let words = format!("{}: `{}`", known.title, known.login.command.join(" "));
    Some(Way { id: "command".to_owned(), words, how: How::Terminal(command) })
}

/// Which of the ways is meant.
#[derive(Debug, PartialEq)]
pub(super) enum Meant<'a> {
    One(&'a Way),
    /// A person has to say it.
    OneOf(&'a [Way]),
    None,
}

/// The way that `said` names, or the only one.
pub(super) fn meant<'a>(ways: &'a [Way], said: Option<&OsStr>) -> Meant<'a> {
    let found = match (said, ways) {
        (Some(said), _) => ways.iter().find(|way| OsStr::new(&way.id) == said),
        (None, [only]) => Some(only),
        (None, []) => None,
        (None, _) => return Meant::OneOf(ways),
    };
    found.map_or(Meant::None, Meant::One)
}

/// A line for each, with its id.
pub(super) fn lines(ways: &[Way]) -> Vec<String> {
    ways.iter()
        .map(|way| format!("  --method {}  {}", crate::commands::shown(&line(&way.id, 60)), way.words))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpd_catalog::known;
    use serde_json::json;

    fn own() -> Command {
        Command { program: "agent".to_owned(), args: vec!["acp".to_owned()], env: Vec::new() }
    }

    fn words(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn terminal(program: &str, args: &[&str], env: &[(&str, &str)]) -> How {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        How::Terminal(Command { program: program.to_owned(), args: words(args), env })
    }

    // issue 14: the kinds of ACP, and the one that agents had before it, as real agents tell them
    #[test]
    fn each_kind_of_method_is_understood() {
        let variables = vec![
            Variable { name: "A_KEY".to_owned(), label: Some("the key".to_owned()), optional: false },
            Variable { name: "A_URL".to_owned(), label: None, optional: true },
        ];
        for (method, expected) in [
            (json!({"id": "x", "name": "X"}), How::Agent),
            (json!({"id": "x", "name": "X", "type": "agent"}), How::Agent),
            (json!({"id": "x", "name": "X", "type": "later"}), How::Agent),
            // Behind the arguments of the agent (ACP).
            (
                json!({"id": "x", "name": "X", "type": "terminal", "args": ["--setup"], "env": {"A": "1"}}),
                terminal("agent", &["acp", "--setup"], &[("A", "1")]),
            ),
            // A whole command: opencode, claude, pi, vibe.
            (
                json!({"id": "x", "name": "X", "type": "terminal", "args": ["--cli"], "_meta": {"terminal-auth":
                    {"command": "/bin/node", "args": ["cli.js", "login"], "env": {"B": "2"}, "label": "L"}}}),
                terminal("/bin/node", &["cli.js", "login"], &[("B", "2")]),
            ),
            // Beside the protocol, in the place of the arguments: qwen.
            (
                json!({"id": "x", "name": "X", "_meta": {"type": "terminal", "args": ["--auth-type=openai"]}}),
                terminal("agent", &["--auth-type=openai"], &[]),
            ),
            (
                json!({"id": "x", "name": "X", "type": "env_var", "vars":
                    [{"name": "A_KEY", "label": "the key", "secret": true}, {"name": "A_URL", "optional": true},
                     {"name": "a b"}]}),
                How::Variables(variables.clone()),
            ),
        ] {
            let found = ways(&json!([method]), &own(), None, |_| None);
            assert_eq!(found.iter().map(|way| &way.how).collect::<Vec<_>>(), [&expected], "{method}");
        }
        assert!(ways(&json!([{"name": "no id"}, 7]), &own(), None, |_| None).is_empty());
        assert!(ways(&json!(null), &own(), None, |_| None).is_empty());
    }

    // issue 14: of several ways a person says which; the id alone names one
    #[test]
    fn a_way_is_named_by_its_id() {
        let both = ways(&json!([{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]), &own(), None, |_| None);
        assert_eq!(meant(&both, None), Meant::OneOf(&both));
        assert_eq!(meant(&both, Some(OsStr::new("b"))), Meant::One(&both[1]));
        assert_eq!(meant(&both, Some(OsStr::new("c"))), Meant::None);
        assert_eq!(meant(&both[..1], None), Meant::One(&both[0]));
        assert_eq!(meant(&[], None), Meant::None);
        assert_eq!(lines(&both), ["  --method a  A", "  --method b  B"]);
    }

    // issue 14: an agent that names no way is logged in by the command of its makers, where that is installed
    #[test]
    fn the_command_of_its_makers_is_the_last_way() {
        let cline = known("cline");
        let found = ways(&json!([]), &own(), cline, |program| Some(PathBuf::from(format!("/bin/{program}"))));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].how, terminal("/bin/cline", &["auth"], &[]));
        assert!(ways(&json!([]), &own(), cline, |_| None).is_empty());
        let named = ways(&json!([{"id": "a", "name": "A"}]), &own(), cline, |_| None);
        assert_eq!(named[0].how, How::Agent);
    }

    // contract 6: nothing of an agent reaches the terminal unfiltered
    #[test]
    fn hostile_ways_are_harmless() {
        let hostile = "x\u{1b}[2J\n";
        let method =
            json!({"id": hostile, "name": hostile, "_meta": {"terminal-auth": {"command": hostile}}});
        let found = ways(&json!([method]), &own(), None, |_| None);
        let How::Terminal(command) = &found[0].how else { panic!("{found:?}") };
        for text in lines(&found).iter().chain([&command.shown()]) {
            assert!(!text.contains(char::is_control), "{text:?}");
        }
    }
}
