//! What each value in force comes from: a variable, a line of the file, or the default.

use super::explain::value_span;
use super::overlay::variable_of;
use super::{Config, ConfigError, Sources};
use std::path::PathBuf;
use toml::Spanned;
use toml::de::DeTable;

/// The texts that a configuration was made of.
#[derive(Debug)]
pub struct Origins {
    sources: Sources,
    file: Option<PathBuf>,
    text: String,
}

impl Origins {
    /// Reads the file once more, which [`Config::load`] has read without an error.
    ///
    /// # Errors
    /// When it cannot be read any more.
    pub fn of(sources: &Sources) -> Result<Self, ConfigError> {
        let (file, bytes) = sources.read()?.unzip();
        let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
        Ok(Self { sources: sources.clone(), file, text })
    }

    /// What the value at a path of keys comes from.
    pub fn name(&self, path: &[&str]) -> String {
        if path == ["storage", "path"] && self.sources.state_dir.is_some() {
            return "--state-dir".to_owned();
        }
        if path == ["client", "connect"] && self.sources.connect().is_some() {
            return "ACPD_CONNECT".to_owned();
        }
        if let [section, key] = path
            && let Some(variable) = variable_of(section, key, &self.sources.environment)
        {
            return variable;
        }
        let parsed = DeTable::parse(&self.text).map(Spanned::into_inner).unwrap_or_default();
        match (value_span(&parsed, path), &self.file) {
            (Some(span), Some(file)) => {
                let line = self.text[..span.start].matches('\n').count() + 1;
                format!("{}:{line}", file.display())
            }
            _ => "default".to_owned(),
        }
    }
}

impl Config {
    /// Whether the value at a path of keys is a secret.
    pub(crate) fn hides(path: &[String]) -> bool {
        match path.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            // The URL of a daemon has no password once it was read.
            ["client", ..] => false,
            ["hooks", _, key] => key == "url" || key == "command",
            _ => super::explain::is_secret(path),
        }
    }
}
