//! The program: built for an old glibc by `cargo-zigbuild`, or one that is there.
//!
//! Invariant: it names nothing of the machine that it was built on, and is of the version that is checked out.

use super::Program;
use super::elf::Needs;
use super::release::Release;
use super::target::{ALL, Target};
use crate::run::{self, Counts};
use crate::{keeper, outside, venv};
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;

/// The glibc that systems in use have at least, and the oldest that Rust's own library runs on.
const GLIBC: (u32, u32) = (2, 17);
/// Bytes that it may take (docs/adr/0028).
const MOST: usize = 16 * 1024 * 1024;
const REQUIREMENTS: &str = include_str!("requirements.txt");

/// Whether Rust's library is there for a target; one line that says how to get it otherwise.
pub(super) fn has_library(target: &Target, root: &Path) -> Result<()> {
    let triple = target.triple;
    let place = run::answer(run::line(&format!("rustc --print target-libdir --target {triple}"), root));
    let place = place.context("rustc does not say where its libraries are")?;
    let has_some = std::fs::read_dir(place).is_ok_and(|mut files| files.next().is_some());
    ensure!(
        has_some,
        "the standard library for {triple} is not installed; get it with: rustup target add {triple}"
    );
    Ok(())
}

/// Builds the program for a target.
pub(super) fn build(target: &'static Target, release: &Release, root: &Path) -> Result<Program> {
    has_library(target, root)?;
    let triple = target.triple;
    let tools = venv::install(&outside::target_directory(root).join("dist-tools"), REQUIREMENTS)?;
    // Beside what gcc linked: cargo does not tell the two apart.
    let directory = outside::target_directory(root).join("dist-build");
    let (major, minor) = GLIBC;
    let mut command = run::command(tools.join("cargo-zigbuild"));
    command.args([
        "zigbuild",
        "--locked",
        "--profile",
        "dist",
        "--package",
        "acpd",
        "--bin",
        "acpd",
        "--features",
        "nats",
        "--target",
    ]);
    command.arg(format!("{triple}.{major}.{minor}")).arg("--target-dir").arg(&directory).current_dir(root);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(tools).chain(std::env::split_paths(&path)))?;
    command.env("PATH", path).env("CARGO_INCREMENTAL", "0");
    command.env("CARGO_ENCODED_RUSTFLAGS", keeper::renamed(root)?.join("\x1f"));
    run::print_and_run(command)?;
    let file = directory.join(triple).join("dist/acpd");
    let content = std::fs::read(&file).with_context(|| file.display().to_string())?;
    keeper::names_no_place(&content, root)?;
    ensure!(content.len() <= MOST, "the program has {} bytes, and may have {MOST} at most", content.len());
    let needs = Needs::of(&content)?;
    ensure!(
        needs.glibc <= GLIBC,
        "the program needs glibc {}, not {major}.{minor}: something new is linked in",
        needs.glibc_with('.')
    );
    judge(&file, target, &needs, release)?;
    Ok(Program { target, content, needs })
}

/// Takes a program that is there, and strips it.
pub(super) fn take(file: &Path, targets: &[&Target], release: &Release) -> Result<Program> {
    let content = std::fs::read(file).with_context(|| file.display().to_string())?;
    let needs = Needs::of(&content).with_context(|| file.display().to_string())?;
    let target = ALL.iter().find(|target| target.machine == needs.machine);
    let Some(target) = target.filter(|found| targets.iter().all(|named| named == found)) else {
        bail!("{} is for a machine that no --target says", file.display());
    };
    judge(file, target, &needs, release)?;
    let content = if needs.has_symbols { stripped(file)? } else { content };
    let needs = Needs::of(&content)?;
    Ok(Program { target, content, needs })
}

/// Refuses a program of another target, or of another version where it can be run.
fn judge(file: &Path, target: &Target, needs: &Needs, release: &Release) -> Result<()> {
    ensure!(needs.machine == target.machine, "{} is not for {}", file.display(), target.triple);
    if !target.is_here() {
        return Ok(());
    }
    let mut command = run::command(std::path::absolute(file)?);
    command.arg("--version");
    let told = run::answer(command).with_context(|| format!("{} does not run", file.display()))?;
    let version = &release.version;
    ensure!(told == format!("acpd {version}"), "{} is {told}, not version {version}", file.display());
    Ok(())
}

fn stripped(file: &Path) -> Result<Vec<u8>> {
    let place = tempfile::tempdir()?;
    let copy = place.path().join("acpd");
    let mut strip = run::command("strip");
    strip.args(["--strip-all", "-o"]).arg(&copy).arg(file);
    run::run(strip, &mut Counts::default()).context("cannot strip the program (strip is in binutils)")?;
    Ok(std::fs::read(copy)?)
}
