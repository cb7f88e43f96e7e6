//! The npm packages: one for each platform with its program, and `acpd`, whose launcher becomes the program of the platform
//! that npm chose. Nothing runs when they are installed.
//!
//! The launcher is a shell script (`deploy/npm/acpd`): it replaces itself by the program, which in Node.js takes version 22. A
//! launcher that stays has to hand on signals, cannot tell a Ctrl-C that the program got too, and leaves it behind when killed.

use super::archive::{Entry, tar_gz};
use super::{Parts, Program};
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::path::Path;

const ABOUT: &str = "The session host for coding agents that speak the Agent Client Protocol";
/// What npm has all of a package below.
const TOP: &str = "package";

fn name_of(program: &Program) -> String {
    format!("acpd-linux-{}", program.target.npm)
}

/// The package of a platform.
pub(super) fn pack_platform(program: &Program, parts: &Parts) -> Result<(String, Vec<u8>)> {
    let (name, version) = (name_of(program), &parts.release.version);
    let manifest = json!({
        "name": name,
        "version": version,
        "description": format!("{ABOUT}: the program for Linux on {}, which the package acpd runs", program.target.npm),
        "license": "Apache-2.0",
        "os": ["linux"],
        "cpu": [program.target.npm],
        "libc": ["glibc"],
        "preferUnplugged": true,
        "files": ["bin"],
    });
    let readme = format!("# {name}\n\nThe program of the package `acpd` for one platform: install that.\n");
    let manifest = text(&manifest)?;
    let entries = vec![
        Entry::file("LICENSE", &parts.license),
        Entry::file("README.md", readme.as_bytes()),
        Entry::file("package.json", manifest.as_bytes()),
        Entry::program("bin/acpd", &program.content),
    ];
    Ok((format!("{name}-{version}.tgz"), tar_gz(TOP, entries, parts.release.epoch, parts.level)?))
}

/// The package that people install.
pub(super) fn pack_launcher(programs: &[Program], parts: &Parts, root: &Path) -> Result<(String, Vec<u8>)> {
    let version = &parts.release.version;
    let platforms: Map<String, Value> =
        programs.iter().map(|program| (name_of(program), Value::from(version.as_str()))).collect();
    let manifest = json!({
        "name": "acpd",
        "version": version,
        "description": ABOUT,
        "license": "Apache-2.0",
        "keywords": ["acp", "agent-client-protocol", "agents"],
        "os": ["linux"],
        "bin": { "acpd": "bin/acpd" },
        "files": ["bin"],
        "optionalDependencies": platforms,
    });
    let manifest = text(&manifest)?;
    let launcher = std::fs::read(root.join("deploy/npm/acpd"))?;
    let entries = vec![
        Entry::file("LICENSE", &parts.license),
        Entry::file("README.md", parts.readme.as_bytes()),
        Entry::file("package.json", manifest.as_bytes()),
        Entry::program("bin/acpd", &launcher),
    ];
    Ok((format!("acpd-{version}.tgz"), tar_gz(TOP, entries, parts.release.epoch, parts.level)?))
}

fn text(manifest: &Value) -> Result<String> {
    Ok(serde_json::to_string_pretty(manifest)? + "\n")
}
