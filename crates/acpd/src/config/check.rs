//! Every mistake of a configuration at once: what is wrong is told and left out, and the rest is read again.

use super::explain::path_at;
use super::load::{Reading, Wrong, read_table};
use super::overlay::Overlay;
use super::{Config, ConfigError, Sources};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Mistakes that are told at most.
const MOST: usize = 100;

impl Config {
    /// What [`Config::load`] reads, or all that is wrong with it.
    ///
    /// # Errors
    /// Every mistake, at least one, as they stand in the file; those of variables come last.
    pub fn check(sources: &Sources) -> Result<Config, Vec<ConfigError>> {
        match Config::load(sources) {
            Ok(config) => Ok(config),
            Err(first @ (ConfigError::File { .. } | ConfigError::Variable { .. })) => {
                Err(mistakes(sources).filter(|all| !all.is_empty()).unwrap_or(vec![first]))
            }
            Err(other) => Err(vec![other]),
        }
    }
}

/// None where the file cannot be read so far.
fn mistakes(sources: &Sources) -> Option<Vec<ConfigError>> {
    let (file, bytes) = sources.read().ok()?.unzip();
    let bytes = bytes.unwrap_or_default();
    let (text, file) = (str::from_utf8(&bytes).ok()?, file.unwrap_or_default());
    // What is behind a mistake of form is not what was meant.
    let mut table = DeTable::parse(text).ok()?;
    let overlay = Overlay::apply(table.get_mut(), text.len(), &sources.environment).ok()?;
    let reading = Reading { text, file: &file, overlay: &overlay };
    let mut found: Vec<(usize, ConfigError)> = Vec::new();
    let mut left_out: Vec<Vec<String>> = Vec::new();
    while found.len() < MOST {
        let (span, missing, error) = match read_table(&table, &reading) {
            Ok(_) => break,
            Err(Wrong::Unreadable { span, missing, error }) => (span, missing, error),
            // What was left out may be what is contradicted.
            Err(Wrong::Contradictions(errors)) => {
                if left_out.is_empty() {
                    return Some(errors);
                }
                break;
            }
        };
        let path = match overlay.variable(&span) {
            Some((_, path)) => path.to_vec(),
            None => path_at(table.get_ref(), span.start).unwrap_or_default(),
        };
        // What was left out is not missed.
        let is_missed = missing.is_some_and(|key| {
            left_out.iter().any(|out| out.strip_prefix(&*path) == Some(std::slice::from_ref(&key)))
        });
        if !is_missed {
            found.push((span.start, error));
        }
        if !leave_out(table.get_mut(), &path, span.start) {
            break;
        }
        left_out.push(path);
    }
    found.sort_by_key(|(at, _)| *at);
    Some(found.into_iter().map(|(_, error)| error).collect())
}

/// Whether there was something at the path. Of a list only the entries go that are at this place of the text.
fn leave_out(table: &mut DeTable<'_>, path: &[String], at: usize) -> bool {
    let Some((key, below)) = path.split_first() else { return false };
    match table.get_mut(key.as_str()).map(Spanned::get_mut) {
        Some(DeValue::Table(table)) if !below.is_empty() => return leave_out(table, below, at),
        Some(DeValue::Array(entries)) => {
            let others: DeArray<'_> = entries.iter().filter(|entry| !is_at(entry, at)).cloned().collect();
            if others.len() < entries.len() {
                *entries = others;
                return true;
            }
        }
        _ => {}
    }
    table.remove(key.as_str()).is_some()
}

/// Whether an entry of a list is at this place of the text; the span of a table is that of its header.
fn is_at(entry: &Spanned<DeValue<'_>>, at: usize) -> bool {
    entry.span().contains(&at)
        || matches!(entry.get_ref(), DeValue::Table(table) if path_at(table, at).is_some())
}
