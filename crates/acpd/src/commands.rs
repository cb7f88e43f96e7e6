//! The commands, a file each.

use crate::clean::line;
use crate::exit::{self, Failure};
use std::path::{Path, PathBuf};

pub(crate) mod agents;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod handover;
pub(crate) mod migrate;
pub(crate) mod nodes;
pub(crate) mod open;
pub(crate) mod reload;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod sessions;
mod standard_input;
pub(crate) mod status;
pub(crate) mod stdio;
pub(crate) mod stop;
pub(crate) mod token;
pub(crate) mod top;

/// clap's own words, without its "error: ", which the exit adds.
fn clap_failure(error: clap::Error) -> Failure {
    let text = error.to_string();
    Failure::Usage(text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned())
}

/// Does something to each, whatever becomes of the others. The first failure counts, and each is told (contract 7.1).
async fn each(ids: &[String], mut act: impl AsyncFnMut(&str) -> Result<(), Failure>) -> Result<(), Failure> {
    if let [only] = ids {
        return act(only).await;
    }
    let mut first = None;
    for id in ids {
        match act(id).await {
            Ok(()) => {}
            Err(unread @ Failure::Unread(_)) => return Err(unread),
            Err(failure) => {
                let code = failure.code();
                let names_it = failure.to_string().contains(id);
                exit::tell(&if names_it { failure } else { failure.within(&line(id, 60)) });
                first.get_or_insert(code);
            }
        }
    }
    first.map_or(Ok(()), |code| Err(Failure::Told(code)))
}

/// A word as a person would type it.
pub(crate) fn shown(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("{word:?}") }
}

/// The directory for the session, as ACP can name it; one of another machine is not looked for.
pub(crate) fn working_directory(given: Option<PathBuf>, is_here: bool) -> Result<PathBuf, Failure> {
    directory("--cwd", &given.unwrap_or_else(|| ".".into()), is_here)
}

/// A directory that is given with a flag, as ACP can name it; one of another machine is not looked for.
pub(crate) fn directory(flag: &str, given: &Path, is_here: bool) -> Result<PathBuf, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::Usage(format!("{flag} {}: {why}", given.display()));
    let mut cwd = std::path::absolute(given).map_err(|error| wrong(&error))?;
    if is_here {
        cwd = std::fs::canonicalize(cwd).map_err(|error| wrong(&error))?;
        if !cwd.is_dir() {
            return Err(wrong(&"not a directory"));
        }
    }
    match cwd.to_str() {
        Some(_) => Ok(cwd),
        None => Err(Failure::Usage(format!(
            "no session can work in {}: the name of the directory is not UTF-8, and ACP has no other names",
            cwd.display()
        ))),
    }
}
