//! The package that a program on this machine belongs to, by what package managers leave beside it.
//!
//! Reads manifests, bounded; follows links to the program itself first. What cannot be told is not guessed.

use serde::Deserialize;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::known::Package;

/// The largest manifest that is read.
const MANIFEST_BYTES: u64 = 1 << 20;
/// How far above a program its package begins at most.
const LEVELS: usize = 6;

/// What a program belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The package's name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The package of a program file, which has the name `program`; `wanted` are those that it can be of, for packages that do not
/// name their programs.
pub fn owner(file: &Path, program: &str, wanted: &[Package]) -> Option<Owner> {
    let real = std::fs::canonicalize(file).ok()?;
    npm_owner(&real, program).or_else(|| {
        // Such a program is a script of its environment, which can be linked to from elsewhere.
        let names = wanted.iter().filter_map(|package| match package {
            Package::Pypi { name, .. } => Some(*name),
            Package::Npm(_) => None,
        });
        names.into_iter().find_map(|name| python_owner(&real, name))
    })
}

/// A package.json, as far as it is read.
#[derive(Deserialize)]
struct Manifest {
    name: String,
    version: String,
    #[serde(default)]
    bin: Value,
}

impl Manifest {
    /// Whether a program of that name is one of the package's.
    fn has(&self, program: &str) -> bool {
        let own_name = self.name.rsplit('/').next().unwrap_or(&self.name);
        match &self.bin {
            Value::String(_) => own_name == program,
            Value::Object(programs) => programs.contains_key(program),
            _ => false,
        }
    }
}

/// The nearest manifest above the program that names it. Another one above, such as of a home directory, says nothing of it.
fn npm_owner(real: &Path, program: &str) -> Option<Owner> {
    let manifest: Manifest = serde_json::from_slice(&manifest_above(real)?).ok()?;
    manifest.has(program).then_some(Owner { name: manifest.name, version: manifest.version })
}

/// The nearest manifest of npm above a file.
pub(crate) fn manifest_above(real: &Path) -> Option<Vec<u8>> {
    real.ancestors().skip(1).take(LEVELS).find_map(|dir| read(&dir.join("package.json")))
}

fn read(path: &Path) -> Option<Vec<u8>> {
    // A pipe or a device of that name is not waited for.
    path.metadata().ok().filter(|found| found.is_file() && found.len() <= MANIFEST_BYTES)?;
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MANIFEST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The environment of Python that the script is in has a package of that name.
fn python_owner(real: &Path, name: &str) -> Option<Owner> {
    let prefix = real.parent().filter(|dir| dir.ends_with("bin"))?.parent()?;
    let wanted = normalized(name);
    let libraries = ["lib", "lib64", "local/lib"].map(|lib| prefix.join(lib));
    let pythons = libraries.iter().flat_map(|lib| entries(lib)).filter(|dir| {
        dir.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("python3"))
    });
    let sites = pythons.flat_map(|python| ["site-packages", "dist-packages"].map(|site| python.join(site)));
    let version = sites.flat_map(|site| entries(&site)).find_map(|info| {
        let (name, version) = info.file_name()?.to_str()?.strip_suffix(".dist-info")?.split_once('-')?;
        (normalized(name) == wanted).then(|| version.to_owned())
    })?;
    Some(Owner { name: name.to_owned(), version })
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// A name of PyPI as it is compared.
fn normalized(name: &str) -> String {
    name.to_ascii_lowercase().replace(['_', '.'], "-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    fn put(dir: &TempDir, path: &str, text: &str) -> PathBuf {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(&path, text).expect("a file");
        path
    }

    fn told(owner: Option<Owner>) -> Option<(String, String)> {
        owner.map(|owner| (owner.name, owner.version))
    }

    fn pair(name: &str, version: &str) -> Option<(String, String)> {
        Some((name.to_owned(), version.to_owned()))
    }

    // issue 14: where two agents have one program, the package that the program found belongs to decides
    #[test]
    fn a_program_of_npm_belongs_to_the_nearest_package_that_names_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let package = "lib/node_modules/@one/agent-acp";
        let real = put(&dir, &format!("{package}/dist/index.js"), "");
        let manifest = |text: &str| put(&dir, &format!("{package}/package.json"), text);
        fs::create_dir(dir.path().join("bin")).expect("a directory");
        let linked = dir.path().join("bin/agent-acp");
        symlink(&real, &linked).expect("a link");
        // A package of the home directory has no part in what is below it.
        put(&dir, "package.json", r#"{"name":"home","version":"9","bin":{"agent-acp":"x"}}"#);
        for (bin, is_found) in [
            (r#"{"agent-acp":"dist/index.js"}"#, true),
            (r#""dist/index.js""#, true),
            (r#"{"other":"dist/index.js"}"#, false),
            ("null", false),
        ] {
            manifest(&format!(r#"{{"name":"@one/agent-acp","version":"1.2.3","bin":{bin}}}"#));
            let expected = pair("@one/agent-acp", "1.2.3").filter(|_| is_found);
            assert_eq!(told(owner(&linked, "agent-acp", &[])), expected, "{bin}");
        }
        for odd in ["", "[]", "{\"name\":\"x\"}", "{\"name\":1,\"version\":\"1\"}"] {
            manifest(odd);
            assert_eq!(owner(&linked, "agent-acp", &[]), None, "{odd}");
        }
    }

    // issue 14: the version of a program of PyPI stands in the dist-info of its environment
    #[test]
    fn a_program_of_pypi_belongs_to_its_environment() {
        let dir = tempfile::tempdir().expect("a directory");
        let script = put(&dir, "tools/some-agent/bin/agent-acp", "#!python");
        put(&dir, "tools/some-agent/lib/python3.12/site-packages/Some_Agent-2.0.1.dist-info/METADATA", "");
        put(&dir, "tools/some-agent/lib/python3.12/site-packages/some_agent_more-9.dist-info/METADATA", "");
        fs::create_dir(dir.path().join("bin")).expect("a directory");
        let linked = dir.path().join("bin/agent-acp");
        symlink(&script, &linked).expect("a link");
        let of = |name| Package::Pypi { name, extras: &[], python: "" };
        assert_eq!(told(owner(&linked, "agent-acp", &[of("some-agent")])), pair("some-agent", "2.0.1"));
        assert_eq!(owner(&linked, "agent-acp", &[of("another")]), None);
        assert_eq!(owner(&linked, "agent-acp", &[]), None);
        assert_eq!(owner(&dir.path().join("bin/absent"), "absent", &[of("some-agent")]), None);
    }
}
