//! What names a package of npm or PyPI: its name, and a version or tag. Nothing that such a tool would take for a URL, a
//! path, another package or a flag.

use crate::name::Version;
use std::fmt;
use thiserror::Error;

/// The longest name that npm takes.
const LONGEST: usize = 214;

/// Where a package is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ecosystem {
    /// npm, run by Node.js.
    Npm,
    /// PyPI, run by Python.
    PyPi,
}

/// Why a text names no package.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "\"{}\" is not a package {of} by its name, with or without {versioned}; URLs, paths, aliases, ranges and flags are not \
     taken",
    text.escape_debug()
)]
pub struct SpecError {
    text: String,
    of: &'static str,
    versioned: &'static str,
}

/// A package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageSpec {
    ecosystem: Ecosystem,
    /// With its scope.
    name: String,
    /// What is asked for with it, `[a,b]`, of PyPI.
    extras: String,
    version: Option<Version>,
}

impl PackageSpec {
    /// Reads `name`, `@scope/name` or `name[extra]`, with `@VERSION` or, of PyPI, `==VERSION` behind it. `@latest` is the
    /// same as nothing.
    ///
    /// # Errors
    /// It is something else.
    pub fn read(ecosystem: Ecosystem, text: &str) -> Result<Self, SpecError> {
        let wrong = || SpecError {
            text: text.chars().take(200).collect(),
            of: if ecosystem == Ecosystem::Npm { "of npm" } else { "of PyPI" },
            versioned: if ecosystem == Ecosystem::Npm { "@VERSION" } else { "@VERSION or ==VERSION" },
        };
        // The scope of npm begins with the sign that stands before the version.
        let scope = usize::from(text.starts_with('@'));
        let split = text.get(scope..).and_then(|rest| rest.split_once("==").or_else(|| rest.split_once('@')));
        let (name, version) = match split {
            Some((name, version)) => (&text[..scope + name.len()], Some(version)),
            None => (text, None),
        };
        if ecosystem == Ecosystem::Npm && text.contains("==") {
            return Err(wrong());
        }
        let (name, extras) = match name.split_once('[') {
            Some((name, extras)) if ecosystem == Ecosystem::PyPi => (name, Some(extras)),
            _ => (name, None),
        };
        let has_form = match ecosystem {
            Ecosystem::Npm => is_npm(name),
            Ecosystem::PyPi => is_python(name) && extras.is_none_or(is_extras),
        };
        let version = version.filter(|version| *version != "latest");
        let version = version.map(|version| Version::try_from(version.to_owned())).transpose();
        match version {
            Ok(version) if has_form => {
                let extras = extras.map(|extras| format!("[{extras}")).unwrap_or_default();
                Ok(Self { ecosystem, name: name.to_owned(), extras, version })
            }
            _ => Err(wrong()),
        }
    }

    /// The same in another version.
    #[must_use]
    pub fn at(&self, version: Version) -> Self {
        Self { version: Some(version), ..self.clone() }
    }

    /// The same without a version: the newest.
    #[must_use]
    pub fn newest(&self) -> Self {
        Self { version: None, ..self.clone() }
    }

    /// Its name, with its scope.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version that is asked for; None for the newest.
    pub fn version(&self) -> Option<&Version> {
        self.version.as_ref()
    }

    /// Where it is from.
    pub fn ecosystem(&self) -> Ecosystem {
        self.ecosystem
    }

    /// As npm, pip and uv take it.
    pub fn spec(&self) -> String {
        let Self { name, extras, .. } = self;
        match (self.ecosystem, &self.version) {
            (Ecosystem::Npm, Some(version)) => format!("{name}@{version}"),
            (Ecosystem::Npm, None) => format!("{name}@latest"),
            (Ecosystem::PyPi, Some(version)) => format!("{name}{extras}=={version}"),
            (Ecosystem::PyPi, None) => format!("{name}{extras}"),
        }
    }
}

impl fmt::Display for PackageSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Some(version) => write!(f, "{}{}@{version}", self.name, self.extras),
            None => write!(f, "{}{}", self.name, self.extras),
        }
    }
}

fn is_npm(name: &str) -> bool {
    let is_part = |part: &str| {
        let begins = part.starts_with(|c: char| c.is_ascii_alphanumeric());
        begins
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "._~-".contains(c))
            && !part.contains("..")
    };
    let parts = name
        .strip_prefix('@')
        .map_or(Some((None, name)), |scoped| scoped.split_once('/').map(|(scope, name)| (Some(scope), name)));
    name.len() <= LONGEST && parts.is_some_and(|(scope, name)| scope.is_none_or(is_part) && is_part(name))
}

fn is_python(name: &str) -> bool {
    let is_edge = |c: char| c.is_ascii_alphanumeric();
    name.len() <= LONGEST
        && name.starts_with(is_edge)
        && name.ends_with(is_edge)
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// What stands behind the bracket.
fn is_extras(extras: &str) -> bool {
    extras.strip_suffix(']').is_some_and(|list| list.split(',').all(is_python))
}

#[cfg(test)]
mod tests {
    use super::*;

    // issue 14: a package is named plainly
    #[test]
    fn only_names_and_versions_are_taken() {
        for (text, spec) in [
            ("opencode-ai", "opencode-ai@latest"),
            ("opencode-ai@latest", "opencode-ai@latest"),
            ("opencode-ai@1.18.33", "opencode-ai@1.18.33"),
            ("@scope/na.me@next", "@scope/na.me@next"),
            ("@scope/name", "@scope/name@latest"),
        ] {
            assert_eq!(PackageSpec::read(Ecosystem::Npm, text).expect(text).spec(), spec);
        }
        for (text, spec) in [
            ("hermes-agent", "hermes-agent"),
            ("hermes-agent@0.19", "hermes-agent==0.19"),
            ("hermes_agent[acp,x]==0.19", "hermes_agent[acp,x]==0.19"),
        ] {
            assert_eq!(PackageSpec::read(Ecosystem::PyPi, text).expect(text).spec(), spec);
        }
        let both = [
            "",
            "@",
            "@x",
            "--flag",
            "-g",
            "a b",
            "https://host.example/x.tgz",
            "git+ssh://x/y",
            "git:x",
            "file:x",
            "./x",
            "../x",
            "/x",
            "x@https://host.example",
            "x@npm:y@1",
            "x@^1",
            "x@>=1",
            "x@*",
            "x@",
            "x@../1",
            "x@1@2",
            "@a/b/c",
            "user/repo",
            "x;y",
            "x\n",
            "@../x",
            "x@file:y",
            "..",
            ".x",
        ];
        for text in both.into_iter().chain(["x==1", "x[y]"]) {
            assert!(PackageSpec::read(Ecosystem::Npm, text).is_err(), "{text}");
        }
        for text in both.into_iter().chain([
            "x[",
            "x[]",
            "x[--y]",
            "x>=1",
            "x===1",
            "@scope/name",
            "x ; python_version",
        ]) {
            assert!(PackageSpec::read(Ecosystem::PyPi, text).is_err(), "{text}");
        }
    }
}
