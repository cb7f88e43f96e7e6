//! `acpd config`: a file to begin with, what is in force, and every mistake.

use crate::cli::ConfigCommand;
use crate::commands::serve::check_exposure;
use crate::commands::shown as shown_text;
use crate::config::{Client, Config, Origins, Sources};
use crate::config_file::ConfigFile;
use crate::exit::{Code, Failure};
use crate::streams::{print, print_json};
use acpd_gateway::tls_config;
use acpd_host::chain;
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;

/// Every key, as operators read it.
const SAMPLE: &str = include_str!("../../config.toml");
/// In the place of a secret.
const HIDDEN: &str = "(hidden)";

pub(crate) fn config(args: ConfigCommand) -> Result<(), Failure> {
    match args {
        ConfigCommand::Init { config } => init(config),
        ConfigCommand::Show { json, config, state_dir } => {
            show(&Sources::of_process(config, state_dir), json)
        }
        ConfigCommand::Check { file, config, json } => {
            check(&Sources::of_process(file.or(config), None), json)
        }
    }
}

fn init(file: Option<PathBuf>) -> Result<(), Failure> {
    let path = Sources::of_process(file, None).config_file().ok_or_else(|| {
        Failure::Usage(
            "there is no place for the configuration: set $HOME or name one with --config".to_owned(),
        )
    })?;
    let cannot = |error| Failure::Failed(format!("cannot write {}: {error}", path.display()));
    let file = ConfigFile::lock(&path).map_err(cannot)?;
    if path.exists() {
        return Err(Failure::Usage(format!(
            "{} is there already and stays as it is; `acpd config show` shows what is in force",
            path.display()
        )));
    }
    file.replace(&commented_out(SAMPLE)).map_err(cannot)?;
    print(&format!(
        "{} has every key, commented out; `acpd config check` checks it after a change",
        path.display()
    ))
    .map(drop)
}

/// A text of which nothing is in force: only the headers of sections that are always there stand, so that a key counts
/// without its `#`.
fn commented_out(sample: &str) -> String {
    let is_plain = |line: &str| {
        let name = line.strip_prefix('[').and_then(|line| line.split_once(']')).map(|(name, _)| name);
        name.is_some_and(|name| name.chars().all(|c| c.is_ascii_lowercase()))
    };
    let line = |line: &str| match line {
        "" => "\n".to_owned(),
        line if line.starts_with('#') || is_plain(line) => format!("{line}\n"),
        line => format!("# {line}\n"),
    };
    sample.lines().map(line).collect()
}

/// A value in force.
#[derive(Debug, Serialize, PartialEq)]
struct InForce {
    key: String,
    value: Value,
    source: String,
    #[serde(skip)]
    path: Vec<String>,
}

#[derive(Serialize)]
struct Shown {
    file: Option<String>,
    values: Vec<InForce>,
}

fn show(sources: &Sources, json: bool) -> Result<(), Failure> {
    let mut config = Config::load(sources).map_err(|error| Failure::Usage(chain(&error)))?;
    if let Some(connect) = sources.connect() {
        // What the file has beside its own is for that one alone.
        config.client = Client { connect: Some(connect), ..Client::default() };
    }
    let origins = Origins::of(sources).map_err(|error| Failure::Usage(chain(&error)))?;
    let mut values = Vec::new();
    collect(&serde_json::to_value(&config)?, &mut Vec::new(), &mut |path, value| {
        let keys: Vec<&str> = path.iter().map(String::as_str).collect();
        let value = if Config::hides(path) { Value::from(HIDDEN) } else { value.clone() };
        values.push(InForce { key: keys.join("."), value, source: origins.name(&keys), path: path.to_vec() });
    });
    let shown = Shown { file: text(config.file), values };
    match json {
        true => print_json(&serde_json::to_string(&shown)?).map(drop),
        false => print(&lines(&shown).join("\n")).map(drop),
    }
}

fn text(file: Option<PathBuf>) -> Option<String> {
    file.map(|file| file.to_string_lossy().into_owned())
}

/// Each value with its path of keys; those of a table before the tables below it.
fn collect(value: &Value, path: &mut Vec<String>, found: &mut impl FnMut(&[String], &Value)) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let (tables, values): (Vec<_>, Vec<_>) = members.iter().partition(|(_, member)| is_table(member));
            for (name, member) in values.into_iter().chain(tables) {
                path.push(name.clone());
                collect(member, path, found);
                path.pop();
            }
        }
        Value::Array(entries) if entries.first().is_some_and(Value::is_object) => {
            for (place, entry) in entries.iter().enumerate() {
                path.push(place.to_string());
                collect(entry, path, found);
                path.pop();
            }
        }
        // A table without entries, or a list of tables.
        Value::Object(_) => {}
        Value::Array(entries) if entries.is_empty() && path.len() == 1 => {}
        value => found(path, value),
    }
}

/// Whether it is a table, or a list of some.
fn is_table(value: &Value) -> bool {
    value.is_object() || value.as_array().and_then(|entries| entries.first()).is_some_and(Value::is_object)
}

/// As TOML, with what each value comes from behind it.
fn lines(shown: &Shown) -> Vec<String> {
    let mut lines = vec![match &shown.file {
        Some(file) => format!("# {}", shown_text(file)),
        None => "# no file: these are the defaults, and variables over them".to_owned(),
    }];
    let mut section: &[String] = &[];
    for InForce { value, source, path, .. } in &shown.values {
        let Some((key, above)) = path.split_last() else { continue };
        if section != above {
            section = above;
            lines.push(String::new());
            lines.push(match above {
                [list, place] if place.parse::<usize>().is_ok() && list == "hooks" => format!("[[{list}]]"),
                above => format!("[{}]", above.iter().map(|name| bare(name)).collect::<Vec<_>>().join(".")),
            });
        }
        lines.push(match value {
            Value::Null => format!("# {} is not set", bare(key)),
            value => format!("{} = {value}  # {}", bare(key), shown_text(source)),
        });
    }
    lines
}

/// A key as TOML has it.
fn bare(key: &str) -> String {
    let is_plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    if is_plain { key.to_owned() } else { Value::from(key).to_string() }
}

/// A mistake, for programs.
#[derive(Serialize)]
struct Checked {
    file: Option<String>,
    mistakes: Vec<String>,
}

fn check(sources: &Sources, json: bool) -> Result<(), Failure> {
    let (file, mistakes) = match Config::check(sources) {
        Ok(config) => {
            let server = &config.server;
            let exposed = check_exposure(&config, server.listen).err();
            let tls = server.tls_cert.as_ref().zip(server.tls_key.as_ref());
            let tls = tls.and_then(|(cert, key)| tls_config(cert, key).err()).map(|error| chain(&error));
            let missing = unreadable(&config.client);
            (config.file, exposed.into_iter().chain(tls).chain(missing).collect())
        }
        Err(errors) => (sources.config_file(), errors.iter().map(|error| chain(error)).collect::<Vec<_>>()),
    };
    let checked = Checked { file: text(file), mistakes };
    let is_fine = checked.mistakes.is_empty();
    match json {
        true => print_json(&serde_json::to_string(&checked)?)?,
        false => print(&told(&checked))?,
    };
    if is_fine { Ok(()) } else { Err(Failure::Told(Code::Usage)) }
}

/// The files of `[client]` that a command could not read.
fn unreadable(client: &Client) -> Vec<String> {
    let files = [("token_file", &client.token_file), ("ca", &client.ca)];
    let files = files.into_iter().filter_map(|(key, file)| Some((key, file.as_ref()?)));
    let wrong = files.filter_map(|(key, file)| Some((key, file, std::fs::File::open(file).err()?)));
    wrong.map(|(key, file, error)| format!("{key} in [client]: {}: {error}", file.display())).collect()
}

fn told(checked: &Checked) -> String {
    match (checked.mistakes.len(), &checked.file) {
        (0, Some(file)) => format!("{} is fine", shown_text(file)),
        (0, None) => "there is no configuration, and the defaults are fine".to_owned(),
        (1, _) => format!("{}\n1 mistake", checked.mistakes.join("\n")),
        (count, _) => format!("{}\n{count} mistakes", checked.mistakes.join("\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.1: a first file has every key and changes nothing; a secret is not shown, and each value has its source
    #[test]
    fn what_is_in_force_is_shown() {
        let table: toml::Table = commented_out(SAMPLE).parse().expect("it is TOML");
        assert!(
            table.values().all(|section| section.as_table().is_some_and(toml::Table::is_empty)),
            "{table}"
        );
        assert!(commented_out(SAMPLE).contains("\n[server]\n# listen = ") && !table.contains_key("agents"));
        let shown = Shown {
            file: Some("/c.toml".into()),
            values: [
                ("server.listen", Value::from("x")),
                ("server.tls_key", Value::Null),
                ("tokens.a.b.scope", Value::from(1)),
            ]
            .map(|(key, value)| InForce {
                key: key.to_owned(),
                value,
                source: "default".to_owned(),
                path: match key {
                    "tokens.a.b.scope" => ["tokens", "a.b", "scope"].map(str::to_owned).into(),
                    key => key.split('.').map(str::to_owned).collect(),
                },
            })
            .into(),
        };
        assert_eq!(
            lines(&shown),
            [
                "# /c.toml",
                "",
                "[server]",
                "listen = \"x\"  # default",
                "# tls_key is not set",
                "",
                "[tokens.\"a.b\"]",
                "scope = 1  # default"
            ]
        );
        for (mistakes, end) in [(0, "/c.toml is fine"), (1, "\n1 mistake"), (2, "\n2 mistakes")] {
            let checked = Checked { file: Some("/c.toml".into()), mistakes: vec!["m".to_owned(); mistakes] };
            assert!(told(&checked).ends_with(end), "{mistakes}");
        }
    }
}
