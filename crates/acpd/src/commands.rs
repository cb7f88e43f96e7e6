//! The commands, a file each.

pub(crate) mod agents;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod stdio;
pub(crate) mod token;
pub(crate) mod top;

/// A word as a person would type it.
pub(crate) fn shown(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("{word:?}") }
}
