//! What is released, and of when: the version in the words of each registry, and the time of the last commit.

use crate::run;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::path::Path;

/// A version of all that is packed.
pub(super) struct Release {
    /// As Cargo.toml and npm have it: `0.2.0`, `0.2.0-rc.1`.
    pub(super) version: String,
    /// Seconds since 1970, for every file that is packed.
    pub(super) epoch: u64,
}

#[derive(Deserialize)]
struct Manifest {
    workspace: Workspace,
}

#[derive(Deserialize)]
struct Workspace {
    package: Package,
}

#[derive(Deserialize)]
struct Package {
    version: String,
}

impl Release {
    /// The one that is checked out. `SOURCE_DATE_EPOCH` goes over the time of the last commit, and is needed without git.
    pub(super) fn of(root: &Path) -> Result<Self> {
        let manifest = std::fs::read_to_string(root.join("Cargo.toml")).context("Cargo.toml")?;
        let Manifest { workspace } = toml::from_str(&manifest).context("Cargo.toml")?;
        let given = std::env::var("SOURCE_DATE_EPOCH").ok();
        let epoch = given.or_else(|| run::answer(run::line("git log -1 --format=%ct", root)));
        let epoch = epoch.context("the time of the last commit is not known; set SOURCE_DATE_EPOCH")?;
        let epoch = epoch.parse().with_context(|| format!("{epoch} are no seconds since 1970"))?;
        let release = Self { version: workspace.package.version, epoch };
        release.parts()?;
        Ok(release)
    }

    /// The numbers, and what comes before the release: its kind and number.
    fn parts(&self) -> Result<(&str, Option<(&str, &str)>)> {
        let (numbers, before) = match self.version.split_once('-') {
            None => (&*self.version, None),
            Some((numbers, before)) => (numbers, Some(before)),
        };
        let before = before.map(|before| before.split_once('.').unwrap_or((before, "")));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_known =
            before.is_none_or(|(kind, number)| ["alpha", "beta", "rc"].contains(&kind) && is_number(number));
        ensure!(
            is_known && numbers.split('.').count() == 3 && numbers.split('.').all(is_number),
            "version {} in Cargo.toml has no name on PyPI; write 1.2.3, or 1.2.3-rc.1 (alpha, beta, rc)",
            self.version
        );
        Ok((numbers, before))
    }

    /// As PyPI has it.
    pub(super) fn python(&self) -> Result<String> {
        let (numbers, before) = self.parts()?;
        let before = before.map(|(kind, number)| match kind {
            "alpha" => format!("a{number}"),
            "beta" => format!("b{number}"),
            _ => format!("{kind}{number}"),
        });
        Ok(format!("{numbers}{}", before.unwrap_or_default()))
    }

    /// As Debian has it: what comes before a release is older than it.
    pub(super) fn debian(&self) -> String {
        format!("{}-1", self.version.replace('-', "~"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_a_name_in_each_registry() {
        let of = |version: &str| Release { version: version.to_owned(), epoch: 0 };
        for (version, python, debian) in [
            ("0.1.0", "0.1.0", "0.1.0-1"),
            ("1.20.3-rc.1", "1.20.3rc1", "1.20.3~rc.1-1"),
            ("1.0.0-alpha.2", "1.0.0a2", "1.0.0~alpha.2-1"),
            ("1.0.0-beta.10", "1.0.0b10", "1.0.0~beta.10-1"),
        ] {
            let release = of(version);
            assert_eq!(
                (release.python().expect(version), release.debian()),
                (python.to_owned(), debian.to_owned())
            );
        }
        for version in ["1.0", "1.0.x", "1.0.0-rc", "1.0.0-next.1", "1.0.0-rc.x", ""] {
            assert!(of(version).python().is_err(), "{version}");
        }
    }
}
