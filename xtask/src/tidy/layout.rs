//! What the crates are to each other, and that ARCHITECTURE.md and the decision records are complete.
//!
//! Dev-dependencies are free, except that no crate at all depends on what is not shipped. Not here: the names used in
//! source, since nothing can be named that the manifest does not bring in; whether what documents say is true.

use crate::tree::{Tree, pattern};

/// Directory of a crate, and the crates of ours that it may import: the table of ARCHITECTURE.md.
const MAY_IMPORT: &[(&str, &str)] = &[
    ("wire", ""),
    ("supervisor", ""),
    ("eventlog", ""),
    ("terminal", "supervisor"),
    ("record", "wire"),
    ("api", "record"),
    ("host", "api record wire supervisor terminal eventlog"),
    ("inspector", ""),
    ("gateway", "host api record wire eventlog inspector fleet"),
    ("catalog", ""),
    ("fleet", "record"),
    ("fleet-nats", "fleet record"),
    (
        "acpd",
        "gateway host api record wire supervisor terminal eventlog inspector example-agent catalog fleet fleet-nats",
    ),
    // Shares nothing with the engine that it is there to test.
    ("example-agent", ""),
    // Only with its feature `logs`.
    ("testkit", "eventlog host record"),
    ("e2e", "testkit"),
    ("xtask", "testkit"),
];
const MAX_ARCHITECTURE_LINES: usize = 199;

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    let (manifest, ours) = (
        pattern(r"^(?:crates/([\w-]+)|(xtask))/Cargo\.toml$"),
        pattern(r#"\b(?:acpd-([\w-]+)|(e2e|xtask))(?:\.| =|")"#),
    );
    let architecture = tree.text("ARCHITECTURE.md");
    for file in &tree.files {
        let Some(found) = manifest.captures(&file.path) else { continue };
        let name = found.iter().skip(1).flatten().next().map_or("", |name| name.as_str());
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(known, _)| *known == name) else {
            findings.push(format!("{}:1: {name} has no row in MAY_IMPORT of xtask/src/tidy/layout.rs; ARCHITECTURE.md has it too", file.path));
            continue;
        };
        let mut is_dev = false;
        for (at, line) in file.text.lines().enumerate() {
            is_dev = if line.starts_with('[') { line.contains("dev-dependencies") } else { is_dev };
            for found in ours.captures_iter(line).filter(|_| !line.starts_with("name")) {
                let target = found.iter().skip(1).flatten().next().map_or("", |name| name.as_str());
                let is_free = is_dev && !["e2e", "xtask"].contains(&target);
                if !is_free && !allowed.split(' ').any(|allowed| allowed == target) {
                    findings.push(format!(
                        "{}:{}: {name} may not import {target}, only: {allowed}",
                        file.path,
                        at + 1
                    ));
                }
            }
        }
        if name != "xtask" {
            findings.extend(architecture_of(architecture, name));
        }
    }
    let lines = architecture.lines().count();
    if lines > MAX_ARCHITECTURE_LINES {
        findings.push(format!(
            "ARCHITECTURE.md:1: {lines} lines, more than {MAX_ARCHITECTURE_LINES}; move detail to docs/"
        ));
    }
    let records = tree.files.iter().filter(|file| file.path.starts_with("docs/adr/"));
    for (number, file) in (1..).zip(records) {
        if !file.path.starts_with(&format!("docs/adr/{number:04}-")) {
            findings.push(format!(
                "{}:1: records are numbered without holes; the next is {number:04}-TITLE.md",
                file.path
            ));
        }
    }
    findings
}

/// Under a heading that names each crate are its Invariant and its Boundary.
fn architecture_of(text: &str, name: &str) -> Option<String> {
    let section = pattern(&format!(r"(?m)^#.*crates/{name}(?:[^\w-].*)?\n(?:(?:[^#\n].*)?\n)*")).find(text);
    let is_whole =
        section.is_some_and(|it| ["Invariant:", "Boundary:"].iter().all(|word| it.as_str().contains(word)));
    (!is_whole).then(|| {
        format!("ARCHITECTURE.md:1: crates/{name} has no heading with `Invariant:` and `Boundary:` below it")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::tree;

    #[test]
    fn what_the_table_does_not_allow_is_found_with_its_line() {
        let of = |path: &str, manifest: &str| {
            let found = check(&tree(&[(path, manifest)]));
            found.into_iter().filter(|line| line.starts_with(path)).collect::<Vec<_>>()
        };
        let wire =
            "[package]\nname = \"acpd-x\"\n[dependencies]\nserde = \"1\"\nacpd-wire.workspace = true\n";
        assert!(of("crates/host/Cargo.toml", wire).is_empty());
        let found = "crates/supervisor/Cargo.toml:5: supervisor may not import wire, only: ";
        assert_eq!(of("crates/supervisor/Cargo.toml", wire), [found]);
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
            assert_eq!(of(path, manifest).len(), count, "{path} {manifest}");
        }
    }

    #[test]
    fn the_architecture_names_each_crate_with_invariant_and_boundary() {
        let is_good = |text: &str, name: &str| architecture_of(text, name).is_none();
        let good = "# x\n### `crates/wire`\ntext\n\n**Invariant:** a\n**Boundary:** b\n## y\n";
        assert!(is_good(good, "wire") && !is_good(good, "host"));
        let bad =
            "## crates/wires\nInvariant: a\nBoundary: b\n## crates/wire\nInvariant: a\n## z\nBoundary: b\n";
        assert!(!is_good(bad, "wire"));
        assert_eq!(check(&tree(&[("ARCHITECTURE.md", &"x\n".repeat(200))])).len(), 1);
    }

    #[test]
    fn decision_records_are_numbered() {
        let wrong =
            |paths: &[&str]| check(&tree(&paths.iter().map(|path| (*path, "")).collect::<Vec<_>>())).len();
        assert_eq!(wrong(&["docs/adr/0001-a.md", "docs/adr/0002-b.md"]), 0);
        assert_eq!(wrong(&["docs/adr/0001-a.md", "docs/adr/0003-b.md"]), 1);
        assert_eq!(wrong(&["docs/adr/first.md"]), 1);
    }
}
