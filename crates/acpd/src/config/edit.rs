//! Changes to the text of the file, of one entry each: every other byte stays, comments too.
//!
//! Pure. An entry is changed where it has a header of its own, `[tokens.ci]`; one that is written otherwise is left to its
//! author. What comes out is read again and compared, so that nothing but the entry can have changed.

use super::explain::value_span;
use std::ops::Range;
use thiserror::Error;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

/// Why the text is left as it is.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum EditError {
    /// It is not written as its author is expected to.
    #[error("[{0}] is not written as a table with a header of its own; change it by hand")]
    Form(String),
    /// It is no TOML.
    #[error("the file cannot be read as TOML")]
    Unreadable,
}

/// An entry, such as `["tokens", "ci"]`.
type Entry<'a> = [&'a str; 2];

/// The text without an entry, from its header to its last key.
pub(crate) fn without(text: &str, entry: Entry<'_>) -> Result<String, EditError> {
    let form = || EditError::Form(entry.join("."));
    let lines = lines_of(text, entry)?;
    let (mut before, after) = (&text[..lines.start], &text[lines.end..]);
    // The empty line that kept it from what is above.
    let is_apart = after.is_empty() || after.starts_with('\n') || after.starts_with("\r\n");
    if is_apart && (before.ends_with("\n\n") || before.ends_with("\n\r\n")) {
        before = before.strip_suffix('\n').unwrap_or(before);
        before = before.strip_suffix('\r').unwrap_or(before);
    }
    let edited = format!("{before}{after}");
    let (mut expected, mut found) = (table(text)?, table(&edited)?);
    for tables in [&mut expected, &mut found] {
        let is_empty = tables.get_mut(entry[0]).and_then(Value::as_table_mut).is_none_or(|entries| {
            entries.remove(entry[1]);
            entries.is_empty()
        });
        if is_empty {
            tables.remove(entry[0]);
        }
    }
    let gone = table(&edited)?.get(entry[0]).is_none_or(|entries| entries.get(entry[1]).is_none());
    if gone && expected == found { Ok(edited) } else { Err(form()) }
}

/// The text with another text as the value of a key; without one, the key goes. One that was not there comes behind the
/// header.
pub(crate) fn with(
    text: &str,
    entry: Entry<'_>,
    key: &str,
    value: Option<&str>,
) -> Result<String, EditError> {
    with_value(text, entry, key, value.map(|value| Value::String(value.to_owned())).as_ref())
}

/// The same with a value of any type.
pub(crate) fn with_value(
    text: &str,
    entry: Entry<'_>,
    key: &str,
    value: Option<&Value>,
) -> Result<String, EditError> {
    let form = || EditError::Form(entry.join("."));
    let parsed = DeTable::parse(text).map_err(|_| EditError::Unreadable)?;
    let span = value_span(parsed.get_ref(), &[entry[0], entry[1], key]);
    let written = value.map(Value::to_string);
    let edited = match (span, written) {
        (Some(span), Some(written)) => format!("{}{written}{}", &text[..span.start], &text[span.end..]),
        (Some(span), None) => {
            let lines = lines_of(text, entry)?;
            let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
            let end = end_of_line(text, span.end);
            if start <= lines.start {
                return Err(form());
            }
            format!("{}{}", &text[..start], &text[end..])
        }
        (None, Some(written)) => {
            let header = end_of_line(text, lines_of(text, entry)?.start);
            let newline = if text[..header].ends_with('\n') { "" } else { "\n" };
            format!("{}{newline}{key} = {written}\n{}", &text[..header], &text[header..])
        }
        (None, None) => return Ok(text.to_owned()),
    };
    let mut expected = table(text)?;
    let changed = expected.get_mut(entry[0]).and_then(|entries| entries.get_mut(entry[1]));
    let changed = changed.and_then(Value::as_table_mut).ok_or_else(form)?;
    match value {
        Some(value) => drop(changed.insert(key.to_owned(), value.clone())),
        None => drop(changed.remove(key)),
    }
    if table(&edited)? == expected { Ok(edited) } else { Err(form()) }
}

/// The text with another entry behind it.
pub(crate) fn added(text: &str, entry: Entry<'_>, keys: &[(&str, Value)]) -> Result<String, EditError> {
    // A dot would begin a table below.
    let name = if entry[1].contains('.') { format!("\"{}\"", entry[1]) } else { entry[1].to_owned() };
    let lines: String = keys.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    let gap = if text.is_empty() || text.ends_with("\n\n") { "" } else { "\n" };
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let edited = format!("{text}{end}{gap}[{}.{name}]\n{lines}", entry[0]);
    let mut expected = table(text)?;
    let form = || EditError::Form(entry.join("."));
    let entries = expected.entry(entry[0]).or_insert_with(|| Value::Table(Table::new()));
    let entries = entries.as_table_mut().ok_or_else(form)?;
    let keys = keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    let is_new = entries.insert(entry[1].to_owned(), Value::Table(keys)).is_none();
    // Where all entries are in one inline table no header can follow.
    if is_new && table(&edited).is_ok_and(|found| found == expected) { Ok(edited) } else { Err(form()) }
}

fn table(text: &str) -> Result<Table, EditError> {
    text.parse().map_err(|_| EditError::Unreadable)
}

/// The lines from the header of an entry to the last of its keys.
fn lines_of(text: &str, entry: Entry<'_>) -> Result<Range<usize>, EditError> {
    let form = || EditError::Form(entry.join("."));
    let parsed = DeTable::parse(text).map_err(|_| EditError::Unreadable)?;
    let entries = parsed.get_ref().get(entry[0]).map(|entries| entries.get_ref());
    let Some(DeValue::Table(entries)) = entries else { return Err(form()) };
    let (_, found) = entries.iter().find(|(name, _)| name.get_ref() == entry[1]).ok_or_else(form)?;
    let header = found.span();
    let start = text[..header.start].rfind('\n').map_or(0, |at| at + 1);
    if !text[start..].trim_start().starts_with('[') {
        return Err(form());
    }
    let DeValue::Table(keys) = found.get_ref() else { return Err(form()) };
    let last = keys.iter().map(|(_, value)| value.span().end).max().unwrap_or(header.end);
    Ok(start..end_of_line(text, last.max(header.end)))
}

/// Behind the end of the line that `at` is in.
fn end_of_line(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |end| at + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CI: [&str; 2] = ["tokens", "ci"];

    // contract 7.1: a token that is revoked goes with its lines; comments and other entries stay as they are
    #[test]
    fn an_entry_goes_and_the_rest_stays() {
        for (text, rest) in [
            ("[tokens.ci]\nhash = \"a\"\n", ""),
            ("# top\n[tokens.ci] # mine\nhash = \"a\" # b\nscope = \"c\"\n# end\n", "# top\n# end\n"),
            (
                "[server]\nlisten = \"x\"\n\n[tokens.ci]\nhash = \"a\"\n\n[tokens.b]\nhash = \"b\"\n",
                "[server]\nlisten = \"x\"\n\n[tokens.b]\nhash = \"b\"\n",
            ),
            ("a = 1\r\n\r\n[tokens.\"ci\"]\r\nhash = \"a\"", "a = 1\r\n"),
            ("[tokens.b]\nhash = \"b\"\n[tokens.ci]\n", "[tokens.b]\nhash = \"b\"\n"),
        ] {
            assert_eq!(without(text, CI).as_deref(), Ok(rest), "{text}");
        }
        for text in [
            "tokens = { ci = { hash = \"a\" } }",
            "tokens.ci.hash = \"a\"",
            "[tokens]\nci = { hash = \"a\" }",
            "",
        ] {
            assert_eq!(without(text, CI), Err(EditError::Form("tokens.ci".to_owned())), "{text}");
        }
        assert_eq!(without("[", CI), Err(EditError::Unreadable));
    }

    // issue 14: an entry comes behind what is there, whatever is in it
    #[test]
    fn an_entry_comes_behind_the_others() {
        let keys = [("command", Value::String("/a b".to_owned())), ("args", Value::Array(Vec::new()))];
        let entry = "[agents.x]\ncommand = \"/a b\"\nargs = []\n";
        for (text, before) in [
            ("", ""),
            ("a = 1", "a = 1\n\n"),
            ("# c\n[agents.y]\ncommand = \"y\"\n", "# c\n[agents.y]\ncommand = \"y\"\n\n"),
            ("[files]\n\n", "[files]\n\n"),
        ] {
            let edited = added(text, ["agents", "x"], &keys).expect("it can be added");
            assert_eq!(edited, format!("{before}{entry}"));
            let list = Value::Array(vec![Value::String("\"\u{1}'".to_owned())]);
            let changed =
                with_value(&edited, ["agents", "x"], "args", Some(&list)).expect("it can be changed");
            assert_eq!(table(&changed).expect("it is TOML")["agents"]["x"]["args"], list);
        }
        let dotted = added("", ["agents", "x.y"], &keys[1..]).expect("it can be added");
        assert_eq!(dotted, "[agents.\"x.y\"]\nargs = []\n");
        for text in ["agents = {}", "agents = { y = { command = \"y\" } }", "[agents.x]\n", "agents = 7", "["]
        {
            assert!(added(text, ["agents", "x"], &keys).is_err(), "{text}");
        }
    }

    // contract 7.1: a value takes the place of another, comes behind the header, or goes
    #[test]
    fn a_value_changes_and_the_rest_stays() {
        let text = "# x\n[tokens.ci] # mine\nhash = 'a' # old\nexpires = \"e\" # soon\n\n[files]\n";
        for (key, value, edited) in [
            (
                "hash",
                Some("b"),
                "# x\n[tokens.ci] # mine\nhash = \"b\" # old\nexpires = \"e\" # soon\n\n[files]\n",
            ),
            ("expires", None, "# x\n[tokens.ci] # mine\nhash = 'a' # old\n\n[files]\n"),
            (
                "scope",
                Some("s"),
                "# x\n[tokens.ci] # mine\nscope = \"s\"\nhash = 'a' # old\nexpires = \"e\" # soon\n\n[files]\n",
            ),
            ("scope", None, text),
        ] {
            assert_eq!(with(text, CI, key, value).as_deref(), Ok(edited), "{key} {value:?}");
        }
        let inline = "tokens = { ci = { hash = \"a\" } }";
        assert_eq!(with(inline, CI, "hash", Some("b")).as_deref(), Ok("tokens = { ci = { hash = \"b\" } }"));
        assert!(with(inline, CI, "hash", None).is_err() && with(inline, CI, "expires", Some("e")).is_err());
    }
}
