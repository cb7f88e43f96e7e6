//! `cargo xtask inspector`: builds the inspector's pages and packs them into the one file that `crates/inspector` has.
//!
//! Invariant: the file depends on `web/`, `sdk/typescript` and their locks only: no times, no names of a machine, files in
//! order of their names. With `--check` nothing is written, and files that differ are named. Not here: what the pages are.

use crate::outside;
use crate::run::{self, Counts};
use anyhow::{Context, Result, ensure};
use clap::Args;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::Path;

/// What the command line says.
#[derive(Args)]
pub(crate) struct Options {
    /// Build, and compare with the file that is there instead of writing it
    #[arg(long)]
    pub(crate) check: bool,
}

const FILE: &str = "crates/inspector/pages.tar";
const BUILT: &str = "web/dist";
/// It is read by people too, and by programs that take no compression.
const FIRST: &str = "index.html";
const COMPRESSED: &str = ".gz";
/// The pages are built with the sources of the SDK, which have a dependency.
const BUILDS: [(&str, &[&str]); 2] = [("sdk/typescript", &["npm ci"]), ("web", &["npm ci", "npm run build"])];

/// The content of each file, by its path below the directory.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Builds the pages into [`BUILT`].
fn build(root: &Path) -> Result<()> {
    for (place, lines) in BUILDS {
        for line in lines {
            run::run(outside::beside(line, place, root), &mut Counts::default())?;
        }
    }
    Ok(())
}

/// `cargo xtask images`: pictures of every view, in `docs/images`.
pub(crate) fn pictures(root: &Path) -> Result<()> {
    build(root)?;
    let daemon = run::line("cargo build --locked", root);
    let pictures = outside::beside("npm run images", "web", root);
    [daemon, pictures].into_iter().try_for_each(|command| run::run(command, &mut Counts::default()))
}

/// Runs the command; true when the file is up to date.
pub(crate) fn run(options: &Options, root: &Path) -> Result<bool> {
    build(root)?;
    let built = files(&root.join(BUILT))?;
    ensure!(built.contains_key(FIRST), "{BUILT} has no {FIRST}");
    let file = root.join(FILE);
    if options.check {
        let packed = std::fs::read(&file).with_context(|| FILE)?;
        let stale = differing(&unpack(&packed)?, &built);
        for path in &stale {
            anstream::eprintln!("{FILE}: {path} is not what web/ builds");
        }
        if !stale.is_empty() {
            anstream::eprintln!("write it anew with: cargo xtask inspector");
        }
        return Ok(stale.is_empty());
    }
    let packed = pack(&built)?;
    std::fs::write(&file, &packed)?;
    anstream::println!("{FILE}: {} files, {} KiB", built.len(), packed.len().div_ceil(1024));
    Ok(true)
}

/// All files in a directory and below.
pub(crate) fn files(directory: &Path) -> Result<Files> {
    let (mut files, mut rest) = (Files::new(), vec![directory.to_owned()]);
    while let Some(place) = rest.pop() {
        for entry in std::fs::read_dir(&place).with_context(|| place.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                rest.push(path);
                continue;
            }
            let name = path.strip_prefix(directory)?.to_str().context("a name that is not UTF-8")?.to_owned();
            files.insert(name, std::fs::read(&path)?);
        }
    }
    Ok(files)
}

fn pack(files: &Files) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let (path, body) = match path.as_str() {
            FIRST => (path.clone(), content.clone()),
            _ => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
                encoder.write_all(content)?;
                (format!("{path}{COMPRESSED}"), encoder.finish()?)
            }
        };
        let mut header = tar::Header::new_ustar();
        header.set_size(body.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, body.as_slice())?;
    }
    Ok(archive.into_inner()?)
}

fn unpack(packed: &[u8]) -> Result<Files> {
    let mut files = Files::new();
    for entry in tar::Archive::new(packed).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.to_str().context("a name that is not UTF-8")?.to_owned();
        let mut content = Vec::new();
        match path.strip_suffix(COMPRESSED) {
            Some(_) => GzDecoder::new(entry).read_to_end(&mut content)?,
            None => entry.read_to_end(&mut content)?,
        };
        files.insert(path.strip_suffix(COMPRESSED).unwrap_or(&path).to_owned(), content);
    }
    Ok(files)
}

/// Paths at which the two have something else, or only one has something.
fn differing(packed: &Files, built: &Files) -> Vec<String> {
    let paths: BTreeSet<&String> = packed.keys().chain(built.keys()).collect();
    paths.into_iter().filter(|path| packed.get(*path) != built.get(*path)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // inspector: CI rebuilds and compares the unpacked tree
    #[test]
    fn what_is_packed_is_found_again_and_every_difference_is_named() {
        let of = |files: &[(&str, &str)]| -> Files {
            files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
        };
        let long = "a ".repeat(5000);
        let built = of(&[("index.html", "<p>"), ("assets/a-1.js", &long), ("icon.svg", "<svg/>")]);
        let packed = pack(&built).expect("packed");
        assert!(packed.len() < long.len());
        assert_eq!(packed, pack(&built).expect("packed"), "the same each time");
        let again = unpack(&packed).expect("unpacked");
        assert_eq!(again, built);
        assert!(differing(&again, &built).is_empty());
        let later = of(&[("index.html", "<p>"), ("assets/a-2.js", &long), ("icon.svg", "<svg />")]);
        assert_eq!(differing(&again, &later), ["assets/a-1.js", "assets/a-2.js", "icon.svg"]);
    }
}
