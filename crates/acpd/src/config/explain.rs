//! Turns the deserializer's messages into ours: they name the section and key, and what to write instead.
//! Cosmetic: a message in an unforeseen form is passed on behind the key's name.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::nearest::nearest;

/// The keys that lead to the entry at `at` (an offset into the text), outermost first.
pub(super) fn path_at(table: &DeTable<'_>, at: usize) -> Option<Vec<String>> {
    table.iter().find_map(|(key, value)| {
        let below = match value.get_ref() {
            DeValue::Table(inner) => path_at(inner, at),
            // Tables of a list have no names of their own.
            DeValue::Array(items) => items.iter().find_map(|item| match item.get_ref() {
                DeValue::Table(inner) => path_at(inner, at),
                _ => None,
            }),
            _ => None,
        };
        let here = key.span().contains(&at) || value.span().contains(&at);
        let mut path = below.or_else(|| here.then(Vec::new))?;
        path.insert(0, key.get_ref().to_string());
        Some(path)
    })
}

/// The span of the value that a path of keys leads to.
pub(super) fn value_span(table: &DeTable<'_>, path: &[&str]) -> Option<Range<usize>> {
    let (key, below) = path.split_first()?;
    let value = table.get(*key)?;
    match value.get_ref() {
        _ if below.is_empty() => Some(value.span()),
        DeValue::Table(table) => value_span(table, below),
        // An entry of a list goes by its place.
        DeValue::Array(entries) => {
            let (place, below) = below.split_first()?;
            let entry = entries.get(place.parse::<usize>().ok()?)?;
            match entry.get_ref() {
                _ if below.is_empty() => Some(entry.span()),
                DeValue::Table(table) => value_span(table, below),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether the value under this path may be a secret, which no message may repeat.
pub(super) fn is_secret(path: &[String]) -> bool {
    match path.first().map(String::as_str) {
        Some("agents") => path.get(2).is_some_and(|key| key == "env") && path.len() > 3,
        Some("tokens") => path.get(2).is_some_and(|key| key == "hash"),
        // Its URL may have a password.
        // Its path or query may be one.
        Some("hooks") => path.get(1).is_some_and(|key| key == "url" || key == "command"),
        Some("client") => path.get(1).is_some_and(|key| key == "connect"),
        _ => false,
    }
}

/// `message` of the deserializer about the entry at `path`, in our words.
pub(super) fn explain(message: &str, path: &[String]) -> String {
    if is_secret(path) && message.starts_with("invalid type") {
        return format!("{}: expected a string", subject(path));
    }
    if let Some(rest) = message.strip_prefix("unknown field ") {
        return unknown_key(path, &quoted(rest.split_once(", expected").map_or("", |(_, known)| known)));
    }
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        let (written, known) = rest.split_once(", expected").unwrap_or((rest, ""));
        let written = written.trim_matches('`');
        let known = quoted(known);
        return format!(
            "{}: \"{}\" is unknown{}",
            subject(path),
            written.escape_debug(),
            instead(written, &known)
        );
    }
    if let Some(rest) = message.strip_prefix("missing field ") {
        return format!("[{}] needs the key \"{}\"", path.join("."), rest.trim_matches('`'));
    }
    let wrong = ["invalid type: ", "invalid value: ", "invalid length "]
        .iter()
        .find_map(|prefix| message.strip_prefix(prefix))
        .and_then(|rest| rest.split_once(", expected "));
    match wrong {
        Some((found, expected)) => format!("{}: expected {}, found {found}", subject(path), plain(expected)),
        None => format!("{}: {message}", subject(path)),
    }
}

/// What an unknown key of `[section]` was probably meant to be, as the end of a sentence.
pub(super) fn instead(written: &str, known: &[&str]) -> String {
    match nearest(written, known.iter().copied()) {
        Some(meant) => format!("; did you mean \"{meant}\"?"),
        None => format!("; known: {}", known.join(", ")),
    }
}

fn unknown_key(path: &[String], known: &[&str]) -> String {
    let (key, section) = path.split_last().map_or(("", path), |(key, section)| (key.as_str(), section));
    let shown = key.escape_debug();
    if section.is_empty() {
        return match nearest(key, known.iter().copied()) {
            Some(meant) => format!("unknown section [{shown}]; did you mean [{meant}]?"),
            None => format!("unknown section or key \"{shown}\"; the sections are {}", known.join(", ")),
        };
    }
    format!("unknown key \"{shown}\" in [{}]{}", section.join("."), instead(key, known))
}

fn subject(path: &[String]) -> String {
    match path.split_last() {
        None => "the file".to_owned(),
        Some((key, [])) => format!("\"{}\"", key.escape_debug()),
        Some((key, section)) => {
            format!("\"{}\" in [{}]", key.escape_debug(), section.join(".").escape_debug())
        }
    }
}

/// The deserializer's name for a type in words of the file.
fn plain(expected: &str) -> &str {
    match expected {
        "i64" => "a whole number",
        "a sequence" => "a list such as [\"a\", \"b\"]",
        "a map" => "a table",
        "a boolean" => "true or false",
        _ if expected.starts_with("struct ") => "a table",
        _ => expected,
    }
}

/// The words between backticks.
fn quoted(list: &str) -> Vec<&str> {
    list.split('`').skip(1).step_by(2).collect()
}
