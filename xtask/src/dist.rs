//! `cargo xtask dist`: builds the program that is handed out, or takes one that is there, and packs it: an archive, a package
//! for Debian with a container file beside it, a wheel, npm packages, crates, and the checksums of all.
//!
//! Invariants: the same commit and program give the same bytes; a package asks for no older system than its program runs on;
//! nothing is published and nothing beyond the registries is asked for. Not here: trying the packages
//! (`test/packages.rs`), and publishing them (CONTRIBUTING.md).

mod archive;
mod build;
pub(crate) mod crates;
mod deb;
mod elf;
mod npm;
mod papers;
mod release;
mod target;
mod wheel;

use crate::outside;
use anyhow::{Context, Result, bail, ensure};
use archive::Entry;
use clap::Args;
use elf::Needs;
use papers::Papers;
use release::Release;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use target::Target;

/// What the command line says.
#[derive(Args, Default)]
pub(crate) struct Options {
    /// Pack this program, stripped, instead of building one
    #[arg(long, value_name = "FILE")]
    pub(crate) binary: Option<PathBuf>,
    /// Build for this target, and others that are named in the same way; default: x86_64-unknown-linux-gnu, or the one of --binary
    #[arg(long = "target", value_name = "TRIPLE", value_parser = target::parse)]
    pub(crate) targets: Vec<&'static Target>,
    /// Put the packages here instead of into target/packages; what an earlier run put there goes
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// For a look, not for a release: compress little, do not build the crates, take what is not committed
    #[arg(long)]
    pub(crate) draft: bool,
}

const SUMS: &str = "SHA256SUMS";
const CONTAINER: &str = "Containerfile";

/// A program to pack.
struct Program {
    target: &'static Target,
    content: Vec<u8>,
    needs: Needs,
}

/// What all packages are made of.
struct Parts {
    release: Release,
    papers: Papers,
    license: Vec<u8>,
    readme: String,
    /// Of gzip and its kin.
    level: u32,
}

/// Runs the command.
pub(crate) fn run(options: &Options, root: &Path) -> Result<()> {
    let output = options.output.clone().unwrap_or_else(|| outside::target_directory(root).join("packages"));
    let output = std::path::absolute(output)?;
    let release = Release::of(root)?;
    let programs = match (&options.binary, &*options.targets) {
        (Some(file), targets) => vec![build::take(file, targets, &release)?],
        (None, []) => vec![build::build(&target::ALL[0], &release, root)?],
        (None, targets) => {
            // Before the first of them takes its minutes.
            targets.iter().try_for_each(|target| build::has_library(target, root))?;
            targets.iter().map(|target| build::build(target, &release, root)).collect::<Result<_>>()?
        }
    };
    let parts = Parts {
        release,
        papers: papers::make(root)?,
        license: fs::read(root.join("LICENSE"))?,
        readme: fs::read_to_string(root.join("deploy/README.md"))?,
        level: if options.draft { 1 } else { 9 },
    };
    clear(&output)?;
    for program in &programs {
        let (name, packed) = archived(program, &parts)?;
        put(&output, &name, &packed)?;
        deb::make(program, &parts, root, &output)?;
        let (name, packed) = wheel::pack(program, &parts)?;
        put(&output, &name, &packed)?;
        let (name, packed) = npm::pack_platform(program, &parts)?;
        put(&output, &name, &packed)?;
    }
    let (name, packed) = npm::pack_launcher(&programs, &parts, root)?;
    put(&output, &name, &packed)?;
    crates::make(&parts.release, root, options.draft, &output)?;
    fs::copy(root.join("deploy").join(CONTAINER), output.join(CONTAINER))?;
    sum_up(&output)
}

/// The program with what belongs to it, for those who use no package manager.
fn archived(program: &Program, parts: &Parts) -> Result<(String, Vec<u8>)> {
    let name = format!("acpd-{}-{}", parts.release.version, program.target.triple);
    let mut entries = vec![
        Entry::program("acpd", &program.content),
        Entry::file("LICENSE", &parts.license),
        Entry::file("README.md", parts.readme.as_bytes()),
    ];
    entries.extend(parts.papers.man.iter().map(|(page, text)| Entry::file(&format!("man/{page}"), text)));
    let scripts = parts.papers.completions.iter();
    entries.extend(scripts.map(|(file, text)| Entry::file(&format!("completions/{file}"), text)));
    let packed = archive::tar_gz(&name, entries, parts.release.epoch, parts.level)?;
    Ok((format!("{name}.tar.gz"), packed))
}

/// An empty directory. Nothing is removed from one that no earlier run filled.
fn clear(output: &Path) -> Result<()> {
    if fs::read_dir(output).is_ok_and(|mut entries| entries.next().is_some()) {
        let is_ours = output.join(SUMS).is_file();
        ensure!(is_ours, "{} has other files, no packages; name another --output", output.display());
        fs::remove_dir_all(output)?;
    }
    // Until all is there, too.
    fs::create_dir_all(output).with_context(|| output.display().to_string())?;
    Ok(fs::write(output.join(SUMS), "")?)
}

fn put(output: &Path, name: &str, content: &[u8]) -> Result<()> {
    fs::write(output.join(name), content).with_context(|| name.to_owned())
}

/// Writes the checksums, and says what there is.
fn sum_up(output: &Path) -> Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(output)? {
        let name = entry?.file_name();
        names.push(name.to_str().context("a name that is not UTF-8")?.to_owned());
    }
    names.retain(|name| name != SUMS);
    names.sort();
    if names.is_empty() {
        bail!("nothing was packed");
    }
    let mut sums = String::new();
    for name in &names {
        let content = fs::read(output.join(name))?;
        anstream::println!("{:>9} KiB  {name}", content.len().div_ceil(1024));
        let sum = Sha256::digest(&content);
        writeln!(sums, "{}  {name}", data_encoding::HEXLOWER.encode(&sum))?;
    }
    fs::write(output.join(SUMS), sums)?;
    anstream::println!("{}", output.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    // packages: what an earlier run left goes, and nothing else does
    #[test]
    fn only_packages_are_replaced_by_packages() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let output = place.path().join("packages");
        clear(&output).expect("it was not there");
        put(&output, "b", b"b").expect("writable");
        put(&output, "a", b"a").expect("writable");
        sum_up(&output).expect("summed up");
        let sums = fs::read_to_string(output.join(SUMS)).expect("written");
        let lines: Vec<&str> = sums.lines().collect();
        assert_eq!(lines[0], "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  a");
        assert!(lines.len() == 2 && lines[1].ends_with("  b"), "{sums}");
        clear(&output).expect("it is of an earlier run");
        assert!(!output.join("a").exists());
        fs::remove_file(output.join(SUMS)).expect("it is there");
        put(&output, "mine", b"").expect("writable");
        assert!(clear(&output).expect_err("these are not ours").to_string().contains("has other files"));
        assert!(output.join("mine").exists());
    }
}
