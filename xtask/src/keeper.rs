//! `cargo xtask keeper`: builds the keeper alone, packs it, and keeps it for the version of the protocol that it speaks.
//!
//! What is kept shows that a later daemon goes on with the agents of an earlier one. Invariant: what was kept of a version stays as it is,
//! for that is what was released; it names nothing of the machine that it was built on. Not here: what daemons do with it
//! (`crates/e2e/tests/continuity/skew.rs`).

use crate::outside;
use crate::run::{self, Counts};
use crate::tree::pattern;
use anyhow::{Context, Result, ensure};
use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What the command line says.
#[derive(Args)]
pub(crate) struct Options {
    /// Replace the one that is kept of this version, which no release may have had
    #[arg(long)]
    replace: bool,
}

const DIRECTORY: &str = "crates/e2e/tests/continuity/keepers";
const PROTOCOL: &str = "crates/supervisor/src/keeper/protocol.rs";
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Bytes that one may take.
const MOST: usize = 400 * 1024;

/// Runs the command.
pub(crate) fn run(options: &Options, root: &Path) -> Result<()> {
    let protocol = std::fs::read_to_string(root.join(PROTOCOL)).context(PROTOCOL)?;
    let version = newest(&protocol).with_context(|| format!("{PROTOCOL} names no versions"))?;
    let file = format!("{DIRECTORY}/v{version}.gz");
    ensure!(
        options.replace || !root.join(&file).exists(),
        "{file} is there, and stays what was released; if no release had it, add --replace"
    );
    let program = build(root)?;
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&program)?;
    let packed = packed.finish()?;
    ensure!(packed.len() < MOST, "{file} has {} bytes, and may have {MOST} at most", packed.len());
    std::fs::write(root.join(&file), &packed)?;
    anstream::println!("{file}: {} KiB", packed.len().div_ceil(1024));
    Ok(())
}

/// The newest version that a keeper speaks.
fn newest(protocol: &str) -> Option<u32> {
    let versions = pattern(r"const VERSIONS: \[u32; 2\] = \[\d+, (\d+)\];");
    versions.captures(protocol)?.get(1)?.as_str().parse().ok()
}

/// The program.
fn build(root: &Path) -> Result<Vec<u8>> {
    let directory = outside::target_directory(root).join("keeper-alone");
    let line = format!(
        "cargo build --locked --profile keeper --target {TARGET} -p acpd-supervisor --bin acpd-keeper --target-dir"
    );
    let mut command = run::line(&line, root);
    // Of a package with a level of its own, cargo does not strip the program.
    let mut flags = vec!["-Cstrip=symbols".to_owned()];
    flags.extend(renamed(root)?);
    command.arg(&directory).env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    run::run(command, &mut Counts::default())?;
    let program = std::fs::read(directory.join(TARGET).join("keeper/acpd-keeper"))?;
    names_no_place(&program, root)?;
    Ok(program)
}

/// Flags for rustc, by which a program names nothing of this machine.
pub(crate) fn renamed(root: &Path) -> Result<Vec<String>> {
    let named = |(place, name): &(PathBuf, _)| format!("--remap-path-prefix={}={name}", place.display());
    Ok(places(root)?.iter().map(named).collect())
}

/// Whether they did what they are for.
pub(crate) fn names_no_place(program: &[u8], root: &Path) -> Result<()> {
    for (place, _) in places(root)? {
        let named = memchr::memmem::find(program, place.as_os_str().as_encoded_bytes());
        ensure!(named.is_none(), "the program names {}", place.display());
    }
    Ok(())
}

/// Where the sources are on this machine, and what they are called instead.
fn places(root: &Path) -> Result<Vec<(PathBuf, &'static str)>> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).context("no home of cargo")?;
    let mut places = vec![(root.to_owned(), "acpd")];
    for registry in std::fs::read_dir(home.join("registry/src")).into_iter().flatten() {
        places.push((registry?.path(), "crates"));
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_newest_that_is_spoken() {
        assert_eq!(newest("pub(crate) const VERSIONS: [u32; 2] = [3, 4];"), Some(4));
        assert_eq!(newest("const VERSIONS: [&str; 2] = [\"/v1\", \"/v2\"];"), None);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("it is no root");
        assert!(newest(&std::fs::read_to_string(root.join(PROTOCOL)).expect("it is there")).is_some());
    }
}
