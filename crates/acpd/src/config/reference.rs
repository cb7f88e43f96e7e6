//! `docs/schema/config.json` and `docs/reference/configuration.md`, made of the sections: tests only.
//!
//! Invariant: each key has a default, of the type or in words, or is required. Not here: what values look like.

use super::sections::Config;
use crate::schema_file::{compare, json_text};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use std::fmt::Write;

const TITLE: &str = "The configuration of acpd";

/// What is true of all keys.
const BEGIN: &str = "\
<!-- This page is written by `cargo xtask openapi`; its words are comments in crates/acpd/src/config. -->

# Configuration

One TOML file: the one that `--config` names, else `$ACPD_CONFIG`, else `$XDG_CONFIG_HOME/acpd/config.toml`, else
`~/.config/acpd/config.toml`. Every key is optional but those said to be required; a key that acpd does not know is an
error. `acpd config init` writes a file with every key, `acpd config show` says what is in force and why, `acpd config check`
tells every mistake. [schema/config.json](../schema/config.json) is a JSON Schema of the file, for editors.

A *duration* is a number with a unit: `250ms`, `1s`, `5m`, `2h`, `30d`. A *byte count* is a number, or a text with a unit:
`4096`, `\"64 MiB\"`; the units are KiB, MiB and GiB.

A variable `ACPD_SECTION_KEY` goes over a key of the file, and a flag over both: `ACPD_SERVER_LISTEN`,
`ACPD_TIMEOUTS_STDIN_GRACE`. An empty variable says nothing. Agents, tokens, hooks and tables in sections have none.
";

/// A schema of what may stand in the file, and of what its tables are made.
fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let mut root = Config::json_schema(&mut generator).to_value();
    let mut definitions = Value::Object(generator.take_definitions(true));
    // Their keys have theirs.
    for section in root["properties"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        section.as_object_mut().and_then(|section| section.remove("default"));
    }
    plain(&mut root);
    plain(&mut definitions);
    let about = json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "title": TITLE });
    let Value::Object(mut schema) = about else { unreachable!("it is an object") };
    schema.extend(root.as_object().cloned().unwrap_or_default());
    schema.insert("title".to_owned(), TITLE.into());
    schema.insert("$defs".to_owned(), definitions);
    schema.into()
}

/// Without what TOML does not have, and with each text in one line.
fn plain(value: &mut Value) {
    if let Value::Object(members) = value {
        members.retain(|name, value| !(name == "default" && [json!(null), json!("")].contains(value)));
        members.retain(|name, value| {
            !(name == "format" && value.as_str().is_some_and(|it| it.starts_with("uint")))
        });
        if let Some(Value::String(text)) = members.get_mut("description") {
            *text = text.replace('\n', " ");
        }
        if let Some(Value::Array(kinds)) = members.get_mut("type") {
            kinds.retain(|kind| kind != "null");
            if let [one] = kinds.as_slice() {
                members["type"] = one.clone();
            }
        }
        if let Some(Value::Array(kinds)) = members.get_mut("enum") {
            kinds.retain(|kind| !kind.is_null());
        }
        if let Some(Value::Array(mut kinds)) = members.remove("anyOf") {
            kinds.retain(|kind| *kind != json!({ "type": "null" }));
            match kinds.as_slice() {
                [Value::Object(one)] => members.extend(one.clone()),
                _ => drop(members.insert("anyOf".to_owned(), kinds.into())),
            }
        }
    }
    match value {
        Value::Object(members) => members.values_mut().for_each(plain),
        Value::Array(values) => values.iter_mut().for_each(plain),
        _ => {}
    }
}

/// The reference, of a schema.
struct Page<'a> {
    definitions: &'a Map<String, Value>,
    text: String,
}

impl<'a> Page<'a> {
    fn of(schema: &'a Value) -> String {
        let definitions = schema["$defs"].as_object().expect("there are tables");
        let mut page = Page { definitions, text: BEGIN.to_owned() };
        for (_, section) in properties(schema) {
            page.section(section);
        }
        page.text
    }

    /// What a schema refers to, or itself.
    fn resolved(&self, schema: &'a Value) -> &'a Value {
        let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
        name.map_or(schema, |name| &self.definitions[name])
    }

    fn section(&mut self, section: &'a Value) {
        let about = section["description"].as_str().expect("each section has a comment");
        let (heading, about) = about.split_once(": ").expect("each section has a heading");
        let values = [&section["additionalProperties"], &section["items"]];
        let table = self.resolved(values.into_iter().find(|it| it.is_object()).unwrap_or(section));
        let _ = write!(self.text, "\n## {heading}\n\n{}\n\n", capital(about));
        let _ = writeln!(self.text, "| key | value | default | what it is |\n|---|---|---|---|");
        for (key, value) in properties(table) {
            let is_required = table["required"].as_array().is_some_and(|keys| keys.contains(&json!(key)));
            self.key(key, value, is_required);
        }
    }

    fn key(&mut self, key: &str, value: &'a Value, is_required: bool) {
        let about = value["description"].as_str().unwrap_or_else(|| panic!("{key} has no comment"));
        // The heading of a table that a section has.
        let about = about.strip_prefix('`').and_then(|it| it.split_once("]`: ")).map_or(about, |(_, it)| it);
        let end = [" Default ", " Default: ", " Required."].into_iter().find_map(|word| about.rfind(word));
        let (about, default) = about.split_at(end.unwrap_or(about.len()));
        let default =
            default.trim_start_matches(" Default").trim_start_matches(':').trim().trim_end_matches('.');
        let default = match &value["default"] {
            _ if is_required => "required".to_owned(),
            Value::Bool(_) | Value::Number(_) => format!("`{}`", value["default"]),
            Value::String(text) if !text.is_empty() => format!("`\"{text}\"`"),
            _ if default.is_empty() => "none".to_owned(),
            _ => default.to_owned(),
        };
        let mut about = capital(about);
        for (word, meaning) in self.words(value) {
            let _ = write!(about, " `{word}`: {}.", lower(meaning));
        }
        let kind = self.kind(value);
        let _ = writeln!(self.text, "| `{key}` | {kind} | {default} | {about} |");
    }

    /// The type as a reader of TOML calls it.
    fn kind(&self, value: &'a Value) -> String {
        let value = self.resolved(value);
        if let Some(title) = value["title"].as_str() {
            return title.to_owned();
        }
        let words = self.words(value);
        if !words.is_empty() {
            let words: Vec<String> = words.iter().map(|(word, _)| format!("`\"{word}\"`")).collect();
            return words.join(", ");
        }
        match value["type"].as_str() {
            Some("array") => format!("list of {}", plural(&self.kind(&value["items"]))),
            Some("object") => format!("table of {}", plural(&self.kind(&value["additionalProperties"]))),
            Some("integer") => {
                let least = value["minimum"].as_u64().unwrap_or(0);
                value["maximum"].as_u64().filter(|most| *most < 10).map_or(
                    format!("number from {least}"),
                    |most| {
                        (least..=most).map(|number| format!("`{number}`")).collect::<Vec<_>>().join(" or ")
                    },
                )
            }
            Some(other) => other.to_owned(),
            None => panic!("{value} has no type"),
        }
    }

    /// The words that a value may be, with their meaning.
    fn words(&self, value: &'a Value) -> Vec<(&'a str, &'a str)> {
        let one_of = self.resolved(value)["oneOf"].as_array().into_iter().flatten();
        one_of.filter_map(|it| Some((it["const"].as_str()?, it["description"].as_str()?))).collect()
    }
}

fn properties(table: &Value) -> impl Iterator<Item = (&String, &Value)> {
    table["properties"].as_object().expect("a table has keys").iter()
}

fn plural(kind: &str) -> String {
    if kind.starts_with('`') {
        kind.to_owned()
    } else {
        kind.replacen(' ', "s ", usize::from(kind.contains(' '))) + if kind.contains(' ') { "" } else { "s" }
    }
}

/// As it goes on behind a word.
fn lower(text: &str) -> String {
    let mut rest = text.trim_end_matches('.').chars();
    rest.next().map(|first| first.to_lowercase().chain(rest).collect()).unwrap_or_default()
}

fn capital(text: &str) -> String {
    let mut rest = text.trim().chars();
    rest.next().map(|first| first.to_uppercase().chain(rest).collect()).unwrap_or_default()
}

/// What the schema finds wrong with a file.
fn wrong(file: &str) -> Vec<String> {
    let file: toml::Table = file.parse().expect("it is TOML");
    let file = serde_json::to_value(file).expect("it is JSON, too");
    let schema = jsonschema::validator_for(&schema()).expect("a schema");
    schema.iter_errors(&file).map(|error| error.to_string()).collect()
}

#[test]
fn the_files_are_what_the_code_says() {
    let schema = schema();
    compare("schema/config.json", &json_text(&schema));
    compare("reference/configuration.md", &Page::of(&schema));
}

// the schema takes what acpd takes, and finds what editors should mark
#[test]
fn the_schema_takes_the_whole_file_and_nothing_else() {
    let whole = include_str!("../../config.toml");
    assert_eq!(wrong(whole), Vec::<String>::new());
    let hook = "[[hooks]]\non = [\"question\"]\n";
    for right in [
        "",
        "[server]\nlisten = \"localhost:1\"",
        "[storage]\nkeep_for = \"30d\"\nkeep_bytes = \"8GiB\"",
        "[tokens.a]\nhash = \"sha256:0000000000000000000000000000000000000000000000000000000000000000\"\nexpires = \"2099-01-01\"",
        &format!("{hook}url = \"https://example.org\""),
    ] {
        assert_eq!(wrong(right), Vec::<String>::new(), "{right}");
    }
    for bad in [
        "a = 1",
        "[sever]",
        "[server]\nlisten = 2273",
        "[server]\nlisen = \"a\"",
        "[timeouts]\ncancel = \"5\"",
        "[timeouts]\ncancel = \"never\"",
        "[limits]\nsessions = 0",
        "[storage]\ndurability = \"disk\"",
        "[agents.a]",
        "[agents.a]\ncommand = \"a\"\nspare = 2",
        "[agents.\"a b\"]\ncommand = \"a\"",
        "[agents.a]\ncommand = \"a\"\nargs = \"b\"",
        "[tokens.a]\nhash = \"secret\"",
        hook,
        &format!("{hook}url = \"https://example.org\"\ncommand = [\"a\"]"),
    ] {
        assert!(!wrong(bad).is_empty(), "{bad}");
        assert!(toml::from_str::<Config>(bad).is_err(), "acpd takes it: {bad}");
    }
}
