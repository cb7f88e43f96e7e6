//! Rules of any text: no reminders, no paths of somebody's machine, no package registries.
//!
//! The files of tidy itself are left out: they hold the bad examples. Not here: spelling, style, names.

use super::Finding;
use super::tree::{File, Tree};

const OWN_FILES: &str = "xtask/src/tidy/";

/// What a reminder begins with. Prose may speak of them; source may not leave them.
const REMINDERS: &[&str] = &["TODO", "FIXME", "XXX"];
const SOURCE_ENDINGS: &[&str] = &[".rs", ".toml", ".ts", ".js", ".mjs", ".sh", ".html", ".css", ".ci/run"];

/// Where only one machine has its files.
const MACHINE_PATHS: &[&str] = &["/home/", "/work/", "/root/", "/Users/"];

const REGISTRIES: &str = "crates.io npmjs.org npmjs.com pypi.org pythonhosted.org proxy.golang.org jfrog.io \
                          registry+http sparse+http";
/// Hosts whose names begin like this serve packages.
const REGISTRY_HOSTS: &str =
    "registry. registry- npm. pypi. crates. index.crates mirror. mirrors. artifactory. nexus.";

/// What cargo itself writes into a lock file for the default registry, whatever serves it.
const LOCK_SOURCE: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| !file.path.starts_with(OWN_FILES)) {
        for (at, line) in file.text.lines().enumerate() {
            let found = |(problem, fix)| Finding::new(&file.path, at + 1, problem, fix);
            findings.extend(reminder(file, line).map(found));
            findings.extend(machine_path(line).map(found));
            findings.extend(registry(line).map(found));
        }
    }
    findings
}

fn reminder(file: &File, line: &str) -> Option<(String, &'static str)> {
    let is_source = SOURCE_ENDINGS.iter().any(|ending| file.path.ends_with(ending));
    let word = REMINDERS.iter().find(|word| is_source && has_word(line, word))?;
    Some((format!("a {word}"), "do it, or open an issue and say here what holds today"))
}

fn machine_path(line: &str) -> Option<(String, &'static str)> {
    // `../work/`, `~/work/`, `$DIR/work/` and a part of a URL are no absolute paths.
    let is_inside = |before: char| before.is_alphanumeric() || "._-~$}/".contains(before);
    let path = MACHINE_PATHS.iter().find(|path| {
        line.match_indices(**path).any(|(at, _)| !line[..at].chars().next_back().is_some_and(is_inside))
    })?;
    Some((
        format!("a path of one machine ({path}...)"),
        "use a relative path, or a made-up one such as /srv/project",
    ))
}

fn registry(line: &str) -> Option<(String, &'static str)> {
    if line.trim() == LOCK_SOURCE {
        return None;
    }
    let host_named = |scheme: &str| {
        line.match_indices(scheme).any(|(at, _)| {
            let host = &line[at + scheme.len()..];
            REGISTRY_HOSTS.split(' ').any(|name| host.starts_with(name))
        })
    };
    let named = REGISTRIES.split(' ').any(|name| line.contains(name));
    (named || host_named("https://") || host_named("http://")).then(|| {
        let fix = "leave the choice to the machine's settings (npm: omit-lockfile-registry-resolved=true)";
        ("a package registry's host".to_owned(), fix)
    })
}

/// Whether `word` stands in `text` as a word of its own.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_name) && !text[at + word.len()..].starts_with(is_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(path: &str, line: &str) -> Vec<String> {
        check(&Tree::of(&[(path, line)])).into_iter().map(|finding| finding.problem).collect()
    }

    #[test]
    fn source_leaves_no_reminders() {
        assert_eq!(problems("crates/wire/src/frame.rs", "// TODO: more"), ["a TODO"]);
        assert_eq!(problems(".ci/run", "# FIXME"), ["a FIXME"]);
        assert!(problems("CONTRIBUTING.md", "No TODO in source.").is_empty());
        assert!(problems("crates/wire/src/frame.rs", "mktemp(\"XXXXXX\")").is_empty());
    }

    #[test]
    fn machine_paths_are_found_and_relative_ones_are_not() {
        assert_eq!(problems("README.md", "cd /home/me/acpd"), ["a path of one machine (/home/...)"]);
        assert_eq!(problems("a.rs", "\"/work/x\""), ["a path of one machine (/work/...)"]);
        for good in
            ["../work/x", "~/work/", "$HOME/work/x", "src/home/page", "https://host/home/x", "/srv/home"]
        {
            assert!(problems("README.md", good).is_empty(), "{good}");
        }
    }

    #[test]
    fn registries_are_found_wherever_they_hide() {
        for bad in [
            "\"resolved\": \"https://registry.npmjs.org/x/-/x-1.tgz\"",
            "index = \"sparse+https://packages.example/\"",
            "curl http://mirror.example/x",
            "source = \"registry+https://packages.example/index\"",
        ] {
            assert_eq!(problems("any", bad), ["a package registry's host"], "{bad}");
        }
        assert!(problems("Cargo.lock", LOCK_SOURCE).is_empty());
        assert!(problems("README.md", "see https://agentclientprotocol.com").is_empty());
        assert!(problems("deny.toml", "unknown-registry = \"deny\"").is_empty());
    }
}
