//! `ACPD_SECTION_KEY` variables over the file's keys, put into the parsed table before it is read.
//!
//! Each gets a span behind the end of the text, so that an error about it leads back to the variable. A variable
//! that names a section but no key of it is an error; `ACPD_` names of no section belong to other programs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ConfigError;

/// The sections whose keys are single values. Agents and tokens are tables by name and belong in the file.
const SECTIONS: [&str; 9] =
    ["server", "storage", "continuity", "timeouts", "terminal", "files", "limits", "compat", "client"];

/// The variables that were laid over the file.
pub(super) struct Overlay {
    first: usize,
    variables: Vec<Variable>,
}

struct Variable {
    name: String,
    section: &'static str,
    key: String,
}

impl Overlay {
    /// Puts the variables into `table`, which was read from a text of `text_len` bytes.
    pub(super) fn apply(
        table: &mut DeTable<'_>,
        text_len: usize,
        environment: &BTreeMap<OsString, OsString>,
    ) -> Result<Overlay, ConfigError> {
        let mut overlay = Overlay { first: text_len + 1, variables: Vec::new() };
        for (name, value) in environment.iter().filter(|(_, value)| !value.is_empty()) {
            let Some((section, key)) = name.to_str().and_then(section_and_key) else { continue };
            let name = name.to_string_lossy().into_owned();
            let value = scalar(section, &key, value).ok_or_else(|| ConfigError::Variable {
                variable: name.clone(),
                message: "its value is not UTF-8".to_owned(),
            })?;
            overlay.put(table, Variable { name, section, key }, value);
        }
        Ok(overlay)
    }

    fn put(&mut self, table: &mut DeTable<'_>, variable: Variable, value: DeValue<'static>) {
        let at = self.first + self.variables.len();
        let span = at..at + 1;
        let section_key = Spanned::new(span.clone(), Cow::Borrowed(variable.section));
        let section = table
            .entry(section_key)
            .or_insert_with(|| Spanned::new(span.clone(), DeValue::Table(DeTable::new())));
        // A section that is no table is the file's mistake, and reading it will say so.
        if let DeValue::Table(keys) = section.get_mut() {
            keys.insert(
                Spanned::new(span.clone(), Cow::Owned(variable.key.clone())),
                Spanned::new(span, value),
            );
        }
        self.variables.push(variable);
    }

    /// The variable behind a span, with the path of its key.
    pub(super) fn variable(&self, span: &Range<usize>) -> Option<(&str, [String; 2])> {
        let variable = self.variables.get(span.start.checked_sub(self.first)?)?;
        Some((&variable.name, [variable.section.to_owned(), variable.key.clone()]))
    }
}

/// The variable that is laid over a key.
pub(super) fn variable_of(
    section: &str,
    key: &str,
    environment: &BTreeMap<OsString, OsString>,
) -> Option<String> {
    let names =
        environment.iter().filter(|(_, value)| !value.is_empty()).filter_map(|(name, _)| name.to_str());
    let mut meant =
        names.filter(|name| section_and_key(name).is_some_and(|found| found == (section, key.to_owned())));
    meant.next().map(str::to_owned)
}

fn section_and_key(name: &str) -> Option<(&'static str, String)> {
    let name = name.strip_prefix("ACPD_")?.to_ascii_lowercase();
    SECTIONS.into_iter().find_map(|section| {
        let key = name.strip_prefix(section)?.strip_prefix('_')?;
        Some((section, key.to_owned()))
    })
}

/// All keys read a text, apart from the switches.
fn scalar(section: &str, key: &str, value: &OsStr) -> Option<DeValue<'static>> {
    let text = value.to_str()?;
    Some(match text.parse() {
        Ok(switch) if matches!((section, key), ("compat" | "files", _) | ("storage", "search")) => {
            DeValue::Boolean(switch)
        }
        _ => DeValue::String(Cow::Owned(text.to_owned())),
    })
}
