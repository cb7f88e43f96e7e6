//! Who may import whom: the table of ARCHITECTURE.md, checked in each crate's manifest.
//!
//! Dev-dependencies are free, except that nobody at all depends on what is not shipped. Not here: the names used
//! in source, since nothing can be named that the manifest does not bring in.

use super::Finding;
use super::tree::Tree;
use toml::{Table, Value};

/// Directory under crates/, and the directories whose crates it may import.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("supervisor", &[]),
    ("eventlog", &[]),
    ("terminal", &["supervisor"]),
    ("record", &["wire"]),
    ("host", &["record", "wire", "supervisor", "terminal", "eventlog"]),
    ("gateway", &["host", "record", "wire", "eventlog"]),
    ("acpd", &["gateway", "host", "record", "wire", "supervisor", "terminal", "eventlog", "example-agent"]),
    // Shares nothing with the engine that it is there to test.
    ("example-agent", &[]),
    ("testkit", &[]),
    ("e2e", &["testkit"]),
    ("xtask", &["testkit"]),
];

/// Nobody depends on these, not even tests.
const NEVER_IMPORTED: &[&str] = &["e2e", "xtask"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let manifests = tree.crate_dirs().map(|dir| (dir, format!("crates/{dir}/Cargo.toml")));
    for (dir, path) in manifests.chain([("xtask", "xtask/Cargo.toml".to_owned())]) {
        let Some(file) = tree.file(&path) else { continue };
        let manifest: Table = match file.text.parse() {
            Ok(manifest) => manifest,
            Err(error) => {
                findings.push(Finding::new(&path, 1, format!("unreadable: {error}"), "mend the manifest"));
                continue;
            }
        };
        let allowed = MAY_IMPORT.iter().find(|(name, _)| *name == dir).map(|(_, allowed)| *allowed);
        if allowed.is_none() {
            findings.push(Finding::new(
                &path,
                1,
                format!("crates/{dir} has no row in the table of who may import whom"),
                "add it to MAY_IMPORT in xtask/src/tidy/imports.rs and to ARCHITECTURE.md",
            ));
        }
        let allowed = allowed.unwrap_or_default();
        for (dependency, is_dev) in dependencies(&manifest) {
            let Some(target) = ours(&dependency) else { continue };
            let never = NEVER_IMPORTED.contains(&target) && target != dir;
            if never || (!is_dev && !allowed.contains(&target)) {
                let fix = if never {
                    "move what you need into a crate that may be imported".to_owned()
                } else {
                    format!("{dir} may import: {}", list(allowed))
                };
                let line = line_of(&file.text, &dependency);
                findings.push(Finding::new(&path, line, format!("{dir} may not import {target}"), fix));
            }
        }
    }
    findings
}

/// Names of all dependencies, and whether each is for tests only.
fn dependencies(manifest: &Table) -> Vec<(String, bool)> {
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
    let tables = targets.filter_map(Value::as_table).chain([manifest]);
    let mut names = Vec::new();
    for table in tables {
        for (section, is_dev) in
            [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)]
        {
            for (key, value) in table.get(section).and_then(Value::as_table).into_iter().flatten() {
                // The crate may go by another name here.
                let package = value.get("package").and_then(Value::as_str);
                names.push((package.unwrap_or(key).to_owned(), is_dev));
            }
        }
    }
    names
}

/// The directory of one of our crates.
fn ours(package: &str) -> Option<&str> {
    match package {
        "acpd" | "xtask" => Some(package),
        _ => package.strip_prefix("acpd-"),
    }
}

fn list(allowed: &[&str]) -> String {
    if allowed.is_empty() { "none of ours".to_owned() } else { allowed.join(", ") }
}

fn line_of(text: &str, dependency: &str) -> usize {
    let named = |line: &str| super::text::has_word(line, dependency) && !line.starts_with("name");
    text.lines().position(named).map_or(1, |line| line + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(dir: &str, manifest: &str) -> Vec<String> {
        let path =
            if dir == "xtask" { "xtask/Cargo.toml".to_owned() } else { format!("crates/{dir}/Cargo.toml") };
        check(&Tree::of(&[(&path, manifest)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_table_allows_what_architecture_allows() {
        assert!(problems("host", "[dependencies]\nacpd-wire.workspace = true\nserde = \"1\"\n").is_empty());
        assert!(problems("wire", "[dev-dependencies]\nacpd-host.workspace = true\n").is_empty());
    }

    #[test]
    fn a_forbidden_import_is_found_with_its_line() {
        assert_eq!(
            problems("supervisor", "[dependencies]\nserde = \"1\"\nacpd-wire.workspace = true\n"),
            [
                "crates/supervisor/Cargo.toml:3: supervisor may not import wire; supervisor may import: none of ours"
            ]
        );
        assert_eq!(problems("gateway", "[target.'cfg(unix)'.dependencies]\nacpd-supervisor = {}\n").len(), 1);
        assert_eq!(
            problems("wire", "[dependencies]\nx = { package = \"acpd-host\", version = \"1\" }\n").len(),
            1
        );
        assert_eq!(problems("xtask", "[dependencies]\nacpd-wire.workspace = true\n").len(), 1);
    }

    #[test]
    fn nobody_imports_what_is_not_shipped_tests_included() {
        assert_eq!(problems("host", "[dev-dependencies]\nacpd-e2e.workspace = true\n").len(), 1);
        assert_eq!(problems("acpd", "[dependencies]\nxtask = {}\n").len(), 1);
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        assert_eq!(problems("novelty", "[package]\nname = \"acpd-novelty\"\n").len(), 1);
    }
}
