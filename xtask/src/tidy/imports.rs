//! Who may import whom: the table of ARCHITECTURE.md, checked in each crate's manifest.
//!
//! Dev-dependencies are free, except that no crate at all depends on what is not shipped. Not here: the names used
//! in source, since nothing can be named that the manifest does not bring in.

use super::Finding;
use super::text::has_word;
use super::tree::Tree;
use toml::{Table, Value};

/// Directory of a crate, and the directories whose crates it may import.
const MAY_IMPORT: &[(&str, &str)] = &[
    ("wire", ""),
    ("supervisor", ""),
    ("eventlog", ""),
    ("terminal", "supervisor"),
    ("record", "wire"),
    ("host", "record wire supervisor terminal eventlog"),
    ("gateway", "host record wire eventlog"),
    ("acpd", "gateway host record wire supervisor terminal eventlog example-agent"),
    // Shares nothing with the engine that it is there to test.
    ("example-agent", ""),
    // Only with its feature `logs`.
    ("testkit", "eventlog record"),
    ("e2e", "testkit"),
    ("xtask", "testkit"),
];

/// No crate depends on these, not even for tests.
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
        let row = MAY_IMPORT.iter().find(|(name, _)| *name == dir);
        if row.is_none() {
            let fix = "add it to MAY_IMPORT in xtask/src/tidy/imports.rs and to ARCHITECTURE.md";
            findings.push(Finding::new(&path, 1, format!("{dir} has no row in the table of imports"), fix));
        }
        let allowed = row.map(|(_, allowed)| *allowed).unwrap_or_default();
        for (dependency, is_dev) in dependencies(&manifest) {
            let Some(target) = ours(&dependency) else { continue };
            let never = NEVER_IMPORTED.contains(&target) && target != dir;
            if never || (!is_dev && !allowed.split(' ').any(|name| name == target)) {
                let named = |line: &str| has_word(line, &dependency) && !line.starts_with("name");
                let line = file.text.lines().position(named).map_or(1, |line| line + 1);
                let fix = format!(
                    "{dir} may import: {}",
                    if allowed.is_empty() { "none of ours" } else { allowed }
                );
                findings.push(Finding::new(&path, line, format!("{dir} may not import {target}"), fix));
            }
        }
    }
    findings
}

/// Names of all dependencies, and whether each is for tests only.
fn dependencies(manifest: &Table) -> Vec<(String, bool)> {
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
    let mut names = Vec::new();
    for table in targets.filter_map(Value::as_table).chain([manifest]) {
        for section in ["dependencies", "build-dependencies", "dev-dependencies"] {
            for (key, value) in table.get(section).and_then(Value::as_table).into_iter().flatten() {
                // The crate may go by another name here.
                let package = value.get("package").and_then(Value::as_str);
                names.push((package.unwrap_or(key).to_owned(), section == "dev-dependencies"));
            }
        }
    }
    names
}

/// The directory of one of our crates.
fn ours(package: &str) -> Option<&str> {
    if ["acpd", "xtask"].contains(&package) { Some(package) } else { package.strip_prefix("acpd-") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_table_does_not_allow_is_found_with_its_line() {
        let problems = |path: &str, manifest: &str| -> Vec<String> {
            check(&Tree::of(&[(path, manifest)])).iter().map(ToString::to_string).collect()
        };
        let wire = "[dependencies]\nserde = \"1\"\nacpd-wire.workspace = true\n";
        assert!(problems("crates/host/Cargo.toml", wire).is_empty());
        assert_eq!(
            problems("crates/supervisor/Cargo.toml", wire),
            [
                "crates/supervisor/Cargo.toml:3: supervisor may not import wire; supervisor may import: none of ours"
            ]
        );
        for (path, manifest, count) in [
            ("crates/wire/Cargo.toml", "[dev-dependencies]\nacpd-host.workspace = true\n", 0),
            ("crates/gateway/Cargo.toml", "[target.'cfg(unix)'.dependencies]\nacpd-supervisor = {}\n", 1),
            (
                "crates/wire/Cargo.toml",
                "[dependencies]\nx = { package = \"acpd-host\", version = \"1\" }\n",
                1,
            ),
            ("xtask/Cargo.toml", wire, 1),
            ("crates/host/Cargo.toml", "[dev-dependencies]\nacpd-e2e.workspace = true\n", 1),
            ("crates/acpd/Cargo.toml", "[dependencies]\nxtask = {}\n", 1),
            ("crates/novelty/Cargo.toml", "[package]\nname = \"acpd-novelty\"\n", 1),
        ] {
            assert_eq!(problems(path, manifest).len(), count, "{path}: {manifest}");
        }
    }
}
