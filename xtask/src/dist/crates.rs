//! The crates, packed by cargo and built from what it packed: what `cargo install acpd` builds.
//!
//! Invariant: each has what a registry asks for, and its license. Not here: publishing them, whose order cargo knows.

use super::release::Release;
use crate::outside;
use crate::run::{self, Counts};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    target_directory: PathBuf,
}

/// What cargo says of a crate of the workspace.
#[derive(Clone, Deserialize)]
struct Package {
    name: String,
    version: String,
    description: Option<String>,
    license: Option<String>,
    readme: Option<String>,
    manifest_path: PathBuf,
    /// Empty: it is not published.
    publish: Option<Vec<String>>,
}

/// Packs them. A draft takes what is not committed, and builds nothing.
pub(super) fn make(release: &Release, root: &Path, is_draft: bool, output: &Path) -> Result<()> {
    let metadata = run::answer(run::line("cargo metadata --format-version 1 --no-deps --locked", root));
    let metadata = metadata.context("cargo does not say which crates there are")?;
    let metadata: Metadata = serde_json::from_str(&metadata)?;
    let mut published = metadata.packages;
    published.retain(|package| package.publish.as_ref().is_none_or(|registries| !registries.is_empty()));
    published.iter().try_for_each(|package| judge(package, release))?;
    let mut command = run::line("cargo package --quiet --locked", root);
    for package in &published {
        command.args(["--package", &package.name]);
    }
    if is_draft {
        command.args(["--no-verify", "--allow-dirty"]);
    }
    run::run(command, &mut Counts::default())?;
    for package in &published {
        let name = format!("{}-{}.crate", package.name, package.version);
        std::fs::copy(metadata.target_directory.join("package").join(&name), output.join(&name))
            .context(name)?;
    }
    Ok(())
}

/// Refuses one that a registry would, or that is of another version.
fn judge(package: &Package, release: &Release) -> Result<()> {
    let Package { name, version, .. } = package;
    ensure!(*version == release.version, "{name} is of version {version}, not {}", release.version);
    for (key, value) in
        [("description", &package.description), ("license", &package.license), ("readme", &package.readme)]
    {
        ensure!(
            value.is_some(),
            "{name} is published and has no {key}; write it into its Cargo.toml, or publish = false"
        );
    }
    let license = package.manifest_path.with_file_name("LICENSE");
    ensure!(license.is_file(), "{name} has no LICENSE; link it: ln -s ../../LICENSE {}", license.display());
    Ok(())
}

/// Where cargo has what it packed; for those that look into it.
pub(crate) fn unpacked(root: &Path, output: &Path) -> Result<Vec<PathBuf>> {
    let place = outside::target_directory(root).join("packages-try/crates");
    if place.exists() {
        std::fs::remove_dir_all(&place)?;
    }
    let mut crates = Vec::new();
    for entry in std::fs::read_dir(output)? {
        let file = entry?.path();
        if file.extension().is_some_and(|extension| extension == "crate") {
            let packed = flate2::read::GzDecoder::new(std::fs::File::open(&file)?);
            tar::Archive::new(packed).unpack(&place)?;
            crates.push(place.join(file.file_stem().context("a crate without a name")?));
        }
    }
    Ok(crates)
}

#[cfg(test)]
mod tests {
    use super::*;

    // packages: crates that cargo package accepts have what a registry asks for
    #[test]
    fn a_crate_that_lacks_something_is_refused_by_name() {
        let place = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(place.path().join("LICENSE"), "").expect("writable");
        let release = Release { version: "1.0.0".to_owned(), epoch: 0 };
        let some = || Some("x".to_owned());
        let whole = Package {
            name: "a".to_owned(),
            version: "1.0.0".to_owned(),
            description: some(),
            license: some(),
            readme: some(),
            manifest_path: place.path().join("Cargo.toml"),
            publish: None,
        };
        assert!(judge(&whole, &release).is_ok());
        let refused =
            |package: Package| judge(&package, &release).expect_err("it lacks something").to_string();
        assert!(
            refused(Package { readme: None, ..whole.clone() }).contains("a is published and has no readme")
        );
        assert!(refused(Package { description: None, ..whole.clone() }).contains("no description"));
        assert!(refused(Package { version: "2.0.0".to_owned(), ..whole.clone() }).contains("version 2.0.0"));
        let elsewhere = place.path().join("b/Cargo.toml");
        assert!(refused(Package { manifest_path: elsewhere, ..whole }).contains("ln -s ../../LICENSE"));
    }
}
