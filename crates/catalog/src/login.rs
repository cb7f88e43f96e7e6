//! Whether an agent is logged in, as far as that can be seen from outside: by variables that are set and files that are there.
//!
//! Invariant: no file is read and no value is kept.

use crate::known::{Login, Place};
use std::ffi::OsString;

/// A file with no more in it than this holds no login: what is left behind by a logout is `{}`.
const EMPTY_BYTES: u64 = 4;

/// Whether there is a login; None where that cannot be told. `variable` gives the values of the agent's environment.
pub fn logged_in(login: &Login, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<bool> {
    let is_set = |name: &&str| variable(name).is_some_and(|value| !value.is_empty());
    if login.variables.iter().any(is_set) {
        return Some(true);
    }
    let is_there = |place: &Place| place.path(variable).is_some_and(|path| has_something(&path));
    if login.files.iter().any(is_there) {
        return Some(true);
    }
    let elsewhere = login.elsewhere?;
    // Without a home it has other places.
    variable("HOME").filter(|home| !home.is_empty())?;
    let is_hidden = elsewhere.iter().any(is_there) || login.in_keychain && cfg!(target_os = "macos");
    (!is_hidden).then_some(false)
}

fn has_something(path: &std::path::Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_dir() || found.len() > EMPTY_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KNOWN, known};
    use std::fs;

    // issue 14: a login is seen by variables and files, and where it cannot be told, that is said
    #[test]
    fn a_login_is_seen_by_what_is_there() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = dir.path().join("home");
        let put = |path: &str, text: &str| {
            let path = home.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            fs::write(path, text).expect("a file");
        };
        let with = |name: &str, set: &[(&str, &str)]| {
            let variable = |asked: &str| match asked {
                "HOME" => Some(home.clone().into_os_string()),
                _ => set.iter().find(|(name, _)| *name == asked).map(|(_, value)| value.into()),
            };
            logged_in(&known(name).expect("it is known").login, &variable)
        };
        assert_eq!(with("codex", &[]), Some(false));
        assert_eq!(with("codex", &[("OPENAI_API_KEY", "")]), Some(false));
        assert_eq!(with("codex", &[("OPENAI_API_KEY", "x")]), Some(true));
        put(".codex/auth.json", "{}\n");
        assert_eq!(with("codex", &[]), Some(false), "a logout leaves an empty file");
        put(".codex/auth.json", r#"{"tokens":{}}"#);
        assert_eq!(with("codex", &[]), Some(true));
        let other = dir.path().join("other");
        fs::create_dir(&other).expect("a directory");
        let other = other.to_str().expect("text");
        assert_eq!(with("codex", &[("CODEX_HOME", other)]), Some(false));
        fs::write(dir.path().join("other/config.toml"), "model_provider = 1").expect("a file");
        assert_eq!(with("codex", &[("CODEX_HOME", other)]), None, "a provider may need none");
        // Its logins can be anywhere, or in a keyring.
        assert_eq!(with("opencode", &[]), None);
        assert_eq!(with("vibe", &[]), Some(false));
        put(".vibe/trusted", "x");
        assert_eq!(with("vibe", &[]), None);
    }

    // issue 14: without a home nothing is said to be logged out
    #[test]
    fn nothing_is_said_without_a_home() {
        for known in KNOWN {
            assert_eq!(logged_in(&known.login, &|_| None), None, "{}", known.name);
        }
    }
}
